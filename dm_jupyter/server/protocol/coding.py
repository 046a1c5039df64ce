"""Messages as JSON, and back: what does not fit its type is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

from dm_jupyter.core.coding import decoded
from dm_jupyter.server.protocol.ephemeral import EphemeralMessage
from dm_jupyter.server.protocol.operations import operation_from_json, operation_to_json
from dm_jupyter.server.protocol.panel import ClientMessage
from dm_jupyter.server.protocol.run import Operated, RunMessage

__all__ = ["ServerMessage", "client_message", "message_from_json", "to_json", "to_text"]

ServerMessage = RunMessage | EphemeralMessage

_CLIENT: dict[str, type[ClientMessage]] = {kind.kind: kind for kind in get_args(ClientMessage)}
_RUN: dict[str, type[RunMessage]] = {kind.kind: kind for kind in get_args(RunMessage)}


def to_json(message: ServerMessage | ClientMessage) -> dict[str, Any]:
    """Returns the message as plain JSON values, with its name as `kind`."""
    if not isinstance(message, Operated):
        return {"kind": message.kind, **asdict(message)}
    values = {item.name: getattr(message, item.name) for item in fields(message)}
    return {"kind": message.kind, **values, "operation": operation_to_json(message.operation)}


_latest: list[tuple[ServerMessage, str]] = []


def to_text(message: ServerMessage) -> str:
    """Returns the message as one line of JSON.

    The latest one's is kept: the journal and each tab ask for it one after the other, and a large
    output takes long to encode.
    """
    for known, text in _latest:
        if known is message:
            return text
    text = json.dumps(to_json(message), ensure_ascii=False, separators=(",", ":"))
    _latest[:] = [(message, text)]
    return text


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
    return decoded(kind, raw, kind.kind)


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
    return decoded(kind, raw, kind.kind)
