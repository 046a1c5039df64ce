"""The attempts at a question with several, in fresh kernels before the notebook's first cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.observe import shorten
from dm_jupyter.core.events import Event, RunFinished, StepFinished
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.models.protocols import Policy
from dm_jupyter.server.kernels.registry import KernelRegistry
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.types import Limits

if TYPE_CHECKING:  # loads the pool and its zygote, which a single attempt does not need
    from dm_jupyter.agent.rollout import Pool, RolloutContext
    from dm_jupyter.search.best_of_n import BestOfN

__all__ = ["Tries", "limits_of_tries"]

_SHARE_OF_TIME = 0.5
"""Share of a run's clock time; the rest is for the notebook, where cells may wait for the person.
"""
_OTHER_CHARS = 500
"""Most characters of a rejected answer, as the panel shows it."""


class Tries:
    """The attempts of one run, with their cost and the number that agree."""

    def __init__(self, count: int, settings: RunSettings) -> None:
        """Store the settings; nothing is run yet.

        Args:
            count: the number of attempts; 1 means that nothing runs in fresh kernels.
            settings: the settings of the run.
        """
        self.count = count
        self._settings = settings
        self._tokens = 0
        self._ended = 0
        self.on_ended: Callable[[int], None] = _nobody
        """Callback with the number of ended attempts, each time that one ends."""
        self._best_of_n: BestOfN | None = None

    @property
    def max_tokens(self) -> int:
        """Most tokens that the run may sample: each attempt has the budget of a single one."""
        return self.count * self._settings.max_tokens

    async def chosen(
        self,
        start: Trajectory,
        names: Mapping[str, Path],
        policy: Policy,
        limits: Limits,
        overlay: Path | None,
    ) -> Policy:
        """Return a policy that replays the best attempt in the notebook.

        The code of an attempt uses the same file names as in the notebook, also absolute ones: the
        file itself can be read there, and nothing around it.

        Args:
            start: the trajectory without a step.
            names: each file's name in the notebook's code, with its path.
            policy: the model.
            limits: the limits of each attempt.
            overlay: the added packages that the notebook's kernel sees.

        Raises:
            DmJupyterError: the model can't be sampled.
            SandboxError: no kernel could be started here, or none with full confinement, which
                these unwatched cells require.
            asyncio.CancelledError: the run was cancelled; all attempts have been stopped.
        """
        from dm_jupyter.agent.rollout import RolloutContext  # noqa: PLC0415
        from dm_jupyter.search.best_of_n import run_best_of_n  # noqa: PLC0415
        from kernel_sandbox.forkserver.worker_process import WorkerOptions  # noqa: PLC0415

        seconds = self._settings.max_seconds * _SHARE_OF_TIME
        settings = replace(self._settings, max_seconds=seconds)

        def context_in(pool: Pool, folder: Path) -> RolloutContext:
            return RolloutContext(
                start.task, pool, folder, names, start.data_context, settings, start.dialect,
                emit=self._count,
            )  # fmt: skip

        self._best_of_n = await run_best_of_n(
            context_in,
            policy,
            self.count,
            limits,
            Strictness.ROLLOUT,
            WorkerOptions(overlay=overlay),
        )
        return self._best_of_n.policy

    def _count(self, event: Event) -> None:
        if isinstance(event, StepFinished):
            self._tokens += event.step.completion.completion_tokens
        elif isinstance(event, RunFinished):
            self._ended += 1
            self.on_ended(self._ended)

    def tokens(self, ended: Trajectory) -> int:
        """Return all sampled tokens: those of attempts, also unfinished ones, and of the run."""
        if self._best_of_n is None:
            return self._tokens + ended.tokens
        return self._best_of_n.tokens_with(ended)

    def agreeing(self, ended: Trajectory) -> int:
        """Return the number of attempts that agree with the run's answer."""
        return self._best_of_n.agreeing_with(ended) if self._best_of_n is not None else 0

    @property
    def ran(self) -> int:
        """Number of attempts that ran: fewer than allowed if two of them agreed."""
        return self._best_of_n.tries if self._best_of_n is not None else self._ended

    def others(self, ended: Trajectory) -> tuple[str, ...]:
        """Return the answers of attempts that disagree with the run's answer, shortened."""
        if self._best_of_n is None or ended.answer is None:
            return ()
        found = self._best_of_n.differing_from(ended)
        return tuple(shorten(answer, _OTHER_CHARS) for answer in found)


def _nobody(_: int) -> None:
    return


async def limits_of_tries(kernels: KernelRegistry, kernel_id: str, notebook_path: str) -> Limits:
    """Return the limits of an attempt: those of a run's cells, and of the notebook's kernel.

    Raises:
        KernelStartError: the kernel ended and did not come back.
    """
    limits = (await kernels.attach(kernel_id)).limits
    meter = await kernels.meter(notebook_path)
    if meter is None:
        return limits
    return replace(
        limits,
        memory_bytes=meter.memory_limit_bytes,
        cpu_s=int(meter.cpu_limit_s),
        processes=meter.process_limit,
    )
