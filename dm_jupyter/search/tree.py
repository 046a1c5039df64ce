"""A tree of runs: states are branched, promising ones continue, and the best that ended is chosen.

Value-guided search as in Jupiter (arXiv 2509.09245): K candidates per expansion, a depth limit, and
paths given up after consecutive errors. Rewards are 1 and -1 if the label is known; values come
from a model if there is one.

Without a model, an expansion counts 0 for the expanded node, as in the released code. An answer
without a reward counts 0 and a path given up -1, so the search turns away from code that fails. An
open node counts nothing before it is expanded. With a model, each new node is valued at once; the
released code waits until it is expanded.

Branching reruns nothing if the pool keeps snapshots; otherwise the cells of a path are run again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Literal

from dm_jupyter.agent.candidates import (
    Candidate,
    best_by_mode,
    best_by_value,
    best_by_vote,
    groups_of,
    is_fit,
)
from dm_jupyter.agent.loop import RunSettings, begin, give_up, request_for, step
from dm_jupyter.agent.rollout import Rollout, RolloutContext
from dm_jupyter.core.errors import ContextFullError, DmJupyterError, first_fault
from dm_jupyter.core.trajectory import Completion, StopReason, Trajectory
from dm_jupyter.models.protocols import Policy
from dm_jupyter.search.presampled import Presampled, sample_many
from dm_jupyter.search.puct import SearchTree, TreeNode
from dm_jupyter.search.states import SearchState, tree_to_json
from dm_jupyter.search.strategies import Solution
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.types import CellStatus

__all__ = ["Reward", "Search", "SearchSettings", "Values"]

Values = Callable[[Sequence[Trajectory]], Awaitable[list[float]]]
"""A value model: what each state is worth, -1 to 1 (Jupiter's value head)."""
Reward = Callable[[Candidate], float]
"""The reward of a run that answered and whose label is known: 1 or -1; called in a thread."""
_GIVEN_UP = -1.0


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a tree is grown and when it is complete; validated on creation."""

    candidates: int = 3
    """Turns sampled at each expansion: Jupiter's K."""
    depth: int = 10
    """Turns of a path."""
    iterations: int = 40
    """Expansions of a tree."""
    exploration: float = 0.0
    """c of PUCT: 1.25 for collecting, 0 for inference."""
    errors: int = 3
    """Consecutive cells that raised and so end a path."""
    temperature: float = 0.7
    """Temperature of the turns; 1.0 for collecting."""
    max_cells: int | None = None
    """Turns sampled for a task in all; `None` for as many as the iterations take."""
    enough_answers: int | None = None
    """Answered paths that stop the search; `None` for no such limit."""
    enough_votes: int | None = None
    """Agreeing answers that stop the search; `None` for no such limit."""
    draws_again: bool = False
    """Whether the root is expanded again when every path has ended; otherwise the search ends."""
    select: Literal["vote", "mode", "value"] = "vote"
    """How an answer is chosen.

    `vote` is a weighted majority that prefers the requested form, `mode` an unweighted majority;
    `value` uses the values of a model."""

    def __post_init__(self) -> None:
        for name in ("candidates", "depth", "iterations", "errors"):
            if getattr(self, name) < 1:
                raise ValueError(f"SearchSettings.{name} must be 1 or more")
        if self.select not in ("vote", "mode", "value"):
            raise ValueError(
                f"SearchSettings.select must be vote, mode or value, got {self.select!r}"
            )

    def for_collecting(self) -> SearchSettings:
        """Return the settings for collecting values: broad, and without an early stop."""
        return replace(
            self, exploration=1.25, temperature=1.0, enough_answers=None, enough_votes=None
        )


@dataclass(frozen=True, slots=True)
class Search:
    """The tree search as a `Strategy`.

    Of the context's run settings, `max_tokens` applies to each path, and nothing is expanded after
    `max_seconds`. The settings of the search limit turns and cells.
    """

    settings: SearchSettings = field(default_factory=SearchSettings)
    values: Values | None = None
    """A value model; `None` without one."""
    reward: Reward | None = None
    """Rewards by the label, for collecting; `None` for inference."""
    name: str = "search"

    async def solve(self, context: RolloutContext, policy: Policy) -> Solution:
        """Return the answer that the search chose, and its tree; see `Strategy`."""
        async with AsyncExitStack() as stack:
            growth = _Growth(self, context, policy, stack)
            await growth.grow()
            return await growth.solution()


class _Answers:
    """The paths of a search that have answered."""

    def __init__(self, how: SearchSettings, context: RolloutContext) -> None:
        self._how, self._agree = how, context.agree
        self.states: list[SearchState] = []

    def are_enough(self) -> bool:
        """Whether an early stop of the settings is reached."""
        how = self._how
        if how.enough_answers is not None and len(self.states) >= how.enough_answers:
            return True
        if how.enough_votes is None:
            return False
        fit = [state.candidate for state in self.states if is_fit(state.candidate)]
        groups = groups_of(fit, self._agree)
        return any(len(group) >= how.enough_votes for group in groups)

    def chosen(self, candidates: tuple[Candidate, ...]) -> int:
        """Return which of the candidates is the answer of the search."""
        if self._how.select == "value":
            return best_by_value(candidates)
        if self._how.select == "mode":
            return best_by_mode(candidates, self._agree)
        return best_by_vote(candidates, self._agree)


class _Growth:
    """One search in progress."""

    def __init__(
        self, search: Search, context: RolloutContext, policy: Policy, stack: AsyncExitStack
    ) -> None:
        how = search.settings
        self._search, self._how = search, how
        self._context, self._policy, self._stack = context, policy, stack
        self._run = _settings_of(context.run, how)
        self._tree = SearchTree(how.exploration, context.run.seed)
        self._states: dict[TreeNode, SearchState] = {}
        self._answers = _Answers(how, context)
        self._kept: AsyncExitStack | None = None
        """Exit stack of the youngest path given up: `solution` may still need its files."""
        self._drawn = self._cells = self._tokens = self._prompt_tokens = 0

    async def grow(self) -> None:
        """Expand leaf after leaf until a limit or an early stop."""
        deadline = time.monotonic() + self._run.max_seconds
        rollout = await self._stack.enter_async_context(self._context.open_rollout())
        start = begin(self._context.start, self._policy, self._run)
        self._states[self._tree.root] = SearchState(self._tree.root, start, rollout)
        for number in range(self._how.iterations):
            leaf = self._tree.select()
            if leaf is None and self._how.draws_again and not self._tree.root.is_terminal:
                leaf = self._tree.root
            count = self._affordable()
            if leaf is None or count == 0 or time.monotonic() > deadline:
                break
            if await asyncio.to_thread(self._answers.are_enough):
                break
            await self._expand(self._states[leaf], count, number)

    def _affordable(self) -> int:
        how = self._how
        left = how.candidates if how.max_cells is None else how.max_cells - self._drawn
        return max(0, min(how.candidates, left))

    async def _expand(self, leaf: SearchState, count: int, number: int) -> None:
        request = request_for(leaf.trajectory, self._run)
        request = replace(request, seed=request.seed + number * self._how.depth)
        try:
            drawn = await sample_many(self._policy, request, count)
        except ContextFullError:
            await self._end(leaf)
            return
        self._drawn += count
        branches = [await self._branch(leaf) for _ in range(count)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._follow(leaf, completion, rollout))
                    for completion, (rollout, _) in zip(drawn, branches, strict=True)
                ]
        except* (DmJupyterError, SandboxError) as faults:
            raise first_fault(faults) from faults
        states = []
        for task, (rollout, own) in zip(tasks, branches, strict=True):
            states.append(await self._added(leaf, task.result(), rollout))
            if states[-1].node.is_terminal:
                await self._let_go(states[-1], own)
        await self._evaluate(leaf, states)

    async def _branch(self, leaf: SearchState) -> tuple[Rollout, AsyncExitStack]:
        """Return a branch, and the exit stack that closes it before the search ends."""
        own = await self._stack.enter_async_context(AsyncExitStack())
        return await own.enter_async_context(leaf.rollout.branch()), own

    async def _follow(
        self, leaf: SearchState, completion: Completion, rollout: Rollout
    ) -> Trajectory:
        """Take one sampled turn in its branch."""
        policy = Presampled(self._policy, completion)
        return await step(leaf.trajectory, policy, rollout, self._run, self._context.emit)

    async def _added(self, leaf: SearchState, after: Trajectory, rollout: Rollout) -> SearchState:
        """Add a turn to the tree, and save its files if it has answered."""
        errors = leaf.errors + 1 if _raised(after) else 0
        ended = _given_up(after, errors, self._how, self._run)
        prior = after.steps[-1].completion.mean_probability
        node = self._tree.add(
            leaf.node, 1.0 if prior is None else prior, is_terminal=ended.stop is not None
        )
        state = self._states[node] = SearchState(node, ended, rollout, errors)
        self._count(ended)
        await self._keep_answer(state)
        return state

    async def _end(self, leaf: SearchState) -> None:
        """End an open path that can't be sampled any further."""
        detail = "the model's context is full"
        leaf.trajectory = give_up(leaf.trajectory, StopReason.BUDGET, detail)
        self._tree.end(leaf.node)
        await self._keep_answer(leaf)
        await self._tell(leaf)

    async def _keep_answer(self, state: SearchState) -> None:
        if state.has_answer:
            await self._finish(state)
            self._answers.states.append(state)

    async def _let_go(self, state: SearchState, own: AsyncExitStack) -> None:
        """Close the branch of an ended path; the youngest stays open while none has answered."""
        done: AsyncExitStack | None = own
        if state.was_given_up and not self._answers.states:
            done, self._kept = self._kept, own
        if done is not None:
            await done.aclose()

    async def _finish(self, state: SearchState) -> None:
        """Save the files of a path, and record its confinement."""
        state.folder = self._context.folder / str(state.node.number)
        state.trajectory = await state.rollout.finish(state.trajectory, state.folder)

    def _count(self, trajectory: Trajectory) -> None:
        last = trajectory.steps[-1]
        self._cells += last.result is not None
        self._tokens += last.completion.completion_tokens
        self._prompt_tokens += last.completion.prompt_tokens

    async def _evaluate(self, leaf: SearchState, states: list[SearchState]) -> None:
        """Back up what is known of the new nodes to them and to their ancestors."""
        await self._estimate([one for one in states if not one.was_given_up])
        for state in states:
            await self._tell(state)
        if self._search.values is None:
            self._tree.back_up(leaf.node, 0.0)

    async def _tell(self, state: SearchState) -> None:
        """Back up what is known of a node to it and to its ancestors."""
        if state.was_given_up:
            state.node.reward = _GIVEN_UP
        elif state.has_answer and self._search.reward is not None:
            reward = self._search.reward
            state.node.reward = await asyncio.to_thread(reward, state.candidate)
        value = state.value if state.node.reward is None else state.node.reward
        if value is not None or state.has_answer:
            self._tree.back_up(state.node, value or 0.0)

    async def _estimate(self, states: list[SearchState]) -> None:
        if self._search.values is not None and states:
            values = await self._search.values([one.trajectory for one in states])
            for state, value in zip(states, values, strict=True):
                state.value = value

    async def solution(self) -> Solution:
        """Return the best of the answers, or the last path if none answered."""
        states = self._answers.states or [await self._last_path()]
        candidates = tuple(state.candidate for state in states)
        chosen = await asyncio.to_thread(self._answers.chosen, candidates)
        best = states[chosen]
        return Solution(
            chosen,
            candidates,
            best.rollout.notebook,
            self._tokens,
            self._prompt_tokens,
            self._cells,
            record=tree_to_json(
                list(self._states.values()),
                best.node.number,
                is_collected=self._search.reward is not None,
            ),
        )

    async def _last_path(self) -> SearchState:
        """Return the youngest open path with an answer that was sent back, else the last node's."""
        youngest = [self._states[node] for node in reversed(self._tree.nodes)]
        sent_back = (one for one in youngest if _cut(one.trajectory).answer is not None)
        last = next(sent_back, youngest[0])
        last.trajectory = _cut(last.trajectory)
        await self._finish(last)
        return last


