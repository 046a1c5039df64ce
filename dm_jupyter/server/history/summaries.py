"""Summaries of runs, read without the journals: enough to list a run, and see if it was cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # every start of a server reads summaries, but few need a message
    from dm_jupyter.server.protocol import RunClosed

__all__ = ["Summary", "has_open_run", "read_summaries", "read_summary"]

FILE_NAME = "summary.json"


@dataclass(frozen=True, slots=True)
class Summary:
    """A run's entry in a list."""

    run_id: str
    notebook_path: str
    question: str
    files: tuple[str, ...]
    at: float
    """When it began, seconds since 1970."""
    model: str
    answer: str | None = None
    stop: str | None = None
    """A `StopReason`; `None` while the run continues."""
    tokens: int = 0
    seconds: float = 0.0
    endpoint: str = ""
    """Address of the model, safe to show; empty for this machine."""
    root: str = ""
    """The real path of the server's folder, below which `notebook_path` and `files` are.

    Empty for a run of a version that did not record it: such a run belongs to no notebook.
    """

    def may_end_in(self, root: Path) -> bool:
        """Whether a server with this root ends the run, if it was cut off."""
        return self.root in ("", str(root))

    def closed(self, message: RunClosed) -> Summary:
        """Return the summary of the run at its end."""
        return replace(
            self,
            answer=message.answer,
            stop=message.stop,
            tokens=message.tokens,
            seconds=message.seconds,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain JSON values."""
        return asdict(self)


def read_summary(folder: Path) -> Summary | None:
    """Return the summary in a run's folder; `None` if it was cut off before it had one."""
    try:
        raw = json.loads((folder / FILE_NAME).read_text("utf-8"))
        return Summary(**{**raw, "files": tuple(raw["files"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def read_summaries(folder: Path) -> Iterator[Summary]:
    """Yield the summaries of all runs, newest first.

    Args:
        folder: the folder of the runs, which need not exist.
    """
    if folder.is_dir():
        found = map(read_summary, sorted(folder.iterdir(), reverse=True))
        yield from (summary for summary in found if summary is not None)


def has_open_run(folder: Path, root: Path) -> bool:
    """Return whether a run has started and not ended that a server with this root may end.

    Args:
        folder: the folder of the runs, as for `read_summaries`.
        root: the real path of the server's folder.
    """
    return any(run.stop is None and run.may_end_in(root) for run in read_summaries(folder))
