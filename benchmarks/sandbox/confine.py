"""Processor time of `confine`: a fork that confines itself and exits, less one that only exits.

It is measured in two separate interpreters. One has nothing loaded, as at the start of a kernel.
The other has numpy and pandas, as in a zygote, whose forks have more page tables to copy.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox import environment
from kernel_sandbox.confine.confine import contained
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.plan import KernelPaths, plan
from kernel_sandbox.confine.run_folder import make_run_folder
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.files.workspace import Workspace
from kernel_sandbox.types import Limits

_PARENTS = {"bare": "", "with numpy and pandas": "pandas"}
_BARE, _NO_MOUNTS, _MOUNTS = "fork and exit", "no namespaces", "namespaces and mounts"
_ROOT = Path(__file__).parents[2]


async def measure(run: Run) -> Table:
    """Measure both parents, one after the other."""
    rounds = run.repeats(50, 10)
    rows, notes = [], []
    for parent, module in _PARENTS.items():
        command = [sys.executable, "-m", "benchmarks.sandbox.confine", str(rounds), module]
        medians = json.loads(await asyncio.to_thread(_output, command))
        base_ms = medians[_BARE][0]
        for kind, (cpu_ms, wall_ms) in medians.items():
            extra_ms = cpu_ms - base_ms
            cells = [f"{cpu_ms:.1f}", f"{extra_ms:.1f}", f"{wall_ms:.1f}"]
            rows.append([f"{kind} ({parent})", *cells])
            if kind != _BARE and not module:
                bound_ms = 15 if kind == _NO_MOUNTS else 30
                notes.append(
                    verdict(f"{kind}, processor time over a fork", extra_ms, bound_ms, "ms")
                )
    columns = ("fork", "CPU ms", "over a fork", "wall ms")
    return Table(f"confine: medians of {rounds}, alternating", columns, rows, notes)


def _output(command: list[str]) -> str:
    return subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextmanager
def _policies() -> Iterator[dict[str, ConfinementSpec]]:
    """Yield a worker's policies; this process takes on a worker's environment and folder."""
    workspace, folder = Workspace({}), make_run_folder()
    variables = environment.kernel_environment(workspace.path, folder.path)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(workspace.path)
    places = KernelPaths(workspace.path, folder.path)
    try:
        yield {
            name: plan(Limits(), places, tuple(variables), isolate=isolate)
            for name, isolate in ((_NO_MOUNTS, False), (_MOUNTS, True))
        }
    finally:
        os.chdir(_ROOT)
        workspace.remove()
        folder.remove()


def _life(policy: ConfinementSpec) -> int:
    def body(containment: Containment) -> int:
        needed = ["landlock", "seccomp", "rlimits", "no_new_privs"]
        needed += [] if policy.no_view else ["read_only_view", "pid_namespace"]
        return 0 if all(map(containment.is_active, needed)) else 3

    return contained(policy, body)


def _fork(act: Callable[[], int]) -> tuple[float, float]:
    """Return milliseconds of processor time of a child and its descendants, and of clock time."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        os._exit(act())
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"a child ended with {os.waitstatus_to_exitcode(status)}")
    wall_s = time.perf_counter() - began
    return 1000 * (usage.ru_utime + usage.ru_stime), 1000 * wall_s


def main(rounds: int, module: str) -> None:
    """Print the medians as JSON.

    Args:
        rounds: forks of each kind.
        module: what to import first; empty for nothing.
    """
    if module:
        importlib.import_module(module)
    with _policies() as policies:
        kinds: dict[str, Callable[[], int]] = {_BARE: lambda: 0}
        for name, policy in policies.items():
            kinds[name] = partial(_life, policy)
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, act in kinds.items():
                seen[name].append(_fork(act))
    medians = {
        name: [statistics.median(column) for column in zip(*forks, strict=True)]
        for name, forks in seen.items()
    }
    print(json.dumps(medians))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
