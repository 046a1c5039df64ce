"""Takes the questions that `%%analyze` hands over from inside a kernel.

The magic opens the comm `dm-jupyter`; one message answers it: `{"kind": "accepted", "run_id": …}`
or `{"kind": "refused", "message": …}`. Code in the kernel can forge all that it sends: which
notebook it is comes from the server's own session table, files are looked up as a panel's are, and
of the options none can name an endpoint or a key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
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
        abandon: Callable[[str], None],
        spawn: Callable[[Any], Any],
    ) -> None:
        """Hears nothing yet.

        Args:
            take: works on a question's data and returns the answer to it.
            answer: sends an answer through a comm.
            abandon: ends a run whose acceptance came too late: the magic works on it itself.
            spawn: starts background work.
        """
        self._take = take
        self._answer = answer
        self._abandon = abandon
        self._spawn = spawn
        self._runs: dict[str, str] = {}

    def hear(self, kind: str, content: Mapping[str, Any]) -> None:
        """Takes a comm's message; others than our target's are none of our business."""
        if kind == "comm_open" and content.get("target_name") == TARGET:
            self._spawn(self._work(str(content["comm_id"]), content.get("data") or {}))
        elif kind == "comm_close":
            run_id = self._runs.pop(str(content.get("comm_id")), None)
            if run_id is not None and (content.get("data") or {}).get("kind") == "abandoned":
                self._abandon(run_id)

    async def _work(self, comm_id: str, data: Mapping[str, Any]) -> None:
        answer = await self._take(data)
        if answer["kind"] == "accepted":
            self._runs[comm_id] = answer["run_id"]
        await self._answer(comm_id, answer)


def question_of(data: Mapping[str, Any], notebook_path: str, root: Path) -> Ask:
    """Returns the question as if the panel of that notebook had asked it.

    Args:
        data: what the magic sent.
        notebook_path: from the server's session table.
        root: the folder that the server shows.

    Raises:
        ValueError: the data is not what the magic sends.
    """
    folder = Path(str(data.get("folder") or (root / notebook_path).parent))
    files, cell_id = data.get("files", []), data.get("cell_id")
    options = data.get("options") or {}
    if not isinstance(data.get("question"), str) or not isinstance(files, list):
        raise ValueError("no question was handed over")  # noqa: TRY004
    return Ask(
        request_id=str(data.get("request_id", "")),
        notebook_path=notebook_path,
        question=data["question"][:_MAX_CHARS],
        files=tuple(_below(folder / str(name), root) for name in files),
        after=(str(cell_id),) if cell_id else (),
        model=str(options.get("model") or ""),
        kernel="own",
    )


def _below(file: Path, root: Path) -> str:
    """The file as the contents API names it; one elsewhere by its whole path, which none is."""
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
