"""What all states of a tree share: where their processes hang, and the home folder."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from kernel_sandbox import processes
from kernel_sandbox.removal import empty_folder
from kernel_sandbox.run_folder import furnish_home
from kernel_sandbox.watchdog import disk_use

__all__ = ["TreeGround"]

_GONE_S = 1.0
_POLL_S = 0.01


class TreeGround:
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
        self._own = frozenset(processes.walk(self._roots))
        self._states: set[int] = set()
        self._busy: Counter[int] = Counter()
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
        return chain(processes.walk((pid,), self._states - {pid}), self._strays({pid, *self._busy}))

    def programs(self, pid: int) -> list[int]:
        """Returns the processes below a state that are no states."""
        return [found for found in processes.walk((pid,), self._states - {pid}) if found != pid]

    def _strays(self, closed: Collection[int] = ()) -> Iterator[int]:
        # The sets as they are now: a thread may go through the processes.
        return _running(processes.walk(self._roots, closed), self._own | self._states)

    async def end_strays(self) -> None:
        """Ends what cells have left behind; called while no state is at work."""
        with contextlib.suppress(OSError):  # what can't be looked for now counts until it is found
            if not processes.end_all(self._strays):
                return
            for _ in range(round(_GONE_S / _POLL_S)):
                if not any(self._strays()):
                    return
                await asyncio.sleep(_POLL_S)

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
    return (pid for pid in pids if pid not in known and not processes.is_ended(pid))
