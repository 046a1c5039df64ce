"""The list of questions: a line for each attempt, with its given and expected answers below."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from training.metrics.runs import UNGROUPED, by_group, group_names
from training.records.records import EvalRecord
from training.report.judges import WORDS, JudgeNote, judge_note, opinion_of
from training.report.notebooks import NotebookPage, notebook_page
from training.report.pictures import Pictures
from training.report.search import Tree, VoteCount
from training.report.search_page import TreePage, VotePage, tree_page, vote_page
from training.report.source import ReportRun, Tried
from training.report.svg import cut
from training.report.words import plain
from training.scoring import closed_form

__all__ = [
    "Filter",
    "PageEntry",
    "Part",
    "ShownVerdict",
    "entries_of",
    "filters_of",
    "verdict_kind",
    "verdict_of",
]

_TITLE_CHARS = 400
_ANSWER_CHARS = 120
VERDICTS = {
    "right": "right",
    "wrong": "wrong",
    "ours": "right by our rules only",
    "strict": "right by the strict rules only",
}
NOTED = (("yes", "with a note"), ("no", "without a note"))
_MAX_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One attempt at one question."""

    number: int
    """Position in the list, from 1."""
    record: EvalRecord
    run: str
    title: str
    """The question, or its id if the record is compact."""
    verdict: ShownVerdict
    word: str
    """The verdict in words."""
    keys: tuple[str, ...]
    """Keys that the filters look for, each `name=value`."""
    notebook: NotebookPage | None
    others: tuple[tuple[str, NotebookPage], ...]
    """The other candidates of a vote; the label names the candidate and its answer."""
    vote: VotePage | None
    tree: TreePage | None
    judge: JudgeNote | None
    """A judge's opinion of the answer."""
    note: str
    """A person's note on the attempt; empty if there is none."""

    @property
    def key(self) -> str:
        """Unique key on the page, which stays the same on later pages about the same runs."""
        return json.dumps([self.run, self.record.id, self.record.trial])


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice that narrows the list."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    """Each value with its label."""


def entries_of(
    runs: Sequence[ReportRun], pictures: Pictures, *, are_paired: bool
) -> list[PageEntry]:
    """Return the entries, with all attempts at a question next to each other.

    Args:
        runs: the runs whose records are listed.
        pictures: collects the pictures of their notebooks.
        are_paired: whether these are two runs of the same questions.
    """
    tries: dict[str, list[tuple[ReportRun, Tried]]] = defaultdict(list)
    for run in runs:
        for one in run.tries:
            tries[one.record.id].append((run, one))
    entries: list[PageEntry] = []
    for beside in tries.values():
        differ = len({one.record.strict_correct for _, one in beside}) > 1
        won = _winner(runs, beside) if are_paired else []
        for run, one in beside:
            entry = _entry(len(entries) + 1, run, one, differ, pictures)
            entries.append(replace(entry, keys=(*entry.keys, *won)))
    return entries


def _winner(runs: Sequence[ReportRun], beside: Sequence[tuple[ReportRun, Tried]]) -> list[str]:
    """Return which of two runs did better at a question, as keys; none if one did not try it."""
    sides = [[one.record.strict_correct for run, one in beside if run is each] for each in runs]
    if not all(sides):
        return []
    first, second = (Fraction(sum(side), len(side)) for side in sides)
    if first != second:
        return ["won=a" if first > second else "won=b"]
    return ["won=both"] if first == 1 else ["won=neither"] if first == 0 else []


def _winners(runs: Sequence[ReportRun]) -> tuple[tuple[str, str], ...]:
    first, second = runs
    is_once = all(one.trial == 0 for run in runs for one in run.records)
    words = "only {0} right" if is_once else "{0} right more often"
    return (
        ("a", words.format(first.name)),
        ("b", words.format(second.name)),
        ("both", "both right"),
        ("neither", "neither right"),
    )


def filters_of(
    runs: Sequence[ReportRun], *, are_paired: bool, can_note: bool = False
) -> list[Filter]:
    """Return the filters that offer a choice.

    Args:
        runs: the runs whose records are listed.
        are_paired: whether these are two runs of the same questions.
        can_note: whether notes can be written on the page.
    """
    records = [record for run in runs for record in run.records]
    can_note = can_note or any(one.note for run in runs for one in run.tries)
    filters = [
        Filter("verdict", "verdict", tuple(_verdicts(records))),
        Filter(
            "failure",
            "failure",
            _pairs(dict.fromkeys(one.failure for one in records if one.failure)),
        ),
        Filter("judge", "judge", tuple(_opinions(runs))),
        Filter("won", "which run won", _winners(runs) if are_paired else ()),
        Filter("note", "note", NOTED if can_note else ()),
        Filter("run", "run", _pairs([run.name for run in runs])),
        *(
            Filter(_group(name), name, _pairs(_values(records, name)))
            for name in group_names(records)
        ),
    ]
    return [one for one in filters if one.name in {"verdict", "failure"} or len(one.options) > 1]


def _verdicts(records: Sequence[EvalRecord]) -> Iterator[tuple[str, str]]:
    yield "failed", "failures (not right by the strict rules)"
    kinds = {verdict_kind(record) for record in records}
    yield from ((kind, words) for kind, words in VERDICTS.items() if kind in kinds)
    if len({record.id for record in records}) < len(records):
        yield "differs", "tries or runs differ"


def _opinions(runs: Sequence[ReportRun]) -> Iterator[tuple[str, str]]:
    found = {opinion_of(one.judged) for run in runs for one in run.tries if one.judged}
    yield from ((opinion, words) for opinion, words in WORDS.items() if opinion in found)


def _values(records: Sequence[EvalRecord], name: str) -> list[str]:
    return [value for value in by_group(records, name) if value != UNGROUPED]


def _pairs(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((_line(value), value) for value in values)


def _keys(one: Tried, run: str, differ: bool) -> Iterator[str]:
    record = one.record
    yield f"verdict={verdict_kind(record)}"
    if not record.strict_correct:
        yield "verdict=failed"
    if differ:
        yield "verdict=differs"
    yield f"failure={_line(record.failure)}"
    yield f"run={_line(run)}"
    if one.judged is not None:
        yield f"judge={opinion_of(one.judged)}"
    yield f"note={'yes' if one.note else 'no'}"
    for name, values in record.groups.items():
        yield from (f"{_group(name)}={_line(value)}" for value in values)


def _group(name: str) -> str:
    """Return the filter of a group; the prefix separates it from filters such as `verdict`."""
    return f"group {_line(name)}"


def _line(text: str) -> str:
    """Return a text on one line, because line breaks separate the keys of an entry."""
    return " ".join(text.split())


def _others(vote: VoteCount, pictures: Pictures) -> Iterator[tuple[str, NotebookPage]]:
    for place, run in enumerate(vote.runs):
        if place != vote.chosen:
            said = cut(_line(plain(run.answer or "")), _ANSWER_CHARS) or "no answer"
            yield f"Candidate {place + 1}: {said}", notebook_page(run, pictures)


def _entry(number: int, run: ReportRun, one: Tried, differ: bool, pictures: Pictures) -> PageEntry:
    record, trajectory, search = one.record, one.trajectory, one.search
    verdict = verdict_of(record)
    question = trajectory.task.question if trajectory else ""
    return PageEntry(
        number=number,
        record=record,
        run=run.name,
        title=cut(plain(question), _TITLE_CHARS) or record.id,
        verdict=verdict,
        word=VERDICTS[verdict.kind],
        keys=tuple(_keys(one, run.name, differ)),
        notebook=notebook_page(trajectory, pictures) if trajectory else None,
        others=tuple(_others(search, pictures)) if isinstance(search, VoteCount) else (),
        vote=vote_page(search) if isinstance(search, VoteCount) else None,
        tree=tree_page(search) if isinstance(search, Tree) else None,
        judge=judge_note(one.judged) if one.judged else None,
        note=one.note.text if one.note else "",
    )


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the verdict."""

    name: str
    expected: str | None
    """Expected value; `None` if the label does not name it."""
    answered: str | None
    right: bool
    strict: bool | None
    """Verdict by the strict rules; `None` if the suite does not distinguish the rules."""


