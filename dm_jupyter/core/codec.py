"""The one codec for values that are stored or sent as JSON, driven by their types.

A dataclass or a `Tagged` value needs no code of its own. A value that does not match its type is
rejected, and the error contains its path. Unknown fields are ignored, so that newer files can be
read.

Covered: any JSON gives a value or one `ValueError`. Not covered: the size of the input. Messages
of a kernel are bounded first, by `kernel_sandbox.messages.decode`.
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
"""Limit for the text of a fault, which may quote a long word of the value."""
_Value = TypeVar("_Value")


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Tagged(msgspec.Struct, frozen=True, tag_field="kind", tag=_tag):
    """Base class for the members of a union: `kind` in the JSON is the class name in `snake_case`.

    A dataclass can't be such a member, since only its fields could identify it.
    """

    def replaced(self, **values: Any) -> Self:
        """Return a copy with new values in some fields."""
        return msgspec.structs.replace(self, **values)


def decode_json(kind: type[_Value] | UnionType, text: str | bytes, name: str) -> _Value:
    """Return the value that a JSON text represents.

    Args:
        kind: a dataclass, a `Tagged` class, a union of those, or a type of plain values.
        text: the JSON as it was stored or sent.
        name: the name of the value in error messages, such as its file.

    Raises:
        ValueError: the text is not JSON, or a field is missing or of another type; the message
            names the field.
    """
    try:
        found: _Value = _decoder(cast("Any", kind)).decode(text)
    except msgspec.ValidationError as error:
        raise _fault(error, name) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Python's own writer also emits `NaN` and lone surrogates.
        try:
            raw = json.loads(text)
        except RecursionError:
            raise ValueError(f"{name}: it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return decode_value(kind, raw, name)
    return found


def decode_value(kind: type[_Value] | UnionType, raw: object, name: str) -> _Value:
    """Return the value that plain JSON values represent.

    Args:
        kind: as for `decode_json`.
        raw: the result of `json.loads`.
        name: the name of the value in error messages.

    Raises:
        ValueError: a field is missing or of another type; the message names it.
    """
    try:
        found: _Value = msgspec.convert(raw, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise _fault(error, name) from None
    except RecursionError:
        raise ValueError(f"{name}: it is nested too deeply") from None
    return found


def encode_json(value: Any) -> str:
    """Return the value as one line of JSON. A number that JSON can't express becomes `null`."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can express and UTF-8 can't
        return json.dumps(msgspec.to_builtins(value, enc_hook=_plain), separators=(",", ":"))


def encode_value(value: Any) -> Any:
    """Return the value as plain JSON values, as if decoded from its JSON text."""
    return decode_json(cast("type[Any]", Any), encode_json(value), type(value).__name__)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    # Inspecting a union takes longer than decoding a message.
    return msgspec.json.Decoder(kind, dec_hook=_path)


def _path(kind: type[Any], raw: Any) -> Any:
    if issubclass(kind, PurePath) and isinstance(raw, str):
        return kind(raw)
    raise ValueError(f"Expected `str`, got `{type(raw).__name__}`")


def _plain(value: Any) -> Any:
    """Return the plain form of what msgspec can't encode: a path, or a subclass of a plain type."""
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
