"""Groups of rollouts on a real pool: a fault ends its rollout alone, and is no reward."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.rollout import RolloutContext
from dm_jupyter.core.errors import (
    DmJupyterError,
    EndpointUnreachableError,
    StreamBrokenError,
)
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest
from dm_jupyter.search.groups import SEEDS_A_ROLLOUT, rollout_group
from dm_jupyter.search.strategies import Vote
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from tests.draws import answer, cell

SEED = 50


class BySeed:
    """A cell and an answer, both by the seed; one rollout breaks in its second turn."""

    name = "by seed"

    def __init__(self, broken: int | None = None) -> None:
        self.broken = broken
        self.seeds: list[int] = []

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        self.seeds.append(request.seed)
        place, turn = self._place(request), len(request.messages) // 2 - 1
        if turn == 1 and place == self.broken:
            raise EndpointUnreachableError("gone")
        text = cell(f"print({place})") if turn == 0 else answer(f"@n[{place}]")
        return Completion(text, "", 100, 10, 0.01)

    def _place(self, request: SampleRequest) -> int:
        return round((request.seed - SEED) / SEEDS_A_ROLLOUT)


class InOneRequest(BySeed):
    """Draws the first turns together."""

    batches = 0
    fault: Exception | None = None

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        self.batches += 1
        if self.fault is not None:
            raise self.fault
        return [Completion(cell(f"print({place})"), "", 100, 10, 0.01) for place in range(count)]


async def place_of(candidate: Candidate) -> float:
    await asyncio.sleep(0)
    return float((candidate.trajectory.answer or "").strip("@n[]"))


@pytest_asyncio.fixture
async def context(tmp_path: Path) -> AsyncIterator[RolloutContext]:
    async with SandboxPool(PoolSettings(profile=Strictness.INTERACTIVE, modules=())) as pool:
        yield RolloutContext(
            Task("t", "How many?", answer_format="@n[n]"),
            pool,
            tmp_path / "out",
            run=RunSettings(seed=SEED),
            dialect="react",
        )


async def test_each_member_has_a_trajectory_and_a_reward(context: RolloutContext) -> None:
    policy = InOneRequest()
    members = await rollout_group(context, policy, 3, place_of)
    assert policy.batches == 1
    assert [one.reward for one in members] == [0, 1, 2]
    assert [one.trajectory.answer for one in members if one.trajectory] == [
        f"@n[{place}]" for place in range(3)
    ]
    assert sorted(policy.seeds) == [SEED + 1 + SEEDS_A_ROLLOUT * place for place in range(3)]
    folders = [one.candidate.folder for one in members if one.candidate]
    assert folders == [context.folder / str(place) for place in range(3)]
    assert all(one.notebook is not None and one.fault is None for one in members)
    assert [one.reward for one in await rollout_group(context, BySeed(), 2)] == [None, None]
    with pytest.raises(ValueError, match="1 rollout or more"):
        await rollout_group(context, policy, 0)


async def test_a_fault_ends_its_rollout_alone_and_has_no_reward(context: RolloutContext) -> None:
    members = await rollout_group(context, BySeed(broken=1), 3, place_of)
    assert [one.reward for one in members] == [0, None, 2]
    assert isinstance(members[1].fault, EndpointUnreachableError)
    assert members[1].trajectory is None


async def test_a_rollout_that_nobody_can_score_keeps_its_trajectory(
    context: RolloutContext,
) -> None:
    async def refuses(candidate: Candidate) -> float:
        if candidate.trajectory.answer == "@n[1]":
            raise DmJupyterError("too slow")
        return 1.0

    members = await rollout_group(context, BySeed(), 2, refuses)
    assert [one.reward for one in members] == [1.0, None]
    assert members[1].trajectory is not None
    assert str(members[1].fault) == "too slow"


async def test_a_fault_may_stop_the_work_once_all_have_ended(context: RolloutContext) -> None:
    policy, ended = BySeed(broken=0), []

    async def noted(candidate: Candidate) -> float:
        ended.append(candidate.trajectory.answer)
        return 0.0

    with pytest.raises(EndpointUnreachableError):
        await rollout_group(context, policy, 3, noted, stops_at=(EndpointUnreachableError,))
    assert sorted(map(str, ended)) == ["@n[1]", "@n[2]"]


async def test_first_turns_that_break_off_together_are_sampled_one_by_one(
    context: RolloutContext,
) -> None:
    policy = InOneRequest()
    policy.fault = StreamBrokenError("broke off")
    assert [one.reward for one in await rollout_group(context, policy, 2, place_of)] == [0, 1]
    policy.fault = EndpointUnreachableError("gone")
    members = await rollout_group(context, policy, 2, place_of)
    assert [(one.reward, one.fault) for one in members] == [(None, policy.fault)] * 2


async def test_a_vote_raises_a_fault_after_the_others_have_ended(context: RolloutContext) -> None:
    policy = BySeed(broken=1)
    with pytest.raises(EndpointUnreachableError):
        await Vote(3).solve(context, policy)
    assert SEED + 2 * SEEDS_A_ROLLOUT + 1 in policy.seeds  # the last one's second turn


async def test_a_cancelled_group_stops_its_cells(context: RolloutContext) -> None:
    class Endless(BySeed):
        async def sample(
            self, request: SampleRequest, on_text: Callable[[str], None]
        ) -> Completion:
            asking.set()
            await asyncio.Event().wait()
            raise AssertionError

    asking = asyncio.Event()
    task = asyncio.create_task(rollout_group(context, Endless(), 2))
    await asking.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pool = context.pool
    assert isinstance(pool, SandboxPool)
    assert pool.metrics().active == 0
