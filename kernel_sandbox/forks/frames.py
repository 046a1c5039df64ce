"""Messages between a worker and its parent on one stream socket: a length, then JSON.

Covered: bytes of any kind give messages of a known shape or one `FrameError`; a message that is
too long is refused before it is gathered, one that would unpack into too many objects before it
is unpacked. Not covered: whether a message is true. The code in the worker holds the socket and
can say whatever a worker may say.
"""

from __future__ import annotations

import json
import struct
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from numbers import Integral, Real
from typing import Any

__all__ = ["MESSAGE_BYTES", "Decoder", "FrameError", "Message", "encode"]

MESSAGE_BYTES = 16 * 1024**2
"""No message is longer, in either direction."""
MESSAGE_ITEMS = 1_000_000
"""An empty list takes three bytes on the wire and twenty times that in memory."""

_LENGTH = struct.Struct("!I")
Message = tuple[str, dict[str, Any]]
"""A kind and a content."""


class FrameError(ValueError):
    """What came is no message, or what should be sent is too long for one."""


def encode(kind: str, content: Mapping[str, Any]) -> bytes:
    """Returns the message as bytes.

    Args:
        kind: what it is.
        content: strings, numbers and containers; what JSON can't say is said as jupyter_client
            says it (bytes as base64, dates as ISO text, not-a-number as text).

    Raises:
        FrameError: it is too long.
        ValueError: it holds an object of another kind, or itself.
        RecursionError: it is nested too deeply.
    """
    message = {"kind": kind, "content": content}
    try:
        text = _ENCODER.encode(message)
    except (TypeError, ValueError):
        text = _ENCODER.encode(_clean(message))
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "replace")
    if len(data) > MESSAGE_BYTES:
        raise FrameError(f"a message of {len(data)} bytes is too long")
    return _LENGTH.pack(len(data)) + data


def _plain(value: object) -> object:
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, Iterable):
        return list(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _clean(value: object) -> object:
    """The value with text for keys, and for the numbers that JSON does not know."""
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124 (not a number)
        return repr(value)
    try:
        return value if isinstance(value, str | int | float | None) else _plain(value)
    except TypeError:
        raise ValueError(f"Can't clean for JSON: {value!r}") from None


# Made once: code in a worker may replace the functions of the json module.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


class Decoder:
    """Turns the bytes of one direction into messages; after a fault it takes no more."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._is_broken = False

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yields the messages that these bytes complete.

        Args:
            data: as they came; at most `MESSAGE_BYTES` and these are ever kept.

        Raises:
            FrameError: they are no message. Those before it have been yielded.
        """
        if self._is_broken:
            raise FrameError("the messages before were broken")
        self._buffer += data
        try:
            yield from self._complete()
        except FrameError:
            self._is_broken = True
            self._buffer.clear()
            raise

    def _complete(self) -> Iterator[Message]:
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MESSAGE_BYTES:
                raise FrameError(f"a message of {length} bytes is too long")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield _message(body)


def _message(body: bytes) -> Message:
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > MESSAGE_ITEMS:
        raise FrameError("a message of too many parts")
    try:
        raw = _DECODER.decode(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a message that is no JSON: {error}") from None
    if not isinstance(raw, dict):
        raise FrameError("a message that is no object")
    kind, content = raw.get("kind"), raw.get("content")
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    if not isinstance(kind, str) or shape is None or not isinstance(content, dict):
        raise FrameError("a message of no known kind")
    for name, holds in shape.items():
        if not holds(content.get(name)):
            raise FrameError(f"a message `{kind}` with a wrong `{name}`")
    return kind, content


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _is_a(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_identity(value: object) -> bool:
    return value is None or (
        isinstance(value, dict) and isinstance(value.get("display_id"), str | int | None)
    )


def _is_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


_TEXT, _OBJECT, _COUNT = _is_a(str), _is_a(dict), _is_a(int, type(None))
_BUNDLE = {"data": _OBJECT, "metadata": _OBJECT, "transient": _is_identity}
_SHAPES: dict[str, dict[str, Callable[[object], bool]]] = {
    # From the worker.
    "ready": {"layers": _is_a(list)},
    "started": {},
    "stream": {
        "name": lambda value: value in ("stdout", "stderr"),
        "text": _TEXT,
        "at": _is_number,
        "is_flush": _is_a(bool),
    },
    "display_data": _BUNDLE,
    "update_display_data": _BUNDLE,
    "execute_result": {**_BUNDLE, "execution_count": _COUNT},
    "clear_output": {"wait": _is_a(bool)},
    "error": {"ename": _TEXT, "evalue": _TEXT, "traceback": _is_lines},
    "cut": {"bytes": _is_a(int)},
    "reply": {"id": _is_a(int), "status": _TEXT, "execution_count": _COUNT},
    # To the worker.
    "run": {"id": _is_a(int), "source": _TEXT},
    "ping": {"id": _is_a(int)},
    "fork": {"id": _is_a(int), "folder": _TEXT},
}
