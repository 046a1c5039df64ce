"""The suite `generated-absent`: questions about rows that the generated tables do not have.

People ask for a product that was never sold or a year before the first order. A right answer says
so. A split is a folder of the suite `generated`; the questions are made from the domains of its
tables, the same ones for the same folder. Each asks for a label, a period or a limit that no table
has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from dm_jupyter.core.absent_data import says_absent
from dm_jupyter.core.closed_form import outside_thought
from dm_jupyter.core.task import Task
from training.suites.generated.data import read_data_file
from training.suites.generated.questions.amounts import plain_amount, rounded
from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.dirt import MONTHS
from training.suites.generated.tables.domains import Column, Domain, domains
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["AbsentQuestions"]

_OF_EACH_KIND = 3
"""Questions of each kind about each table."""
_YEARS = ((1995, 2012), (2030, 2040))
"""Spans of years that no table covers."""
_FAR_ABOVE = (60, 90, 150)
"""How many times its typical number a limit is; no number of a table is as large."""
_Absent = tuple[str, Mapping[str, str]]
"""What is absent, as the answer must name it, and words of the question."""


class AbsentQuestions:
    """Questions on absent data; a label is what is absent, and the plural of the rows."""

    name = "generated-absent"

    def load(self, split: Path) -> list[Sample]:
        """Return the questions on the tables that `questions.jsonl` names, in its order.

        Raises:
            RecordError: a record is invalid, or its domain is unknown.
        """
        tables: dict[str, Record] = {}
        for record in read_records(split / "questions.jsonl"):
            tables.setdefault(record.text("file"), record)
        return [item for record in tables.values() for item in _items(record)]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return whether the answer names what is absent and says that there are no such rows.

        An undefined value such as NaN does not say so. The strict verdict is the same.
        """
        absent, rows = item.label
        answer = outside_thought(outcome.answer)
        is_named = re.search(rf"(?i)(?<!\w){re.escape(absent)}(?!\w)", answer.replace(",", ""))
        right = bool(is_named) and _denies(answer, item.task.question, rows)
        return ItemScore(right, right)

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether both answers say that there are no such rows."""
        answers = [outside_thought(outcome.answer) for outcome in (one, other)]
        return all(_denies(answer, item.task.question, item.label[1]) for answer in answers)


def _denies(answer: str, question: str, rows: str) -> bool:
    none = rf"(?i)\b(?:no|none of the)\s+(?:[\w'-]+\s+){{0,2}}?{re.escape(rows)}\b"
    return says_absent(answer, question) or re.search(none, answer) is not None


def _items(record: Record) -> Iterator[Sample]:
    """Yield the questions on one table."""
    domain = next((one for one in domains() if one.name == record.text("domain")), None)
    if domain is None:
        raise record.fault("domain", "there is no such domain")
    file = record.data_file("file")
    for kind, data in read_data_file("absent.toml").items():
        chance = Chance("absent", file.name, kind)
        has_total = any(column.total for column in _columns(domain, "number"))
        texts = [text for text in data["say"] if has_total or "{t}" not in text]
        for number in range(1, _OF_EACH_KIND + 1):
            text = texts.pop(chance.whole(0, len(texts) - 1))
            absent, words = _KINDS[kind](domain, chance)
            task = Task(
                id=f"{record.text('id').rpartition('-')[0]}-{kind}-{number}",
                question=text.format_map({**_nouns(domain, words, chance), **words}),
                files=(file,),
                level="easy",
                concepts=("Absent data",),
                metadata={
                    "suite": AbsentQuestions.name,
                    "evaluation_only": record.text("split") != "train",
                    "draw_group": kind,
                    "format": "text",
                    "licence": record.text("licence", ""),
                },
            )
            yield Sample(task, (absent, domain.rows))


def _label(domain: Domain, chance: Chance) -> _Absent:
    column = chance.choose([one for one in _columns(domain, "label") if one.absent])
    absent = chance.choose(column.absent)
    rest = column.clause.format(value=chance.choose(column.values))
    return absent, {"one": column.clause.format(value=absent), "rest": rest}


def _period(domain: Domain, chance: Chance) -> _Absent:
    within = _columns(domain, "date")[0].within
    year = chance.whole(*chance.choose(_YEARS))
    month = f"{chance.choose(MONTHS)} " if chance.happens(0.5) else ""
    one, other = (within.format(period=f"{month}{at}") for at in (year, year + 1))
    return str(year), {"one": one, "other": other}


def _limit(domain: Domain, chance: Chance) -> _Absent:
    column = chance.choose(_columns(domain, "number"))
    limit = plain_amount(rounded(column.typical * chance.choose(_FAR_ABOVE), 2, 0))
    unit = "" if column.noun.startswith("number of") else f" {column.unit}"
    said = f"whose {column.noun} is above {limit}{unit}".rstrip()
    return limit, {"one": said, "limited": column.noun}


_KINDS: Mapping[str, Callable[[Domain, Chance], _Absent]] = {
    "label": _label,
    "period": _period,
    "limit": _limit,
}


def _nouns(domain: Domain, words: Mapping[str, str], chance: Chance) -> dict[str, str]:
    """Return the words for the rows and for columns of a question."""
    numbers = [one for one in _columns(domain, "number") if one.noun != words.get("limited")]
    return {
        "row": domain.row,
        "rows": domain.rows,
        "m": chance.choose(numbers).noun,
        "t": chance.choose([one for one in numbers if one.total] or numbers).noun,
        "groups": chance.choose(_columns(domain, "label")).plural,
    }


def _columns(domain: Domain, kind: str) -> list[Column]:
    """Return the columns of a kind that every table of the domain has."""
    return [one for one in domain.columns if one.kind == kind and not one.optional]
