"""Where the cells of a pipeline run: on this machine, or on the nodes of a Ray cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from dm_jupyter.agent.rollout import Pool
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.packages.packages import PackageInstaller
from kernel_sandbox.ray.ray_node import load_ray
from kernel_sandbox.ray.ray_pool import RayPool
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool

__all__ = ["POOLS", "open_pool"]

POOLS = ("local", "ray")


def open_pool(
    kind: str,
    settings: PoolSettings,
    cells_at_once: int | None = None,
    make_installer: Callable[[], PackageInstaller] | None = None,
) -> AbstractAsyncContextManager[Pool]:
    """Open a pool; with `ray`, one over the cluster of `RAY_ADDRESS`, or over this machine.

    Args:
        kind: one of `POOLS`.
        settings: the limits of this machine, or of each node.
        cells_at_once: cells that run at the same time, on each node; `None` for one per core.
        make_installer: creates the installer for packages that cells lack; `None` installs none.

    Raises:
        RayMissingError: Ray is not installed.
        SandboxError: the cluster can't be reached, or no pool can be started.
        ValueError: there is no such kind.
    """
    if kind not in POOLS:
        raise ValueError(f"a pool is one of {', '.join(POOLS)}, not {kind!r}")
    if cells_at_once:
        settings = replace(settings, cells_at_once=cells_at_once)
    if kind == "ray":
        return _ray_pool(settings, make_installer, cells_by_cores=not cells_at_once)
    return SandboxPool(settings, installer=make_installer() if make_installer else None)


@asynccontextmanager
async def _ray_pool(
    settings: PoolSettings,
    make_installer: Callable[[], PackageInstaller] | None,
    *,
    cells_by_cores: bool,
) -> AsyncIterator[Pool]:
    """Yield a pool over all nodes; Ray is started here unless it runs in this process already."""
    ray = load_ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            await asyncio.to_thread(ray.init, include_dashboard=False, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise SandboxError(
                f"Ray can't be started or reached: {error}. Set RAY_ADDRESS to the address of a "
                "cluster, or use --pool local."
            ) from error
    try:
        pool = RayPool(settings, make_installer=make_installer, cells_by_cores=cells_by_cores)
        async with pool:
            yield pool
    finally:
        if is_ours:
            await asyncio.to_thread(ray.shutdown)
