"""What keeps all processes of one kernel together, from outside: a control group, or a user.

Covered: with a control group, the system counts memory and processes. With either of the two,
`end` ends all processes at once, whatever they fork meanwhile.
Not covered: a machine that grants neither. There, processes are found and ended one by one.
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
"""Room for the watchdog to act before the system does, because it can report more."""
_OPEN = "its code may write the control groups: neither a view of the files nor Landlock keeps it"


class Fence:
    """Control group or user around one kernel, created before it starts; the creator removes it."""

    def __init__(self, name: str, limits: Limits, memory_bytes: int | None = None) -> None:
        """Create the control group, if the machine grants one.

        Args:
            name: the name of the kernel.
            limits: what the kernel may use.
            memory_bytes: the memory limit of the group; `None` for the memory of the limits.
        """
        most = (memory_bytes or limits.memory_bytes) + HEADROOM_BYTES
        made = delegate(name, replace(limits, memory_bytes=most))
        self._group = made if isinstance(made, Cgroup) else None
        self._layer = made if isinstance(made, Layer) else Layer(NAME, LayerState.ABSENT)
        self.user_number = 0
        """The user id that the kernel takes; 0 for none."""

    @property
    def counts(self) -> bool:
        """Whether the group counts the processes."""
        return self._group is not None

    def add(self, pid: int) -> None:
        """Move a process into the group, before it runs anybody's code.

        Args:
            pid: the process, as this one numbers it.
        """
        if self._group is not None:
            self._layer = self._group.add(pid)

    def layer(self, around: Containment) -> Layer:
        """Return the group's layer, as it turned out.

        Args:
            around: the layers that the kernel itself reported.
        """
        is_shut = any(map(around.is_active, ("read_only_view", "landlock")))
        if self._layer.state is LayerState.ACTIVE and not is_shut:
            return Layer(NAME, LayerState.REFUSED, _OPEN)
        return self._layer

    def ran_out(self) -> bool:
        """Return whether the system has ended a process of the kernel for lack of memory."""
        return self._group is not None and self._group.oom_killed()

    def end(self) -> None:
        """End all processes inside the fence; with a group, return once the system lists none."""
        if self._group is not None:
            self._group.kill()
        if self.user_number:
            with contextlib.suppress(OSError):
                counting.end_user(self.user_number)

    def remove(self) -> None:
        """End all processes and remove the group. Safe to call again."""
        if self.user_number:
            self.end()
        if self._group is not None:
            self._group.remove()
