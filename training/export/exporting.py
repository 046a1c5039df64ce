"""A run as the conversation that it would have been in another dialect.

The model's turns are written anew by `Dialect.render`; their cells are those that ran, as a
person may have changed them, and what each did is as recorded. The loop itself makes the
conversation, with a policy that says these turns, so prompts and observations are the other
dialect's own.

What is left out: turns that did nothing, answers that were sent back, the thought before an answer
where the dialect's answers are plain words, and what the help told the model after a mistake.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dm_jupyter.agent.candidates import Candidate, say_the_same
from dm_jupyter.agent.loop import RunSettings, begin, step
from dm_jupyter.agent.protocols import ExecutedCell, Notebook
from dm_jupyter.assist.cell_names import loaded_names, stored_names
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialect import Dialect, Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import UnrenderableTurnError
from dm_jupyter.core.tracebacks import parsed
from dm_jupyter.core.trajectory import (
    Action,
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
"""The help that only tells: the other rules change cells, ask again, or shorten what is shown."""


@dataclass(frozen=True, slots=True)
class Export:
    """A run in another dialect."""

    trajectory: Trajectory
    """Each step's result is the one that was recorded."""
    left_out: int = 0
    """Cells that would have ended the run before its time, with another answer."""
    own: tuple[bool, ...] = ()
    """For each turn, whether it does what the model said: neither a person nor the help changed
    its cell."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation; it ends with the model's last turn."""
        messages = dialect_named(self.trajectory.dialect).messages(self.trajectory)
        at = max(at for at, one in enumerate(messages) if one.role in {"system", "assistant"})
        return messages[: at + 1] if self.trajectory.steps else messages

    @property
    def texts(self) -> tuple[str, ...]:
        """The model's turns."""
        return tuple(one.completion.text for one in self.trajectory.steps)


@dataclass(frozen=True, slots=True)
class _Told:
    """A turn, and what its cell did."""

    turn: Turn
    result: CellResult | None
    is_own: bool


async def export(
    trajectory: Trajectory, dialect: str, assistance: Assistance | None = None
) -> Export:
    """Returns a run as it would have been in a dialect.

    A dialect that takes an answer from what a cell prints ends with that cell; any other gets a
    turn with the answer.

    Args:
        trajectory: the run, in any dialect; where it has no answer, it ends with its last cell.
        dialect: the name of the one to export to.
        assistance: the help whose words the conversation has; `None` for what the dialect's
            default shows. Rules that change a run are off in any case.

    Raises:
        UsageError: there is no dialect of that name.
        UnrenderableTurnError: the dialect can't hold one of the turns, or its end.
    """
    form = dialect_named(dialect)
    given = assistance or Assistance.for_dialect(dialect)
    scripted = ScriptedRun(begun(trajectory, dialect), Assistance.only(given.on() & _SHOWN))
    told, left_out, own = _cells(trajectory), 0, list[bool]()
    lost: set[str] = set()
    for one in told:
        needed = sorted(lost & _reads(one.turn.action))
        if needed:
            raise UnrenderableTurnError(
                f"{dialect} ends a run with the answer that a cell prints; a cell that printed "
                f"another one would be left out, but a later cell needs its {', '.join(needed)}"
            )
        lost -= _binds(one.turn.action)
        before = scripted.trajectory
        await scripted.say(form.render(one.turn), _Recorded(one.result))
        own.append(one.is_own)
        if scripted.trajectory.stop is None:
            continue
        if say_the_same(Candidate(scripted.trajectory), Candidate(trajectory)):
            break
        if one is told[-1]:
            raise UnrenderableTurnError(
                f"{dialect} ends a run with the answer that a cell prints, and this run printed "
                "one and answered another"
            )
        left_out += 1
        lost |= _binds(one.turn.action)
        scripted.trajectory = before
        own.pop()
    if scripted.trajectory.stop is None and trajectory.answer:
        await scripted.say(form.render(_answer(trajectory, form)), _Recorded(None))
        own.append(True)
    return Export(scripted.trajectory, left_out, tuple(own))


