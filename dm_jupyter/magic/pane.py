"""The outputs of one cell while a run adds to them."""

from __future__ import annotations

import sys
import uuid
from typing import Protocol, TextIO

from IPython.core.displaypub import DisplayPublisher

from dm_jupyter.magic.show import Bundle, faint

__all__ = ["NotebookPane", "Pane", "TerminalPane"]


class Pane(Protocol):
    """Where a run is shown. Called by `inline.py`, in the task of the cell."""

    def add(self, bundle: Bundle) -> None:
        """Adds an output below the others."""
        ...

    def progress(self, line: str) -> None:
        """Shows a line below all outputs, instead of the one before."""
        ...

    def close(self, ending: str) -> None:
        """Takes the progress away; leaves the ending in its place, unless it is empty."""
        ...


class NotebookPane:
    """Shows a run in a notebook.

    The last output is always the line of progress. What is added takes its place, and a new line
    follows below: in the end nothing is left over, in the browser as in a saved file.
    """

    def __init__(self, publisher: DisplayPublisher) -> None:
        self._publisher = publisher
        self._last = ""
        """Display id of the line of progress."""
        self._line = ""

    def add(self, bundle: Bundle) -> None:
        """Puts the bundle in the place of the line of progress, and the line below."""
        self._replace(bundle)
        self._append(faint(self._line))

    def progress(self, line: str) -> None:
        """Rewrites the line of progress, if it says something new."""
        if line == self._line:
            return
        is_first, self._line = not self._line, line
        if is_first:
            self._append(faint(line))
        else:
            self._replace(faint(line))

    def close(self, ending: str) -> None:
        """Puts the ending in the place of the line of progress."""
        self._replace(faint(ending) if ending else Bundle({"text/html": "", "text/plain": ""}))

    def _append(self, bundle: Bundle) -> None:
        self._last = uuid.uuid4().hex
        self._publish(bundle, update=False)

    def _replace(self, bundle: Bundle) -> None:
        self._publish(bundle, update=True)

    def _publish(self, bundle: Bundle, *, update: bool) -> None:
        self._publisher.publish(
            dict(bundle.data),
            dict(bundle.metadata),
            transient={"display_id": self._last},
            update=update,
        )


class TerminalPane:
    """Shows a run in a terminal, where what was shown stays as it is."""

    def __init__(self, publisher: DisplayPublisher, stream: TextIO | None = None) -> None:
        """Prepares the pane.

        Args:
            publisher: prints the text of each output.
            stream: for the line of progress; it is not written unless that is a terminal.
        """
        self._publisher = publisher
        self._stream = stream or sys.stderr
        self._is_live = self._stream.isatty()

    def add(self, bundle: Bundle) -> None:
        """Prints the text of the bundle."""
        self._rewrite("")
        self._publisher.publish(dict(bundle.data), dict(bundle.metadata))

    def progress(self, line: str) -> None:
        """Rewrites the line of progress."""
        self._rewrite(line)

    def close(self, ending: str) -> None:
        """Prints the ending."""
        self._rewrite("")
        if ending:
            self._publisher.publish(dict(faint(ending).data))

    def _rewrite(self, line: str) -> None:
        if self._is_live:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
