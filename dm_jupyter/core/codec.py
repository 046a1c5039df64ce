"""Values as JSON and back, by their types alone: the one codec of what we store and send.

A dataclass or a `Tagged` value needs no code of its own. What does not fit its type is refused with
the path to it. Fields that a type does not have are left out, so that newer files can be read.

Covered: JSON of any kind gives a value or one `ValueError`. Not covered: how much of it there is.
What a kernel says is bounded first, by `kernel_sandbox.messages.decode`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from types import UnionType
from typing import Any, Self, TypeVar, cast

import msgspec

__all__ = ["Tagged", "decode_json", "decode_value", "encode_json", "encode_value"]

_FAULT_CHARS = 160
"""Of what is wrong with a value: it may repeat a word of it, which may be long."""
_Value = TypeVar("_Value")


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Tagged(msgspec.Struct, frozen=True, tag_field="kind", tag=_tag):
    """One of a union: its JSON has the class's name in `snake_case`, as `kind`.

    A dataclass can't be one of a union, since only its fields could tell which it is.
    """

    def replaced(self, **values: Any) -> Self:
        """Return the same with other values in some fields."""
        return msgspec.structs.replace(self, **values)


def decode_json(kind: type[_Value] | UnionType, text: str | bytes, name: str) -> _Value:
    """Return the value that a JSON text stands for.

    Args:
        kind: a dataclass, a `Tagged` class, a union of those, or a type of plain values.
        text: as it was stored or sent.
        name: what messages call the value, such as its file.

    Raises:
        ValueError: it is no JSON, or a field is missing or of another type; the message says which.
    """
    try:
        found: _Value = _decoder(cast("Any", kind)).decode(text)
    except msgspec.ValidationError as error:
        raise _fault(error, name) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Python's own writer also knows `NaN` and half a character.
        try:
            raw = json.loads(text)
        except RecursionError:
            raise ValueError(f"{name}: it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return decode_value(kind, raw, name)
    return found


def decode_value(kind: type[_Value] | UnionType, raw: object, name: str) -> _Value:
    """Return the value that plain JSON values stand for.

    Args:
        kind: as for `decode_json`.
        raw: what `json.loads` gave.
        name: what messages call the value.

    Raises:
        ValueError: a field is missing or of another type; the message says which.
    """
    try:
        found: _Value = msgspec.convert(raw, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise _fault(error, name) from None
    except RecursionError:
        raise ValueError(f"{name}: it is nested too deeply") from None
    return found


def encode_json(value: Any) -> str:
    """Return the value as one line of JSON. A number that JSON does not have is `null`."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except UnicodeEncodeError:  # of half a character, which JSON can say and UTF-8 can't
        return json.dumps(msgspec.to_builtins(value, enc_hook=_plain), separators=(",", ":"))


def encode_value(value: Any) -> Any:
    """Return the value as plain JSON values, as they come back from its text."""
    return decode_json(cast("type[Any]", Any), encode_json(value), type(value).__name__)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    # To look through a union takes longer than to read a message.
    return msgspec.json.Decoder(kind, dec_hook=_path)


def _path(kind: type[Any], raw: Any) -> Any:
    if issubclass(kind, PurePath) and isinstance(raw, str):
        return kind(raw)
    raise ValueError(f"Expected `str`, got `{type(raw).__name__}`")


def _plain(value: Any) -> Any:
    """What msgspec does not write itself: a path, and what only inherits from a plain type."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _fault(error: msgspec.ValidationError, name: str) -> ValueError:
    what, _, path = str(error).rpartition(" - at `$")
    if not what:
        what, path = path, ""
    what = what if len(what) <= _FAULT_CHARS else f"{what[:_FAULT_CHARS]}…"
    return ValueError(f"{name}{path.rstrip('`')}: {what}")
