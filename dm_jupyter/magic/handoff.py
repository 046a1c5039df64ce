"""Hands a question to whoever shows the notebook, who writes the analysis into its cells.

This side opens the comm `dm-jupyter` with `question`, `files` (as they were written), `folder`
(what they are relative to), `cell_id` (`None` where the client names no cells), `request_id` and
`options` (the model's name, where one was given). The other side answers with one message,
`{"kind": "accepted", "run_id": …}` or `{"kind": "refused", "message": …}`. Then this side closes
the comm with `{"kind": "received"}`, or after two seconds without an answer with
`{"kind": "abandoned"}`: that question must not be worked on any more.

All of it can be forged by code in the kernel, so the other side trusts none of it. A key never
goes this way.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comm import create_comm
from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.magic.arguments import Request

__all__ = ["TARGET", "Handoff", "hand_over"]

TARGET = "dm-jupyter"
_ANSWER_S = 2.0
_KINDS = ("accepted", "refused")


@dataclass(frozen=True, slots=True, repr=False)
class Handoff:
    """An analysis that goes on in other cells; it has no answer of its own."""

    run_id: str

    def __repr__(self) -> str:
        return "The analyst is working in the cells below."

    def _repr_markdown_(self) -> str:
        return f"**{self!r}**"


async def hand_over(shell: InteractiveShell, request: Request) -> Handoff | None:
    """Returns the hand-off once it is accepted, `None` when nobody listens.

    Raises:
        DmJupyterError: whoever listens refused; the message is theirs.
    """
    if getattr(shell, "kernel", None) is None:
        return None
    heard: asyncio.Future[Mapping[str, Any] | None] = asyncio.get_running_loop().create_future()

    def hear(content: Any) -> None:
        is_answer = isinstance(content, Mapping) and content.get("kind") in _KINDS
        if not heard.done() and (is_answer or content is None):
            heard.set_result(content)

    loop = heard.get_loop()
    comm = create_comm(target_name=TARGET, data=_question(shell, request))
    comm.on_msg(lambda message: _soon(loop, hear, message["content"]["data"]))
    comm.on_close(lambda _: _soon(loop, hear, None))
    answer: Mapping[str, Any] | None = None
    try:
        async with asyncio.timeout(_ANSWER_S):
            answer = await heard
    except TimeoutError:
        pass
    finally:
        comm.close(data={"kind": "received" if answer else "abandoned"})
    if answer is None:
        return None
    if answer["kind"] == "refused":
        raise DmJupyterError(str(answer.get("message") or "the request was refused"))
    return Handoff(str(answer.get("run_id", "")))


def _soon(loop: asyncio.AbstractEventLoop, function: Any, content: Any) -> None:
    """Calls back in the cell's own loop: the kernel may read its channels in another thread."""
    loop.call_soon_threadsafe(function, content)


def _question(shell: InteractiveShell, request: Request) -> dict[str, Any]:
    return {
        "question": request.question,
        "files": list(request.files),
        "folder": str(Path.cwd()),
        "cell_id": _cell_id(shell),
        "request_id": uuid.uuid4().hex,
        "options": {"model": request.model} if request.model else {},
    }


def _cell_id(shell: InteractiveShell) -> str | None:
    parent: Any = getattr(shell, "get_parent", dict)()
    return (parent.get("metadata") or {}).get("cellId")
