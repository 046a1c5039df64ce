"""Hand-off of a question to the listener of the notebook, which writes the analysis into its cells.

This side opens the comm `dm-jupyter` with these fields:

- `question`, `request_id`
- `files`: as they were written; `folder`: what they are relative to
- `cell_id`: `None` if the client names no cells
- `options`: the model's name, if one was given
- `variables`: in the form in which a kernel reports them when asked
- `withheld`: the parts of the notebook that the model is not shown

The other side sends `{"kind": "seen"}` at once, this side `{"kind": "waits"}`. Only then does the
other side begin, and this side never works on the question itself. The other side then answers with
one message, `{"kind": "accepted", "run_id": …}` or `{"kind": "refused", "message": …}`, however
long it takes to start. Finally this side closes the comm with `{"kind": "received"}`. If nobody has
seen the question or no answer arrives, it closes with `{"kind": "abandoned"}`, and the question
must be dropped.

A page that does not know the comm closes it. A server may still be listening, so this side keeps
the comm open.

Code in the kernel can forge all of it, so the other side trusts none of it. A key is never sent
over the comm.
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
"""Time a listener has to confirm that it has seen the question."""
_PATIENT_TRIES = 5
"""Attempts of a kernel that can't answer itself: the listener may still be starting."""
_ANSWER_S = 120.0
"""Time a question that was seen waits for its answer."""
_KINDS = ("accepted", "refused")


@dataclass(frozen=True, slots=True, repr=False)
class Handoff:
    """An analysis that continues in other cells; it has no answer of its own."""

    run_id: str

    def __repr__(self) -> str:
        return "The analyst is working in the cells below."

    def _repr_markdown_(self) -> str:
        return f"**{self!r}**"


async def hand_over(
    shell: InteractiveShell, request: Request, *, is_patient: bool = False
) -> Handoff | None:
    """Hand a question over; return the hand-off once accepted, `None` if nobody listens.

    Args:
        shell: of the cell that asks.
        request: the question.
        is_patient: whether to ask several times, because nobody else can work on it.

    Raises:
        DmJupyterError: the listener refused, or took the question and did not answer.
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
    """One comm, from opening to close."""

    def __init__(self, question: dict[str, Any]) -> None:
        """Open the comm with the question.

        Args:
            question: what is sent.
        """
        self._heard: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._comm = create_comm(target_name=COMM_TARGET, data=question)
        self._comm.on_msg(lambda message: self._hear(message["content"]["data"]))
        self._comm.on_close(lambda _: self._keep_open())

    async def answer(self) -> Mapping[str, Any] | None:
        """Return the answer; `None` if nobody has seen the question.

        Raises:
            DmJupyterError: it was seen, and no answer arrived.
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
        """Receive a message, in whichever thread the kernel reads its channels."""
        if isinstance(content, Mapping) and content.get("kind") in ("seen", *_KINDS):
            self._loop.call_soon_threadsafe(self._heard.put_nowait, content)

    def _keep_open(self) -> None:
        """Keep the comm open after one listener rejected the target; others may know it."""
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
        # The kernel is busy with this cell, so nobody can ask it for the variables.
        "variables": "" if "variables" in request.without else variables_text(shell.user_ns),
    }


def _cell_id(shell: InteractiveShell) -> str | None:
    parent: Any = getattr(shell, "get_parent", dict)()
    return (parent.get("metadata") or {}).get("cellId")
