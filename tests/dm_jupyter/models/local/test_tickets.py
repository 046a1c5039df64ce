from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dm_jupyter.models.local import tickets
from dm_jupyter.models.local.tickets import (
    Need,
    RequestQueue,
    Ticket,
    Urgency,
    tokens_of,
)
from tests.waiting import PATIENCE_S, until

QUESTION = Need(Urgency.QUESTION, 1, 100)
SEARCH = Need(Urgency.SEARCH, 1, 100)
BACKGROUND = Need(Urgency.BACKGROUND, 1, 100)
HOLDER = """
import asyncio, sys
from pathlib import Path
from dm_jupyter.models.local.tickets import Need, RequestQueue, Urgency

async def ask(ticket):
    print("mine", flush=True)
    await asyncio.sleep(600)

queue = RequestQueue(Path(sys.argv[1]), 1, 1000)
asyncio.run(queue.answered(Need(Urgency.QUESTION, 1, 100), ask))
"""


class Asking:
    """Requests that run until they are told to end, and what became of each."""

    def __init__(self, queue: RequestQueue) -> None:
        self._queue = queue
        self.log: list[str] = []
        self.times: dict[str, float] = {}
        """When each came last."""
        self.waits: dict[str, list[int]] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[str]] = {}

    def begin(self, name: str, need: Need, *, is_silent: bool = False) -> None:
        self._ends[name] = asyncio.Event()
        waits = self.waits.setdefault(name, [])

        async def ask(ticket: Ticket) -> str:
            self._note(f"{name} begins")
            if not is_silent:
                ticket.writes()
            try:
                await self._ends[name].wait()
            except asyncio.CancelledError:
                self._note(f"{name} gives way")
                raise
            return name

        self._tasks[name] = asyncio.create_task(self._queue.answered(need, ask, waits.append))

    def _note(self, words: str) -> None:
        self.log.append(words)
        self.times[words] = time.monotonic()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        assert await asyncio.wait_for(self._tasks[name], PATIENCE_S) == name

    async def until(self, *log: str) -> None:
        await until(lambda: self.log == list(log), f"{log}, instead of {self.log}")

    async def waits_told(self, name: str, *counts: int) -> None:
        waits = self.waits[name]
        await until(lambda: waits == list(counts), f"{counts}, instead of {waits}")

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])

    async def close(self) -> None:
        for name in self._tasks:
            await self.cancel(name)


@asynccontextmanager
async def _asking(folder: Path, slots: int = 1, tokens: int = 1000) -> AsyncIterator[Asking]:
    asking = Asking(RequestQueue(folder, slots, tokens))
    try:
        yield asking
    finally:
        await asking.close()
    assert not list((folder / "tickets").iterdir())


async def test_who_waits_is_told_how_many_go_before_and_when_its_turn_comes(tmp_path: Path) -> None:
    async with _asking(tmp_path) as asking:
        asking.begin("first", QUESTION)
        await asking.until("first begins")
        asking.begin("second", QUESTION)
        await asking.waits_told("second", 1)
        asking.begin("third", QUESTION)
        await asking.waits_told("third", 2)
        await asking.end("first")
        await asking.waits_told("second", 1, 0)
        await asking.waits_told("third", 2, 1)
        await asking.end("second")
        await asking.waits_told("third", 2, 1, 0)
        await asking.end("third")
        assert asking.waits["first"] == []


async def test_a_question_goes_before_a_search_that_came_first(tmp_path: Path) -> None:
    async with _asking(tmp_path) as asking:
        asking.begin("running", QUESTION)
        await asking.until("running begins")
        asking.begin("search", SEARCH)
        await asking.waits_told("search", 1)
        asking.begin("question", QUESTION)
        await asking.waits_told("search", 1, 2)
        await asking.end("running")
        await asking.until("running begins", "question begins")
        await asking.end("question")
        await asking.until("running begins", "question begins", "search begins")


async def test_background_work_gives_way_in_the_middle_and_is_asked_again(tmp_path: Path) -> None:
    async with _asking(tmp_path) as asking:
        asking.begin("evaluation", BACKGROUND)
        await asking.until("evaluation begins")
        asking.begin("question", QUESTION)
        begun = ("evaluation begins", "evaluation gives way", "question begins")
        await asking.until(*begun)
        assert asking.waits["question"] == []  # nobody is before it
        await asking.end("question")
        await asking.until(*begun, "evaluation begins")
        await asking.end("evaluation")


async def test_background_work_waits_beside_a_question_even_with_free_slots(tmp_path: Path) -> None:
    async with _asking(tmp_path, slots=3) as asking:
        asking.begin("question", QUESTION)
        await asking.until("question begins")
        asking.begin("evaluation", BACKGROUND)
        await asking.waits_told("evaluation", 1)
        asking.begin("search", SEARCH)
        await asking.until("question begins", "search begins")


