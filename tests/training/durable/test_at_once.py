from __future__ import annotations

import asyncio

import pytest

from training.durable.at_once import each_at_once


def test_at_most_so_many_items_are_under_way() -> None:
    under_way, most, done = set[int](), list[int](), list[int]()

    async def work(item: int) -> None:
        under_way.add(item)
        most.append(len(under_way))
        await asyncio.sleep(0)
        under_way.remove(item)
        done.append(item)

    asyncio.run(each_at_once(range(10), 3, work))
    assert max(most) == 3
    assert sorted(done) == list(range(10))


def test_none_at_a_time_is_refused() -> None:
    async def work(_: int) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="ask for 1 item or more at a time, not for 0"):
        asyncio.run(each_at_once(range(10), 0, work))


def test_the_first_fault_is_raised_itself_and_ends_the_others() -> None:
    begun = list[int]()

    async def work(item: int) -> None:
        begun.append(item)
        await asyncio.sleep(0)
        if item == 1:
            raise KeyError(item)
        await asyncio.sleep(60)

    with pytest.raises(KeyError, match="1"):
        asyncio.run(asyncio.wait_for(each_at_once(range(10), 2, work), 30))
    assert begun == [0, 1]
