"""Making of a question: composition, two computed answers, ruling out other readings, wording."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from training.suites.generated.programs.frame_program import run_frames
from training.suites.generated.programs.frames import FrameReader
from training.suites.generated.programs.rows import database_of
from training.suites.generated.programs.sql_program import SqlProgram
from training.suites.generated.programs.steps import (
    ProgramAnswer,
    ProgramStep,
    Reading,
    Result,
    ResultRow,
    UnfitError,
)
from training.suites.generated.questions.amounts import fixed
from training.suites.generated.questions.compose import Composer, Draft
from training.suites.generated.questions.slots import Slot
from training.suites.generated.questions.templates import AnswerForm, Template
from training.suites.generated.questions.wording import (
    FactSheet,
    Scope,
    answer_format,
    decimals_of,
    fill_wording,
    finished,
    table_constraint,
)
from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.dirt import DirtyTable
from training.suites.generated.tables.files import DataFile

__all__ = ["DisagreementError", "Question", "QuestionMaker", "ResultTable", "results_agree"]

INLINE = 0.6
"""Share of single conditions that are stated within the question."""
UNNEEDED = 0.3
"""Share of facts that are stated although they do not matter."""
RELATIVE = 1e-7
"""Relative distance up to which two numbers are equal; SciPy's tests round internally."""
_NO_CLAUSE = re.compile(r" those | others| ones|_rows\} \{")
"""Texts that can't include a prefix's clause: it would be unclear whether a second group shares the
condition, or two clauses would follow each other."""
_FACTS = {
    "keeps_repeats": "repeats",
    "skips_gaps": "gaps",
    "zero_gaps": "gaps",
    "raw_labels": "labels",
}
"""Sentence that decides each reading; a template's own words decide the other readings."""
_SPREADS = frozenset(f"{name}{kind}" for name in ("", "p") for kind in ("std", "var", "sem", "cv"))
_QUANTILES = frozenset({"quantile", "iqr"})

_Solve = Callable[[Reading], tuple[str, ...]]


