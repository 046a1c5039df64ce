"""What the side panel says to the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from dm_jupyter.agent.notebook_context import NotebookCell, PartKind
from dm_jupyter.core.codec import Tagged

__all__ = [
    "MOST_TRIES",
    "Ack",
    "Approval",
    "Ask",
    "Attach",
    "ClientMessage",
    "Decide",
    "DecideFiles",
    "Decision",
    "Detach",
    "KernelChoice",
    "OwnCell",
    "ReadAhead",
    "Rebuild",
    "Renamed",
    "Stop",
    "TakeOver",
    "Tells",
    "Undo",
]

Approval = Literal["ask", "risky", "auto"]
"""Which cells wait for the person: all of them, those that the screen marks, none."""
Decision = Literal["approve", "skip"]
KernelChoice = Literal["restricted", "own"]
MOST_TRIES = 9
MOST_TURN_TOKENS = 32_000
MOST_CELLS = 400
_MOST_CELL_CHARS = 20_000
_MOST_FIGURES, _MOST_FIGURE_CHARS = 200, 1_000_000
"""Of all cells together."""
MOST_TEMPERATURE = 2.0
"""Of one question; more cost a lot and change a vote seldom."""


class Attach(Tagged, frozen=True):
    """This tab has the notebook open; sent for each notebook, and again after a reconnection."""

    notebook_path: str
    client_id: str
    """Names the browser tab for as long as it lives."""
    seen: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Run id to the last `seq` that this tab has; what comes after it is sent again."""


class Renamed(Tagged, frozen=True):
    """This tab's notebook has another path now; an `Attach` under that one follows."""

    old_path: str
    new_path: str
    client_id: str
    """As in `Attach`."""


class Detach(Tagged, frozen=True):
    """This tab has closed the notebook."""

    notebook_path: str


class TakeOver(Tagged, frozen=True):
    """This tab wants to be the one that writes the notebook."""

    notebook_path: str


class Ask(Tagged, frozen=True):
    """A question about the notebook's data."""

    request_id: str
    notebook_path: str
    question: str
    files: tuple[str, ...] = ()
    """Paths of data files, below the server's root as the contents API gives them."""
    variables: tuple[str, ...] = ()
    """Names of DataFrames in the kernel that the question is about."""
    after: tuple[str, ...] = ()
    """Ids of the cells below which to write, best first."""
    model: str = ""
    """A name from the models list; empty for the server's default."""
    approval: Approval = "risky"
    kernel: KernelChoice = "restricted"
    """`own` lets the run use a kernel that is not restricted."""
    agreed: tuple[str, ...] = ()
    """Where links among the files lead, of which the person has said that they may be read."""
    without_data: bool = False
    """Whether the person says that the question is about none of their data."""
    tries: int = 1
    """How often the question is tried, 1 to 9: above 1 in fresh kernels first, and then the answer
    that most tries give is worked out in the notebook."""
    dialect: str = "auto"
    """The form in which the model is asked; `auto` for the one that suits it."""
    turn_tokens: int = 0
    """The most tokens of one turn; 0 for the server's own limit."""
    temperature: float | None = None
    """Of the sampling, 0 to 2; `None` for the server's own."""
    cells: tuple[NotebookCell, ...] = ()
    """The notebook around the selected cell, as the tab shows it; long texts are cut."""
    selected: int = -1
    """Place of the selected cell among them; -1 for none."""
    withheld: tuple[PartKind, ...] = ()
    """What of the notebook the model is not told."""
    pictures: bool = False
    """Whether figures may be sent as pictures to an endpoint outside of the server's machine."""

    def __post_init__(self) -> None:
        if not 1 <= self.tries <= MOST_TRIES:
            raise ValueError(f"ask: tries must be 1 to {MOST_TRIES}, got {self.tries}")
        if not 0 <= self.turn_tokens <= MOST_TURN_TOKENS:
            raise ValueError(
                f"ask: turn_tokens must be 0 to {MOST_TURN_TOKENS:,}, got {self.turn_tokens}"
            )
        if len(self.cells) > MOST_CELLS or any(_is_long(cell) for cell in self.cells):
            raise ValueError(f"ask: more than {MOST_CELLS} cells, or one that is too long")
        figures = [figure for cell in self.cells for figure in cell.figures]
        if len(figures) > _MOST_FIGURES or sum(map(len, figures)) > _MOST_FIGURE_CHARS:
            raise ValueError(f"ask: more than {_MOST_FIGURES} figures, or they are too large")
        if self.temperature is not None and not 0 <= self.temperature <= MOST_TEMPERATURE:
            raise ValueError(
                f"ask: temperature must be 0 to {MOST_TEMPERATURE:g}, got {self.temperature:g}"
            )


def _is_long(cell: NotebookCell) -> bool:
    return len(cell.source) > _MOST_CELL_CHARS or len(cell.output) > _MOST_CELL_CHARS


class Tells(Tagged, frozen=True):
    """What the person's settings switch off; sent with each connection, and when it changes."""

    withheld: tuple[PartKind, ...]
    """As in `Ask`; a question that `%%analyze` hands over follows it."""


class ReadAhead(Tagged, frozen=True):
    """A question about these files is being written; a model on this machine may read them."""

    notebook_path: str
    files: tuple[str, ...]
    """As in `Ask`."""
    model: str = ""
    """As in `Ask`."""


class Ack(Tagged, frozen=True):
    """The owner has applied the run's operations up to `seq` to its document."""

    run_id: str
    seq: int
    is_saved: bool = False
    """Whether the file on disk holds them too."""


class Stop(Tagged, frozen=True):
    """End the run: interrupts the cell, then kills the kernel if it does not listen."""

    run_id: str


class Decide(Tagged, frozen=True):
    """The person's word on a cell that waits."""

    run_id: str
    cell_id: str
    decision: Decision
    source: str | None = None
    """The cell's text as the person changed it; `None` leaves it."""


class DecideFiles(Tagged, frozen=True):
    """The person's word on what a cell did to files, as `FilesWait` shows it."""

    run_id: str
    cell_id: str
    allows: bool


class OwnCell(Tagged, frozen=True):
    """The person runs a cell of theirs: from now on the kernel writes for them again."""

    notebook_path: str


class Undo(Tagged, frozen=True):
    """Take out what an ended run wrote, but no cell that the person has changed."""

    run_id: str


class Rebuild(Tagged, frozen=True):
    """Run the notebook's cells that had worked again, in the kernel that is empty now."""

    run_id: str


ClientMessage = (
    Attach | Renamed | Detach | TakeOver | Ask | ReadAhead | Ack | Stop | Decide | DecideFiles
    | OwnCell | Undo | Rebuild | Tells
)  # fmt: skip