async def test_slots_run_beside_each_other_and_share_one_context(tmp_path: Path) -> None:
    async with _asking(tmp_path, slots=3, tokens=1000) as asking:
        asking.begin("small", QUESTION)
        asking.begin("large", Need(Urgency.QUESTION, 1, 850))
        await asking.until("small begins", "large begins")
        asking.begin("one more", QUESTION)  # a slot is free, its tokens are not
        await asking.waits_told("one more", 2)
        await asking.end("small")
        await asking.until("small begins", "large begins", "one more begins")


async def test_more_than_the_whole_context_is_let_in_alone(tmp_path: Path) -> None:
    async with _asking(tmp_path, slots=3, tokens=1000) as asking:
        asking.begin("huge", Need(Urgency.QUESTION, 9, 5000))
        await asking.until("huge begins")
        asking.begin("small", QUESTION)
        await asking.waits_told("small", 1)


async def test_who_waits_for_room_is_not_overtaken(tmp_path: Path) -> None:
    async with _asking(tmp_path, slots=2) as asking:
        asking.begin("running", QUESTION)
        await asking.until("running begins")
        asking.begin("both slots", Need(Urgency.QUESTION, 2, 100))
        await asking.waits_told("both slots", 1)
        asking.begin("small", QUESTION)
        await asking.waits_told("small", 2)
        await asking.end("running")
        await asking.until("running begins", "both slots begins")


async def test_one_prompt_is_read_at_a_time(tmp_path: Path) -> None:
    async with _asking(tmp_path, slots=3) as asking:
        asking.begin("reads", QUESTION, is_silent=True)
        await asking.until("reads begins")
        asking.begin("next", QUESTION)
        await asking.waits_told("next", 1)
        await asking.end("reads")
        await asking.until("reads begins", "next begins")


async def test_a_cancelled_one_frees_its_turn_and_its_place(tmp_path: Path) -> None:
    async with _asking(tmp_path) as asking:
        asking.begin("running", QUESTION)
        await asking.until("running begins")
        for count, name in enumerate(("waiting", "last"), 1):
            asking.begin(name, QUESTION)
            await asking.waits_told(name, count)
        await asking.cancel("waiting")
        await asking.waits_told("last", 2, 1)
        await asking.cancel("running")
        await asking.waits_told("last", 2, 1, 0)


async def test_a_prompt_that_is_broken_off_keeps_its_turn_until_the_engine_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tickets, "_NOTICE_S", 0.5)
    held = tmp_path / "tickets"
    async with _asking(tmp_path, slots=3) as asking:
        for need in (QUESTION, BACKGROUND):
            asking.log.clear()
            asking.begin("reads", need, is_silent=True)
            await asking.until("reads begins")
            asking.begin("next", QUESTION)
            if need is QUESTION:
                await asking.cancel("reads")
            await asking.until("reads begins", "reads gives way", "next begins")
            assert asking.times["next begins"] - asking.times["reads gives way"] > 0.3
            await asking.end("next")
            await asking.cancel("reads")
            await until(lambda: not list(held.iterdir()), "the engine knows of it")


async def test_a_fault_is_raised_and_frees_the_turn(tmp_path: Path) -> None:
    queue = RequestQueue(tmp_path, 1, 1000)

    async def broken(_: Ticket) -> str:
        raise RuntimeError("broken")

    for need in (QUESTION, BACKGROUND):
        with pytest.raises(RuntimeError, match="broken"):
            await queue.answered(need, broken)
    assert not list((tmp_path / "tickets").iterdir())


async def test_the_turn_of_a_killed_or_stopped_process_is_free(tmp_path: Path) -> None:
    for number in (signal.SIGKILL, signal.SIGSTOP):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDER, str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"mine\n"
        queue = RequestQueue(tmp_path, 1, 1000)
        told: list[int] = []

        async def ask(_: Ticket) -> str:
            return "answered"

        asking = asyncio.create_task(queue.answered(QUESTION, ask, told.append))
        await until(lambda: told == [1], "it waits")  # noqa: B023 (awaited here)
        os.kill(process.pid, number)
        assert await asyncio.wait_for(asking, PATIENCE_S) == "answered"
        assert told == [1, 0]
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_tokens_are_estimated_from_above_for_numbers_and_other_scripts() -> None:
    def told(text: str) -> int:
        return tokens_of([{"role": "user", "content": text}]) - tokens_of([])

    assert told("1234567890") >= 10
    assert told("数据分析") >= 4
    assert 3 <= told("hello world!") < 8


async def test_tickets_of_others_alone_are_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined = list[Path]()

    def is_held(path: Path) -> bool:
        examined.append(path)
        return True

    monkeypatch.setattr(tickets, "_is_held", is_held)
    folder = tmp_path / "shared"
    folder.mkdir()
    mine, other = (RequestQueue(folder, 2, 1000) for _ in range(2))

    async def ask(ticket: Ticket) -> None:
        ticket.writes()
        await asyncio.sleep(0.3)

    async def all_answered(*queues: RequestQueue) -> None:
        async with asyncio.TaskGroup() as group:
            for queue in queues:
                group.create_task(queue.answered(BACKGROUND, ask))

    await all_answered(mine, mine, mine)
    assert not examined
    await all_answered(mine, other)
    assert examined
    assert not list((folder / "tickets").iterdir())
    assert not mine._own
