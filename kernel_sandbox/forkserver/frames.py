"""Messages between a worker and its parent on one stream socket: a length, then JSON.

Covered: bytes of any kind give messages of a known shape or one `FrameError`. A message that is
too long is refused before it is gathered. Not covered: whether a message is true. The code in the
worker has the socket and can send whatever a worker may send.
"""

from __future__ import annotations

import json
import struct
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from numbers import Integral, Real
from typing import Any

from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.messages import (
    COUNT,
    MESSAGE_BYTES,
    OUTPUTS,
    REPLY,
    Shape,
    check,
    decode,
    has_too_many_parts,
    is_a,
)

__all__ = ["Decoder", "FrameError", "FrameMessage", "encode"]

_LENGTH = struct.Struct("!I")
FrameMessage = tuple[str, dict[str, Any]]
"""A kind and a content."""


class FrameError(ValueError):
    """Received bytes that are not a message, or content that is too long for one."""


def encode(kind: str, content: Mapping[str, Any]) -> bytes:
    """Return the message as bytes.

    Args:
        kind: the kind of the message.
        content: strings, numbers and containers. What JSON can't express is written as
            jupyter_client does: bytes as base64, dates as ISO text, not-a-number as text.

    Raises:
        FrameError: it is too long, or has too many parts.
        ValueError: it contains an object of another kind, or itself.
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
    if len(data) > MESSAGE_BYTES or has_too_many_parts(data):
        raise FrameError(f"a message of {len(data)} bytes is too long, or has too many parts")
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
    """Return the value with text for keys, and for the numbers that JSON does not know."""
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


# Created once, because code in a worker may replace the functions of the json module.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


class Decoder:
    """Decoder from the bytes of one direction to messages; after a fault it accepts no more."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._is_broken = False

    def feed(self, data: bytes) -> Iterator[FrameMessage]:
        """Yield the messages that these bytes complete.

        Args:
            data: the bytes as received; at most `MESSAGE_BYTES` plus these are ever kept.

        Raises:
            FrameError: they are not a message. Earlier messages have been yielded.
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

    def _complete(self) -> Iterator[FrameMessage]:
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


def _message(body: bytes) -> FrameMessage:
    try:
        raw = decode(body)
    except ValueError as error:
        raise FrameError(f"a message that is no JSON: {error}") from None
    kind = raw.get("kind") if isinstance(raw, dict) else None
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise FrameError("a message of no known kind")
    try:
        return kind, check(kind, raw.get("content"), _SHAPES[kind])
    except ValueError as error:
        raise FrameError(str(error)) from None


def _is_time(value: object) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and -(2**53) < value < 2**53  # type: ignore[operator]


def _are_layers(value: object) -> bool:
    try:
        Containment.from_json({"layers": value})
    except (KeyError, ValueError):
        return False
    return True


_SHAPES: dict[str, Shape] = {
    # From the worker.
    **OUTPUTS,
    "stream": {**OUTPUTS["stream"], "at": _is_time, "is_flush": is_a(bool)},
    "ready": {"layers": _are_layers},
    "started": {},
    "cut": {"bytes": lambda value: value is not None and COUNT(value)},
    "reply": {**REPLY, "id": is_a(int)},
    # To the worker.
    "run": {"id": is_a(int), "source": is_a(str)},
    "ping": {"id": is_a(int)},
    "fork": {"id": is_a(int), "folder": is_a(str)},
}
