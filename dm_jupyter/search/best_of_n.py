"""Several attempts in the background before the run that a person sees."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dm_jupyter.agent.candidates import Agree, Candidate, groups_of
from dm_jupyter.agent.loop import RunSettings, request_for
from dm_jupyter.agent.rollout import Pool, RolloutContext
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.trajectory import Completion, Trajectory
from dm_jupyter.models.protocols import Policy, SampleRequest
from dm_jupyter.search.presampled import Searching
from dm_jupyter.search.strategies import Solution, Vote
from kernel_sandbox.aio import run_shielded
from kernel_sandbox.confine.strictness import Strictness, shortcomings
from kernel_sandbox.errors import (
    ContainmentError,
    KernelStartError,
    SandboxError,
    WorkspaceError,
)
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from kernel_sandbox.types import Limits

__all__ = ["BestOfN", "ReplayedPolicy", "run_best_of_n"]

_ENOUGH = 2
"""Agreeing attempts that end the vote: such answers are mostly correct.

Measured in docs/experiments.md#vote-of-three.
"""
_OF_ONE_KERNEL = re.compile(r"\b0x[0-9a-fA-F]+|\bIn\s?\[\d+\]")
"""Text that differs between two kernels for the same output: addresses and cell counts."""


class ReplayedPolicy:
    """A policy that replays the turns of an ended run, then samples the model.

    It switches to the model for good as soon as a request differs from that run's: a cell has ended
    or printed differently.
    """

    def __init__(self, policy: Policy, said: Trajectory, settings: RunSettings) -> None:
        """Wrap an ended run and the model as one `Policy`.

        Args:
            policy: the model.
            said: the run.
            settings: the settings it was sampled with.
        """
        self._policy = policy
        self._said = said
        self._settings = settings
        self._place: int | None = 0
        self.repeated_tokens = 0
        """Tokens of the replayed turns, which were not sampled a second time."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return the run's next turn, or a new one from the model."""
        completion = self._next(request)
        if completion is None:
            return await self._policy.sample(request, on_text)
        self.repeated_tokens += completion.completion_tokens
        on_text(completion.text)
        return completion

    def _next(self, request: SampleRequest) -> Completion | None:
        place, self._place = self._place, None
        if place is None or place >= len(self._said.steps):
            return None
        asked = request_for(self._said.before(place), self._settings)
        if _comparable(request) != _comparable(asked):
            return None
        self._place = place + 1
        return self._said.steps[place].completion


@dataclass(frozen=True, slots=True)
class BestOfN:
    """The outcome of the attempts."""

    policy: ReplayedPolicy
    """Policy that replays the chosen attempt turn by turn, then samples the model."""
    tries: int
    """Attempts that ran: two if those agree, else as many as were allowed."""
    agreeing: int
    """Attempts that agree with the chosen one; 0 if none answered."""
    tokens: int
    """Tokens sampled for all attempts together."""
    candidates: tuple[Candidate, ...]
    """The attempts."""
    agree: Agree
    """Test for whether two of them give the same answer."""

    def agreeing_with(self, ended: Trajectory) -> int:
        """Return how many attempts agree with the run that continued from them."""
        answer = Candidate(ended)
        return sum(self.agree(one, answer) for one in self.candidates)

    def differing_from(self, ended: Trajectory) -> tuple[str, ...]:
        """Return the answers that differ from that of the run that continued from them."""
        answer = Candidate(ended)
        groups = groups_of(self.candidates, self.agree)
        firsts = [self.candidates[group[0]] for group in groups]
        return tuple(str(one.trajectory.answer) for one in firsts if not self.agree(one, answer))

    def tokens_with(self, ended: Trajectory) -> int:
        """Return the tokens sampled for the attempts and for a run with `policy` after them."""
        return self.tokens + ended.tokens - self.policy.repeated_tokens


async def run_best_of_n(
    context_in: Callable[[Pool, Path], RolloutContext],
    policy: Policy,
    tries: int,
    limits: Limits | None = None,
    profile: Strictness = Strictness.INTERACTIVE,
    options: WorkerOptions | None = None,
) -> BestOfN:
    """Answer a task several times in fresh kernels, and return what to do in the open notebook.

    The attempts see only the files, no variable of the open notebook. Nothing that they create
    outlives them. The returned policy then replays the chosen attempt cell by cell where the person
    sees it. If a cell ends differently there, the model continues from that outcome.

    Args:
        context_in: returns the task, with its data context, for a pool and a folder that are
            removed afterwards.
        policy: the model.
        tries: the most attempts: it begins with two, and ends when two agree.
        limits: of each attempt.
        profile: `rollout` refuses a machine that can't confine the attempts.
        options: how their workers are started.

    Raises:
        DmJupyterError: the model can't be sampled.
        SandboxError: no kernel could be started.
        asyncio.CancelledError: cancelled; all attempts have been stopped.
    """
    pool = SandboxPool(PoolSettings(profile=profile), limits, options=options)
    async with _folder() as folder, _opened(pool):
        context = context_in(pool, folder)
        solution = await Vote(tries, enough=_ENOUGH).solve(context, Searching(policy))
    return _best_of_n(solution, context, policy)


def _best_of_n(solution: Solution, context: RolloutContext, policy: Policy) -> BestOfN:
    groups = groups_of(solution.candidates, context.agree)
    return BestOfN(
        policy=ReplayedPolicy(policy, solution.best.trajectory, context.run),
        tries=len(solution.candidates),
        agreeing=next((len(group) for group in groups if solution.chosen in group), 0),
        tokens=solution.tokens,
        candidates=solution.candidates,
        agree=context.agree,
    )


@asynccontextmanager
async def _folder() -> AsyncIterator[Path]:
    """Yield a folder that is removed afterwards.

    The folder of a killed process is removed when the next one is created.

    Raises:
        WorkspaceError: it can't be created.
    """
    base = Path(tempfile.gettempdir())
    try:
        folder = PrivateFolder(base, "dm-tries-")
    except OSError as error:
        text = f"no folder for the tries can be made in {base}: {error.strerror}; free some space"
        raise WorkspaceError(text) from error
    try:
        yield folder.path
    finally:
        await run_shielded(asyncio.to_thread(folder.remove))


@asynccontextmanager
async def _opened(pool: SandboxPool) -> AsyncIterator[None]:
    """Open the pool, and close it afterwards.

    Raises:
        ContainmentError: the machine can't confine the attempts as the profile asks.
        KernelStartError: no worker could be started.
    """
    try:
        await pool.__aenter__()
    except ContainmentError as error:
        missing = "; ".join(shortcomings(pool.settings.profile, pool.containment))
        text = f"nobody watches several tries, and this machine does not hold their {missing}"
        raise ContainmentError(f"{text}. Ask once instead.") from error
    except (SandboxError, OSError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0]
        text = f"several tries need fresh kernels, and none could be started: {why}"
        raise KernelStartError(f"{text}. Ask once instead.") from error
    try:
        yield
    finally:
        await pool.close()


def _comparable(request: SampleRequest) -> tuple[Message, ...]:
    return tuple(
        replace(message, content=_OF_ONE_KERNEL.sub("", message.content))
        for message in request.messages
    )
