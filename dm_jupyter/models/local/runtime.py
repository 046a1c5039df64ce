"""The private folder shared by one server and its users.

*Covered*: other accounts of the machine can't read the key or swap the files. The folder is 0700
and belongs to us, files are 0600, and nobody else owns the parent. *Not covered*: other programs of
the same account. Code that runs untrusted code must deny it this folder, as `kernel_sandbox` does.

It contains locks and leases, so the users of one server coordinate without a daemon. Everything is
an `flock`, because the kernel frees it when its holder dies, however that happens.

- `start.lock` is held while a user joins or leaves, or while the server decides to end. Leases are
  only taken and counted under it, so no server ends between another client's check and its lease.
- `alive.lock` is held by the server for its entire life and contains its process id.
- `leases/<pid>-<random>` is held by one user each, for as long as it uses the server.

A lock belongs to an open file, which a `fork` without `exec` shares. A forked child of a user keeps
that user's lease alive until both have ended or the user has released it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import secrets
import socket
import stat
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import platformdirs

from dm_jupyter.core.codec import decode_json, encode_json
from dm_jupyter.models.local.catalogue import LocalModel
from dm_jupyter.models.local.errors import LocalModelError

__all__ = [
    "Lease",
    "ServerFolder",
    "ServerState",
    "exclusive",
    "is_locked",
    "live_leases",
    "try_lock",
    "write_private",
]

_PRIVATE: Final = 0o700
_LOG_TAIL_LINES: Final = 15
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state that a running server publishes once it answers."""

    base_url: str
    """Root of the OpenAI-compatible interface, ending in `/v1`."""
    model_name: str
    """The model name for requests."""
    context_tokens: int
    """Tokens of one request, prompt and answer together; concurrent requests share them."""
    slots: int
    """Requests processed at the same time; further ones wait their turn."""


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """The files of one model's server."""

    path: Path
    """The folder, private to this account."""

    @classmethod
    def open(cls, model: LocalModel, runtime_dir: Path | None = None) -> ServerFolder:
        """Return the model's folder, created if needed; another adapter has another folder.

        Raises:
            LocalModelError: No folder of this machine is private enough.
        """
        name = re.sub(r"[^A-Za-z0-9._-]", "_", model.served_name)
        folder = cls(_private_root(runtime_dir) / name)
        folder.path.mkdir(mode=_PRIVATE, exist_ok=True)
        folder.leases.mkdir(mode=_PRIVATE, exist_ok=True)
        return folder

    @property
    def start_lock(self) -> Path:
        """Lock held by a user that joins or leaves, or by a server that ends."""
        return self.path / "start.lock"

    @property
    def alive_lock(self) -> Path:
        """Lock held by the server for its entire life; its text is the server's process id."""
        return self.path / "alive.lock"

    @property
    def leases(self) -> Path:
        """Folder with one locked file per user."""
        return self.path / "leases"

    @property
    def key_file(self) -> Path:
        """File with the key that every request must carry."""
        return self.path / "api-key"

    @property
    def state_file(self) -> Path:
        """File with the server's `ServerState`, valid only while the server is alive."""
        return self.path / "server.json"

    @property
    def log_file(self) -> Path:
        """Output of the server since it was last started."""
        return self.path / "server.log"

    def is_alive(self) -> bool:
        """Return whether a server process exists, ready or not."""
        return is_locked(self.alive_lock)

    def server_pid(self) -> int | None:
        """Return the process id of a living server, or None."""
        if not self.is_alive():
            return None
        text = self.alive_lock.read_text(encoding="utf-8")
        return int(text) if text.isdigit() else None

    def state(self) -> ServerState | None:
        """Return the state that the server published; None if it is starting or gone."""
        try:
            text = self.state_file.read_bytes()
        except FileNotFoundError:
            return None
        if not self.is_alive():
            return None
        return decode_json(ServerState, text, str(self.state_file))

    def publish(self, state: ServerState, api_key: str) -> None:
        """Publish a server: first its key, then everything else atomically."""
        write_private(self.key_file, api_key)
        fresh = self.path / "server.json.new"
        write_private(fresh, encode_json(state))
        fresh.replace(self.state_file)

    def forget(self) -> None:
        """Remove a server's published state, so that nobody finds it."""
        self.state_file.unlink(missing_ok=True)
        self.key_file.unlink(missing_ok=True)

    def log_tail(self) -> str:
        """Return the last lines of the server's log."""
        try:
            text = self.log_file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.strip().splitlines()[-_LOG_TAIL_LINES:])


def write_private(path: Path, text: str) -> None:
    """Write a file that only this account can read, from its first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)


def _private_root(runtime_dir: Path | None) -> Path:
    if runtime_dir is not None:
        candidates = [runtime_dir]
    else:
        # The host's name, since machines without a common loopback may share a home folder.
        cache = platformdirs.user_cache_path("dm-jupyter") / f"run-{socket.gethostname()}"
        with warnings.catch_warnings():
            # Without XDG_RUNTIME_DIR it warns and returns a folder in /tmp, which is checked below.
            warnings.simplefilter("ignore")
            candidates = [platformdirs.user_runtime_path("dm-jupyter"), cache]
    reasons = []
    for path in candidates:
        reason = _why_not_private(path)
        if reason is None:
            return path
        reasons.append(reason)
    raise LocalModelError(
        f"No private folder for the local model's server: {'; '.join(reasons)}. "
        "Set XDG_RUNTIME_DIR to a folder that belongs to you alone."
    )


def _why_not_private(path: Path) -> str | None:
    """Create the folder, and return why it can't be used, or None if it can."""
    try:
        path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        here, above = path.lstat(), path.parent.stat()
        if not stat.S_ISDIR(here.st_mode) or here.st_uid != os.geteuid():
            return f"{path} belongs to another account"
        # The owner of the parent folder could replace our folder with another.
        if above.st_uid not in {os.geteuid(), 0}:
            return f"{path.parent} belongs to another account"
        path.chmod(_PRIVATE)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None


def try_lock(path: Path) -> IO[str] | None:
    """Take the lock of `path` without waiting.

    Returns:
        The open file that holds the lock until it is closed, or None if another process holds it.
    """
    handle = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of `path`.

    The check takes a shared lock for a moment, so two checks don't take each other for the holder.
    """
    with path.open("a+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@asynccontextmanager
async def exclusive(path: Path) -> AsyncIterator[None]:
    """Hold the lock of `path`, waiting for it without blocking the event loop."""
    while (handle := try_lock(path)) is None:  # noqa: ASYNC110 another process holds it
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        handle.close()


class Lease:
    """One user's claim on the server; while one is held, the server keeps running."""

    def __init__(self, folder: Path) -> None:
        """Take a lease; the caller holds `start.lock`."""
        self.path = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._handle = self.path.open("w", encoding="utf-8")
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def release(self) -> None:
        """Release the lease; a second call has no effect."""
        if self._handle.closed:
            return
        # Unlocked explicitly, not only closed: a forked child may still hold the same open file.
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._handle.close()
        self.path.unlink(missing_ok=True)


def live_leases(folder: Path) -> int:
    """Count the leases with a live holder, remove the others; the caller holds `start.lock`."""
    count = 0
    for path in folder.iterdir():
        handle = try_lock(path)
        if handle is None:
            count += 1
        else:
            path.unlink(missing_ok=True)
            handle.close()
    return count
