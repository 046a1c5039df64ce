"""The loop of a worker inside the sandbox, which runs one cell after another until its end.

It has one thread and no event loop that runs between two cells, so the process can be forked there.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import getpass
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kernel_sandbox.forkserver.frames import FrameError
from kernel_sandbox.forkserver.shell import ZMQInteractiveShell, no_getpass, no_input
from kernel_sandbox.forkserver.worker_channel import TextStream, WorkerChannel
from kernel_sandbox.ledger.facts import LEDGER

__all__ = ["CellLoop"]

_Content = dict[str, Any]


class CellLoop:  # pragma: no cover (runs in the worker)
    """Loop that handles the parent's requests, one per process."""

    def __init__(self, channel: WorkerChannel, shell: ZMQInteractiveShell) -> None:
        """Replace the standard streams.

        Args:
            channel: the channel to the parent.
            shell: a shell attached to the channel.
        """
        self.channel = channel
        """The channel to the parent."""
        self._shell = shell
        self._ledger = shell.ledger
        self._out = TextStream(channel, "stdout")
        self._err = TextStream(channel, "stderr")
        sys.stdout, sys.stderr = self._out, self._err
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._context = contextvars.copy_context()
        self.handlers: dict[str, Callable[[_Content], None]] = {
            "run": self._run,
            "ping": self._ping,
        }
        """Handler of each kind of message; more kinds may be added before `serve`."""

    def renew(self) -> None:
        """Create a new event loop, because a forked process shares the old one with its parent."""
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def serve(self) -> int:
        """Handle messages until the parent goes or a cell asks to exit; return the status."""
        while not self._shell.exit_now:
            try:
                message = self.channel.receive()
            except (FrameError, OSError):
                return 1
            if message is None:
                return 0
            kind, content = message
            handler = self.handlers.get(kind)
            if handler is not None:
                try:
                    handler(content)
                except OSError:  # the parent is gone
                    return 1
            if not self.channel.is_owned:  # a cell forked this process off and let it keep running
                return 0
        return 0

    def _ping(self, content: _Content) -> None:
        self.channel.send("reply", {"id": content["id"], "status": "ok", "execution_count": None})

    def _run(self, content: _Content) -> None:
        for stream in (self._out, self._err):
            stream.begin_cell()
        builtins.input, getpass.getpass = no_input, no_getpass
        is_noted = content.get(LEDGER) is True
        with self._ledger.of_a_cell(is_noted):  # where an interrupt can't reach
            reply = self._executed(content["source"])
        self._out.drain()
        self._err.drain()
        facts = {LEDGER: self._ledger.facts} if is_noted else {}
        self.channel.send("reply", {"id": content["id"], **reply, **facts})

    def _executed(self, source: str) -> _Content:
        """Run the code, which an interrupt ends, and return the reply."""
        # One context for all cells: what a library keeps in it survives from cell to cell.
        cell = self._loop.create_task(self._execute(source), context=self._context)

        def cancel(*_: object) -> None:
            cell.cancel()
            self._loop.call_soon_threadsafe(lambda: None)  # wakes a loop that sleeps

        try:
            # An interrupt raised in the loop would leave the cell there, and the next cell's loop
            # would run it, too.
            with _on_interrupt(cancel):
                self.channel.send("started", {})
                return self._loop.run_until_complete(cell)
        except (KeyboardInterrupt, asyncio.CancelledError):  # just before or after the cell's code
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            count = self._shell.execution_count
            return {"status": "error", "ename": "KeyboardInterrupt", "execution_count": count}

    async def _execute(self, source: str) -> _Content:
        shell, failed = self._shell, None
        with _on_interrupt(signal.default_int_handler):
            try:
                transformed = shell.transform_cell(source)  # type: ignore[no-untyped-call]
            except Exception:  # noqa: BLE001 (whatever an input transformer raises is the cell's error)
                transformed, failed = source, sys.exc_info()
            options = {"transformed_cell": transformed, "preprocessing_exc_tuple": failed}
            if not shell.should_run_async(source, **options):
                return self._reply(shell.run_cell(source, store_history=True, silent=False))
        return self._reply(await self._await_cell(source, options))

    async def _await_cell(self, source: str, options: _Content) -> Any:
        result = None
        try:
            result = await asyncio.ensure_future(
                self._shell.run_cell_async(source, store_history=True, silent=False, **options)
            )
        finally:
            self._shell.events.trigger("post_execute")
            self._shell.events.trigger("post_run_cell", result)
        return result

    def _reply(self, result: Any) -> _Content:
        shell = self._shell
        count = shell.execution_count - 1
        if result.success and not shell.has_failed_display:
            return {"status": "ok", "execution_count": count}
        error = result.error_before_exec or result.error_in_exec
        return {"status": "error", "ename": type(error).__name__, "execution_count": count}


@contextmanager
def _on_interrupt(handler: Callable[..., object]) -> Iterator[None]:
    """Call a handler on SIGINT meanwhile."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
