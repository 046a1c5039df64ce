"""Strategies on a real pool: a scripted model, real workers, real branches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.rollout import RolloutContext
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import ContextFullError, DataFileError, EndpointUnreachableError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, StopReason, Trajectory
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.protocols import SampleRequest, Urgency
from dm_jupyter.search.best_of_n import run_best_of_n
from dm_jupyter.search.presampled import Searching
from dm_jupyter.search.strategies import React, Vote
from dm_jupyter.search.tree import Search, SearchSettings
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool, StateRetention
from tests.draws import Scripted, answer, cell
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed


@pytest_asyncio.fixture(
    params=[StateRetention.SNAPSHOT, StateRetention.REPLAY, StateRetention.PERSISTENT]
)
async def any_pool(request: pytest.FixtureRequest) -> AsyncIterator[SandboxPool]:
    async with SandboxPool(_settings(request.param)) as pool:
        yield pool


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[SandboxPool]:
    async with SandboxPool(_settings(StateRetention.SNAPSHOT)) as pool:
        yield pool


def _settings(strategy: StateRetention) -> PoolSettings:
    return PoolSettings(strategy=strategy, profile=Strictness.INTERACTIVE, modules=())


@pytest.fixture
def context_on(tmp_path: Path) -> Callable[[SandboxPool], RolloutContext]:
    def make(pool: SandboxPool) -> RolloutContext:
        task = Task("t", "How many?", answer_format="@n[n]")
        return RolloutContext(task, pool, tmp_path / "out", dialect="react")

    return make


ContextOn = Callable[[SandboxPool], RolloutContext]


def _files(folder: Path | None) -> dict[str, str]:
    assert folder is not None
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


async def test_a_single_try_keeps_its_notebook_and_its_files(
    any_pool: SandboxPool, context_on: ContextOn
) -> None:
    code = "open('made.txt', 'w').write('3'); print(3)"
    policy = Scripted(lambda _, turn: [cell(code)] if turn == 0 else [answer("@n[3]")])
    solution = await React().solve(context_on(any_pool), policy)
    best = solution.best
    assert best.trajectory.answer == "@n[3]"
    assert best.trajectory.containment["layers"]
    assert _files(best.folder) == {"made.txt": "3"}
    assert (solution.cells, solution.tokens, solution.prompt_tokens) == (1, 20, 200)
    assert solution.notebook is not None
    assert "## Answer" in solution.notebook.document.cells[-1].source


async def test_a_vote_takes_what_most_runs_say(
    any_pool: SandboxPool, context_on: ContextOn
) -> None:
    said = ["@n[5]", "@n[4]", "@n[4.0]"]

    def says(_: str, turn: int) -> list[str]:
        return [answer(one) for one in said[1:]]

    policy = Scripted(says)
    policy.sample = _always(answer(said[0]))  # type: ignore[method-assign]
    solution = await Vote(3).solve(context_on(any_pool), policy)
    assert solution.best.trajectory.answer == "@n[4]"
    assert policy.batches == [2]
    assert solution.record["groups"] == [
        {"answer": "@n[4]", "count": 2, "trials": [1, 2]},
        {"answer": "@n[5]", "count": 1, "trials": [0]},
    ]
    assert [run["answer"] for run in solution.record["runs"]] == said


@pytest.mark.parametrize(
    ("said", "ran", "chosen"),
    [
        (["@n[4]", "@n[4.0]", "@n[5]"], 2, "@n[4]"),
        (["@n[5]", "@n[4]", "@n[4]"], 3, "@n[4]"),
        (["@n[5]", "@n[4]", "@n[3]", "@n[3]", "@n[2]"], 4, "@n[3]"),
        (["@n[nan]", "@n[nan]", "@n[3]"], 3, "@n[3]"),  # to say nothing twice is no agreement
    ],
)
async def test_a_vote_that_two_settle_ends_when_two_agree(
    said: list[str], ran: int, chosen: str, pool: SandboxPool, context_on: ContextOn
) -> None:
    first, second, *later = map(answer, said)  # the second one's turn is drawn before both begin
    policy = ScriptedPolicy([second, first, *later])
    solution = await Vote(len(said), enough=2).solve(context_on(pool), policy)
    assert [one.trajectory.answer for one in solution.candidates] == said[:ran]
    assert solution.best.trajectory.answer == chosen
    assert len(policy.requests) == ran
    assert len({one.seed for one in policy.requests}) == ran
    with pytest.raises(ValueError, match="enough"):
        Vote(3, enough=0)


def _always(text: str) -> Callable[..., object]:
    async def sample(request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        return Completion(text, "", 100, 10, 0.01)

    return sample


async def test_votes_of_one_are_a_single_try(pool: SandboxPool, context_on: ContextOn) -> None:
    policy = Scripted(lambda *_: [answer("@n[1]")])
    solution = await Vote(1).solve(context_on(pool), policy)
    assert (policy.batches, policy.singles) == ([], 1)
    assert solution.record["groups"] == [{"answer": "@n[1]", "count": 1, "trials": [0]}]
    with pytest.raises(ValueError, match="count"):
        Vote(0)


async def test_a_search_goes_on_from_the_state_of_each_node(
    any_pool: SandboxPool, context_on: ContextOn
) -> None:
    """Two first cells set a variable; the second turn of each path must see its own."""

    def says(told: str, turn: int) -> list[str]:
        if turn == 0:
            return [
                cell("x = 10\nopen('x.txt', 'w').write('10')\nprint(x)"),
                cell("x = 20\nprint(x)"),
            ]
        if turn == 1:
            return [cell("x += 1\nprint('now', x)")]
        return [answer(f"@n[{told.rsplit(maxsplit=1)[-1]}]")]

    settings = SearchSettings(candidates=2, iterations=20, depth=4)
    solution = await Search(settings).solve(context_on(any_pool), Scripted(says))
    answers = [one.trajectory.answer for one in solution.candidates]
    assert sorted(answers) == ["@n[11]"] * 4 + ["@n[21]"] * 4
    for one in solution.candidates:
        expected = {"x.txt": "10"} if one.trajectory.answer == "@n[11]" else {}
        assert _files(one.folder) == expected


async def test_the_tree_is_kept_with_visits_values_and_the_chosen_node(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    def says(_: str, turn: int) -> list[str]:
        return [cell("print(1)"), cell("1/0"), answer("@n[7]")] if turn == 0 else [answer("@n[8]")]

    settings = SearchSettings(candidates=3, iterations=3, errors=1)
    solution = await Search(settings).solve(context_on(pool), Scripted(says))
    nodes = solution.record["nodes"]
    assert [node["parent"] for node in nodes[:4]] == [None, 0, 0, 0]
    assert [node["terminal"] for node in nodes[:4]] == [False, False, True, True]
    assert nodes[2]["reward"] == -1.0
    # The root was told of two expansions, its own and that of node 1, and of five ends.
    assert nodes[0]["visits"] == 7
    assert nodes[1]["prior"] == pytest.approx(0.5)
    assert nodes[0]["messages"][-1]["role"] == "user"
    assert nodes[1]["messages"][0]["content"] == cell("print(1)")
    # Three children of node 1 say 8; together they count as much as the 7 beside it, said before.
    assert solution.best.trajectory.answer == "@n[7]"
    assert nodes[solution.record["chosen"]]["answer"] == "@n[7]"


async def test_limits_end_paths_and_the_search(pool: SandboxPool, context_on: ContextOn) -> None:
    policy = Scripted(lambda *_: [cell("print(1)")])
    settings = SearchSettings(candidates=2, iterations=50, depth=2)
    solution = await Search(settings).solve(context_on(pool), policy)
    assert len(solution.record["nodes"]) == 7  # 1 + 2 + 4, and then no leaf is left
    assert solution.best.trajectory.stop is StopReason.TURN_LIMIT
    policy.batches.clear()
    few = replace(settings, max_cells=5)
    solution = await Search(few).solve(context_on(pool), policy)
    assert policy.batches == [2, 2, 1]
    assert solution.best.trajectory.answer is None
    assert solution.best.trajectory.stop is not None


async def test_the_limits_of_a_run_end_paths_and_the_search(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    policy = Scripted(lambda *_: [cell("print(1)")])
    search, context = Search(SearchSettings(candidates=2, iterations=50, depth=9)), context_on(pool)
    short = replace(context, run=RunSettings(max_tokens=11))  # a turn has 10
    solution = await search.solve(short, policy)
    assert len(solution.record["nodes"]) == 7
    assert solution.best.trajectory.stop is StopReason.BUDGET
    assert solution.best.trajectory.stop_detail == "11 tokens"
    policy.batches.clear()
    short = replace(context, run=RunSettings(max_seconds=1e-6))
    solution = await search.solve(short, policy)
    assert policy.batches == []
    assert solution.best.trajectory.stop is StopReason.BUDGET


@pytest.mark.parametrize("is_cut", [True, False])
async def test_without_an_answer_the_last_path_and_its_files_are_kept(
    any_pool: SandboxPool, context_on: ContextOn, *, is_cut: bool
) -> None:
    policy = Scripted(lambda _, turn: [cell(f"open('made{turn}.txt', 'w').write('3')")])
    settings = SearchSettings(candidates=1, depth=2, max_cells=1 if is_cut else None)
    solution = await Search(settings).solve(context_on(any_pool), policy)
    stop = StopReason.BUDGET if is_cut else StopReason.TURN_LIMIT
    assert solution.best.trajectory.stop is stop
    assert solution.best.trajectory.containment["layers"]
    assert _files(solution.best.folder) == {
        f"made{turn}.txt": "3" for turn in range(1 if is_cut else 2)
    }


async def test_early_stops(pool: SandboxPool, context_on: ContextOn) -> None:
    policy = Scripted(lambda *_: [answer("@n[1]"), answer("@n[2]"), cell("print(1)")])
    once = SearchSettings(enough_answers=2)
    await Search(once).solve(context_on(pool), policy)
    assert policy.batches == [3]
    policy.batches.clear()
    agreed = SearchSettings(enough_votes=2)
    await Search(agreed).solve(context_on(pool), policy)
    assert policy.batches == [3, 3]
    unfit = Scripted(lambda *_: [answer("@n[nan]"), answer("@n[nan]"), cell("print(1)")])
    await Search(replace(agreed, iterations=2)).solve(context_on(pool), unfit)
    assert unfit.batches == [3, 3]


async def test_an_exhausted_search_may_draw_again(pool: SandboxPool, context_on: ContextOn) -> None:
    policy = Scripted(lambda *_: [answer("@n[1]"), answer("@n[2]")])
    settings = SearchSettings(candidates=2, iterations=3, draws_again=True)
    solution = await Search(settings).solve(context_on(pool), policy)
    assert policy.batches == [2, 2, 2]
    assert len(solution.candidates) == 6


async def test_void_turns_and_repeated_errors_are_given_up(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    policy = Scripted(lambda *_: ["nothing at all", cell("1/0")])
    settings = SearchSettings(candidates=2, iterations=9, errors=3)
    solution = await Search(settings).solve(context_on(pool), policy)
    nodes = solution.record["nodes"]
    assert [node["errors"] for node in nodes] == [0, 0, 1, 0, 2, 0, 3]
    assert all(node["reward"] == -1.0 for node in nodes if node["terminal"])
    assert nodes[0]["value_sum"] == -4.0  # three void turns and one path of three errors


async def test_a_value_model_leads_the_way_and_chooses(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    def says(_: str, turn: int) -> list[str]:
        if turn == 0:
            return [cell("print('left')"), cell("print('right')")]
        return [answer("@n[1]"), answer("@n[2]")]

    async def values(trajectories: Sequence[Trajectory]) -> list[float]:
        def worth(one: Trajectory) -> float:
            side = 0.5 if "right" in one.steps[0].observation else -0.5
            return side + (0.25 if one.answer == "@n[2]" else 0.0)

        return [worth(one) for one in trajectories]

    settings = SearchSettings(candidates=2, iterations=2, select="value")
    solution = await Search(settings, values=values).solve(context_on(pool), Scripted(says))
    nodes = solution.record["nodes"]
    assert [node["parent"] for node in nodes] == [None, 0, 0, 2, 2]
    assert solution.best.value == 0.75
    assert solution.best.trajectory.answer == "@n[2]"


async def test_children_of_one_state_are_several_votes_where_a_value_model_led_there(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    def says(_: str, turn: int) -> list[str]:
        return [answer("@n[7]"), cell("print(1)")] if turn == 0 else [answer("@n[8]")]

    async def values(trajectories: Sequence[Trajectory]) -> list[float]:
        return [0.5 for _ in trajectories]

    settings = SearchSettings(candidates=2, iterations=2)
    for model, said in ((None, "@n[7]"), (values, "@n[8]")):
        solution = await Search(settings, values=model).solve(context_on(pool), Scripted(says))
        assert len(solution.candidates) == 3
        assert solution.best.trajectory.answer == said


async def test_collecting_rewards_right_and_wrong_answers(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    policy = Scripted(lambda *_: [answer("@n[1]"), answer("@n[2]")])
    settings = SearchSettings(candidates=2).for_collecting()
    assert (settings.exploration, settings.temperature) == (1.25, 1.0)
    search = Search(settings, reward=lambda one: 1.0 if one.trajectory.answer == "@n[2]" else -1.0)
    solution = await search.solve(context_on(pool), policy)
    nodes = solution.record["nodes"]
    assert [node["reward"] for node in nodes] == [None, -1.0, 1.0]
    assert solution.record["collected"]
    assert nodes[0]["state"] == nodes[0]["messages"]
    assert nodes[1]["state"] == [*nodes[0]["state"], *nodes[1]["messages"]]


async def test_an_open_node_says_nothing_before_it_is_expanded(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    policy = Scripted(lambda *_: [answer("@n[2]"), cell("print(1)"), cell("print(2)")])
    settings = SearchSettings(iterations=1).for_collecting()
    solution = await Search(settings, reward=lambda _: 1.0).solve(context_on(pool), policy)
    told = [(node["visits"], node["value_sum"]) for node in solution.record["nodes"]]
    assert told == [(2, 1.0), (1, 1.0), (0, 0.0), (0, 0.0)]  # as Jupiter's released code counts


async def test_a_full_context_ends_its_path_alone(pool: SandboxPool, context_on: ContextOn) -> None:
    def says(told: str, turn: int) -> list[str]:
        if turn == 1 and "left" in told:
            raise ContextFullError("too long")
        if turn == 0:
            return [cell("print('left')"), cell("print('right')")]
        return [answer("@n[2]")]

    settings = SearchSettings(candidates=2, iterations=9)
    solution = await Search(settings).solve(context_on(pool), Scripted(says))
    assert solution.best.trajectory.answer == "@n[2]"
    full = solution.record["nodes"][1]
    assert (full["terminal"], full["reward"], full["stop"]) == (True, -1.0, "budget")


@pytest.mark.parametrize("how", ["errors", "depth", "turns", "context"])
async def test_an_answer_that_was_sent_back_stands_where_its_path_ends(
    pool: SandboxPool, context_on: ContextOn, how: str
) -> None:
    def says(_: str, turn: int) -> list[str]:
        if turn == 0:
            return ["```python\nprint('@n[many]')\n```"]
        if how == "context":
            raise ContextFullError("too long")
        return ["```python\n1/0\n```"]

    settings = SearchSettings(candidates=1, errors=2 if how == "errors" else 9)
    settings = replace(settings, depth=2 if how == "depth" else 9)
    settings = replace(settings, max_cells=2 if how == "turns" else 6)
    task = Task("t", "How many?", answer_format='@n[n] where "n" is a number')
    context = replace(context_on(pool), dialect="markdown", task=task)
    collecting = Search(settings, reward=lambda _: 1.0)
    solution = await collecting.solve(context, Scripted(says))
    assert solution.best.trajectory.stop is StopReason.ANSWERED
    assert solution.best.trajectory.answer == "@n[many]"
    if how != "turns":  # where nothing more may be drawn, the path is none that ended
        assert [node["reward"] for node in solution.record["nodes"]][-1] == 1.0


async def test_a_context_that_is_full_at_once(pool: SandboxPool, context_on: ContextOn) -> None:
    def says(*_: object) -> list[str]:
        raise ContextFullError("too long")

    vote = await Vote(3).solve(context_on(pool), Scripted(says))
    assert [one.trajectory.stop for one in vote.candidates] == [StopReason.BUDGET] * 3
    again = Search(SearchSettings(iterations=3, draws_again=True))
    found = await again.solve(context_on(pool), Scripted(says))
    assert found.best.trajectory.stop is StopReason.BUDGET
    assert [node["terminal"] for node in found.record["nodes"]] == [True]


async def test_a_dead_endpoint_is_a_fault_of_every_strategy(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    def dead(*_: object) -> list[str]:
        raise EndpointUnreachableError("nothing answers")

    for strategy in (React(), Vote(3), Search()):
        with pytest.raises(EndpointUnreachableError):
            await strategy.solve(context_on(pool), Scripted(dead))
    assert pool.metrics().active == 0


async def test_cancelling_a_search_leaves_nothing_behind(
    pool: SandboxPool, context_on: ContextOn
) -> None:
    started = asyncio.Event()

    def says(*_: object) -> list[str]:
        started.set()
        return [cell("import time; time.sleep(60)")]

    task = asyncio.create_task(Search().solve(context_on(pool), Scripted(says)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pool.metrics().active == 0


async def test_the_context_looks_at_the_files(pool: SandboxPool, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("amount\n1\n2\n")
    context = RolloutContext(Task("t", "q", (file,)), pool, tmp_path / "out")
    async with ProfileReader() as reader:
        assert "amount" in (await context.with_data_context(reader)).data_context.text
        file.unlink()
        with pytest.raises(DataFileError, match=r"t\.csv"):
            await context.with_data_context(reader)


@pytest.mark.parametrize(
    "wrong", [{"candidates": 0}, {"depth": 0}, {"iterations": 0}, {"errors": 0}, {"select": "best"}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(wrong)))):
        SearchSettings(**wrong)  # type: ignore[arg-type]


async def test_best_of_n_says_again_what_most_tries_said(tmp_path: Path) -> None:
    code = "print(6 * 7)"

    def says(told: str, turn: int) -> list[str]:
        return [cell(code)] if turn == 0 else [answer(f"@n[{told.rsplit(maxsplit=1)[-1]}]")]

    policy = Scripted(says)
    task = Task("t", "How many?", answer_format="@n[n]")
    best_of_n = await run_best_of_n(
        lambda pool, folder: RolloutContext(task, pool, folder, dialect="react"), policy, tries=3
    )
    assert (best_of_n.tries, best_of_n.agreeing) == (2, 2)
    assert best_of_n.tokens == 40
    asked = policy.singles
    notebook = ScriptedNotebook([printed("42")])
    seen = await run(
        Trajectory(task, "react"), best_of_n.policy, notebook, RunSettings(), lambda _: None
    )
    assert seen.answer == "@n[42]"
    assert [one.source for one in notebook.cells] == [code]
    assert policy.singles == asked
    assert (best_of_n.agreeing_with(seen), best_of_n.differing_from(seen)) == (2, ())


@pytest.mark.slow
async def test_best_of_n_shows_where_the_tries_differ(tmp_path: Path) -> None:
    policy = ScriptedPolicy([answer(f"@n[{number}]") for number in (2, 1, 3)])
    task = Task("t", "How many?", answer_format="@n[n]")
    best_of_n = await run_best_of_n(
        lambda pool, folder: RolloutContext(task, pool, folder, dialect="react"), policy, tries=3
    )
    ended = Trajectory(task, "react", answer="@n[1]")
    assert (best_of_n.tries, best_of_n.agreeing_with(ended)) == (3, 1)
    assert best_of_n.differing_from(ended) == ("@n[2]", "@n[3]")


async def test_the_turns_of_a_search_come_after_those_that_a_person_waits_for() -> None:
    policy = ScriptedPolicy(["x"])
    request = SampleRequest((Message("user", "hi"),))
    await Searching(policy).sample(request, lambda _: None)
    assert len(await Searching(policy).sample_many(request, 2)) == 2
    assert [one.urgency for one in policy.requests] == [Urgency.SEARCH] * 3
