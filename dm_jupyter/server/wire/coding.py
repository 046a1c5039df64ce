"""Messages as JSON, and back: what does not fit its type is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dm_jupyter.server.operations import operation_from_json, operation_to_json
from dm_jupyter.server.wire.panel import ClientMessage
from dm_jupyter.server.wire.passing import PassingMessage
from dm_jupyter.server.wire.run import Operated, RunMessage

__all__ = ["ServerMessage", "client_message", "message_from_json", "to_json"]

ServerMessage = RunMessage | PassingMessage
_Message = TypeVar("_Message", bound=RunMessage | ClientMessage)

_CLIENT: dict[str, type[ClientMessage]] = {kind.kind: kind for kind in get_args(ClientMessage)}
_RUN: dict[str, type[RunMessage]] = {kind.kind: kind for kind in get_args(RunMessage)}


def to_json(message: ServerMessage | ClientMessage) -> dict[str, Any]:
    """Returns the message as plain JSON values, with its name as `kind`."""
    raw = {"kind": message.kind, **asdict(message)}
    if isinstance(message, Operated):
        raw["operation"] = operation_to_json(message.operation)
    return raw


def client_message(raw: object) -> ClientMessage:
    """Returns the message of a panel.

    Raises:
        ValueError: it is no message that a panel sends; the text says what is wrong with it.
    """
    if not isinstance(raw, dict):
        raise ValueError("a message is a JSON object")  # noqa: TRY004  (a fault of the text)
    kind = _CLIENT.get(str(raw.get("kind")))
    if kind is None:
        raise ValueError(f"there is no message {raw.get('kind')!r}")
    return _built(kind, raw)


def message_from_json(raw: Mapping[str, Any]) -> RunMessage:
    """Returns a message of a run as its journal keeps it.

    Raises:
        ValueError: it is no such message.
    """
    kind = _RUN.get(str(raw.get("kind")))
    if kind is None:
        raise ValueError(f"there is no message {raw.get('kind')!r}")
    if kind is Operated:
        try:
            raw = {**raw, "operation": operation_from_json(raw["operation"])}
        except (KeyError, TypeError) as error:
            raise ValueError(f"operated: {error}") from error
    return _built(kind, raw)


def _built(kind: type[_Message], raw: Mapping[str, Any]) -> _Message:
    hints = get_type_hints(kind)
    values = {}
    for item in fields(kind):
        if item.name not in raw:
            if item.default is MISSING and item.default_factory is MISSING:
                raise ValueError(f"{kind.kind}: {item.name} is missing")
            continue
        value = raw[item.name]
        if isinstance(value, list):
            value = tuple(value)
        if not _fits(value, hints[item.name]):
            raise ValueError(f"{kind.kind}: {item.name} can't be {raw[item.name]!r}")
        values[item.name] = value
    return kind(**values)


def _fits(value: object, hint: Any) -> bool:
    """Whether a value that came as JSON is of a field's type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in inner
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if isinstance(value, bool) and hint in (int, float):
        return False
    return hint is Any or isinstance(value, int | float if hint is float else hint)
