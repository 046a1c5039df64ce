"""Frozen values from plain JSON: what does not fit its type is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["decoded"]

_Value = TypeVar("_Value", bound="DataclassInstance")


def decoded(kind: type[_Value], raw: object, name: str = "") -> _Value:
    """Returns the value of a dataclass that JSON values stand for.

    Args:
        kind: the dataclass; its fields are plain, literals, tuples or mappings of such, unions of
            such, or dataclasses again. JSON that is too much is left out.
        raw: what `json.loads` gave.
        name: what messages call the value.

    Raises:
        ValueError: a field is missing or of another type; the message says which.
    """
    name = name or kind.__name__
    if not isinstance(raw, Mapping):
        raise ValueError(f"{name} can't be {_shown(raw)}")  # noqa: TRY004  (a fault of the text)
    hints = _hints(kind)
    values = {}
    for item in fields(kind):
        if item.name in raw:
            values[item.name] = _read(hints[item.name], raw[item.name], f"{name}: {item.name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{name}: {item.name} is missing")
    return kind(**values)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, raw: Any, name: str) -> Any:
    """The value of a type; `name` says where it stands.

    Raises:
        ValueError: it is of another type.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _one_of(inner, raw, name)
    if origin is tuple and isinstance(raw, (list, tuple)):
        kinds = inner[:1] * len(raw) if inner[1:] == (...,) else inner
        if len(kinds) == len(raw):
            return tuple(_read(kind, one, name) for kind, one in zip(kinds, raw, strict=True))
    elif origin is Mapping and isinstance(raw, Mapping):
        return {key: _read(inner[1], one, name) for key, one in raw.items()}
    elif is_dataclass(hint) and isinstance(hint, type):
        return raw if isinstance(raw, hint) else decoded(hint, raw, name)
    elif origin is Literal:
        if raw in inner:
            return raw
    elif hint is Any or _is_plain(hint, raw):
        return raw
    raise ValueError(f"{name} can't be {_shown(raw)}")


def _one_of(hints: tuple[Any, ...], raw: Any, name: str) -> Any:
    for hint in hints:
        try:
            return _read(hint, raw, name)
        except ValueError:
            continue
    raise ValueError(f"{name} can't be {_shown(raw)}")


def _is_plain(hint: Any, raw: Any) -> bool:
    if origin := get_origin(hint):  # of a shape that is not known here
        hint = origin
    if isinstance(raw, bool) and hint in (int, float):
        return False
    return isinstance(raw, int | float if hint is float else hint)


def _shown(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 80 else f"{text[:80]}…"