class DisagreementError(Exception):
    """The two programs have different answers; the message contains both."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Label of a question that asks for a result table."""

    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    is_ordered: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A finished question with its label."""

    template: Template
    level: int
    depth: int
    text: str
    constraints: str
    format: str
    """Format of the answer; empty if a table is asked for."""
    label: tuple[tuple[str, str], ...]
    table: ResultTable | None
    kept: tuple[str, ...]
    """Names of columns, labels, limits and periods in its text; a paraphrase must keep them."""

    @property
    def answer(self) -> str:
        """The entire label as one text."""
        return repr(self.table.rows if self.table else self.label)


class QuestionMaker:
    """Maker of questions about one file."""

    def __init__(self, file: DataFile) -> None:
        """Read the file with both readers."""
        self.file = file
        self._reader = FrameReader(file)
        self._sql = SqlProgram(database_of(file))
        self._composer = Composer(file, self._reader)

    def make(self, template: Template, level: int, chance: Chance) -> Question:
        """Return a question.

        Args:
            template: the template of the question.
            level: 1 to 3.
            chance: the draws of this question alone.

        Raises:
            UnfitError: the table or the values give no question with a single answer.
            DisagreementError: the two programs differ.
        """
        draft = self._composer.compose(template, level, chance)
        result = self._solved(draft, Reading())
        written = self._written(draft, result)
        self._compare(draft, result)
        decided = self._decided(draft)
        words = _Words(self.file, draft, chance)
        label: tuple[tuple[str, str], ...] = ()
        table = None
        names: list[str] = []
        if template.table:
            table = ResultTable(
                tuple(words.titles()), _rounded(result.rows, template.table.decimals),
                template.table.ordered,
            )  # fmt: skip
        else:
            names = words.names()
            label = tuple(zip(names, written, strict=True))
        text = words.question()
        return Question(
            template,
            draft.level,
            draft.depth,
            text,
            words.constraints(decided),
            words.format(names),
            label,
            table,
            words.kept(text),
        )

    def _shown(self, draft: Draft) -> tuple[str, ...]:
        form = draft.template.table
        if form is None:
            return ()
        return tuple(
            str(draft.slots[name[1:]].raw) if name.startswith("$") else name
            for name in form.columns
        )

    def _solved(self, draft: Draft, reading: Reading) -> Result:
        return run_frames(draft.steps, self._reader, reading, self._shown(draft))

    def _written(self, draft: Draft, result: Result) -> tuple[str, ...]:
        """Return the answer as a label writes it."""
        form = draft.template.table
        if form:
            rows = _rounded(result.rows, form.decimals)
            return tuple(map(repr, rows if form.ordered else sorted(rows, key=repr)))
        return tuple(
            _text(result.values[one.source], one, draft.slots) for one in draft.template.answers
        )

    def _compare(self, draft: Draft, result: Result) -> None:
        other = self._sql.run(draft.steps, self._shown(draft))
        form = draft.template.table
        if not results_agree(result, other, is_ordered=form is not None and form.ordered):
            raise DisagreementError(f"{draft.template.full_name}: {result} and {other}")

    def _decided(self, draft: Draft) -> list[str]:
        """Return the readings that the constraints must rule out.

        Raises:
            UnfitError: another reading changes the answer, and the template does not rule it out.
        """
        differing = _differing_readings(
            draft,
            self.file.dirty,
            lambda reading: self._written(draft, self._solved(draft, reading)),
        )
        says = set(draft.template.says).union(*(prefix.says for prefix, _ in draft.prefixes))
        if any(name not in _FACTS and name not in says for name in differing):
            raise UnfitError("another reading")
        return sorted({_FACTS[name] for name in differing if name in _FACTS})


class _Words:
    """Wording of one question."""

    def __init__(self, file: DataFile, draft: Draft, chance: Chance) -> None:
        self._file = file
        self._draft = draft
        self._chance = chance
        self._say = chance.choose(draft.template.say)
        clauses = [prefix.clause for prefix, _ in draft.prefixes]
        self._is_inline = (
            len(clauses) == 1
            and clauses[0] != ""
            and not _NO_CLAUSE.search(self._say)
            and chance.happens(INLINE)
        )

    def _scope(self) -> Scope:
        domain = self._file.dirty.table.domain
        prefixes = self._draft.prefixes
        if self._is_inline:
            prefix, slots = prefixes[0]
            return Scope(domain, fill_wording(prefix.clause, slots, Scope(domain)))
        return Scope(domain, is_narrowed=bool(prefixes))

    def question(self) -> str:
        domain = self._file.dirty.table.domain
        sentences = []
        if not self._is_inline:
            for place, (prefix, slots) in enumerate(self._draft.prefixes):
                texts = prefix.then if place else prefix.say
                sentences.append(fill_wording(self._chance.choose(texts), slots, Scope(domain)))
        sentences.append(fill_wording(self._say, self._draft.slots, self._scope()))
        return finished(" ".join(sentences), self._file, self._chance)

    def constraints(self, decided: Sequence[str]) -> str:
        draft, file = self._draft, self._file
        facts = FactSheet(file, draft.columns, self._chance)
        said = facts.always()
        possible = {
            "repeats": file.dirty.repeats > 0,
            "gaps": draft.has_gaps,
            "labels": any(
                file.dirty.forms[one].is_varied for one in draft.columns if one in file.dirty.forms
            ),
        }
        for reading, is_possible in possible.items():
            if reading in decided or (is_possible and self._chance.happens(UNNEEDED)):
                said.append(facts.matters(reading))
        scope = self._scope()
        scope.settle()
        for prefix, slots in draft.prefixes:
            said += [fill_wording(note, slots, scope) for note in prefix.notes]
        said += [fill_wording(note, draft.slots, scope) for note in draft.template.notes]
        form = draft.template.table
        if form:
            said.append(table_constraint(form, self.titles()))
        return finished(" ".join(dict.fromkeys(said)), file)

    def kept(self, text: str) -> tuple[str, ...]:
        """Return the names in a text that a paraphrase must keep."""
        domain = self._file.dirty.table.domain
        slots = [slot for _, own in self._draft.prefixes for slot in own.values()]
        slots += self._draft.slots.values()
        names = [slot.words[""] for slot in slots if slot.columns and "\x02" not in slot.words[""]]
        names += [domain.column(name).noun for name in self._draft.columns]
        return tuple(dict.fromkeys(name for name in names if name and name in text))

    def titles(self) -> list[str]:
        """Return the columns of the result table in words."""
        form = self._draft.template.table
        scope = Scope(self._file.dirty.table.domain)
        texts = form.titles if form else ()
        return [finished(fill_wording(one, self._draft.slots, scope), self._file) for one in texts]

    def names(self) -> list[str]:
        """Return the names of the answer's values; a number distinguishes equal names."""
        scope = Scope(self._file.dirty.table.domain)
        names: list[str] = []
        for form in self._draft.template.answers:
            name = fill_wording(form.name, self._draft.slots, scope)
            names.append(f"{name}_{len(names) + 1}" if name in names else name)
        return names

    def format(self, names: Sequence[str]) -> str:
        """Return the answer format; empty for a table."""
        if not names:
            return ""
        scope = Scope(self._file.dirty.table.domain)
        forms = [
            (form, name, finished(fill_wording(form.about, self._draft.slots, scope), self._file))
            for form, name in zip(self._draft.template.answers, names, strict=True)
        ]
        return answer_format(forms, self._draft.slots)


