"""A run as the conversation that it would have been in another dialect.

`Dialect.render` rewrites the model's turns. Their cells are those that ran, with any edits of a
person, and each has its recorded result. The agent loop itself builds the conversation, with a
policy that replays these turns, so prompts and observations are those of the other dialect.

Left out are turns that did nothing, answers that were sent back, and the assistance's messages
after a mistake. The thought before an answer is left out if the dialect answers in plain words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dm_jupyter.agent.answer_cells import needed_cells
from dm_jupyter.agent.candidates import Candidate, say_the_same
from dm_jupyter.agent.loop import RunSettings, begin, step
from dm_jupyter.agent.protocols import ExecutedCell, Notebook
from dm_jupyter.agent.sql_cell import SqlCells
from dm_jupyter.assist.cell_effects import EarlierCell
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialect import Dialect, Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import UnrenderableTurnError
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
)
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.types import CellResult

__all__ = ["Export", "ScriptedRun", "begun", "export"]

_SHOWN = frozenset({"profile", "links", "advice", "ledger", "quiet_output"})
"""Assistance that only informs; other rules change cells, ask again, or shorten output."""


@dataclass(frozen=True, slots=True)
class Export:
    """A run in another dialect."""

    trajectory: Trajectory
    """The run, with the recorded result of each step."""
    left_out: int = 0
    """Cells that would have ended the run too early, with another answer."""
    learnable: tuple[bool, ...] = ()
    """For each turn, whether a model may learn it: its cell did not fail, and neither a person nor
    the assistance changed it."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The entire conversation; it ends with the model's last turn."""
        messages = dialect_named(self.trajectory.dialect).messages(self.trajectory)
        at = max(at for at, one in enumerate(messages) if one.role in {"system", "assistant"})
        return messages[: at + 1] if self.trajectory.steps else messages

    @property
    def texts(self) -> tuple[str, ...]:
        """The model's turns."""
        return tuple(one.completion.text for one in self.trajectory.steps)


@dataclass(frozen=True, slots=True)
class _Told:
    """A turn, and the result of its cell."""

    thought: str
    cell: RunCell
    result: CellResult
    is_learnable: bool

    @property
    def turn(self) -> Turn:
        return Turn(self.thought, self.cell)


async def export(trajectory: Trajectory, dialect: str) -> Export:
    """Return a run as it would have been in a dialect.

    In a dialect that reads the answer from a cell's output, the run ends with that cell. In any
    other, a turn with the answer is added. Of the dialect's default assistance, only the messages
    that inform are in the conversation.

    Args:
        trajectory: the run, in any dialect; without an answer, it ends with its last cell.
        dialect: name of the target dialect.

    Raises:
        UsageError: there is no dialect of that name.
        UnrenderableTurnError: the dialect can't express one of the turns, or the run's end.
    """
    form = dialect_named(dialect)
    shown = Assistance.only(Assistance.for_dialect(dialect).on() & _SHOWN)
    scripted = ScriptedRun(begun(trajectory, dialect), shown)
    told, kept, left_out = _cells(trajectory), list[int](), set[int]()
    for at, one in enumerate(told):
        before = scripted.trajectory
        await scripted.say(form.render(one.turn), _Recorded(one.result))
        kept.append(at)
        if scripted.trajectory.stop is None:
            continue
        if say_the_same(Candidate(scripted.trajectory), Candidate(trajectory)):
            break
        if one is told[-1]:
            raise UnrenderableTurnError(
                f"{dialect} ends a run with the answer that a cell prints, and this run printed "
                "one and answered another"
            )
        left_out.add(kept.pop())
        scripted.trajectory = before
    if left_out & needed_cells(_as_python(told, trajectory), kept):
        raise UnrenderableTurnError(
            f"{dialect} ends a run with the answer that a cell prints; a cell that printed "
            "another one would be left out, but a later cell needs it"
        )
    learnable = [told[at].is_learnable for at in kept]
    if scripted.trajectory.stop is None and trajectory.answer:
        await scripted.say(form.render(_answer(trajectory, form)), _Recorded(None))
        learnable.append(True)
    return Export(scripted.trajectory, len(left_out), tuple(learnable))


