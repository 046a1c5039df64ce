"""The endpoint of the local model: one server for each model and machine, shared by all its users.

    async with local_endpoint("qwen2.5-coder-1.5b") as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key)

The first user starts the server; the last one stops it and waits until it is gone. After a user is
killed, its server ends by itself within about two seconds (see `runtime.py`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dm_jupyter.core.codec import encode_json
from dm_jupyter.models.local.cache import model_path
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, LocalModel, resolve
from dm_jupyter.models.local.engine import SLOTS, EngineSettings, all_tokens, obstacles
from dm_jupyter.models.local.errors import ServerStartError
from dm_jupyter.models.local.runtime import (
    Lease,
    ServerFolder,
    exclusive,
    live_leases,
    write_private,
)
from dm_jupyter.models.local.tickets import RequestQueue

__all__ = ["LocalEndpoint", "ServerOptions", "local_endpoint", "running_endpoint"]

_POLL_S: Final = 0.05
_LEAVE_TIMEOUT_S: Final = 10.0
_STOP_TIMEOUT_S: Final = 5.0
_LOW_PRIORITY: Final = (
    "{} was started by a program of low priority (nice {}): it may answer slowly until that ends"
)
_FEWER_SLOTS: Final = "{} runs already, for {} requests at a time: others wait"
_SERVER_COMMAND: Final = (sys.executable, "-P", "-m", "dm_jupyter.models.local.server")
"""Command of the server. Without `-P`, a file in the current folder could replace its modules."""


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """The address of the local model, and how to call it."""

    base_url: str
    """Root of the OpenAI-compatible interface, ending in `/v1`."""
    api_key: str = field(repr=False)
    """Key that requests must carry, as a bearer token."""
    model_name: str
    """The model name for requests."""
    context_tokens: int
    """Tokens that one request may use, prompt and answer together."""
    slots: int
    """Requests processed at the same time; further ones wait their turn."""
    key_file: Path
    """A file with the key, readable by this account only, that exists as long as the server."""

    def queue(self) -> RequestQueue:
        """Return the queue in which all users of the server wait."""
        together = all_tokens(self.slots, self.context_tokens)
        return RequestQueue(self.key_file.parent, self.slots, together)

    def is_served(self) -> bool:
        """Return whether the server still runs; one that was started after it is another."""
        return _endpoint_of(ServerFolder(self.key_file.parent)) == self

    def log_tail(self) -> str:
        """Return the last lines of the server's log."""
        return ServerFolder(self.key_file.parent).log_tail()


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server is started; a running server is used as it is."""

    slots: int = SLOTS
    """Requests processed at the same time; with more than the default, each has its own context."""
    port: int = 0
    """Port on 127.0.0.1; 0 lets the system choose a free one."""
    start_timeout_s: float = 300.0
    """Longest wait for a server to answer; loading a gigabyte from a slow disk takes a while."""
    cache_dir: Path | None = None
    """Folder of model files; None means the user's cache."""
    runtime_dir: Path | None = None
    """Folder shared by users and servers; None means the user's runtime folder."""
    command: tuple[str, ...] = _SERVER_COMMAND
    """Command that starts the server process; the folder is added as its last argument."""

    def __post_init__(self) -> None:
        """Validate the numbers.

        Raises:
            ValueError: There is no such port, or no slot.
        """
        if self.slots < 1:
            raise ValueError(f"slots must be 1 or more, not {self.slots}")
        if not 0 <= self.port < 1 << 16:
            raise ValueError(f"port must be between 0 and 65535, not {self.port}")


