"""The loop's two seams: a policy to sample and a notebook to run cells in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dm_jupyter.agent.local_model.tickets import Urgency
from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.trajectory import Completion, RunCell
from kernel_sandbox.types import CellResult

__all__ = ["BatchPolicy", "Notebook", "Policy", "RanCell", "SampleRequest", "Urgency"]


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One turn to sample."""

    messages: tuple[Message, ...]
    prefill: str = ""
    """The opening of the turn, which the model continues."""
    stop: tuple[str, ...] = ()
    stop_unopened: tuple[str, ...] = ()
    """In place of `stop`, where the endpoint can't continue an opening and so gets none."""
    tools: tuple[Tool, ...] = ()
    """What the model may call, in a dialect of calls."""
    temperature: float = 0.2
    top_p: float = 0.95
    max_tokens: int = 1_000
    seed: int = 0
    cuts_repetition: bool = True
    """Whether a turn that goes round in circles is cut."""
    urgency: Urgency = Urgency.QUESTION
    """Who waits for it; a model of this machine that has several to answer goes by that."""
    on_wait: Callable[[int], None] | None = field(default=None, compare=False, repr=False)
    """Told how many requests go before this one, each time that it changes, and 0 at its turn."""


class Policy(Protocol):
    """A model. Called by `step` once a turn, never twice at a time for one trajectory.

    An implementation may not assume that the caller waits: a cancelled `sample` must end the
    request. It raises `PolicyError` for every fault of the endpoint and nothing else.
    """

    @property
    def name(self) -> str:
        """The model's name, recorded with the trajectory."""
        ...

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Returns one turn; `on_text` gets each piece of it as it comes, the opening included."""
        ...


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A model that draws several turns from one reading of the conversation. Called by a search."""

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Returns `count` turns, each with the probability that the model gave it, where known.

        It raises `PolicyError` for every fault of the endpoint and nothing else; all turns come,
        or none.
        """
        ...


@dataclass(frozen=True, slots=True)
class RanCell:
    """A cell as it ran, and what became of it."""

    cell: RunCell
    """Another one than was asked for where a person changed it before it ran."""
    result: CellResult


class Notebook(Protocol):
    """Where cells are written and run. Called by `step`, one call at a time.

    An implementation may not assume that a cell ends by itself (its limits see to that), nor that
    the caller waits: cancelling `run` interrupts the cell, keeps its output so far and re-raises.
    """

    async def run(self, cell: RunCell, thought: str) -> RanCell:
        """Writes the thought and the cell, runs it, keeps and returns what became of it."""
        ...

    async def rerun(self, cell: RunCell, why: str) -> RanCell:
        """Runs the last cell again in its place, corrected. Called when it has just failed.

        Args:
            cell: the corrected cell.
            why: what was corrected, for the person.
        """
        ...
