"""The WebSocket connection of one browser tab: JSON messages in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dm_jupyter.core.codec import decode_json, encode_json
from dm_jupyter.server.notebooks.open_notebooks import Tab
from dm_jupyter.server.protocol import Attach, ClientMessage, Refused, Renamed, Tells

if TYPE_CHECKING:
    from dm_jupyter.server.run_service import RunService

__all__ = ["Connection"]


class Connection:
    """One connection. It may serve several notebooks of the same tab."""

    def __init__(self, run_service: RunService, send: Callable[[str], None]) -> None:
        """Start with an unnamed tab; its first `attach` or `renamed` names it.

        Args:
            run_service: receives the messages.
            send: sends a JSON text to the tab.
        """
        self._run_service = run_service
        self._tab = Tab("", lambda message: send(encode_json(message)))

    def take(self, text: str | bytes) -> None:
        """Pass on one message; answer and drop an invalid one."""
        try:
            message: ClientMessage = decode_json(ClientMessage, text, "message")
        except ValueError as error:
            self._tab.send(Refused("", "unknown", f"this message was not understood: {error}"))
            return
        if isinstance(message, Attach | Renamed):
            self._tab.client_id = message.client_id
        elif not self._tab.client_id and not isinstance(message, Tells):
            return
        self._run_service.receive(message, self._tab)

    def close(self) -> None:
        """Disconnect the tab, which may be gone, or come back on another connection."""
        if self._tab.client_id:
            self._run_service.open_notebooks.disconnected(self._tab)
