"""The messages from the side panel to the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from dm_jupyter.agent.notebook_context import NotebookCell, PartKind
from dm_jupyter.core.codec import Tagged
from dm_jupyter.models.protocols import MOST_TEMPERATURE

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
"""The cells that wait for the person: all of them, those that the screen marks, none."""
Decision = Literal["approve", "skip"]
KernelChoice = Literal["restricted", "own"]
MOST_TRIES = 9  # more cost a lot and rarely change a vote
MOST_TURN_TOKENS = 32_000
MOST_CELLS = 400
_MOST_CELL_CHARS = 20_000
_MOST_FIGURES, _MOST_FIGURE_CHARS = 200, 1_000_000
"""Most figures, and most characters of them, in all cells together."""


class Attach(Tagged, frozen=True):
    """This tab has the notebook open; sent for each notebook, and again after a reconnection."""

    notebook_path: str
    client_id: str
    """The id of the browser tab for as long as it exists."""
    seen: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The last `seq` that this tab has, by run id; later messages are sent again."""


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
    """Paths of data files below the server's root, as the contents API names them."""
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
    """Targets of links among the files that the person allowed to be read."""
    without_data: bool = False
    """Whether the person says that the question is about none of their data."""
    tries: int = 1
    """Number of attempts, 1 to 9. More than one run first in fresh kernels; then the answer that
    most attempts give is worked out in the notebook."""
    dialect: str = "auto"
    """The dialect in which the model is asked; `auto` for the one that suits it."""
    turn_tokens: int = 0
    """Most tokens of one turn; 0 for the server's own limit."""
    temperature: float | None = None
    """Sampling temperature, 0 to 2; `None` for the server's own."""
    cells: tuple[NotebookCell, ...] = ()
    """The notebook around the selected cell, as the tab shows it; long texts are cut."""
    selected: int = -1
    """Index of the selected cell in `cells`; -1 for none."""
    withheld: tuple[PartKind, ...] = ()
    """Parts of the notebook that the model is not shown."""
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
    """The parts that the person's settings switch off; sent on connection, and on each change."""

    withheld: tuple[PartKind, ...]
    """As in `Ask`; it applies to questions that `%%analyze` hands over."""


class ReadAhead(Tagged, frozen=True):
    """A question about these files is being typed; a local model may read them ahead."""

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
    """Whether the file on disk contains them too."""


class Stop(Tagged, frozen=True):
    """A request to end the run: interrupt the cell, then kill the kernel if it does not react."""

    run_id: str


class Decide(Tagged, frozen=True):
    """The person's decision on a cell that waits."""

    run_id: str
    cell_id: str
    decision: Decision
    source: str | None = None
    """The text that the person was shown, which is to run; `None` for the run's own text."""


class DecideFiles(Tagged, frozen=True):
    """The person's decision on a cell's changes of files, as `FilesWait` shows them."""

    run_id: str
    cell_id: str
    allows: bool


class OwnCell(Tagged, frozen=True):
    """The person runs a cell of their own: from now on the kernel writes for them again."""

    notebook_path: str


class Undo(Tagged, frozen=True):
    """A request to remove what an ended run wrote, except cells that the person has changed."""

    run_id: str


class Rebuild(Tagged, frozen=True):
    """A request to run the notebook's successful cells again, in a kernel that is empty now."""

    run_id: str


ClientMessage = (
    Attach | Renamed | Detach | TakeOver | Ask | ReadAhead | Ack | Stop | Decide | DecideFiles
    | OwnCell | Undo | Rebuild | Tells
)  # fmt: skip