def _text(value: ProgramAnswer, form: AnswerForm, slots: Mapping[str, Slot]) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    if form.kind == "number":
        return fixed(float(value), decimals_of(form, slots))
    return str(value)


def _rounded(rows: Sequence[ResultRow], decimals: int) -> tuple[ResultRow, ...]:
    return tuple(tuple(_cell(cell, decimals) for cell in row) for row in rows)


def _cell(cell: str | int | float | None, decimals: int) -> str | int | float | None:
    if isinstance(cell, str) or cell is None:
        return cell
    number = float(fixed(cell, decimals))
    return int(number) if number.is_integer() else number


def results_agree(one: Result, other: Result, *, is_ordered: bool = False) -> bool:
    """Return whether two programs produced the same values and rows.

    Args:
        one: the result of the first program.
        other: the result of the second program.
        is_ordered: whether the order of the rows matters.
    """
    if one.values.keys() != other.values.keys() or len(one.rows) != len(other.rows):
        return False
    pairs: list[tuple[object, object]] = [(one.values[n], other.values[n]) for n in one.values]
    rows, others = one.rows, other.rows
    if not is_ordered:
        rows, others = _by_text(rows), _by_text(others)
    for row, second in zip(rows, others, strict=True):
        pairs += zip(row, second, strict=True)
    return all(_same(a, b) for a, b in pairs)


def _by_text(rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """Return the rows sorted by their text cells, which identify each row."""
    return tuple(sorted(rows, key=lambda row: [cell for cell in row if isinstance(cell, str)]))


def _same(one: object, other: object) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=1e-9)
    return one == other


def _differing_readings(draft: Draft, dirty: DirtyTable, solve: _Solve) -> list[str]:
    """Return the fields of `Reading` that change the answer.

    Args:
        draft: the question.
        dirty: the table of the question.
        solve: returns the written answer under a reading, or raises `UnfitError`.
    """
    expected = solve(Reading())
    differing = []
    for name in _possible(draft, dirty):
        try:
            if solve(Reading(**{name: True})) != expected:
                differing.append(name)
        except UnfitError:  # under this reading there is no answer at all
            differing.append(name)
    return differing


def _possible(draft: Draft, dirty: DirtyTable) -> Iterator[str]:
    """Yield the readings that may change the answer."""
    figures = {name for step in draft.steps for name in _figures(step)}
    varied = any(dirty.forms[name].is_varied for name in draft.columns if name in dirty.forms)
    for field in fields(Reading):
        match field.name:
            case "keeps_repeats":
                is_possible = dirty.repeats > 0
            case "skips_gaps" | "zero_gaps":
                is_possible = draft.has_gaps
            case "raw_labels":
                is_possible = varied
            case "population":
                is_possible = bool(figures & (_SPREADS | {"zscore"}))
            case _:
                is_possible = bool(figures & _QUANTILES)
        if is_possible:
            yield field.name


def _figures(step: ProgramStep) -> Iterator[str]:
    if "how" in step.args:
        yield str(step.args["how"])
    for one in step.args.get("make", ()):
        yield str(one["how"])