class ScriptedRun:
    """A run whose turns are given by `say`; implements `Policy`."""

    def __init__(self, start: Trajectory, assistance: Assistance) -> None:
        """Begin the run.

        Args:
            start: the run before its first turn.
            assistance: that applies to it.
        """
        self._next = ""
        self._settings = RunSettings(assistance=assistance)
        self.name = start.policy
        self.trajectory = begin(start, self, self._settings)

    async def say(self, text: str, notebook: Notebook) -> None:
        """Add one turn to the run.

        Args:
            text: the complete turn.
            notebook: where its cell runs.

        Raises:
            SandboxError: no cell can be run.
        """
        self._next = text
        run = self.trajectory
        after = await step(run, self, notebook, self._settings, lambda _: None)
        last = after.steps[-1].turn.action
        if after.stop is None and isinstance(last, Answer):  # assistance would ask again
            after = replace(after, stop=StopReason.ANSWERED, answer=last.text)
        self.trajectory = after

    async def sample(
        self,
        request: SampleRequest,  # noqa: ARG002  (unused: the turn is fixed)
        on_text: Callable[[str], None],
    ) -> Completion:
        """Return the turn, without an opening before it."""
        on_text(self._next)
        return Completion(self._next)


class _Recorded:
    """A notebook that returns the recorded result of a cell; implements `Notebook`."""

    def __init__(self, result: CellResult | None) -> None:
        self._result = result

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:  # noqa: ARG002
        assert self._result is not None  # noqa: S101  (an answer runs nothing)
        return ExecutedCell(cell, self._result)


def begun(trajectory: Trajectory, dialect: str) -> Trajectory:
    """Return the run before its first turn, in another dialect.

    Args:
        trajectory: the run.
        dialect: name of the other dialect.
    """
    return replace(
        trajectory,
        dialect=dialect,
        steps=(),
        folds=(),
        stop=None,
        stop_detail="",
        answer=None,
        unsupported=(),
        rests_on=(),
        grounding=(),
        ending=(),
        assistance=None,
        advice=(),
    )


def _cells(trajectory: Trajectory) -> Sequence[_Told]:
    """Return the turns whose cells ran, as they ran."""
    return [
        _Told(
            one.turn.thought.strip(),
            _trimmed(one.turn.action),
            one.result,
            one.result.ok and _is_own(one),
        )
        for one in trajectory.steps
        if isinstance(one.turn.action, RunCell) and one.result is not None
    ]


def _is_own(step: Step) -> bool:
    """Return whether the cell that ran is the model's; comment lines are ignored."""
    if step.is_edited or step.written is None:
        return not step.is_edited
    return isinstance(step.turn.action, RunCell) and _code(step.written) == _code(step.turn.action)


def _code(cell: RunCell) -> Sequence[str]:
    """Return the lines of a cell that are not comments."""
    marks = ("#", "--")
    return [one for one in cell.source.splitlines() if not one.lstrip().startswith(marks)]


def _as_python(told: Sequence[_Told], trajectory: Trajectory) -> Sequence[EarlierCell]:
    """Return the cells as the kernel runs them, queries as Python."""
    sql = SqlCells(trajectory.data_context.databases)
    return [EarlierCell(sql.python(one.cell), one.result.ok) for one in told]


def _trimmed(cell: RunCell) -> RunCell:
    """Return the cell without empty lines around it, which no dialect can express."""
    return replace(cell, source=cell.source.strip("\n"))


def _answer(trajectory: Trajectory, form: Dialect) -> Turn:
    """Return the turn that answers, with its thought if the run and the dialect have one."""
    answer = (trajectory.answer or "").strip()
    said: Iterator[Step] = (
        one
        for one in reversed(trajectory.steps)
        if isinstance(one.turn.action, Answer) and one.turn.action.text == trajectory.answer
    )
    thought = "" if form.answers_in_words else next((one.turn.thought for one in said), "")
    return Turn(thought.strip(), Answer(answer))