class ScriptedRun:
    """A run whose model says what it is told to; implements `Policy`."""

    def __init__(self, start: Trajectory, assistance: Assistance) -> None:
        """Begins.

        Args:
            start: before the first turn.
            assistance: the help that it gets.
        """
        self._next = ""
        self._settings = RunSettings(assistance=assistance)
        self.name = start.policy
        self.trajectory = begin(start, self, self._settings)

    async def say(self, text: str, notebook: Notebook) -> None:
        """Takes one turn.

        Args:
            text: the whole turn.
            notebook: where its cell runs.

        Raises:
            SandboxError: no cell can be run.
        """
        self._next = text
        run = self.trajectory
        after = await step(run, self, notebook, self._settings, lambda _: None)
        last = after.steps[-1].turn.action
        if after.stop is None and isinstance(last, Answer):  # the help would ask once more
            after = replace(after, stop=StopReason.ANSWERED, answer=last.text)
        self.trajectory = after

    async def sample(
        self,
        request: SampleRequest,  # noqa: ARG002  (it is not answered)
        on_text: Callable[[str], None],
    ) -> Completion:
        """Returns the turn; no opening is put before it."""
        on_text(self._next)
        return Completion(self._next)


class _Recorded:
    """A notebook in which the next cell does what it did before; implements `Notebook`."""

    def __init__(self, result: CellResult | None) -> None:
        self._result = result

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:  # noqa: ARG002
        assert self._result is not None  # noqa: S101  (an answer runs nothing)
        return ExecutedCell(cell, self._result)


def begun(trajectory: Trajectory, dialect: str) -> Trajectory:
    """Returns the run before its first turn, in another dialect.

    Args:
        trajectory: the run.
        dialect: the other one's name.
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
    """The turns whose cells ran, as they ran."""
    return [
        _Told(Turn(one.turn.thought.strip(), _trimmed(one.turn.action)), one.result, _is_own(one))
        for one in trajectory.steps
        if isinstance(one.turn.action, RunCell) and one.result is not None
    ]


def _is_own(step: Step) -> bool:
    """Whether the cell that ran is the model's; comments of an opening count for nothing."""
    if step.is_edited or step.written is None:
        return not step.is_edited
    return isinstance(step.turn.action, RunCell) and _code(step.written) == _code(step.turn.action)


def _code(cell: RunCell) -> Sequence[str]:
    """The lines of a cell that are no comments."""
    marks = ("#", "--")
    return [one for one in cell.source.splitlines() if not one.lstrip().startswith(marks)]


def _binds(action: Action) -> set[str]:
    """The names that a cell leaves to later ones."""
    return set[str]().union(*map(stored_names, _statements(action)))


def _reads(action: Action) -> set[str]:
    """The names that a cell takes from earlier ones."""
    read, bound = set[str](), set[str]()
    for statement in _statements(action):
        read |= loaded_names(statement) - bound
        bound |= stored_names(statement)
    return read


def _statements(action: Action) -> Sequence[ast.stmt]:
    tree = parsed(action.source) if isinstance(action, RunCell) else None
    return tree.body if tree else ()


def _trimmed(cell: RunCell) -> RunCell:
    """The cell without empty lines around it, which no dialect can hold."""
    return replace(cell, source=cell.source.strip("\n"))


def _answer(trajectory: Trajectory, form: Dialect) -> Turn:
    """The turn that answers, with its thought where the run and the dialect have one."""
    answer = (trajectory.answer or "").strip()
    said: Iterator[Step] = (
        one
        for one in reversed(trajectory.steps)
        if isinstance(one.turn.action, Answer) and one.turn.action.text == trajectory.answer
    )
    thought = "" if form.answers_in_words else next((one.turn.thought for one in said), "")
    return Turn(thought.strip(), Answer(answer))
