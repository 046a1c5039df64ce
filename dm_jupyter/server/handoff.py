"""Takes the questions that `%%analyze` hands over from inside a kernel.

The magic opens the comm `dm-jupyter`; one message answers it: `{"kind": "accepted", "run_id": …}`
or `{"kind": "refused", "message": …}`. Code in the kernel can forge all that it sends: which
notebook it is comes from the server's own session table, files are looked up as a panel's are, and
of the options none can name an endpoint or a key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from dm_jupyter.server.wire import Ask

__all__ = ["TARGET", "Handoffs", "question_of"]

TARGET = "dm-jupyter"
_MAX_CHARS = 20_000


class Handoffs:
    """The comms of one kernel: hears questions, forgets those that were abandoned."""

    def __init__(
        self,
        take: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
        answer: Callable[[str, dict[str, Any]], Awaitable[None]],
        spawn: Callable[[Any], Any],
    ) -> None:
        """Hears nothing yet.

        Args:
            take: works on a question's data and returns the answer to it.
            answer: sends an answer through a comm.
            spawn: starts background work.
        """
        self._take = take
        self._answer = answer
        self._spawn = spawn

    def hear(self, kind: str, content: Mapping[str, Any]) -> None:
        """Takes a comm's message; others than our target's are none of our business."""
        if kind == "comm_open" and content.get("target_name") == TARGET:
            self._spawn(self._work(str(content["comm_id"]), content.get("data") or {}))

    async def _work(self, comm_id: str, data: Mapping[str, Any]) -> None:
        await self._answer(comm_id, await self._take(data))


def question_of(data: Mapping[str, Any], notebook_path: str) -> Ask:
    """Returns the question as if the panel of that notebook had asked it.

    Args:
        data: what the magic sent.
        notebook_path: from the server's session table.

    Raises:
        ValueError: the data is not what the magic sends.
    """
    folder = PurePosixPath(notebook_path).parent
    files, cell_id = data.get("files", []), data.get("cell_id")
    options = data.get("options") or {}
    if not isinstance(data.get("question"), str) or not isinstance(files, list):
        raise ValueError("no question was handed over")  # noqa: TRY004
    if options.get("base_url"):
        raise ValueError("in JupyterLab the endpoint is the server's setting: leave --base-url out")
    model = options.get("model") or ""
    return Ask(
        request_id=str(data.get("request_id", "")),
        notebook_path=notebook_path,
        question=data["question"][:_MAX_CHARS],
        files=tuple(str(folder / str(name)) for name in files),
        after=(str(cell_id),) if cell_id else (),
        model="" if model == "local" else str(model),
        kernel="own",
    )
