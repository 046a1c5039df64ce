"""Start and round trip of a restricted kernel against a plain one, alternating; prints a table.

Run as `python benchmarks/kernel_start.py [ROUNDS]`. The targets: the start at most 1.15 times the
plain one, the round trip of `1+1` at most 10 ms over it.
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from jupyter_client.manager import start_new_async_kernel

from kernel_sandbox.session import KernelSession

TRIPS = 20


async def plain() -> tuple[float, float, float]:
    """Seconds to start a plain kernel, for one round trip, to stop."""
    begun = time.perf_counter()
    manager, client = await start_new_async_kernel(kernel_name="python3")
    started = time.perf_counter() - begun
    trip = await _trip(lambda: client.execute_interactive("1+1", output_hook=lambda _: None))
    begun = time.perf_counter()
    client.stop_channels()
    await manager.shutdown_kernel()
    return started, trip, time.perf_counter() - begun


async def restricted(*, isolate: bool) -> tuple[float, float, float]:
    """Seconds to start a restricted kernel, for one round trip, to stop."""
    begun = time.perf_counter()
    session = KernelSession(isolate=isolate)
    async with session:
        started = time.perf_counter() - begun
        trip = await _trip(lambda: session.run("1+1"))
        begun = time.perf_counter()
    return started, trip, time.perf_counter() - begun


async def _trip(run: Callable[[], Awaitable[object]]) -> float:
    seconds = []
    for _ in range(TRIPS):
        begun = time.perf_counter()
        await run()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


async def main(rounds: int) -> None:
    """Measures and prints the medians of `rounds` alternating rounds.

    Args:
        rounds: how many kernels of each kind to start.
    """
    kinds: dict[str, Callable[[], Awaitable[tuple[float, float, float]]]] = {
        "plain": plain,
        "restricted": lambda: restricted(isolate=True),
        "no namespaces": lambda: restricted(isolate=False),
    }
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in kinds}
    for kind in kinds.values():  # the first of each warms the file cache
        await kind()
    for _ in range(rounds):
        for name, kind in kinds.items():
            seen[name].append(await kind())
    print(f"{platform.platform()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(f"Python {platform.python_version()}, medians of {rounds}, {TRIPS} trips each")
    print(f"{'kernel':<15}{'start ms':>10}{'ratio':>8}{'1+1 ms':>9}{'over':>8}{'stop ms':>9}")
    base = [statistics.median(column) for column in zip(*seen["plain"], strict=True)]
    for name, rows in seen.items():
        start, trip, stop = (statistics.median(column) for column in zip(*rows, strict=True))
        print(
            f"{name:<15}{start * 1000:>10.0f}{start / base[0]:>8.2f}"
            f"{trip * 1000:>9.1f}{(trip - base[1]) * 1000:>8.1f}{stop * 1000:>9.0f}"
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
