"""Hands a question to whoever shows the notebook, who writes the analysis into its cells.

This side opens the comm `dm-jupyter` with `question`, `files` (as they were written), `folder`
(what they are relative to), `cell_id` (`None` where the client names no cells), `request_id`,
`options` (the model's name, where one was given), `variables` (as a kernel tells them that is asked
for them) and `withheld` (what of the notebook the model is not told). The other side
says `{"kind": "seen"}` at once, this side `{"kind": "waits"}`: only then the other side begins, and
this side never works on the question itself. The other side then answers with one message,
`{"kind": "accepted", "run_id": …}` or `{"kind": "refused", "message": …}`, however long it takes to
start. Then this side closes the comm with `{"kind": "received"}`, or with `{"kind": "abandoned"}`
where nobody has seen it or no answer comes: that question must not be worked on any more.

A page that does not know the comm closes it. That says nothing of a server that listens too, so
the comm is kept open here.

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

from comm import create_comm, get_comm_manager
from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.data.kernel_tables import COMM_TARGET, variables_text
from dm_jupyter.magic.arguments import Request

__all__ = ["Handoff", "hand_over"]

_SEEN_S = 2.0
"""So long a listener has to say that it has seen the question."""
_PATIENT_TRIES = 5
"""How often a kernel asks that can't answer itself: whoever listens may still be starting."""
_ANSWER_S = 120.0
"""So long a question that was seen waits for its answer."""
_KINDS = ("accepted", "refused")


@dataclass(frozen=True, slots=True, repr=False)
class Handoff:
    """An analysis that goes on in other cells; it has no answer of its own."""

    run_id: str

    def __repr__(self) -> str:
        return "The analyst is working in the cells below."

    def _repr_markdown_(self) -> str:
        return f"**{self!r}**"


async def hand_over(
    shell: InteractiveShell, request: Request, *, is_patient: bool = False
) -> Handoff | None:
    """Returns the hand-off once it is accepted, `None` when nobody listens.

    Args:
        shell: of the cell that asks.
        request: the question.
        is_patient: whether to ask several times, because nobody else can work on it.

    Raises:
        DmJupyterError: whoever listens refused, or took the question and did not answer.
    """
    if getattr(shell, "kernel", None) is None:
        return None
    question = _question(shell, request)
    for _ in range(_PATIENT_TRIES if is_patient else 1):
        answer = await _Asking(question).answer()
        if answer is not None:
            break
    else:
        return None
    if answer["kind"] == "refused":
        raise DmJupyterError(str(answer.get("message") or "the request was refused"))
    return Handoff(str(answer.get("run_id", "")))


class _Asking:
    """One comm, from its opening to its end."""

    def __init__(self, question: dict[str, Any]) -> None:
        """Asks.

        Args:
            question: what is sent.
        """
        self._heard: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._comm = create_comm(target_name=COMM_TARGET, data=question)
        self._comm.on_msg(lambda message: self._hear(message["content"]["data"]))
        self._comm.on_close(lambda _: self._keep_open())

    async def answer(self) -> Mapping[str, Any] | None:
        """Returns the answer; `None` when nobody has seen the question.

        Raises:
            DmJupyterError: it was seen, and no answer came.
        """
        word = "abandoned"
        try:
            heard = await self._next(_SEEN_S)
            if heard is not None and heard["kind"] == "seen":
                self._comm.send({"kind": "waits"})
                heard = await self._next(_ANSWER_S)
                if heard is None:
                    raise DmJupyterError(
                        f"the analyst has seen the question and not begun for {_ANSWER_S:g} s: "
                        "look at its panel, then ask again"
                    )
            word = "received" if heard is not None else word
            return heard
        finally:
            self._comm.close(data={"kind": word})

    async def _next(self, patience_s: float) -> Mapping[str, Any] | None:
        try:
            async with asyncio.timeout(patience_s):
                return await self._heard.get()
        except TimeoutError:
            return None

    def _hear(self, content: Any) -> None:
        """Takes a message, in whichever thread the kernel reads its channels."""
        if isinstance(content, Mapping) and content.get("kind") in ("seen", *_KINDS):
            self._loop.call_soon_threadsafe(self._heard.put_nowait, content)

    def _keep_open(self) -> None:
        """Somebody does not know the target: others may."""
        self._comm._closed = False
        get_comm_manager().register_comm(self._comm)


def _question(shell: InteractiveShell, request: Request) -> dict[str, Any]:
    return {
        "question": request.question,
        "files": list(request.files),
        "folder": str(Path.cwd()),
        "cell_id": _cell_id(shell),
        "request_id": uuid.uuid4().hex,
        "options": {"model": request.model} if request.model else {},
        "withheld": list(request.without),
        # The kernel is busy with this cell, so nobody could ask it for them.
        "variables": "" if "variables" in request.without else variables_text(shell.user_ns),
    }


def _cell_id(shell: InteractiveShell) -> str | None:
    parent: Any = getattr(shell, "get_parent", dict)()
    return (parent.get("metadata") or {}).get("cellId")
