"""A state of a tree as a process, forked by the state before it and not by the zygote.

All states of a tree share a `SnapshotContext`: the root processes and the home folder.
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
"""A library that a fork has broken may hang. The state is then built by running its cells."""
DEEP_INTERVAL_S = 0.5
"""Seconds between two searches below waiting states, of which there may be hundreds. There is
nothing below them, unless a cell has made its process a subreaper."""
_GONE_S = 1.0
_POLL_S = 0.01


class SnapshotContext:
    """Processes that belong to a tree itself, to find those that its cells have left behind.

    Covered: a program counts for the cells that run, whoever has become its parent. When several
    cells run, its owner is unknown, and it counts for each. Not covered: without process
    namespaces, a program that has left its parents is not found.
    """

    def __init__(self, roots: Iterable[int], home: Path) -> None:
        """Record what is there before the first cell.

        Args:
            roots: the process that was started for the tree and, if there is one, the process
                that becomes the parent of what cells leave behind.
            home: the home folder.
        """
        self._roots = tuple(roots)
        self._own = frozenset(process_tree.walk(self._roots))
        self._states: set[int] = set()
        self._busy: Counter[int] = Counter()
        self._deep_at = 0.0
        self.home = home
        """The home folder, which every state may write."""
        self.before = disk_use((home,), threading.Event())
        """Disk use of the home folder before the first cell."""

    def add(self, pid: int) -> None:
        """Register a process as a state."""
        self._states.add(pid)

    def remove(self, pid: int) -> None:
        """Remove a state that has ended; an unknown one is no error."""
        self._states.discard(pid)

    @contextmanager
    def busy(self, pid: int) -> Iterator[None]:
        """Mark a process that runs a cell or forks: what it starts is not left behind."""
        self._busy[pid] += 1
        try:
            yield
        finally:
            self._busy -= Counter((pid,))

    def of_cell(self, pid: int) -> Iterator[int]:
        """Return the processes that count for a cell.

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
        """Return whether a state has running programs, or there are any orphans."""
        return any(chain(self.programs(pid), self._orphans(self._states | self._busy.keys())))

    def programs(self, pid: int) -> list[int]:
        """Return the processes below a state that are not states."""
        return [found for found in process_tree.walk((pid,), self._states - {pid}) if found != pid]

    def _orphans(self, closed: Collection[int] = ()) -> Iterator[int]:
        # Copies of the sets, because a thread may iterate over the processes.
        return _running(process_tree.walk(self._roots, frozenset(closed)), self._own | self._states)

    async def reap_orphans(self) -> None:
        """End what cells left behind, except below waiting states; call it while no state works."""
        near = frozenset(self._states)
        with contextlib.suppress(OSError):  # what can't be searched now counts until it is found
            if not process_tree.end_all(lambda: self._orphans(near)):
                return
            for _ in range(round(_GONE_S / _POLL_S)):
                if not any(self._orphans(near)):
                    return
                await asyncio.sleep(_POLL_S)

    def kill_reparented(self) -> None:
        """End orphans below waiting states, too; call it while no state works."""
        with contextlib.suppress(OSError):
            process_tree.end_all(self._orphans)

    def tidy_home(self, limit_bytes: int) -> None:
        """Reset the home folder if it has grown by more than half of the disk limit.

        Args:
            limit_bytes: the disk limit of a state; a full home would end every cell of the tree.
        """
        used = disk_use((self.home,), threading.Event(), self.before.size_bytes + limit_bytes)
        if used.closed or used.size_bytes - self.before.size_bytes > limit_bytes // 2:
            empty_folder(self.home)
            furnish_home(self.home)


def _running(pids: Iterable[int], known: Collection[int]) -> Iterator[int]:
    """Return processes that are not known and have not ended: an ended state may not be reaped."""
    return (pid for pid in pids if pid not in known and not process_tree.is_ended(pid))


class SnapshotProcess(ForkedKernel):
    """A running state; ended by `stop`, or with the first state of its tree."""

    def __init__(self, folder: Path, context: SnapshotContext) -> None:
        """Prepare the handle; `fork` starts the process.

        Args:
            folder: its working folder, which the process itself creates.
            context: the context of its tree.
        """
        super().__init__()
        self._cell = ExitStack()
        self._limits = Limits()
        self._before = context.before
        self.folder = folder
        """Its working folder."""
        self.context = context
        """The context that it shares with the other states of its tree."""

    @classmethod
    async def fork(
        cls, parent: ForkedKernel, folder: Path, limits: Limits, context: SnapshotContext
    ) -> SnapshotProcess | None:
        """Return a fork of a process, or `None` if that process is gone or can't be forked.

        Args:
            parent: the process, in which nothing runs and which gets no other request meanwhile.
            folder: the working folder of the new process.
            limits: what the new process may use.
            context: the context of their tree.

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
        """Watch the cell that is about to run. After the cell, its children are states.

        The disk limit applies to the growth of its folder since the fork, whichever cell caused
        it, and to the growth of the home folder since the tree began.
        """
        if self.kernel_pid is not None:
            pid, context = self.kernel_pid, self.context
            self._cell.enter_context(context.busy(pid))
            folders = (self.folder, context.home)
            find = partial(context.of_cell, pid)
            self._watch(Watchdog(find, pid, self._limits, folders, before=self._before))
        super().begin_cell()

    def finish_cell(self) -> int | None:
        """Stop watching the cell, which has ended; return its peak memory in bytes."""
        peak = super().finish_cell()
        self._cell.close()
        self._watchdog = None
        for task in self._tasks:
            task.cancel()
        return peak

    def _signal(self) -> None:
        """Kill the process; one that never got ready has ended by itself."""
        super()._signal()
        if self._handle < 0:
            self._died()

    @property
    def has_programs(self) -> bool:
        """Whether programs that its cell started may keep running, which nothing would watch."""
        if self.kernel_pid is None:
            return False
        try:
            return self.context.leaves_programs(self.kernel_pid)
        except OSError:  # their absence can't be checked
            return True

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        self._died()

    def _died(self) -> None:
        self.context.remove(self.kernel_pid or 0)
        super()._died()

    async def kill(self) -> None:
        """End the process and the programs that it started; return when it is gone."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGSTOP)  # so it starts no others
            with contextlib.suppress(OSError):  # what can't be found now is ended with the orphans
                process_tree.end_all(partial(self.context.programs, self.kernel_pid or 0))
            self._signal()
            await self.dead.wait()

    async def stop(self) -> None:
        """End the process and remove its folder. Safe to call again."""
        await self.kill()
        if self._handle >= 0:
            asyncio.get_running_loop().remove_reader(self._handle)
        await self._release()
        # The folders of the states after it stay.
        await asyncio.to_thread(empty_folder, self.folder, keep=BRANCHES)
        await asyncio.to_thread(remove_tree, self.folder / TEMPORARY)
