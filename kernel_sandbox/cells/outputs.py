"""The outputs of one cell, collected while it runs and never larger than the limit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from kernel_sandbox.messages import clean_bundle
from kernel_sandbox.types import CellError, Display, Output, Stream

__all__ = ["Added", "Change", "Cleared", "OutputCollector", "Replaced"]

FLOOD_FACTOR = 8
"""A cell that writes more than this many times the limit is interrupted."""
ERROR_BYTES = 64 * 1024
"""An error is kept even when the output is full: it is what the reader needs most."""

FREE_ERRORS = 3
OUTPUTS = 10_000
"""The most parts kept of a cell: even an empty one takes memory."""
PART_BYTES = 64
"""The least size of a part beyond that number."""
SAME_ID = 100
"""The most displays kept of one identity: an update changes all of them."""

_Content = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Added:
    """A new output; a stream with the same name as the last output continues it."""

    output: Output


@dataclass(frozen=True, slots=True)
class Replaced:
    """New content for the output at `index`."""

    index: int
    output: Output


@dataclass(frozen=True, slots=True)
class Cleared:
    """The removal of all outputs so far."""


Change = Added | Replaced | Cleared


@dataclass(slots=True)
class _Text:
    """A stream that still grows; it is joined once, at the end."""

    name: Literal["stdout", "stderr"]
    parts: list[str]


class OutputCollector:
    """A collector that turns the messages of one cell into outputs.

    Covered: what is kept, and the memory that it takes. Not covered: the size of a single message,
    which the socket limits.
    """

    def __init__(
        self, limit_bytes: int, on_change: Callable[[Change], None] = lambda _: None
    ) -> None:
        """Start empty.

        Args:
            limit_bytes: the most output to keep; the rest is counted and dropped.
            on_change: called with each change of what is kept, as it happens; must not raise.
        """
        self._on_change = on_change
        self._limit = limit_bytes
        self._outputs: list[Display | CellError | _Text] = []
        self._ids: dict[str, dict[int, int]] = {}
        """The outputs of each identity: index, and bytes of the content."""
        self._kept_bytes = 0
        self._copied_bytes = 0
        """What updates have written beyond the first display of each."""
        self._errors = 0
        self._clear_first = False
        self.cut_bytes = 0
        self._handlers: dict[str, Callable[[_Content], None]] = {
            "stream": self._stream,
            "display_data": self._display,
            "execute_result": self._display,
            "update_display_data": self._update,
            "error": self._error,
            "clear_output": self._clear,
        }

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs that were kept, in order of arrival."""
        return tuple(
            Stream(output.name, "".join(output.parts)) if isinstance(output, _Text) else output
            for output in self._outputs
        )

    @property
    def is_flooded(self) -> bool:
        """Whether far more was written than is kept."""
        return self.cut_bytes > FLOOD_FACTOR * self._limit

    def add(self, kind: str, content: _Content) -> None:
        """Add one message of the kernel; one that carries no output changes nothing.

        Args:
            kind: the message type.
            content: its content.
        """
        handler = self._handlers.get(kind)
        if handler is None:
            return
        if self._clear_first and kind in ("stream", "display_data", "execute_result", "error"):
            self._drop_all()
        handler(content)

    def _has_place(self, size: int, same_id: int = 0) -> bool:
        """Return whether one more part is allowed; if not, count it as cut."""
        if len(self._outputs) < OUTPUTS and same_id < SAME_ID:
            return True
        self.cut_bytes += max(size, PART_BYTES)
        return False

    def _stream(self, content: _Content) -> None:
        name, text = content["name"], content["text"]
        last = self._outputs[-1] if self._outputs else None
        goes_on = isinstance(last, _Text) and last.name == name
        if not goes_on and not self._has_place(len(text)):
            return
        kept = self._fit(text)
        if not kept:
            return
        if isinstance(last, _Text) and goes_on:
            last.parts.append(kept)
        else:
            self._outputs.append(_Text(name, [kept]))
        self._on_change(Added(Stream(name, kept)))

    def _fit(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        room = max(0, self._limit - self._kept_bytes)
        self._kept_bytes += min(room, len(raw))
        self.cut_bytes += max(0, len(raw) - room)
        return text if len(raw) <= room else raw[:room].decode("utf-8", "ignore")

    def _display(self, content: _Content) -> None:
        count = content.get("execution_count")
        display = Display(clean_bundle(content["data"]), content["metadata"], count)
        own_size = _size(display)
        identity = _identity(content)
        size = own_size + len(str(identity or ""))
        if not self._has_place(size, len(self._ids.get(identity, ()))):
            return
        if size > self._limit - self._kept_bytes:  # half an image is of no use
            self.cut_bytes += size
            return
        self._kept_bytes += size
        if identity is not None:
            self._ids.setdefault(identity, {})[len(self._outputs)] = own_size
        self._outputs.append(display)
        self._on_change(Added(display))

    def _update(self, content: _Content) -> None:
        sizes = self._ids.get(_identity(content))
        if not sizes:
            return
        new = Display(clean_bundle(content["data"]), content["metadata"])
        size = _size(new)
        for place, (index, old_size) in enumerate(sizes.items()):
            if place and not self._has_room_for_copy(max(size, PART_BYTES)):
                continue
            old = self._outputs[index]
            if not isinstance(old, Display):
                continue
            growth = size - old_size
            if growth > self._limit - self._kept_bytes:
                self.cut_bytes += growth
                continue
            self._kept_bytes += growth
            sizes[index] = size
            changed = replace(new, execution_count=old.execution_count)
            self._outputs[index] = changed
            self._on_change(Replaced(index, changed))

    def _has_room_for_copy(self, size: int) -> bool:
        """Return whether one message may change one more display; if not, count it as cut."""
        self._copied_bytes += size
        if self._copied_bytes <= self._limit:
            return True
        self.cut_bytes += size
        return False

    def _error(self, content: _Content) -> None:
        if not self._has_place(len(content["evalue"])):
            return
        lines, room = [], ERROR_BYTES
        for line in content["traceback"]:
            lines.append(line[:room])
            self.cut_bytes += len(line) - len(lines[-1])
            room -= len(lines[-1])
        message = content["evalue"]
        self.cut_bytes += max(0, len(message) - ERROR_BYTES)
        name = content["ename"]
        self.cut_bytes += max(0, len(name) - ERROR_BYTES)
        error = CellError(name[:ERROR_BYTES], message[:ERROR_BYTES], tuple(lines))
        if not self._has_room_for_error(error):
            return
        self._outputs.append(error)
        self._on_change(Added(error))

    def _has_room_for_error(self, error: CellError) -> bool:
        """Return whether to keep an error: beyond a few, errors count towards the limit.

        A cell ends with one and may show a few.
        """
        self._errors += 1
        if self._errors <= FREE_ERRORS:
            return True
        size = sum(map(len, (error.name, error.message, *error.traceback)))
        if size > self._limit - self._kept_bytes:
            self.cut_bytes += size
            return False
        self._kept_bytes += size
        return True

    def _clear(self, content: _Content) -> None:
        if content["wait"]:
            self._clear_first = True
        else:
            self._drop_all()

    def _drop_all(self) -> None:
        self._outputs.clear()
        self._ids.clear()
        self._kept_bytes = 0
        self._clear_first = False
        self._on_change(Cleared())


def _identity(content: _Content) -> Any:
    return (content.get("transient") or {}).get("display_id")


def _size(display: Display) -> int:
    """Return the bytes of content and metadata, and of media type names beyond 64 characters."""
    described = _bytes(dict(display.metadata)) if display.metadata else 0
    names = sum(max(0, len(name) - PART_BYTES) for name in display.data)
    return described + names + sum(map(_bytes, display.data.values()))


def _bytes(value: object) -> int:
    # A notebook can't store a number that is too large for a float.
    text = value if isinstance(value, str) else json.dumps(value, allow_nan=False)
    return len(text.encode("utf-8", "surrogatepass"))
