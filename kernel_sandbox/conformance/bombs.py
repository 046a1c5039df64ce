"""Bombs: code that starts processes as fast as it can, in every possible way, beside a neighbour.

Each goes off in its own runner. The measurements, from outside, are the most processes at one time
and the longest cell of another runner meanwhile. The third is the time from the call that ends the
runner until the last process is gone.

A bomb that gets through takes the machine down. So nothing runs outside of a separate limit, such
as a control group of some hundred processes.

Covered: every process in this one's group of the `pids` controller, whatever its name, its parent
and the rights that it dropped. Not covered: a machine without that controller.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kernel_sandbox.confine.rlimits import THREADS
from kernel_sandbox.conformance.attacks import RunnerFactory
from kernel_sandbox.types import MIB, CellRunner, Limits

__all__ = ["BOMB_LIMITS", "Blast", "Bomb", "load_bombs", "outer_limit", "set_off"]

BOMB_LIMITS = Limits(memory_bytes=1024 * MIB, processes=64, wall_s=4.0)
_MOST_TASKS = BOMB_LIMITS.processes + THREADS + 300 + 2
"""What the weakest of the system's own limits allows. It counts threads too, and reserves 300
numbers of a process namespace. A monitor and the first process of the namespace do not count."""
_NEIGHBOUR_S = 1.0
_GONE_S = 2.0
_LOOK_S = 0.02
_PATIENCE_S = 30.0
_IDLE_S = 4.0
_MOST_OUTSIDE = 10_000
_QUESTION = "print(6 * 7)"
_MOMENTS = ("cell", "restart", "branch", "end", "idle")
_PREAMBLE = """
import ctypes, os, signal, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
"""


@dataclass(frozen=True, slots=True)
class Bomb:
    """One way to start processes."""

    name: str
    code: str
    when: str
    """When it goes off: in its `cell`, at the `restart` after it, in a `branch` of its state, at
    the runner's `end`, or in the `idle` time after the cell."""


@dataclass(frozen=True, slots=True)
class Blast:
    """The measured effect of a bomb."""

    name: str
    processes: int
    """The most at one time, including those of its runner."""
    tasks: int
    """The same with threads."""
    neighbour_s: float
    """The longest that a cell of another runner took meanwhile."""
    gone_s: float
    """Time from the call that ended its runner to the end of its last process."""

    @property
    def is_held(self) -> bool:
        """Whether it stayed within the promised limits."""
        return (
            self.tasks <= _MOST_TASKS
            and self.neighbour_s <= _NEIGHBOUR_S
            and self.gone_s <= _GONE_S
        )


def load_bombs(path: Path) -> tuple[Bomb, ...]:
    """Load bombs: one JSON object with `name`, `code` and `when` per line.

    Raises:
        OSError: the file can't be read.
        ValueError: a line is malformed; the message names it.
    """
    bombs = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            bomb = Bomb(**json.loads(line))
            compile(bomb.code, "<bomb>", "exec")
        except (ValueError, TypeError, SyntaxError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
        if bomb.when not in _MOMENTS:
            raise ValueError(f"{path}, line {number}: when must be one of {', '.join(_MOMENTS)}")
        bombs.append(bomb)
    return tuple(bombs)


def outer_limit() -> int:
    """Return how many tasks this process and all that it starts may have.

    Raises:
        PermissionError: nothing limits them to some thousand.
    """
    text = ""
    with contextlib.suppress(OSError):
        text = (_group() / "pids.max").read_text("ascii").strip()
    if not text.isdecimal() or int(text) > _MOST_OUTSIDE:
        raise PermissionError(
            "a bomb is set off only inside a limit of its own: run this in a control group whose "
            f"pids.max is about {3 * _MOST_TASKS}"
        )
    return int(text)


def _group() -> Path:
    """Return the folder of this process's group of the `pids` controller."""
    unified = Path("/sys/fs/cgroup")
    for line in Path("/proc/self/cgroup").read_text("ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "pids":
            return Path("/sys/fs/cgroup/pids", path.lstrip("/"))
        if not controllers:
            unified /= path.lstrip("/")
    return unified


class _Count:
    """A thread that counts what is in this process's group and in the groups below."""

    def __init__(self) -> None:
        """Use the current counts as the baseline."""
        self._group = _group()
        self._is_over = threading.Event()
        self._processes, self._tasks = self._now()
        self.processes = self.tasks = 0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _Count:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _now(self) -> tuple[int, int]:
        processes = tasks = 0
        for folder, _, _ in os.walk(self._group):
            processes += _lines(Path(folder, "cgroup.procs"))
            tasks += _lines(Path(folder, "tasks")) + _lines(Path(folder, "cgroup.threads"))
        return processes, tasks - len(os.listdir("/proc/self/task"))  # noqa: PTH208

    def left(self) -> int:
        """Return how many processes there are beyond the baseline."""
        return self._now()[0] - self._processes

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            processes, tasks = self._now()
            self.processes = max(self.processes, processes - self._processes)
            self.tasks = max(self.tasks, tasks - self._tasks)


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


async def set_off(
    bomb: Bomb, make_runner: RunnerFactory, make_neighbour: RunnerFactory | None = None
) -> Blast:
    """Set off one bomb and return what it did.

    Args:
        bomb: the bomb.
        make_runner: creates runners that are not started yet.
        make_neighbour: creates the other runner; `None` for `make_runner`.

    Raises:
        PermissionError: there is no outer limit.
        SandboxError: a runner does not start.
    """
    outer_limit()
    async with (make_neighbour or make_runner)(BOMB_LIMITS, {}) as neighbour:
        await neighbour.run(_QUESTION)  # starts its threads
        with _Count() as count:
            async with _asking(neighbour) as answers:
                async with make_runner(BOMB_LIMITS, {}) as runner:
                    await _burst(bomb, runner)
                    ended = time.monotonic()
                while count.left() > 0 and time.monotonic() < ended + _PATIENCE_S:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
                gone_s = time.monotonic() - ended
        return Blast(bomb.name, count.processes, count.tasks, max(answers), gone_s)


async def _burst(bomb: Bomb, runner: CellRunner) -> None:
    """Run the bomb's cell, and wait for the moment at which it goes off."""
    # In a branch the screen checks the cell first: its code contains all that it needs.
    await runner.run(bomb.code if bomb.when == "branch" else f"{_PREAMBLE}\n{bomb.code}")
    if bomb.when == "restart":
        await runner.restart()
    elif bomb.when == "idle":
        await asyncio.sleep(_IDLE_S)


@asynccontextmanager
async def _asking(neighbour: CellRunner) -> AsyncIterator[list[float]]:
    """Run small cells one after the other; yield how long each took, seconds."""
    answers = [0.0]

    async def ask() -> None:
        while True:
            began = time.monotonic()
            result = await neighbour.run(_QUESTION)
            answers.append(time.monotonic() - began if result.stdout == "42\n" else _PATIENCE_S)
            await asyncio.sleep(_LOOK_S)

    asking = asyncio.create_task(ask())
    try:
        yield answers
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
