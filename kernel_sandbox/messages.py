"""Validation of kernel and worker messages: bounded before decoding, of a known shape after it.

Covered: whatever the bytes are, `decode` returns plain values or raises one `ValueError`, in a
time that an event loop can bear. After `check`, a message's fields have the types of its kind. A
bundle that `clean_bundle` returns can be written into a notebook.
Not covered: whether a message is true. Code in a kernel can send whatever a kernel may send.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "COUNT",
    "MESSAGE_BYTES",
    "OUTPUTS",
    "REPLY",
    "Shape",
    "check",
    "clean_bundle",
    "decode",
    "has_too_many_parts",
    "is_a",
]

Shape = Mapping[str, Callable[[object], bool]]
"""A predicate for the value of each field, by the name of the field."""

MESSAGE_BYTES = 5 * 1024**2
"""The longest message that is decoded: the worst one takes what an event loop can bear."""
MESSAGE_ITEMS = 70_000
"""An empty list takes three bytes on the wire and twenty times that in memory."""
MESSAGE_KEYS = 35_000
"""Each distinct key takes ten times as long to decode as an item."""
MEDIA_TYPE_CHARS = 256
_NUMBER_CHARS = 420
"""Digits of an integer: the time to parse one grows with the square of its length."""
_REPAIRED_BYTES = 256 * 1024
"""The longest invalid UTF-8 that is repaired: each bad byte takes ten times a character's time."""
_ASCII = bytes(byte if byte < 128 else ord("?") for byte in range(256))


def has_too_many_parts(body: bytes) -> bool:
    """Return whether JSON has more parts than are accepted; text in strings does not count."""
    if _items(body) <= MESSAGE_ITEMS and body.count(b":") <= MESSAGE_KEYS:
        return False
    # A replacement of the same length takes half the time.
    plain = body.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
    if plain.count(b'"') > 2 * (MESSAGE_ITEMS + MESSAGE_KEYS):
        return True
    outside = b"".join(plain.split(b'"')[::2])
    return _items(outside) > MESSAGE_ITEMS or outside.count(b":") > MESSAGE_KEYS


def _items(body: bytes) -> int:
    return sum(body.count(mark) for mark in (b",", b"[", b"{"))


def decode(body: bytes) -> Any:
    """Return the value of a JSON text; its strings can always be encoded as UTF-8.

    Args:
        body: the bytes as received.

    Raises:
        ValueError: it is not JSON, is too long or nested too deeply, or has too many parts.
    """
    if len(body) > MESSAGE_BYTES:
        raise ValueError(f"it has {len(body)} bytes, which is too long")
    if has_too_many_parts(body):
        raise ValueError("it has too many parts")
    text = _text(body)
    try:
        value = _DECODER.decode(text)
        # JSON can contain a lone surrogate, which UTF-8 can't encode.
        return _whole(value) if "\\ud" in text or "\\uD" in text else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _text(body: bytes) -> str:
    """Return the text with invalid bytes replaced; in a long one, all bytes beyond ASCII."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        if len(body) <= _REPAIRED_BYTES:
            return body.decode("utf-8", "replace")
        return body.translate(_ASCII).decode("ascii")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _int(text: str) -> int:
    if len(text) > _NUMBER_CHARS:
        raise ValueError("it has a number of too many digits")
    return int(text)


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=_int)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value


def check(kind: str, content: object, shape: Shape) -> dict[str, Any]:
    """Return the content of a message after checking the types of its fields.

    Args:
        kind: the kind of the message.
        content: the content as received.
        shape: the fields that are read.

    Raises:
        ValueError: it is not an object, or a field is missing or of another type.
    """
    if not isinstance(content, dict):
        raise ValueError(f"a message `{kind}` that is no object")  # noqa: TRY004
    for name, holds in shape.items():
        if not holds(content.get(name)):
            raise ValueError(f"a message `{kind}` with a wrong `{name}`")
    return content


def clean_bundle(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a bundle that a notebook can store: text, and JSON of JSON types.

    Args:
        data: content by media type.
    """
    found = {}
    for name, content in data.items():
        if not name or len(name) > MEDIA_TYPE_CHARS:
            continue
        if _is_lines(content):
            content = "".join(content)  # noqa: PLW2901
        if isinstance(content, str) or _is_json(name):
            found[name] = content
    return found


def _is_json(media_type: str) -> bool:
    return media_type.startswith("application/") and (
        media_type == "application/json" or media_type.endswith("+json")
    )


def is_a(*types: type) -> Callable[[object], bool]:
    """Return a predicate: whether a field is of one of these types."""
    return lambda value: isinstance(value, types)


def _is_count(value: object) -> bool:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return value is None or (is_int and 0 <= value < 2**53)  # type: ignore[operator]


def _is_identity(value: object) -> bool:
    return value is None or (
        isinstance(value, dict) and isinstance(value.get("display_id"), str | int | None)
    )


def _is_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


_TEXT, _OBJECT = is_a(str), is_a(dict)
COUNT = _is_count
_BUNDLE: Shape = {
    "data": _OBJECT,
    "metadata": _OBJECT,
    "transient": _is_identity,
    "execution_count": COUNT,
}
REPLY: Shape = {"status": _TEXT, "execution_count": COUNT, "ename": is_a(str, type(None))}
"""The reply to a cell; `execution_count` and `ename` may be missing."""
OUTPUTS: Mapping[str, Shape] = {
    "stream": {"name": lambda value: value in ("stdout", "stderr"), "text": _TEXT},
    "display_data": _BUNDLE,
    "update_display_data": _BUNDLE,
    "execute_result": _BUNDLE,
    "clear_output": {"wait": is_a(bool)},
    "error": {"ename": _TEXT, "evalue": _TEXT, "traceback": _is_lines},
}
"""The outputs of a cell, from a kernel and a worker alike."""
