"""A question that a kernel hands over is seen at once, answered later, and worked on once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dm_jupyter.server.kernels.handoff import Handoffs, LaterCells
from dm_jupyter.server.protocol import Ask

OPEN = {"comm_id": "c", "target_name": "dm-jupyter", "data": {"question": "How many?"}}
WAITS = {"comm_id": "c", "data": {"kind": "waits"}}
ABANDONED = {"comm_id": "c", "data": {"kind": "abandoned"}}
RECEIVED = {"comm_id": "c", "data": {"kind": "received"}}
SEEN = {"kind": "seen"}
ACCEPTED = {"kind": "accepted", "run_id": "r1"}


class Server:
    """Takes questions slowly, and keeps what it said, took and ended."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.taken: list[Any] = []
        self.ended: list[str] = []
        self.is_ready = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.handoffs = Handoffs(self._take, self._answer, self.ended.append, self._spawn)

    async def _take(self, data: Any) -> dict[str, Any]:
        self.taken.append(data)
        await self.is_ready.wait()
        return dict(ACCEPTED)

    async def _answer(self, comm_id: str, data: dict[str, Any]) -> None:
        self.said.append(data)

    def _spawn(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def settle(self) -> None:
        self.is_ready.set()
        await asyncio.wait(self._tasks)


@pytest.fixture
async def server() -> Server:
    return Server()


async def test_a_question_is_seen_before_it_is_taken_and_then_answered(server: Server) -> None:
    server.handoffs.hear("comm_open", OPEN)
    await asyncio.sleep(0)
    assert (server.said, server.taken) == ([SEEN], [])
    server.handoffs.hear("comm_msg", WAITS)
    await asyncio.sleep(0)
    assert (server.said, server.taken) == ([SEEN], [OPEN["data"]])
    await server.settle()
    assert server.said == [SEEN, ACCEPTED]
    server.handoffs.hear("comm_close", RECEIVED)
    assert server.ended == []


async def test_a_question_that_was_given_up_unseen_is_not_worked_on(server: Server) -> None:
    server.handoffs.hear("comm_open", OPEN)
    server.handoffs.hear("comm_close", ABANDONED)
    server.handoffs.hear("comm_msg", WAITS)
    await server.settle()
    assert server.taken == []


async def test_a_run_that_begins_after_its_magic_has_gone_is_ended(server: Server) -> None:
    server.handoffs.hear("comm_open", OPEN)
    server.handoffs.hear("comm_msg", WAITS)
    await asyncio.sleep(0)
    server.handoffs.hear("comm_close", ABANDONED)
    await server.settle()
    assert (server.said, server.ended) == ([SEEN], ["r1"])


async def test_a_run_that_was_accepted_too_late_is_ended(server: Server) -> None:
    server.handoffs.hear("comm_open", OPEN)
    server.handoffs.hear("comm_msg", WAITS)
    await server.settle()
    server.handoffs.hear("comm_close", ABANDONED)
    assert server.ended == ["r1"]


async def test_a_question_is_taken_once_however_often_the_kernel_says_so(server: Server) -> None:
    server.handoffs.hear("comm_open", OPEN)
    for _ in range(3):
        server.handoffs.hear("comm_msg", WAITS)
    server.handoffs.hear("comm_msg", {"comm_id": "other", "data": {"kind": "waits"}})
    await server.settle()
    assert server.taken == [OPEN["data"]]


async def test_questions_whose_kernel_says_no_more_do_not_keep_a_later_one_out(
    server: Server,
) -> None:
    for number in range(20):
        server.handoffs.hear("comm_open", {**OPEN, "comm_id": str(number)})
        await asyncio.sleep(0)
    server.handoffs.hear("comm_open", OPEN)
    server.handoffs.hear("comm_msg", WAITS)
    await server.settle()
    assert server.taken == [OPEN["data"]]


def test_what_a_cell_asks_again_goes_below_what_it_asked_before() -> None:
    later = LaterCells()
    ask = Ask("r", "n.ipynb", "How many?", after=("asking",))
    assert later.below(ask).after == ("asking",)
    later.keep("asking", ("answer", "code", "question"))
    assert later.below(ask).after == ("answer", "code", "question", "asking")
    later.keep("asking", ("answer 2",))
    assert later.below(ask).after == ("answer 2", "answer", "code", "question", "asking")
    later.keep("asking", ())  # a run in which no cell ran leaves nothing
    assert later.below(ask).after[0] == "answer 2"
    assert later.below(Ask("r", "n.ipynb", "How many?")).after == ()
