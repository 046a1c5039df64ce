"""Funnel of conditions that each try must meet, counted by category, and corrections.

Conditions that cost nothing come before the replay, which runs every cell again.

Most right runs succeed at their first cell. A model that learns from these alone repeats a failed
cell, because it has never seen what follows one. A correction begins with the failed cell of one
try at a question, and then has the right run of another. The model learns only what follows the
failed cell, and the replay shows whether that works.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from dm_jupyter.agent.observe import describe
from dm_jupyter.assist.grounding import ground
from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import UnrenderableTurnError, UsageError
from dm_jupyter.core.trajectory import Answer, RunCell, Step, StopReason, Trajectory, Void
from kernel_sandbox.types import CellStatus
from training.evaluation.knowledge import without_knowledge
from training.export.exporting import Export, export
from training.records.records import EvalRecord
from training.suites.suite import Sample

__all__ = [
    "STAGES",
    "CollectedRun",
    "Funnel",
    "Variant",
    "corrections",
    "examine",
    "failed_first_cells",
    "is_grounded",
    "program_of",
    "written_in",
]

STAGES: Mapping[str, str] = {
    "drawn": "all tries",
    "ended": "the run ended with an answer",
    "correct": "the answer is right by the suite's rules",
    "licensed": "the licence of the question allows to learn from it",
    "grounded": "every number of the answer follows from the outputs",
    "no void turn": "every turn has code or an answer",
    "writable": "every dialect can write the run as it asks for it, with a turn to learn",
    "replayed": "the cells, run again in a fresh sandbox, show and answer the same",
    "shortest": "the shortest of the runs of a question with the same program",
    "per question": "the shortest runs of each question, up to the limit",
    "balanced": "within the limit of its category",
}
"""The conditions in order; each is counted among the runs that met all earlier ones."""
_SHOWN_CHARS = 1_000_000
Variant = Literal["", "corrected", "in words"]
"""How a run was made from a right one; empty if it was drawn."""


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """A run that met every condition but the replay."""

    record: EvalRecord
    run: Path
    """The folder of the evaluation that produced it."""
    trial: int
    """Number of the try among those of all evaluations, from 0."""
    category: str
    exported: Mapping[str, Export]
    """By dialect."""
    program: str
    """Hash that is equal for runs whose cells compute the same way."""
    tokens: int
    """Sampled in its own turns."""
    variant: Variant = ""
    """See `corrections`, and `in_words` in `wording`."""

    @property
    def key(self) -> tuple[str, int]:
        """Unique key of the run; a variant has the key of its right run."""
        return self.record.id, self.trial

    @property
    def length(self) -> tuple[int, int, int]:
        """Sort key for the shortest run: turns, then tokens, then the number of the try."""
        return self.record.turns, self.tokens, self.trial

    @property
    def tables(self) -> frozenset[str]:
        """Identity of its question's data files: their hashes, else their names."""
        if self.record.data:
            return frozenset(self.record.data.values())
        exported = next(iter(self.exported.values()))
        return frozenset(file.name for file in exported.trajectory.task.files)


@dataclass(slots=True)
class Funnel:
    """Number of runs that met each condition, by category."""

    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {stage: Counter() for stage in STAGES}
    )
    timed_out: int = 0
    """Number of replays in which a cell ran out of time; those of variants count too."""

    def count(self, stage: str, category: str) -> None:
        """Count one run that met a condition."""
        self.counts[stage][category] += 1

    def count_all(self, stage: str, runs: Sequence[CollectedRun]) -> None:
        """Count the runs that met a condition."""
        for run in runs:
            self.count(stage, run.category)

    def total(self, stage: str) -> int:
        """Return the number of runs that met a condition."""
        return self.counts[stage].total()

    @property
    def categories(self) -> list[str]:
        """Every category with a run, in order."""
        return sorted(self.counts["drawn"])


async def examine(
    record: EvalRecord,
    item: Sample,
    run: Path,
    first_trial: int,
    dialects: Sequence[str],
    funnel: Funnel,
) -> CollectedRun | None:
    """Return a run if it meets every condition up to the replay; count those it meets.

    Args:
        record: of the run, with its trajectory.
        item: the question.
        run: the folder of the evaluation.
        first_trial: number of the evaluation's first try among those of all evaluations.
        dialects: names of the dialects that must be able to write the run.
        funnel: receives the counts.

    Raises:
        UsageError: the record is compact and contains no run.
        TrajectoryError: the record is incomplete.
    """
    if not record.trajectory:
        raise UsageError(
            f"the records of {run} are compact and hold no runs: collect from the folder in which "
            "they were drawn"
        )
    category = item.category
    trajectory = without_knowledge(Trajectory.from_json(record.trajectory))
    conditions: Mapping[str, Callable[[], bool]] = {
        "drawn": lambda: True,
        "ended": lambda: trajectory.stop is StopReason.ANSWERED and bool(trajectory.answer),
        "correct": lambda: record.correct,
        "licensed": lambda: _is_licensed(item, trajectory),
        "grounded": lambda: is_grounded(trajectory),
        "no void turn": lambda: not _has_void(trajectory),
    }
    for stage, is_met in conditions.items():
        if not is_met():
            return None
        funnel.count(stage, category)
    exported = await written_in(trajectory, dialects)
    if exported is None:
        return None
    funnel.count("writable", category)
    trial = first_trial + record.trial
    program = program_of(trajectory)
    return CollectedRun(record, run, trial, category, exported, program, trajectory.tokens)


