"""One cell from sending to result, under the limits of time, memory and output."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.cells.outputs import Change, OutputCollector
from kernel_sandbox.cells.zmq_channels import Execution
from kernel_sandbox.ledger.facts import LEDGER, facts_from
from kernel_sandbox.types import CellResult, CellStatus, Limits
from kernel_sandbox.watch.watchdog import LimitViolation

__all__ = ["CellChannel", "CellRun", "RunningKernel", "outcome_of_reply"]

INTERRUPT_GRACE_S = 2.0
LOST_STATE = "The kernel had ended since the cell before: this one met an empty one."
"""What the result of a cell says if another kernel ran the cell before."""
_PRESS_AGAIN_S = 0.5
_LAST_OUTPUT_S = 0.5
_DEATH_NEWS_S = 0.25
_Outcome = tuple[CellStatus, str, str]
"""How a cell ended, what to say of it, and the limit that ended it."""
_MEMORY_ERRORS = frozenset({"MemoryError", "_ArrayMemoryError", "ArrowMemoryError"})


class CellChannel(Protocol):
    """The channel to a kernel that a `CellRun` needs; it may call both methods at once."""

    async def execute(self, source: str, execution: Execution) -> None:
        """Run a cell; return when its reply and its last output have come, or never."""
        ...

    async def settle(self) -> None:
        """Return when the kernel has finished all earlier requests, or never."""
        ...


class RunningKernel(Protocol):
    """A kernel that accepts cells, used by one `CellRun` at a time."""

    @property
    def channel(self) -> CellChannel:
        """The channels of the kernel."""
        ...

    @property
    def dead(self) -> asyncio.Event:
        """An event that is set when its process has ended, for whatever reason."""
        ...

    @property
    def violation(self) -> LimitViolation | None:
        """The violation that it was ended for, if any."""
        ...

    @property
    def exit_status(self) -> int | None:
        """The exit status of its process, or `None` if it is unknown."""
        ...

    def begin_cell(self) -> None:
        """Watch closely, because a cell is about to run."""
        ...

    def finish_cell(self) -> int | None:
        """Stop watching closely; return the cell's peak memory in bytes, if it is known."""
        ...

    async def interrupt(self) -> None:
        """Send an interrupt to the kernel and to what its cell started."""
        ...

    async def kill(self) -> None:
        """End the process and all that it started; return when they are gone."""
        ...


class CellRun:
    """A single run of one cell on a kernel."""

    def __init__(
        self,
        kernel: RunningKernel,
        limits: Limits,
        on_change: Callable[[Change], None] = lambda _: None,
        *,
        keeps_ledger: bool = True,
    ) -> None:
        """Prepare the run; `run` sends the cell.

        Args:
            kernel: a started kernel on which nothing runs.
            limits: the limits of time and output.
            on_change: called with each change of the cell's outputs, as it happens.
            keeps_ledger: whether a kernel of ours records what happens to the data.
        """
        self._kernel = kernel
        self._limits = limits
        collector = OutputCollector(limits.output_bytes, on_change)
        self._execution = Execution(collector, keeps_ledger=keeps_ledger)
        self._was_interrupted = False
        self._lost = asyncio.Event()
        """Set when an interrupt has ended the cell and its reply does not come: the signal met the
        kernel between the code and the reply."""
        self._work: asyncio.Task[None] | None = None

    async def run(self, source: str) -> CellResult:
        """Run the code and return the cell's result.

        Args:
            source: the code.

        Raises:
            asyncio.CancelledError: the caller was cancelled; the cell has been stopped.
        """
        started = asyncio.get_running_loop().time()
        self._kernel.begin_cell()
        self._work = asyncio.create_task(self._kernel.channel.execute(source, self._execution))
        try:
            status, message, ended_by = await self._outcome(self._work)
        except asyncio.CancelledError:
            await run_shielded(self._stop())
            raise
        finally:
            peak = self._kernel.finish_cell()
            self._work.cancel()
        reply = self._execution.reply or {}
        return CellResult(
            status=status,
            outputs=self._execution.collector.outputs,
            execution_count=reply.get("execution_count"),
            seconds=asyncio.get_running_loop().time() - started,
            peak_bytes=self._peak(peak),
            cut_bytes=self._cut_bytes,
            message=message,
            state_lost=self._kernel.dead.is_set(),
            ended_by=ended_by,
            facts=facts_from(reply.get(LEDGER)),
        )

    def _peak(self, seen: int | None) -> int | None:
        """Return the least peak: the system may end a kernel between two measurements."""
        violation = self._kernel.violation
        return max(seen or 0, violation.needed_bytes if violation else 0) or None

    async def interrupt(self) -> None:
        """Interrupt the cell; return when it has ended or plainly won't."""
        self._was_interrupted = True
        has_ended = await self._press() and self._execution.started.is_set()
        if has_ended and self._execution.reply is None:  # it would have come before
            self._lost.set()

    async def _outcome(self, work: asyncio.Task[None]) -> _Outcome:
        dead, flood = self._kernel.dead, self._execution.flood
        await _any(self._limits.wall_s, work, dead.wait(), flood.wait(), self._lost.wait())
        if flood.is_set() and not work.done():  # a death breaks the connection first
            await _any(_DEATH_NEWS_S, dead.wait())
        if dead.is_set():
            return self._death()
        if work.done():
            return self._end()
        if flood.is_set():
            was_killed = await self._stop()
            late = dead.is_set() and (self._kernel.violation is not None or not was_killed)
            return self._death() if late else self._flooded()  # late on a busy machine
        if self._lost.is_set():
            return CellStatus.INTERRUPTED, "the cell was interrupted", ""
        await self._stop()
        how = "killed: its variables are gone" if dead.is_set() else "interrupted"
        text = f"the cell ran past its {self._limits.wall_s:g} s and was {how}. Do less at once."
        return CellStatus.TIMEOUT, text, "timeout"

    async def _stop(self) -> bool:
        """Interrupt the cell; return whether the kernel ignored that and was killed."""
        dropped = self._execution.dropped_bytes
        was_killed = not await self._press()
        if was_killed:
            await self._kernel.kill()
        if self._kernel.dead.is_set():
            self._execution.dropped_bytes = dropped  # its end has broken the connection since
        return was_killed

    async def _press(self) -> bool:
        """Interrupt the cell; return whether the kernel has since ended it, or itself.

        A second signal follows after a while: the first may come a moment before the code, which
        then keeps running. The proof of the end is the reply to a request queued behind the cell.
        """
        work, dead = self._work, self._kernel.dead
        if work is None or dead.is_set():
            return True
        settled = asyncio.create_task(self._kernel.channel.settle())
        try:
            await _any(_PRESS_AGAIN_S, self._execution.started.wait(), settled, dead.wait())
            for _ in range(round(INTERRUPT_GRACE_S / _PRESS_AGAIN_S)):
                if not work.done():
                    await self._kernel.interrupt()
                await _any(_PRESS_AGAIN_S, settled, dead.wait())
                if settled.done():  # the last output is on the way, if it was not lost
                    await _any(_LAST_OUTPUT_S, work)
                    return True
                if dead.is_set():
                    return True
        finally:
            settled.cancel()
        return False

    def _end(self) -> _Outcome:
        status, message, ended_by = outcome_of_reply(
            self._execution.reply or {}, was_interrupted=self._was_interrupted
        )
        return status, message or self._cut(), ended_by

    @property
    def _cut_bytes(self) -> int:
        return self._execution.collector.cut_bytes + self._execution.dropped_bytes

    def _cut(self) -> str:
        if not self._cut_bytes:
            return ""
        return (
            f"{self._cut_bytes:,} bytes of output were cut: the limit is "
            f"{self._limits.output_bytes:,} bytes. Print a summary instead."
        )

    def _flooded(self) -> _Outcome:
        if self._kernel.dead.is_set():
            text = f"{self._cut()} The kernel would not stop and was killed."
            return CellStatus.KILLED, text, "output"
        reply = self._execution.reply or {}
        if reply.get("status") == "ok":
            return CellStatus.OK, self._cut(), ""
        return CellStatus.ERROR, f"{self._cut()} The cell was interrupted.", "output"

    def _death(self) -> _Outcome:
        self._execution.dropped_bytes = 0  # the death has broken the connection
        violation = self._kernel.violation
        if violation is not None:
            kind = CellStatus.MEMORY if violation.kind == "memory" else CellStatus.KILLED
            return kind, f"{violation.message} Its variables are gone.", violation.kind
        status = self._kernel.exit_status
        ended_by = "processor" if _signal_name(status) == "SIGXCPU" else "death"
        return CellStatus.KILLED, describe_death(status, self._limits), ended_by


