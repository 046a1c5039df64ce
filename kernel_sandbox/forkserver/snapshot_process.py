"""A state of a tree as a process, forked by the state before it and not by the zygote.

All states of a tree share where their processes hang, and the home folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.confine.run_folder import furnish_home
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.files.folders import empty_folder, remove_tree
from kernel_sandbox.forkserver.forked_kernel import ForkedKernel
from kernel_sandbox.forkserver.forking import BRANCHES, TEMPORARY
from kernel_sandbox.types import Limits
from kernel_sandbox.watch import process_tree
from kernel_sandbox.watch.watchdog import Watchdog, disk_use

__all__ = ["SnapshotContext", "SnapshotProcess"]

FORK_TIMEOUT_S = 10.0
"""A library that a fork has broken may hang: the state is then built by running its cells."""
DEEP_INTERVAL_S = 0.5
"""Below states that wait there is nothing, unless a cell has made its process a foster parent:
that is looked at seldom, for there may be hundreds of them."""
_GONE_S = 1.0
_POLL_S = 0.01


class SnapshotContext:
    """Knows what belongs to a tree itself, and so what its cells have left behind.

    Covered: a program counts for the cells that run, whoever has become its parent. Whose it is
    can't be told when several run: it then counts for each. Not covered: without process
    namespaces, a program that has left its parents is not found.
    """

    def __init__(self, roots: Iterable[int], home: Path) -> None:
        """Takes note of what is there before the first cell.

        Args:
            roots: the process that was started for the tree; with it, where there is one, the
                process that becomes the parent of what cells leave behind.
            home: the folder.
        """
        self._roots = tuple(roots)
        self._own = frozenset(process_tree.walk(self._roots))
        self._states: set[int] = set()
        self._busy: Counter[int] = Counter()
        self._deep_at = 0.0
        self.home = home
        """The home folder, which every state may write."""
        self.before = disk_use((home,), threading.Event())
        """What it took before the first cell."""

    def add(self, pid: int) -> None:
        """A process is a state from now on."""
        self._states.add(pid)

    def remove(self, pid: int) -> None:
        """A state has ended. One that was not added is no error."""
        self._states.discard(pid)

    @contextmanager
    def busy(self, pid: int) -> Iterator[None]:
        """Marks a process that runs a cell, or forks: what it starts is not left behind."""
        self._busy[pid] += 1
        try:
            yield
        finally:
            self._busy -= Counter((pid,))

    def of_cell(self, pid: int) -> Iterator[int]:
        """Returns the processes that count for a cell.

        Args:
            pid: the state in which it runs.
        """
        now = time.monotonic()
        is_deep = now - self._deep_at > DEEP_INTERVAL_S
        if is_deep:
            self._deep_at = now
        closed = {pid, *self._busy} if is_deep else self._states | self._busy.keys()
        return chain(process_tree.walk((pid,), self._states - {pid}), self._orphans(closed))

    def leaves_programs(self, pid: int) -> bool:
        """Returns whether a state has started what goes on, or there is any that is nobody's."""
        return any(chain(self.programs(pid), self._orphans(self._states | self._busy.keys())))

    def programs(self, pid: int) -> list[int]:
        """Returns the processes below a state that are no states."""
        return [found for found in process_tree.walk((pid,), self._states - {pid}) if found != pid]

    def _orphans(self, closed: Collection[int] = ()) -> Iterator[int]:
        # The sets as they are now: a thread may go through the processes.
        return _running(process_tree.walk(self._roots, frozenset(closed)), self._own | self._states)

    async def reap_orphans(self) -> None:
        """Ends what cells left behind, but for `kill_reparented`; while no state is at work."""
        near = frozenset(self._states)
        with contextlib.suppress(OSError):  # what can't be looked for now counts until it is found
            if not process_tree.end_all(lambda: self._orphans(near)):
                return
            for _ in range(round(_GONE_S / _POLL_S)):
                if not any(self._orphans(near)):
                    return
                await asyncio.sleep(_POLL_S)

    def kill_reparented(self) -> None:
        """Ends what is below states that wait, too; while no state is at work."""
        with contextlib.suppress(OSError):
            process_tree.end_all(self._orphans)

    def tidy_home(self, limit_bytes: int) -> None:
        """Makes the home folder as new if it takes more than half of the limit on disk.

        Args:
            limit_bytes: of a state; a home that is full would end every cell of the tree.
        """
        used = disk_use((self.home,), threading.Event(), self.before.size_bytes + limit_bytes)
        if used.closed or used.size_bytes - self.before.size_bytes > limit_bytes // 2:
            empty_folder(self.home)
            furnish_home(self.home)


