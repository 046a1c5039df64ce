"""The order of two streams, as ipykernel has it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["StreamOrder"]

HELD_S = 0.2
"""ipykernel sends what a stream has gathered so long after the first of it."""
HELD_CHARACTERS = 64 * 1024


class StreamOrder:
    """Puts the pieces of standard output and standard error into ipykernel's order.

    A worker sends its lines as they are written: a line out, a line of errors, a line out. A
    kernel gathers each stream for a fifth of a second: two lines out, then the errors. Models are
    trained on the one and meet the other: both must read the same.
    """

    def __init__(self, emit: Callable[[str, str], None]) -> None:
        """Starts empty.

        Args:
            emit: gets the name of a stream and its text, in the order of ipykernel.
        """
        self._emit = emit
        self._parts: dict[str, list[str]] = {}
        self._due: dict[str, float] = {}
        self._size = 0

    def add(self, name: str, text: str, at: float, is_flush: bool = False) -> None:
        """Takes one piece.

        Args:
            name: the stream.
            text: its text.
            at: when it was written, on the clock of `time.monotonic`.
            is_flush: whether the program flushed the stream after it.
        """
        for due, late in sorted((due, late) for late, due in self._due.items()):
            if due <= at:
                self.flush(late)
        if text:
            self._parts.setdefault(name, []).append(text)
            self._due.setdefault(name, at + HELD_S)
            self._size += len(text)
        if is_flush:
            self.flush(name)
        if self._size > HELD_CHARACTERS:
            self.flush_all()

    def flush(self, name: str) -> None:
        """Emits what one stream has gathered."""
        parts = self._parts.pop(name, [])
        self._due.pop(name, None)
        text = "".join(parts)
        self._size -= len(text)
        if text:
            self._emit(name, text)

    def flush_all(self) -> None:
        """Emits what both have gathered, standard output first."""
        for name in ("stdout", "stderr"):
            self.flush(name)
