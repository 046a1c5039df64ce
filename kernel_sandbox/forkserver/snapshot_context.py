"""What all states of a tree share: where their processes hang, and the home folder."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from kernel_sandbox.confine.run_folder import furnish_home
from kernel_sandbox.files.removal import empty_folder
from kernel_sandbox.watch import process_tree
from kernel_sandbox.watch.watchdog import disk_use

__all__ = ["SnapshotContext"]

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
        return chain(process_tree.walk((pid,), self._states - {pid}), self._strays(closed))

    def leaves_programs(self, pid: int) -> bool:
        """Returns whether a state has started what goes on, or there is any that is nobody's."""
        return any(chain(self.programs(pid), self._strays(self._states | self._busy.keys())))

    def programs(self, pid: int) -> list[int]:
        """Returns the processes below a state that are no states."""
        return [found for found in process_tree.walk((pid,), self._states - {pid}) if found != pid]

    def _strays(self, closed: Collection[int] = ()) -> Iterator[int]:
        # The sets as they are now: a thread may go through the processes.
        return _running(process_tree.walk(self._roots, frozenset(closed)), self._own | self._states)

    async def reap_orphans(self) -> None:
        """Ends what cells left behind, but for `kill_reparented`; while no state is at work."""
        near = frozenset(self._states)
        with contextlib.suppress(OSError):  # what can't be looked for now counts until it is found
            if not process_tree.end_all(lambda: self._strays(near)):
                return
            for _ in range(round(_GONE_S / _POLL_S)):
                if not any(self._strays(near)):
                    return
                await asyncio.sleep(_POLL_S)

    def kill_reparented(self) -> None:
        """Ends what is below states that wait, too; while no state is at work."""
        with contextlib.suppress(OSError):
            process_tree.end_all(self._strays)

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