@dataclass(frozen=True, slots=True)
class ShownVerdict:
    """The verdict on one answer."""

    kind: str
    answer: str | None
    expected: str | None
    """The entire label; `None` in a compact record, and if the parts cover all of it."""
    parts: tuple[Part, ...]
    grades: tuple[tuple[str, str], ...]

    @property
    def names_values(self) -> bool:
        """Whether some part has a value beside its name."""
        return any(part.expected is not None or part.answered is not None for part in self.parts)


def verdict_kind(record: EvalRecord) -> str:
    """Return `right`, `wrong`, or the only rules by which it is correct: `ours`, `strict`."""
    if record.correct and record.strict_correct:
        return "right"
    if record.correct or record.strict_correct:
        return "ours" if record.correct else "strict"
    return "wrong"


def verdict_of(record: EvalRecord) -> ShownVerdict:
    """Return the verdict of a record."""
    paired = _paired(record)
    parts = tuple(_parts(record, paired))
    is_told = bool(paired) and {part.name for part in parts} >= paired.keys()
    return ShownVerdict(
        kind=verdict_kind(record),
        answer=None if record.answer is None else plain(record.answer, _MAX_CHARS),
        expected=None if record.label is None or is_told else _label_words(record.label),
        parts=parts,
        grades=tuple((name, f"{value:g}") for name, value in record.grades.items()),
    )


def _parts(record: EvalRecord, paired: Mapping[str, closed_form.SubAnswer]) -> Iterator[Part]:
    for name, right in record.parts.items():
        part = paired.get(name) or _unlabelled(record, name)
        yield Part(
            name,
            _label_words(part.label) if name in paired else None,
            None if part.answer is None else plain(part.answer, _MAX_CHARS),
            bool(right),
            record.strict_parts.get(name),
        )


def _paired(record: EvalRecord) -> dict[str, closed_form.SubAnswer]:
    """Return a label's named values, with the answers that the scorer compared with them."""
    label = record.label
    if isinstance(label, Mapping):
        pairs = [(str(name), _as_text(value)) for name, value in label.items()]
    elif isinstance(label, list) and all(_is_pair(one) for one in label):
        pairs = [(name, value) for name, value in label]
    else:
        pairs = []
    return closed_form.score(record.answer or "", pairs).numbered


def _unlabelled(record: EvalRecord, name: str) -> closed_form.SubAnswer:
    """Return the answer to a name; none if it occurs twice, as no label tells the two apart."""
    text = "" if f"{name}#2" in record.parts else record.answer or ""
    return closed_form.score(text, [(name, "")]).parts[0]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(x, str) for x in value)


def _label_words(label: Any) -> str:
    return plain(_as_text(label), _MAX_CHARS)


def _as_text(label: Any) -> str:
    return label if isinstance(label, str) else json.dumps(label, ensure_ascii=False, indent=1)
