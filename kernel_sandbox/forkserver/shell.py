"""IPython as ipykernel runs it, but outputs are sent through a `WorkerChannel`."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any, NoReturn

from IPython.core import page
from IPython.core.autocall import ZMQExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from traitlets import Any as AnyTrait
from traitlets import CBool, Instance, Type, default
from traitlets.config import Config

from kernel_sandbox.cells.figures import tell_figures
from kernel_sandbox.forkserver.worker_channel import TextStream, WorkerChannel
from kernel_sandbox.ledger.hook import Ledger

__all__ = ["ZMQInteractiveShell", "make_shell", "no_getpass", "no_input"]

_UNAVAILABLE = (
    *("edit", "ed", "clear", "less", "more", "man"),
    *("connect_info", "qtconsole", "autosave", "subshell"),
)
"""Magics of ipykernel that need a person, a pager or another client."""
_VARIABLES = {
    "TERM": "xterm-color",
    "CLICOLOR": "1",
    "FORCE_COLOR": "1",
    "CLICOLOR_FORCE": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}
"""What ipykernel sets in the environment of its process."""


def _flush() -> None:  # pragma: no cover
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextStream):
            stream.drain()
        elif stream is not None:  # a cell has set its own stream
            stream.flush()


class _Compiler(CachingCompiler):  # pragma: no cover (runs in the worker)
    """Compiler that names cells as ipykernel does, for warnings and `inspect`."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:  # noqa: ARG002
        """Return the file name of a cell.

        Args:
            raw_code: the cell.
            transformed_code: the cell after IPython transformed it.
            number: the number of the cell.
        """
        name = zlib.crc32(raw_code.encode("utf-8", "replace"))
        return f"{tempfile.gettempdir()}/ipykernel_{os.getpid()}/{name}.py"


class _Hook(DisplayHook):  # pragma: no cover (runs in the worker)
    """Display hook that sends the value of a cell's last expression."""

    content: dict[str, Any] | None = None

    def start_displayhook(self) -> None:
        """Start a new value; IPython calls this before the other methods."""
        self.content = {"data": {}, "metadata": {}}

    def write_output_prompt(self) -> None:
        """Add the number of the cell."""
        if self.content is not None:
            self.content["execution_count"] = self.prompt_count

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        """Add the value.

        Args:
            format_dict: media type to content.
            md_dict: media type to metadata.
        """
        if self.content is not None:
            self.content["data"] = format_dict
            self.content["metadata"] = md_dict

    def finish_displayhook(self) -> None:
        """Send the value."""
        _flush()
        content, self.content = self.content, None
        if content and content["data"] and self.shell is not None:
            self.shell.channel.send("execute_result", content)


