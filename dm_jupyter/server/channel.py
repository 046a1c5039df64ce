"""The one WebSocket between a browser tab and the analyst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketClosedError, WebSocketHandler

if TYPE_CHECKING:
    from dm_jupyter.server.connection import Connection
    from dm_jupyter.server.lazy_service import AnalystAtFirstUse

__all__ = ["ChannelHandler"]


class ChannelHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """Carries text between the tab and its `Connection`."""

    auth_resource = "dm_jupyter"
    _connection: Connection | None = None

    @ws_authenticated
    @authorized
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Opens the connection; the origin is checked by the mixin."""
        result = super().get(*args, **kwargs)
        if result is not None:
            await result

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Makes the tab's connection to the analyst."""
        super().open(*args, **kwargs)
        analyst: AnalystAtFirstUse = self.settings["dm_jupyter_analyst"]
        self._connection = analyst.get().connect(self._send_text)

    def on_message(self, message: str | bytes) -> None:
        """Passes one message on."""
        if self._connection is not None:
            self._connection.take(message)

    def on_close(self) -> None:
        """Lets the tab go."""
        if self._connection is not None:
            self._connection.close()
        super().on_close()

    def _send_text(self, text: str) -> None:
        try:
            sent = self.write_message(text)
        except WebSocketClosedError:  # the journal has it for when the tab comes back
            return
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())
