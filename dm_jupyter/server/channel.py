"""The one WebSocket between a browser tab and the analyst."""

from __future__ import annotations

import json
from typing import Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from dm_jupyter.server.analyst import Analyst
from dm_jupyter.server.desk import Tab
from dm_jupyter.server.wire import Attach, ServerMessage, client_message, to_json

__all__ = ["ChannelHandler"]


class ChannelHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """One connection. It may serve several notebooks of the same tab."""

    auth_resource = "dm_jupyter"

    @ws_authenticated
    @authorized
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Opens the connection; the origin is checked by the mixin."""
        result = super().get(*args, **kwargs)
        if result is not None:
            await result

    @property
    def _analyst(self) -> Analyst:
        analyst: Analyst = self.settings["dm_jupyter_analyst"]
        return analyst

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begins with an unnamed tab; its first `attach` names it."""
        super().open(*args, **kwargs)
        self._tab = Tab("", self._send)

    def on_message(self, message: str | bytes) -> None:
        """Takes one message; one that makes no sense is answered and dropped."""
        try:
            taken = client_message(json.loads(message))
        except ValueError as error:
            self._send_json({"kind": "refused", "request_id": "", "reason": "unknown",
                             "message": f"this message was not understood: {error}"})  # fmt: skip
            return
        if isinstance(taken, Attach):
            self._tab.client_id = taken.client_id
        elif not self._tab.client_id:
            return
        self._analyst.receive(taken, self._tab)

    def on_close(self) -> None:
        """Lets the tab go."""
        if self._tab.client_id:
            self._analyst.disconnected(self._tab)
        super().on_close()

    def _send(self, message: ServerMessage) -> None:
        self._send_json(to_json(message))

    def _send_json(self, raw: dict[str, Any]) -> None:
        try:
            sent = self.write_message(json.dumps(raw, ensure_ascii=False))
        except WebSocketClosedError:  # the journal has it for when the tab comes back
            return
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())