class _Publisher(DisplayPublisher):  # pragma: no cover (runs in the worker)
    """Display publisher that sends what cells display."""

    def publish(  # type: ignore[override]
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        """Send one bundle.

        Args:
            data: media type to content.
            metadata: media type to metadata.
            transient: contains the `display_id`, if it has one.
            update: whether it replaces the bundle that has that id.

        Raises:
            TypeError: the data are not a dict.
        """
        _flush()
        metadata = {} if metadata is None else metadata
        self._validate_data(data, metadata)  # type: ignore[no-untyped-call]
        content = {"data": data, "metadata": metadata, "transient": transient or {}}
        self.shell.channel.send("update_display_data" if update else "display_data", content)

    def clear_output(self, wait: bool = False) -> None:
        """Clear the outputs of the cell.

        Args:
            wait: whether to do so only when the next output comes.
        """
        _flush()
        self.shell.channel.send("clear_output", {"wait": bool(wait)})


class ZMQInteractiveShell(InteractiveShell):  # pragma: no cover (runs in the worker)
    """Shell of one worker, created once before the fork and inherited by each worker.

    The class name has to be ipykernel's: libraries detect by it that they run in a notebook.
    """

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)
    compiler_class = Type(_Compiler)
    exiter = Instance(ZMQExitAutocall)
    channel = AnyTrait()
    kernel = AnyTrait()
    """Always `None`; libraries detect a notebook by the presence of this attribute."""
    autoindent = CBool(False)
    keepkernel_on_exit: bool | None = None
    last_traceback: list[str] | None = None
    has_failed_display = False
    ledger = AnyTrait()
    """Ledger of what its cells do to the data, created before the fork, which copies it."""

    @default("exiter")
    def _default_exiter(self) -> ZMQExitAutocall:
        return ZMQExitAutocall(self)  # type: ignore[no-untyped-call]

    def attach(self, channel: WorkerChannel, home: Path) -> None:
        """Make this the shell of the current process, after the fork.

        Args:
            channel: the channel for outputs.
            home: a folder for settings, from which nothing is read.
        """
        self.channel = channel
        self.ipython_dir = str(home / "ipython")
        self.profile_dir = ProfileDir(location=str(home / "ipython" / "profile_default"))
        self.home_dir = str(home)
        self.starting_dir = str(Path.cwd())
        if self.history_manager is not None:
            self.history_manager.dir_hist[:] = [Path.cwd()]
        self.init_environment()

    def init_environment(self) -> None:
        """Set the variables that ipykernel sets; called by IPython and after the fork."""
        os.environ.update(_VARIABLES)

    def init_virtualenv(self) -> None:
        """Do nothing: a kernel looks for no virtual environment. Called by IPython."""

    def init_display_formatter(self) -> None:
        """Make figures come with a description in words. Called by IPython."""
        super().init_display_formatter()  # type: ignore[no-untyped-call]
        tell_figures(self.display_formatter)
        # Readers of the notebook can do nothing about a library's plans.
        warnings.filterwarnings("ignore", category=DeprecationWarning)

    def init_hooks(self) -> None:
        """Discard help texts, which would go to a pager that nobody sees. Called by IPython."""
        super().init_hooks()  # type: ignore[no-untyped-call]
        self.set_hook("show_in_pager", page.as_hook(lambda *_, **__: None), 99)  # type: ignore[no-untyped-call]

    def init_magics(self) -> None:
        """Add magics that report that they are not available. Called by IPython."""
        super().init_magics()  # type: ignore[no-untyped-call]
        for name in _UNAVAILABLE:
            self.register_magic_function(_refusal(name), "line", name)

    def enable_gui(self, gui: Any = None) -> None:
        """Accept inline figures only. Called by magics such as `%matplotlib`.

        Args:
            gui: the windowing system; `None` and `inline` need none.

        Raises:
            UsageError: any other value was given.
        """
        if gui not in (None, "inline"):
            raise UsageError(f"there is no screen for {gui}: use %matplotlib inline")

    def ask_exit(self) -> None:
        """End the process after the cell. Called by `exit` and `quit`."""
        self.exit_now = not self.keepkernel_on_exit

    def set_next_input(self, text: str, replace: bool = False) -> None:
        """Ignore a proposed next cell, which nobody would see. Called by magics."""

    def run_cell(self, *args: Any, **kwargs: Any) -> Any:
        """Run one cell, with ipykernel's marks of how it went.

        Args:
            *args: arguments as for IPython.
            **kwargs: arguments as for IPython.
        """
        self.last_traceback = None
        self.has_failed_display = False
        return super().run_cell(*args, **kwargs)  # type: ignore[no-untyped-call]

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        """Send a formatted error. Called by IPython."""
        _flush()
        if getattr(self.displayhook, "content", None) is not None:
            self.has_failed_display = True
        self.channel.send_error(str(etype.__name__), str(evalue), stb)
        self.last_traceback = stb


def _refusal(name: str) -> Any:  # pragma: no cover
    def magic(line: str) -> NoReturn:  # noqa: ARG001 (IPython's signature)
        raise UsageError(f"%{name} is not available here")

    magic.__doc__ = f"Not available here: %{name} needs a person at the screen."
    return magic


def make_shell() -> ZMQInteractiveShell:  # pragma: no cover
    """Return the only shell of this process, not yet attached."""
    config = Config()
    config.HistoryManager.enabled = False  # a database file and a thread that nobody reads
    # Libraries look for this to detect that they run in a notebook.
    config.IPKernelApp.connection_file = ""
    shell = ZMQInteractiveShell.instance(config=config)
    shell.ledger = Ledger(shell)
    return shell


def no_input(prompt: object = "") -> NoReturn:  # noqa: ARG001
    """Replace `input`, because nobody can answer.

    Args:
        prompt: not shown.

    Raises:
        StdinNotImplementedError: always.
    """
    raise StdinNotImplementedError(
        "raw_input was called, but this frontend does not support input requests."
    )


def no_getpass(prompt: str = "", stream: Any = None, *, echo_char: Any = None) -> NoReturn:  # noqa: ARG001
    """Replace `getpass.getpass`, because nobody can answer.

    Args:
        prompt: not shown.
        stream: not used.
        echo_char: not used.

    Raises:
        StdinNotImplementedError: always.
    """
    raise StdinNotImplementedError(
        "getpass was called, but this frontend does not support input requests."
    )