def _running(pids: Iterable[int], known: Collection[int]) -> Iterator[int]:
    """Those that are not known and have not ended: a state that has waits to be reaped."""
    return (pid for pid in pids if pid not in known and not process_tree.is_ended(pid))


class SnapshotProcess(ForkedKernel):
    """A running state; ended by `stop`, or with the first state of its tree."""

    def __init__(self, folder: Path, context: SnapshotContext) -> None:
        """Starts nothing; `fork` does.

        Args:
            folder: where it works; it is made by the process itself.
            context: of its tree.
        """
        super().__init__()
        self._cell = ExitStack()
        self._limits = Limits()
        self._before = context.before
        self.folder = folder
        """Its working folder."""
        self.context = context
        """What it shares with the other states of its tree."""

    @classmethod
    async def fork(
        cls, parent: ForkedKernel, folder: Path, limits: Limits, context: SnapshotContext
    ) -> SnapshotProcess | None:
        """Returns a fork of a process; `None` where that one is gone or can't be forked.

        Args:
            parent: nothing runs in it, and nothing is asked of it meanwhile.
            folder: for the new one to work in.
            limits: what the new one may use.
            context: of their tree.

        Raises:
            KernelStartError: this process can open no connection to it.
        """
        state = cls(folder, context)
        try:
            async with asyncio.timeout(FORK_TIMEOUT_S):
                with context.busy(parent.kernel_pid or 0):
                    if await state._start(parent, limits):
                        return state
        except TimeoutError:
            pass
        except OSError as error:
            await run_shielded(state.stop())
            raise KernelStartError(f"a state could not be forked: {error}") from error
        except BaseException:
            await run_shielded(state.stop())
            raise
        await run_shielded(state.stop())
        return None

    async def _start(self, parent: ForkedKernel, limits: Limits) -> bool:
        if not parent.is_alive:
            return False
        with self._connection() as descriptors:
            asking = asyncio.create_task(parent.channel.fork(str(self.folder), descriptors))
            dying = asyncio.create_task(parent.dead.wait())
            try:
                await asyncio.wait((asking, dying), return_when=asyncio.FIRST_COMPLETED)
                if not asking.done() or asking.result():
                    return False
            finally:
                asking.cancel()
                dying.cancel()
        try:
            await self._await_ready(self.channel)
        except KernelStartError:
            return False
        asyncio.get_running_loop().add_reader(self._handle, self._ended)
        self.context.add(self.kernel_pid or 0)
        self._limits = limits
        copied = await asyncio.to_thread(disk_use, (self.folder,), threading.Event())
        self._before = self.context.before.plus(copied)
        return True

    def begin_cell(self) -> None:
        """A cell is about to run: watch it. Afterwards its children are states, not programs.

        What counts is how its folder has grown since it was forked, whichever of its cells did
        it, and how the home folder has since the tree began.
        """
        if self.kernel_pid is not None:
            pid, context = self.kernel_pid, self.context
            self._cell.enter_context(context.busy(pid))
            folders = (self.folder, context.home)
            find = partial(context.of_cell, pid)
            self._watch(Watchdog(find, pid, self._limits, folders, before=self._before))
        super().begin_cell()

    def finish_cell(self) -> int | None:
        """The cell has ended; returns its peak of memory in bytes."""
        peak = super().finish_cell()
        self._cell.close()
        self._watchdog = None
        for task in self._tasks:
            task.cancel()
        return peak

    def _signal(self) -> None:
        """Kills the process; one that never got ready has ended by itself."""
        super()._signal()
        if self._handle < 0:
            self._died()

    @property
    def has_programs(self) -> bool:
        """Whether what its cell has started may go on: it would do so unwatched."""
        if self.kernel_pid is None:
            return False
        try:
            return self.context.leaves_programs(self.kernel_pid)
        except OSError:  # it can't be seen that there are none
            return True

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        self._died()

    def _died(self) -> None:
        self.context.remove(self.kernel_pid or 0)
        super()._died()

    async def kill(self) -> None:
        """Ends the process and the programs that it started; returns when it is gone."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGSTOP)  # it starts no others
            with contextlib.suppress(OSError):  # what can't be found now is ended with the orphans
                process_tree.end_all(partial(self.context.programs, self.kernel_pid or 0))
            self._signal()
            await self.dead.wait()

    async def stop(self) -> None:
        """Ends the process and removes its folder. Safe to call again."""
        await self.kill()
        if self._handle >= 0:
            asyncio.get_running_loop().remove_reader(self._handle)
        await self._release()
        # The folders of the states after it stay.
        await asyncio.to_thread(empty_folder, self.folder, keep=BRANCHES)
        await asyncio.to_thread(remove_tree, self.folder / TEMPORARY)
