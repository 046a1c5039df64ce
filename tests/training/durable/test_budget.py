"""What a pipeline may spend: counted over its sessions, never exceeded by calls."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointUnreachableError
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import BatchPolicy, SampleRequest
from tests.fakes import ScriptedPolicy
from training.durable import budget as budget_module
from training.durable.budget import (
    Budget,
    BudgetMeter,
    BudgetSpentError,
    Price,
    Spending,
    metered,
    read_budget,
)

REQUEST = SampleRequest((Message("user", "How many?"),))


async def test_calls_are_counted_over_sessions_and_a_larger_budget_goes_on(tmp_path: Path) -> None:
    model = ScriptedPolicy(["a b c"])
    for limit, more in ((2, 2), (5, 3)):
        with BudgetMeter(tmp_path, Budget(calls=limit)) as meter:
            policy = metered(model, meter)
            for _ in range(more):
                await policy.sample(REQUEST, lambda _: None)
            with pytest.raises(BudgetSpentError, match=rf"{limit} calls .*--budget calls=N"):
                await policy.sample(REQUEST, lambda _: None)
    assert len(model.requests) == 5
    with BudgetMeter(tmp_path, Budget()) as meter:
        meter.load()
        assert meter.spent.calls == 5
        assert (meter.spent.prompt_tokens, meter.spent.completion_tokens) == (500, 15)


async def test_calls_that_are_in_flight_count(tmp_path: Path) -> None:
    going = asyncio.Event()

    class Slow(ScriptedPolicy):
        async def sample(
            self, request: SampleRequest, on_text: Callable[[str], None]
        ) -> Completion:
            await going.wait()
            return await super().sample(request, on_text)

    meter = BudgetMeter(tmp_path, Budget(calls=2))
    policy = metered(Slow(["a"]), meter)
    tasks = [asyncio.create_task(policy.sample(REQUEST, lambda _: None)) for _ in range(3)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    going.set()
    await asyncio.wait(tasks)
    faults = [task.exception() for task in tasks]
    assert faults[:2] == [None, None]
    assert isinstance(faults[2], BudgetSpentError)


async def test_a_batch_counts_its_turns_and_stays_a_batch(tmp_path: Path) -> None:
    class Batching(ScriptedPolicy):
        async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
            return [Completion("x", completion_tokens=2)] * count

    meter = BudgetMeter(tmp_path, Budget(calls=5))
    policy = metered(Batching(["a"]), meter)
    assert isinstance(policy, BatchPolicy)
    assert not isinstance(metered(ScriptedPolicy(["a"]), meter), BatchPolicy)
    await policy.sample_many(REQUEST, 3)
    with pytest.raises(BudgetSpentError):
        await policy.sample_many(REQUEST, 3)
    await policy.sample_many(REQUEST, 2)
    assert meter.spent.completion_tokens == 10


async def test_tokens_and_dollars_stop_the_call_after_the_one_that_spent_them(
    tmp_path: Path,
) -> None:
    for name, limit in (("tokens", 205), ("dollars", 0.0205)):
        model = ScriptedPolicy(["a b c"])  # 100 tokens read and 3 sampled
        meter = BudgetMeter(tmp_path / name, Budget(**{name: limit}), Price(100.0, 100.0))
        policy = metered(model, meter)
        await policy.sample(REQUEST, lambda _: None)
        await policy.sample(REQUEST, lambda _: None)
        with pytest.raises(BudgetSpentError, match=rf"{name} is used up: 2 calls, 206 tokens"):
            await policy.sample(REQUEST, lambda _: None)
        assert len(model.requests) == 2


def test_a_price_by_hand() -> None:
    # 2 million tokens at 0.50 and 0.1 million at 2.00
    assert Price(0.5, 2.0).of(2_000_000, 100_000) == pytest.approx(1.0 + 0.2)
    assert Price(0, 0).of(2_000_000, 100_000) == 0


@pytest.mark.parametrize("prices", [(-0.1, 1), (1, math.nan), (math.inf, 1)])
def test_a_price_is_a_number_of_dollars(prices: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="0 dollars or more"):
        Price(*prices)


async def test_seconds_are_those_of_all_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(budget_module.time, "monotonic", lambda: now[0])
    for _ in range(2):
        with BudgetMeter(tmp_path, Budget(seconds=8)) as meter:
            meter.load()
            now[0] += 1
            await metered(ScriptedPolicy(["a"]), meter).sample(REQUEST, lambda _: None)
            now[0] += 2
        now[0] += 1_000  # nobody works
    meter = BudgetMeter(tmp_path, Budget(seconds=8))
    meter.load()
    assert meter.spent == Spending(2, 200, 2, 6.0)
    now[0] += 2
    with pytest.raises(BudgetSpentError, match="8 seconds"):
        meter.refuse()


async def test_a_call_that_fails_counts_and_leaves_no_place_taken(tmp_path: Path) -> None:
    class Failing(ScriptedPolicy):
        async def sample(
            self, request: SampleRequest, on_text: Callable[[str], None]
        ) -> Completion:
            raise EndpointUnreachableError("gone")

    meter = BudgetMeter(tmp_path, Budget(calls=2))
    for _ in range(2):
        with pytest.raises(EndpointUnreachableError):
            await metered(Failing(["a"]), meter).sample(REQUEST, lambda _: None)
    with pytest.raises(BudgetSpentError):
        meter.refuse(1)
    assert meter.spent.calls == 2


def test_a_budget_is_read_as_it_is_said() -> None:
    assert read_budget("calls=500,dollars=2.5") == Budget(calls=500, dollars=2.5)
    for text in ("calls", "calls=0", "hours=3", "calls=1,calls=2", "dollars=nan", "seconds=inf"):
        with pytest.raises(ValueError, match=r"calls|seconds|dollars|hours|invalid"):
            read_budget(text)
    with pytest.raises(ValueError, match="--price"):
        BudgetMeter(Path(), Budget(dollars=1))
