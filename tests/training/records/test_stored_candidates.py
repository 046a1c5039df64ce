"""What a record says of the runs that an answer was chosen from, held against those runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.agent.rollout import RolloutContext
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.search.strategies import Strategy, Vote
from dm_jupyter.search.tree import Search, SearchSettings
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from tests.draws import Scripted, answer, cell
from tests.training.outcomes import tried
from training.records.failures import self_corrected_in
from training.records.records import EvalRecord, RunError
from training.revote import stored_candidates


def _says(_: str, turn: int) -> list[str]:
    if turn == 0:
        return [cell("1/0"), cell("print(1)"), answer("@n[7]")]
    return [answer("@n[8]"), answer("@n[9]"), cell("print(2)")]


async def _values(trajectories: Sequence[Trajectory]) -> list[float]:
    return [0.5 - 0.1 * one.turns for one in trajectories]


def _facts(one: Candidate) -> tuple[object, ...]:
    run = one.trajectory
    turns = [(step.completion.text, step.turn, step.observation) for step in run.steps]
    return (one.folder, one.weight, one.value, run.answer, run.stop, run.cells,
            self_corrected_in(run), turns)  # fmt: skip


@pytest.mark.parametrize(
    "strategy",
    [
        Search(SearchSettings(candidates=3, iterations=4)),
        Search(SearchSettings(candidates=3, iterations=4), values=_values),
        Vote(3),
    ],
    ids=["search", "with values", "vote"],
)
async def test_the_runs_of_a_record_are_those_that_were_chosen_among(
    tmp_path: Path, strategy: Strategy
) -> None:
    task = Task("t", "How many?", answer_format="@n[n]")
    async with SandboxPool(
        PoolSettings(profile=Strictness.INTERACTIVE, modules=("pandas",))
    ) as pool:
        context = RolloutContext(task, pool, tmp_path, dialect="react")
        solution = await strategy.solve(context, Scripted(_says))
    best = solution.best.trajectory.to_json()
    record = tried("t", True, trajectory=best, search=solution.record)
    found = stored_candidates(record, tmp_path)
    assert len(found) > 2
    assert sorted(map(_facts, found), key=str) == sorted(map(_facts, solution.candidates), key=str)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (tried("t", True, search={"kind": "search"}), "schema version None"),
        (tried("t", True), "neither votes nor a tree"),
    ],
)
def test_what_is_not_whole_is_named(tmp_path: Path, record: EvalRecord, told: str) -> None:
    with pytest.raises(RunError, match=f"t, try 0: .*{told}"):
        stored_candidates(record, tmp_path)
