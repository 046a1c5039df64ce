"""The analyst, built when it is first needed: no start of a server waits for its parts to load.

The app, the handlers and what they import at their top are all that a server loads at its start;
`tests/dm_jupyter/server/test_start.py` names what must not be among it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.server.history.summaries import has_open_run

if TYPE_CHECKING:
    from dm_jupyter.server.run_service import RunService

__all__ = ["AnalystAtFirstUse"]


class AnalystAtFirstUse:
    """Stands in the server's settings for the analyst, from the server's start to its end."""

    def __init__(self, build: Callable[[], RunService], history_dir: Path) -> None:
        """Builds nothing yet.

        Args:
            build: makes the analyst; called once, by the server's event loop.
            history_dir: where runs are kept.
        """
        self._build = build
        self._history_dir = history_dir
        self._analyst: RunService | None = None

    def get(self) -> RunService:
        """Returns the analyst."""
        if self._analyst is None:
            self._analyst = self._build()
        return self._analyst

    def start(self) -> None:
        """Ends the runs that an earlier server left open: needs the analyst only if there are any.

        Not at first use: a run that is open by then may be another server's that shares the folder.
        """
        if has_open_run(self._history_dir):
            self.get().end_cut_off()

    async def close(self) -> None:
        """Closes the analyst, if it was ever needed."""
        if self._analyst is not None:
            await self._analyst.close()
