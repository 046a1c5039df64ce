"""Work on a scripted model behind an address, until somebody kills it.

Usage: `python -m tests.training.durable.killed_program evaluate|groups SPLIT OUT URL`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import httpx2

from dm_jupyter.agent.rollout import RolloutContext
from dm_jupyter.core.trajectory import Completion, Trajectory
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.protocols import Policy, SampleRequest
from dm_jupyter.search.groups import rollout_group
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from training.durable.atomic import write_json
from training.durable.budget import Budget, BudgetMeter, metered
from training.durable.folder import folder_lock
from training.durable.kept_policy import CALLS_FILE, KeptPolicy
from training.evaluation.models import BoundedPolicy
from training.evaluation.rewards import suite_reward
from training.evaluation.run import EvalOptions, evaluate, item_folder, write_results
from training.evaluation.scoring import ScoringPool
from training.records.groups import GroupLog, GroupRecord
from training.suites.dabench import DABench

AT_ONCE = 3
"""Calls that may be in flight together."""
SIZE = 3
"""Of a group."""


class AskedOverHttp:
    """Implements `Policy`."""

    name = "counted"

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self._url, self._client = url, client

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        body = {"messages": [asdict(one) for one in request.messages], "seed": request.seed}
        text = (await self._client.post(self._url, json=body)).json()["text"]
        return Completion(text, "", 100, len(text.split()), 0.01)


async def _evaluate(split: Path, out: Path, policy: Policy, pool: SandboxPool) -> None:
    options = EvalOptions(DABench(), split, out, dialect="react", at_once=AT_ONCE)
    write_results(await evaluate(options, policy, pool), out / "results.jsonl")


async def _groups(split: Path, out: Path, policy: Policy, pool: SandboxPool) -> None:
    suite, log = DABench(), GroupLog(out / "groups.jsonl")
    with folder_lock(out):
        done = log.by_key()
        async with ScoringPool(suite, 60) as scorer, ProfileReader() as reader:
            for item in suite.load(split):
                if item.task.id in done:
                    continue
                folder = item_folder(out, item.task.id, 0)
                context = RolloutContext(item.task, pool, folder, dialect="react")
                members = await rollout_group(
                    await context.with_data_context(reader),
                    policy,
                    SIZE,
                    suite_reward(scorer, item),
                )
                log.append(GroupRecord.of(item.task.id, members))
        write_json([_said(one) for one in log.read()], out / "results.json")


def _said(group: GroupRecord) -> object:
    """A group without clock times."""
    runs = [Trajectory.from_json(one.trajectory or {}) for one in group.members]
    cells = [[step.observation for step in run.steps] for run in runs]
    return group.id, [one.reward for one in group.members], [one.answer for one in runs], cells


async def main(kind: str, split: Path, out: Path, url: str) -> None:
    """Works, and writes the results when it comes to the end."""
    work = {"evaluate": _evaluate, "groups": _groups}[kind]
    settings = PoolSettings(profile=Strictness.INTERACTIVE, modules=())
    async with SandboxPool(settings) as pool, httpx2.AsyncClient(trust_env=False) as client:
        with BudgetMeter(out, Budget(calls=10_000)) as meter:
            model = metered(AskedOverHttp(url, client), meter)
            policy = BoundedPolicy(KeptPolicy(model, out / CALLS_FILE), AT_ONCE)
            await work(split, out, policy, pool)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]))