def outcome_of_reply(reply: Mapping[str, Any], *, was_interrupted: bool) -> _Outcome:
    """Return how a cell ended, according to its kernel's reply.

    Args:
        reply: the content of the reply; empty if the reply was lost.
        was_interrupted: whether this side interrupted the cell.
    """
    if reply.get("status") == "ok":
        return CellStatus.OK, "", ""
    if reply.get("ename") in _MEMORY_ERRORS:
        text = (
            "the cell asked for more memory than there is within the limit; the kernel and "
            "its variables are still there. Work on fewer rows or columns at a time."
        )
        return CellStatus.MEMORY, text, "memory"
    if was_interrupted:  # whatever its error is called: libraries raise their own, such as SQLite's
        return CellStatus.INTERRUPTED, "the cell was interrupted", ""
    return CellStatus.ERROR, "", ""


_DEATHS = {
    "SIGKILL": "was ended from outside, as happens when the machine runs out of memory",
    "SIGTERM": "was told to end",
    "SIGSEGV": "crashed: compiled code used memory that it has not",
    "SIGBUS": "crashed: compiled code used memory that it has not",
    "SIGABRT": "crashed: compiled code gave up",
}
"""What a signal that ended a kernel means, in plain words."""


def describe_death(status: int | None, limits: Limits) -> str:
    """Return what a person should know about a kernel that ended by itself.

    Args:
        status: the exit status; a negative one, or one above 128, means a signal.
        limits: what the kernel was allowed.
    """
    name = _signal_name(status)
    if not name:
        return f"the kernel ended with status {status}; its variables are gone"
    if name == "SIGXCPU":
        return (
            f"the kernel used up its {limits.cpu_s} s of processor time and was ended; "
            "its variables are gone. Do less work, or raise the limit."
        )
    why = _DEATHS.get(name, f"was ended by a signal ({name})")
    return f"the kernel {why}; its variables are gone"


def _signal_name(status: int | None) -> str:
    """Return the name of the signal that an exit status means, or an empty string."""
    number = 0 if status is None else -status if status < 0 else max(0, status - 128)
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


async def _any(timeout_s: float, *awaitables: Awaitable[Any]) -> None:
    """Wait until the first is done or the time is over; cancel the tasks created here."""
    given = [item for item in awaitables if isinstance(item, asyncio.Future)]
    made = [asyncio.ensure_future(item) for item in awaitables if item not in given]
    try:
        await asyncio.wait((*given, *made), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in made:
            task.cancel()
