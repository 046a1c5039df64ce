"""A notebook executed cell by cell by nbclient, as papermill and many a pipeline do it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

__all__ = ["Listener", "executed", "texts"]

LOAD = "%load_ext dm_jupyter"


class Listener:
    """Whoever shows the notebook: answers the comm that the magic opens, and keeps what it got."""

    def __init__(self, *replies: tuple[str, Any], late: tuple[tuple[str, Any], ...] = ()) -> None:
        """Prepares the replies: pairs of a message type and its data.

        Args:
            *replies: sent at once.
            late: sent half a second after the magic says that it waits.
        """
        self.replies = replies
        self.late = late
        self.questions: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self.closings: list[dict[str, Any]] = []
        self.client: NotebookClient | None = None

    def opened(self, message: dict[str, Any]) -> None:
        """Answers one question."""
        content = message["content"]
        self.questions.append(content["data"])
        self._reply(content["comm_id"], self.replies)

    def hear(self, content: dict[str, Any]) -> None:
        """Takes what the magic says after its question."""
        self.told.append(content["data"])
        loop = asyncio.get_running_loop()
        loop.call_later(0.5, self._reply, content["comm_id"], self.late)

    def _reply(self, comm_id: str, replies: tuple[tuple[str, Any], ...]) -> None:
        assert self.client is not None
        client = self.client.kc
        for kind, data in replies:
            reply = {"comm_id": comm_id, "data": data}
            client.shell_channel.send(client.session.msg(kind, reply))


class _Client(NotebookClient):
    """Tells the listener of the end of a comm, which nbclient itself passes over."""

    listener: Listener | None = None

    def handle_comm_msg(self, outs: list[Any], msg: dict[str, Any], cell_index: int) -> None:
        super().handle_comm_msg(outs, msg, cell_index)
        if self.listener is None:
            return
        if msg["msg_type"] == "comm_msg":
            self.listener.hear(msg["content"])
        if msg["msg_type"] == "comm_close":
            self.listener.closings.append(msg["content"]["data"])


async def executed(*sources: str, listener: Listener | None = None) -> list[Any]:
    """Returns the cells after a run in a fresh, ordinary kernel, in the current folder."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in (LOAD, *sources)])
    client = _Client(notebook, timeout=120, allow_errors=True, kernel_name="python3")
    if listener is not None:
        client.listener, listener.client = listener, client
        client.comm_open_handlers["dm-jupyter"] = listener.opened
    await client.async_execute()
    nbformat.validate(notebook)
    assert not notebook.cells[0].outputs
    return list(notebook.cells[1:])


def texts(cell: Any, is_wanted: Callable[[Any], bool] = lambda _: True) -> list[str]:
    """Returns the plain text of each output of a cell."""
    return [
        output.get("text") or "\n".join(output.get("traceback", ())) or output.data["text/plain"]
        for output in cell.outputs
        if is_wanted(output)
    ]
