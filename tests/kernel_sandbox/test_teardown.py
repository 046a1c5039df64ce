"""Teardown runs to its end, whoever is cancelled meanwhile."""

import asyncio

import pytest

from kernel_sandbox.aio import run_shielded


async def test_the_value_and_the_fault_of_the_work_come_through():
    async def answer():
        return 42

    async def fault():
        raise ValueError("broken")

    assert await run_shielded(answer()) == 42
    with pytest.raises(ValueError, match="broken"):
        await run_shielded(fault())


@pytest.mark.parametrize("fails", [True, False])
async def test_work_ends_although_the_caller_is_cancelled_twice(fails):
    begun, go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work():
        begun.set()
        await go.wait()
        ended.set()
        if fails:
            raise ValueError("broken")

    caller = asyncio.create_task(run_shielded(work()))
    await begun.wait()
    for _ in range(2):
        caller.cancel()
        await asyncio.sleep(0)
    assert not caller.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()


async def test_work_that_cancels_itself_is_cancelled():
    async def work():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await run_shielded(work())
