"""The IPython kernel of the sandbox: an interrupt reaches the cell, and nothing but the cell."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ipykernel.ipkernel import IPythonKernel

from kernel_sandbox.open_files import CellFiles

__all__ = ["InterruptibleKernel"]


class InterruptibleKernel(IPythonKernel):
    """Listens to SIGINT exactly while code runs.

    ipykernel 7.4 listens during the whole handling of a message, and for a moment outside of any
    `try`: an interrupt that comes a little late or early then stops its event loop, and the kernel
    is neither dead nor does it answer.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Made once, before the first cell.

        Args:
            **kwargs: as ipykernel passes them.
        """
        super().__init__(**kwargs)
        self._files = CellFiles()

    def pre_handler_hook(self) -> None:
        """Called by ipykernel before each message; listening starts later, with the code."""

    def post_handler_hook(self) -> None:
        """Called by ipykernel after each message; listening has stopped by then."""

    @contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """Cancels a cell that awaits, at every interrupt.

        ipykernel 7.4 does so at the first one only, and without waking an event loop that sleeps:
        most interrupts of such a cell come to nothing.
        """
        loop = asyncio.get_running_loop()

        def cancel(*_: object) -> None:
            loop.call_soon_threadsafe(future.cancel)

        listening = signal.signal(signal.SIGINT, cancel)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, listening)

    async def do_execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Runs one cell; always gives a reply.

        Args:
            *args: as ipykernel passes them.
            **kwargs: as ipykernel passes them.
        """
        with self._files.of_a_cell():
            return await self._execute(*args, **kwargs)

    async def _execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                reply: dict[str, Any] = await super().do_execute(*args, **kwargs)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except (
            KeyboardInterrupt,
            asyncio.CancelledError,
        ):  # outside of the cell's own code, just before or after it
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return {
                "status": "error",
                "ename": "KeyboardInterrupt",
                "evalue": "",
                "traceback": [],
                "execution_count": self.execution_count,
                "user_expressions": {},
                "payload": [],
            }
        return reply
