"""Pipes between a kernel and its starter, passed as open files and never by path.

    policy      in:  what to confine it to
    report      out: the active layers, before code of a person or a model runs; then it is closed
    listeners   in:  the sockets of its channels, bound in a folder that it can't write
    keeper      both ways: lets the kernel begin; later it asks the first process of its namespace
                to look at its folder again

Covered: a kernel can neither replace nor delay what is read here. The report ends before its first
cell begins, has a bounded size, and is read without waiting. Not covered: a kernel that dies
before it reports, which leaves no report.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kernel_sandbox.confine.spec import ConfinementSpec, Report
from kernel_sandbox.errors import KernelStartError

__all__ = ["CHANNELS", "KernelEnds", "LaunchPipes", "report_from_bytes"]

CHANNELS = ("shell", "iopub", "stdin", "hb", "control")
"""The channels in the order of their ports, which count from 1."""
REPORT_BYTES = 64 * 1024
_BACKLOG = 64
_REFRESH_S = 2.0
_BEGIN, _LOOK_AGAIN, _DONE = b"b", b"r", b"+"


@dataclass(frozen=True, slots=True)
class KernelEnds:
    """The kernel's ends, as descriptors that its process inherits."""

    policy: int
    report: int
    keeper: int
    listeners: tuple[int, ...]
    """One for each channel, in the order of `CHANNELS`."""

    def to_argument(self) -> str:
        """Return the numbers as one word of a command line."""
        return ",".join(map(str, (self.policy, self.report, self.keeper, *self.listeners)))

    @classmethod
    def from_argument(cls, text: str) -> Self:
        """Create the ends from the output of `to_argument`.

        Raises:
            ValueError: the text has another form.
        """
        policy, report, keeper, *listeners = map(int, text.split(","))
        return cls(policy, report, keeper, tuple(listeners))

    def take_policy(self) -> ConfinementSpec:  # pragma: no cover (runs in the child)
        """Read the policy and close its file."""
        with os.fdopen(self.policy, "rb") as file:
            file.seek(0)
            return ConfinementSpec.from_text(file.read().decode())

    def await_begin(self) -> None:  # pragma: no cover (runs in the child)
        """Wait until this process may fork: its starter counts it from then on.

        Raises:
            EOFError: the starter is gone.
        """
        if os.read(self.keeper, 1) != _BEGIN:
            raise EOFError("whoever started this kernel is gone")

    def send(self, report: Report) -> None:  # pragma: no cover (runs in the child)
        """Send the report and close its pipe, so that nothing can be added to it."""
        os.set_inheritable(self.report, False)
        os.write(self.report, report.to_text().encode() + b"\n")
        os.close(self.report)

    @property
    def of_kernel(self) -> tuple[int, ...]:
        """The descriptors that only the kernel itself keeps open."""
        return (self.report, *self.listeners)


class LaunchPipes:
    """The starter's ends, for one start of a kernel."""

    def __init__(self, policy: ConfinementSpec, sockets: str) -> None:
        """Open all ends.

        Args:
            policy: what the kernel is confined to.
            sockets: the prefix of its socket paths; `-1` to `-5` follow.

        Raises:
            KernelStartError: a path is too long for a socket, or no descriptor is available.
        """
        with contextlib.ExitStack() as undo:
            try:
                self._theirs = undo.enter_context(contextlib.ExitStack())
                self._report, report = os.pipe()
                undo.callback(os.close, self._report)
                self._theirs.callback(os.close, report)
                os.set_blocking(self._report, False)
                self._keeper, keeper = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
                undo.callback(self._keeper.close)
                self._theirs.callback(keeper.close)
                self._keeper.settimeout(_REFRESH_S)
                listeners = [self._listener(f"{sockets}-{n + 1}") for n in range(len(CHANNELS))]
                ends = (self._policy(policy), report, keeper.fileno())
            except OSError as error:
                raise KernelStartError(f"the kernel's channels can't be made: {error}") from error
            undo.pop_all()
        self.theirs = KernelEnds(*ends, tuple(listener.fileno() for listener in listeners))
        """The kernel's ends, until `let_go`."""
        self._text = b""
        self._found: Report | None = None

    def _policy(self, policy: ConfinementSpec) -> int:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed with the others)
        self._theirs.callback(file.close)
        file.write(policy.to_text().encode())
        return file.fileno()

    def _listener(self, path: str) -> socket.socket:
        Path(path).unlink(missing_ok=True)
        listener = self._theirs.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.bind(path)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        return listener

    @property
    def inherited(self) -> tuple[int, ...]:
        """The descriptors that the kernel's process inherits."""
        return (self.theirs.policy, self.theirs.report, self.theirs.keeper, *self.theirs.listeners)

    def let_go(self) -> None:
        """Close the kernel's ends here: its process has them now, or there is no process."""
        self._theirs.close()

    def begin(self) -> None:
        """Let the kernel begin, now that its processes are counted."""
        with contextlib.suppress(OSError):  # it has ended, which others notice
            self._keeper.send(_BEGIN)

    def report(self) -> Report | None:
        """Return the kernel's report, or `None` until it has come; never wait."""
        while self._report >= 0 and self._found is None:
            try:
                piece = os.read(self._report, REPORT_BYTES + 1)
            except BlockingIOError:
                break
            self._text += piece
            if b"\n" in self._text:
                self._found = report_from_bytes(self._text)
            if not piece or b"\n" in piece or len(self._text) > REPORT_BYTES:
                os.close(self._report)
                self._report = -1
        return self._found

    def refresh(self) -> bool:
        """Make the kernel's view drop its cache of the folder; return whether it did.

        This blocks for a moment, two seconds at most.
        """
        try:
            self._keeper.send(_LOOK_AGAIN)
            return self._keeper.recv(1) == _DONE
        except OSError:
            return False

    def close(self) -> None:
        """Close everything. Safe to call again."""
        self.let_go()
        if self._report >= 0:
            os.close(self._report)
            self._report = -1
        self._keeper.close()


def report_from_bytes(text: bytes) -> Report | None:
    """Return the report that a kernel sent, or `None` if the text is not one.

    Args:
        text: the bytes received, up to the end of the first line or more.
    """
    try:
        return Report.from_text(text.partition(b"\n")[0].decode())
    except (ValueError, KeyError):
        return None