@asynccontextmanager
async def local_endpoint(
    model: LocalModel | str = DEFAULT_MODEL,
    options: ServerOptions | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> AsyncIterator[LocalEndpoint]:
    """Yield the endpoint of a local model, started if nobody uses it yet.

    Args:
        model: A model, or a name that `resolve` takes.
        options: How to start the server if none runs.
        on_progress: Called about twice a second with the progress while the server starts.

    Raises:
        AdapterError: The adapter's file is not an adapter, or is for another model.
        EngineMissingError: The engine's package is not installed.
        LocalModelError: No private folder could be created for the server.
        ModelMissingError: The model's file is not on this machine.
        ServerStartError: The server did not start; the message ends with its log.
    """
    options = options or ServerOptions()
    model = resolve(model) if isinstance(model, str) else model
    if obstacle := next(obstacles(model, options.cache_dir), None):
        raise obstacle
    folder = ServerFolder.open(model, options.runtime_dir)
    start = _Start(folder, model, options, on_progress or (lambda _: None))
    lease: Lease | None = None
    try:
        async with exclusive(folder.start_lock):
            lease = Lease(folder.leases)
            endpoint = await start.endpoint()
        yield endpoint
    finally:
        if lease is not None:
            await _uncancelled(_leave(folder, lease))


def running_endpoint(
    model: LocalModel | str = DEFAULT_MODEL, runtime_dir: Path | None = None
) -> LocalEndpoint | None:
    """Return the endpoint that runs now, without a lease on it; None if there is none.

    Raises:
        LocalModelError: No private folder could be created for the server.
        ModelMissingError: There is no such model.
    """
    model = resolve(model) if isinstance(model, str) else model
    return _endpoint_of(ServerFolder.open(model, runtime_dir))


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of an endpoint from a folder; the caller holds the folder's `start.lock`."""

    folder: ServerFolder
    model: LocalModel
    options: ServerOptions
    on_progress: Callable[[str], None]

    async def endpoint(self) -> LocalEndpoint:
        """Return the running server's endpoint, or start one and wait for it.

        Raises:
            ServerStartError: The server ended, or did not answer in time.
        """
        process: subprocess.Popen[bytes] | None = None
        began = last_told = time.monotonic()
        while (found := _endpoint_of(self.folder)) is None:
            now = time.monotonic()
            if process is None and not self.folder.is_alive():
                self.on_progress(f"starting {self.model.title}")
                process = self._spawn()
            elif process is not None and process.poll() is not None:
                raise ServerStartError(self._why(process.returncode))
            elif now - began > self.options.start_timeout_s:
                raise ServerStartError(self._why(None))
            elif now - last_told > 0.5:
                last_told = now
                self.on_progress(f"loading {self.model.title}: {now - began:.0f} s")
            await asyncio.sleep(_POLL_S)
        await self._check_answers(found)
        if process is None and found.slots < self.options.slots:
            self.on_progress(_FEWER_SLOTS.format(self.model.title, found.slots))
        self._keep_up()
        return found

    def _keep_up(self) -> None:
        """Raise the server to our own priority if its starter had a lower one."""
        own, pid = os.getpriority(os.PRIO_PROCESS, 0), self.folder.server_pid()
        threads = Path(f"/proc/{pid}/task").glob("*") if pid is not None else ()
        with suppress(ProcessLookupError):
            for thread in (int(path.name) for path in threads):
                nice = os.getpriority(os.PRIO_PROCESS, thread)
                if nice > own:
                    try:
                        os.setpriority(os.PRIO_PROCESS, thread, own)
                    except PermissionError:
                        self.on_progress(_LOW_PRIORITY.format(self.model.title, nice))
                        return

    def _spawn(self) -> subprocess.Popen[bytes]:
        # The state of an earlier server must be gone before this one counts as alive.
        self.folder.forget()
        write_private(self.folder.log_file, "")
        settings = EngineSettings(
            model_file=self._files()[0],
            model_name=self.model.served_name,
            api_key=secrets.token_urlsafe(32),
            context_tokens=self.model.context_tokens,
            slots=self.options.slots,
            port=self.options.port,
            adapter_file="".join(self._files()[1:]),
        )
        with self.folder.log_file.open("ab") as log:
            process = subprocess.Popen(
                [*self.options.command, str(self.folder.path)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder.path,
                # Ctrl-C in our terminal must not end a server that others use.
                start_new_session=True,
            )
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin:
                process.stdin.write(encode_json(settings).encode())
        # The server may outlive our lease, and its exit status must still be collected.
        threading.Thread(target=process.wait, name="reap local model", daemon=True).start()
        return process

    async def _check_answers(self, found: LocalEndpoint) -> None:
        host, port = found.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                _, writer = await asyncio.open_connection(host, int(port))
        except OSError as error:
            raise ServerStartError(
                f"The local model's server (process {self.folder.server_pid()}) runs but does not "
                f"answer at {found.base_url}: {error}. End that process and try again."
            ) from error
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def _why(self, returncode: int | None) -> str:
        what = f"The server of {self.model.title} "
        if returncode is None:
            what += f"did not answer within {self.options.start_timeout_s:.0f} s."
        elif returncode == -signal.SIGKILL:
            what += "was killed while it started: most likely the machine ran out of memory."
        elif returncode < 0:
            what += f"was ended by signal {-returncode} while it started."
        else:
            what += f"could not start (exit code {returncode})."
        files = ", ".join(self._files())
        return f"{what} File: {files}. Its log:\n{self.folder.log_tail() or '(empty)'}"

    def _files(self) -> list[str]:
        """Return the paths of the weights and, if there is one, of the adapter."""
        return [str(model_path(file, self.options.cache_dir)) for file in self.model.files]


def _endpoint_of(folder: ServerFolder) -> LocalEndpoint | None:
    try:
        state = folder.state()
        api_key = folder.key_file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None  # there was none, or it is just ending
    if state is None:
        return None
    return LocalEndpoint(
        base_url=state.base_url,
        api_key=api_key,
        model_name=state.model_name,
        context_tokens=state.context_tokens,
        slots=state.slots,
        key_file=folder.key_file,
    )


async def _leave(folder: ServerFolder, lease: Lease) -> None:
    """Release the lease, and stop the server if it was the last one."""
    lease.release()
    # If others join or leave for that long, the server ends by itself.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEAVE_TIMEOUT_S), exclusive(folder.start_lock):
            if live_leases(folder.leases) == 0:
                await _stop(folder)


async def _stop(folder: ServerFolder) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        pid = folder.server_pid()
        if pid is None:
            break
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while folder.is_alive() and time.monotonic() < deadline:  # noqa: ASYNC110 another process
            await asyncio.sleep(_POLL_S)
    folder.forget()


async def _uncancelled(teardown: Coroutine[None, None, None]) -> None:
    """Finish a teardown even if cancelled meanwhile, then re-raise the cancellation."""
    task = asyncio.create_task(teardown)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