def _given_up(
    trajectory: Trajectory, errors: int, how: SearchSettings, run: RunSettings
) -> Trajectory:
    """Return the trajectory, ended if the search gives its path up."""
    if trajectory.stop is not None:
        return trajectory
    if errors >= how.errors:
        return give_up(trajectory, StopReason.BUDGET, f"{errors} errors in a row")
    if trajectory.turns >= how.depth:
        return give_up(trajectory, StopReason.TURN_LIMIT, f"{how.depth} turns")
    if trajectory.tokens >= run.max_tokens:
        return give_up(trajectory, StopReason.BUDGET, f"{run.max_tokens} tokens")
    return trajectory


def _cut(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory, ended if the search was over before it."""
    if trajectory.stop is not None:
        return trajectory
    return give_up(trajectory, StopReason.BUDGET, "turns drawn in the search")


def _settings_of(run: RunSettings, how: SearchSettings) -> RunSettings:
    """Return the run settings: a turn without code or answer ends its path, as in Jupiter."""
    return replace(run, temperature=how.temperature, stop_on_void=True)


def _raised(trajectory: Trajectory) -> bool:
    """Whether the last turn ran a cell that did not succeed."""
    result = trajectory.steps[-1].result
    return result is not None and result.status is not CellStatus.OK
