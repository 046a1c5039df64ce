"""The IPython kernel of the sandbox, and the program that runs it.

Covered: an interrupt reaches the cell and nothing else. The channels are sockets that were bound
outside. All confinement is active before the first line that a person or a model wrote runs,
start-up files included.
"""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import zmq
from ipykernel.heartbeat import Heartbeat
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell as Shell
from traitlets import Type

from kernel_sandbox.cells.figures import tell_figures
from kernel_sandbox.ledger.facts import LEDGER
from kernel_sandbox.ledger.hook import Ledger
from kernel_sandbox.watch.open_files import CellFiles

__all__ = ["InterruptibleKernel", "RestrictedApp"]


class ZMQInteractiveShell(Shell):
    """ipykernel's shell, under the name that libraries look for."""

    def init_ipython_dir(self, ipython_dir: str | None) -> None:  # noqa: ARG002 (IPython's)
        """Use the folder as it is: IPython can't write this one and would look for another.

        Args:
            ipython_dir: as IPython passes it.
        """
        self.ipython_dir = os.environ["IPYTHONDIR"]

    def init_display_formatter(self) -> None:
        """Add descriptions of figures in words; called by IPython."""
        super().init_display_formatter()
        tell_figures(self.display_formatter)
        # A reader of the notebook can do nothing about a library's plans.
        warnings.filterwarnings("ignore", category=DeprecationWarning)


class InterruptibleKernel(IPythonKernel):
    """A kernel that listens to SIGINT exactly while code runs.

    ipykernel 7.4 listens while it handles a message, and for a moment outside of any `try`. An
    interrupt that comes slightly early or late then stops its event loop: the kernel neither dies
    nor answers.
    """

    shell_class = Type(ZMQInteractiveShell)

    def __init__(self, **kwargs: Any) -> None:
        """Create the kernel, once, before the first cell.

        Args:
            **kwargs: as ipykernel passes them.
        """
        super().__init__(**kwargs)
        self._files = CellFiles()
        self._ledger = Ledger(self.shell)

    def pre_handler_hook(self) -> None:
        """Do nothing before a message: listening starts later, with the code."""

    def post_handler_hook(self) -> None:
        """Do nothing after a message: listening has stopped by then."""

    @contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """Cancel a cell that awaits, at every interrupt.

        ipykernel 7.4 does so only at the first one, and without waking a sleeping event loop: most
        interrupts of such a cell have no effect.
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
        """Run one cell; always return a reply.

        Args:
            *args: as ipykernel passes them.
            **kwargs: as ipykernel passes them.
        """
        asked = kwargs.get("cell_meta")
        is_wanted = isinstance(asked, dict) and asked.get(LEDGER) is True
        with self._files.of_a_cell(), self._ledger.of_a_cell(is_wanted):
            reply = await self._execute(*args, **kwargs)
        return {**reply, LEDGER: self._ledger.facts} if is_wanted else reply

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


class _BoundHeartbeat(Heartbeat):
    """The heartbeat on a socket that is already bound."""

    listener = -1

    def _try_bind_socket(self) -> None:
        self.socket.setsockopt(zmq.USE_FD, self.listener)
        super()._try_bind_socket()


class RestrictedApp(IPKernelApp):
    """ipykernel's program, on sockets that were bound for it."""

    _listeners: tuple[int, ...] = ()

    def take(self, listeners: Sequence[int], settle: Callable[[], None]) -> None:
        """Set what `initialize` needs; called before it.

        Args:
            listeners: descriptors of the bound sockets, that of port 1 first.
            settle: closes what is still open; called before any configured code runs.
        """
        self._listeners = tuple(listeners)
        self._settle = settle

    def _try_bind_socket(self, socket: Any, port: int) -> int:
        # libzmq then neither creates nor removes a file.
        socket.setsockopt(zmq.USE_FD, self._listeners[port - 1])
        return int(super()._try_bind_socket(socket, port))

    def init_heartbeat(self) -> None:
        """Start the heartbeat; called by ipykernel."""
        address = (self.transport, self.ip, self.hb_port)
        heartbeat = _BoundHeartbeat(zmq.Context(), address)
        heartbeat.listener = self._listeners[self.hb_port - 1]
        self.heartbeat = heartbeat
        heartbeat.start()

    def init_path(self) -> None:
        """Settle the confinement before extensions and start-up files load.

        ipykernel calls it when its own parts are ready.
        """
        self._settle()
        super().init_path()
