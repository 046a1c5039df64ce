"""What keeps all processes of one kernel together, from outside: a control group, or a user.

Covered: where the machine grants a control group, memory and processes are counted by the system;
whichever of the two there is, `end` ends all processes at once, whatever they fork meanwhile.
Not covered: a machine that grants neither. What is ended there is found process by process.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from kernel_sandbox.confine import counting
from kernel_sandbox.confine.cgroups import NAME, Cgroup, delegate
from kernel_sandbox.confine.layers import Containment, Layer, LayerState
from kernel_sandbox.types import Limits

__all__ = ["Fence"]

HEADROOM_BYTES = 64 * 1024**2
"""The watchdog, which can say more, should come first where it can."""
_OPEN = "its code may write the control groups: neither a view of the files nor Landlock keeps it"


class Fence:
    """Made before a kernel starts; whoever made it removes it."""

    def __init__(self, name: str, limits: Limits, memory_bytes: int | None = None) -> None:
        """Makes the control group, where the machine grants one.

        Args:
            name: of the kernel.
            limits: what it may use.
            memory_bytes: what the group may hold; `None` for the memory of the limits.
        """
        most = (memory_bytes or limits.memory_bytes) + HEADROOM_BYTES
        made = delegate(name, replace(limits, memory_bytes=most))
        self._group = made if isinstance(made, Cgroup) else None
        self._layer = made if isinstance(made, Layer) else Layer(NAME, LayerState.ABSENT)
        self.user_number = 0
        """The user whose number the kernel takes; 0 for none."""

    @property
    def counts(self) -> bool:
        """Whether the group counts the processes."""
        return self._group is not None

    def add(self, pid: int) -> None:
        """Puts a process into the group, before it runs anybody's code.

        Args:
            pid: the process, as this one numbers it.
        """
        if self._group is not None:
            self._layer = self._group.add(pid)

    def layer(self, around: Containment) -> Layer:
        """Returns the group's layer, as it turned out.

        Args:
            around: the layers that the kernel itself reported.
        """
        is_shut = any(map(around.is_active, ("read_only_view", "landlock")))
        if self._layer.state is LayerState.ACTIVE and not is_shut:
            return Layer(NAME, LayerState.REFUSED, _OPEN)
        return self._layer

    def ran_out(self) -> bool:
        """Whether the system has ended a process of the kernel for want of memory."""
        return self._group is not None and self._group.oom_killed()

    def end(self) -> None:
        """Ends all processes that are fenced in; returns when the system lists none any more."""
        if self._group is not None:
            self._group.kill()
        if self.user_number:
            with contextlib.suppress(OSError):
                counting.end_user(self.user_number)

    def remove(self) -> None:
        """Ends all of them and removes the group. Safe to call again."""
        if self.user_number:
            self.end()
        if self._group is not None:
            self._group.remove()