def is_grounded(trajectory: Trajectory) -> bool:
    """Return whether every number of the answer follows from the outputs.

    Args:
        trajectory: a run with an answer.
    """
    if not trajectory.task.is_closed_form:
        return not trajectory.unsupported
    results = [step.result for step in trajectory.steps if step.result is not None]
    outputs = [describe(result, _SHOWN_CHARS) for result in results]
    asked = trajectory.task.question
    # In `@name[1, 2]` the words around a number don't describe it, so also check it by itself.
    return not any(
        one.is_doubtful and any(alone.is_doubtful for alone in ground(one.text, outputs, asked))
        for _, value in find_answers(trajectory.answer or "")
        for one in ground(value, outputs, asked)
    )


def program_of(trajectory: Trajectory) -> str:
    """Return a hash of the cells that succeeded, ignoring layout and comments.

    Args:
        trajectory: the run.
    """
    cells = [
        (step.turn.action.language, _plain_code(step.turn.action))
        for step in trajectory.steps
        if isinstance(step.turn.action, RunCell) and step.result is not None and step.result.ok
    ]
    return hashlib.sha256(json.dumps(cells).encode("utf-8", "replace")).hexdigest()


def _plain_code(cell: RunCell) -> str:
    if cell.language == "python":
        try:
            return ast.dump(ast.parse(cell.source))
        except (SyntaxError, ValueError, RecursionError):  # a magic command, for instance
            pass
    return " ".join(cell.source.split())


def failed_first_cells(records: Iterable[EvalRecord]) -> dict[str, Step]:
    """Return a turn with a failed cell for each question with a run that begins with one.

    Args:
        records: of runs, with their trajectories.

    Raises:
        TrajectoryError: a record is incomplete.
    """
    found: dict[str, Step] = {}
    for record in records:
        if record.id not in found and (cell := _failed_first_cell(record)) is not None:
            found[record.id] = cell
    return found


def _failed_first_cell(record: EvalRecord) -> Step | None:
    """Return the first turn of a run if its cell raised an exception, else `None`."""
    steps = Trajectory.from_json(record.trajectory).steps
    first = steps[0] if steps else None
    if first is None or first.result is None or first.is_edited:
        return None
    failed = first.result.status is CellStatus.ERROR and not first.result.state_lost
    return first if failed and isinstance(first.turn.action, RunCell) else None


async def corrections(
    runs: Iterable[CollectedRun], failed: Mapping[str, Step], dialects: Sequence[str]
) -> list[CollectedRun]:
    """Return a correction for each question with a failed cell and a right run without one.

    A run that a dialect can't write after the failed cell is left out.

    Args:
        runs: right ones; of several at a question, the first one is used.
        failed: the failed first cell of another try, by question.
        dialects: names of the dialects that must be able to write the correction.
    """
    found: dict[str, CollectedRun] = {}
    for run in runs:
        cell = failed.get(run.record.id)
        if cell is None or run.record.id in found or _failed_first_cell(run.record) is not None:
            continue
        right = without_knowledge(Trajectory.from_json(run.record.trajectory))
        exported = await written_in(replace(right, steps=(cell, *right.steps)), dialects)
        if exported is not None:
            found[run.record.id] = replace(run, exported=exported, variant="corrected")
    return list(found.values())


def _is_licensed(item: Sample, trajectory: Trajectory) -> bool:
    return not any(task.metadata.get("evaluation_only") for task in (item.task, trajectory.task))


def _has_void(trajectory: Trajectory) -> bool:
    return any(isinstance(step.turn.action, Void) for step in trajectory.steps)


async def written_in(
    trajectory: Trajectory, dialects: Sequence[str]
) -> Mapping[str, Export] | None:
    """Return the run in each dialect; `None` if one can't write it or has nothing to learn.

    Args:
        trajectory: the run.
        dialects: their names.
    """
    exported = {}
    for dialect in dialects:
        try:
            exported[dialect] = await export(trajectory, dialect)
        except UnrenderableTurnError:
            return None
        if not any(exported[dialect].learnable) or _answers_unasked(exported[dialect].trajectory):
            return None
    return exported


def _answers_unasked(run: Trajectory) -> bool:
    """Return whether the run answers in words although the dialect asks for a printing cell."""
    is_printed = dialect_named(run.dialect).answers_in_words and run.task.is_closed_form
    return is_printed and isinstance(run.steps[-1].turn.action, Answer)
