"""Profiles of data files, created in a worker with limited time and memory.

The sender of a file controls what a parser meets: a table of thirty thousand columns, an archive
that unpacks to the size of the disk, or input that exploits a library's bug. So the calling process
reads no file itself. A worker, confined as cells are, reads it and prints plain JSON.

Covered: time, memory, crashes and what a parser can be made to do; a file replaced by a link. Not
covered: what the profile says of a file that lies about itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import (
    FileProfile,
    check_file,
    profile_file,
    profile_from_json,
    profile_to_json,
)
from dm_jupyter.data.profile.signatures import PROMISED
from dm_jupyter.data.profile.source import Effort
from kernel_sandbox.aio import AsyncResource
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import MIB, CellResult, CellStatus, Limits

__all__ = ["READING", "ProfileReader", "print_profile_json", "reading_for"]

READING = Limits(
    memory_bytes=2048 * MIB,
    cpu_s=60,
    wall_s=20.0,
    processes=48,
    file_bytes=200 * MIB,
    disk_bytes=256 * MIB,
    output_bytes=8 * MIB,
)
"""Limits for reading one file; archive members are unpacked to the worker's own disk."""
_REST_S, _PASS_SHARE = 7.0, 0.65
"""Seconds reserved for all but the passes over a large file, and the least share of the passes."""
_PROGRESS = "progress"
"""File in the worker's folder with the progress of a pass."""
_TELL_EVERY_S = 0.5
_IDLE_S = 300.0
_AT_ONCE = 2
_REMEMBERED = 32
_FAULT_CHARS = 1000
_PIECE_CHARS = 1024 * 1024
_READERS = (
    "archive",
    "csv_file",
    "duckdb_file",
    "html_file",
    "json_file",
    "parquet_file",
    "sqlite_file",
    "statistics_files",
    "workbook",
    "xml_file",
)
_MODULES = ("pandas", __name__, *(f"dm_jupyter.data.profile.{name}" for name in _READERS))
_BESIDE = ("-wal", "-shm", "-journal", ".wal")
"""Suffixes of files beside a database that reading it requires."""

_Key = tuple[str, Path, int, int, int]


def reading_for(seconds: float) -> Limits:
    """Return the limits for reading a file for at most `seconds`."""
    return replace(READING, wall_s=seconds, cpu_s=max(READING.cpu_s, math.ceil(3 * seconds)))


def print_profile_json(path: str, name: str, seconds: float = READING.wall_s) -> None:
    """Print one line of JSON, in a worker: the profile, or what is wrong with the file.

    Progress of a pass over a large file goes to a file in the working directory.

    Args:
        path: the file, as this process reaches it.
        name: the file's name in generated code.
        seconds: limit for the entire reading.
    """
    effort = Effort(max(_PASS_SHARE * seconds, seconds - _REST_S), _Told())
    try:
        profile = profile_file(Path(path), name=name, effort=effort)
        said: dict[str, object] = {"profile": profile_to_json(profile)}
    except DataFileError as error:
        said = {"fault": str(error)}
    text = json.dumps(said, default=str)
    for at in range(0, len(text), _PIECE_CHARS):  # a message of a worker may not be longer
        sys.stdout.write(text[at : at + _PIECE_CHARS])
        sys.stdout.flush()


class _Told:
    """Progress writer of a pass, twice a second at most."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, share: float) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _TELL_EVERY_S
        with contextlib.suppress(OSError):
            Path(_PROGRESS).write_text(f"{share:.3f}", "ascii")


class ProfileReader(AsyncResource):
    """Reader of data files in workers; an async context manager.

    The process that forks the workers starts with the first file. It ends when no file was read for
    five minutes. Enter the context in the thread that lives longest.
    """

    def __init__(self, limits: Limits = READING, idle_s: float = _IDLE_S) -> None:
        """Initialize the reader without starting a process.

        Args:
            limits: limits for reading one file.
            idle_s: seconds without a file after which the process ends.
        """
        self._limits = limits
        self._idle_s = idle_s
        self._zygote: Zygote | None = None
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._at_work = 0
        self._ending: asyncio.Task[None] | None = None
        self._known: OrderedDict[_Key, FileProfile] = OrderedDict()

    async def profile(
        self,
        path: Path,
        name: str | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> FileProfile:
        """Return the profile of a file; an unchanged file is not read again.

        A file that can't be read within the limits gets a profile without tables and with a
        warning.

        Args:
            path: absolute path of the file, without links.
            name: the file's name in generated code; `None` for its own name.
            on_progress: called with the share of a large file that was read, 0 to 1.

        Raises:
            DataFileError: it is not a data file, or has become a link; the message says what to do.
            SandboxError: no worker can be started.
        """
        shown = path.name if name is None else name
        check_file(path, shown)
        key = _key(shown, path)
        if key is not None and key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        async with self._turns, self._worked():
            result = await self._read(path, shown, on_progress)
        profile = await asyncio.to_thread(_said, result, path, shown, self._limits)
        if key is not None:
            self._known[key] = profile
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return profile

    async def _read(
        self, path: Path, name: str, on_progress: Callable[[float], None] | None
    ) -> CellResult:
        beside = (path.with_name(path.name + end) for end in _BESIDE)
        inputs = {str(file): file for file in (path, *beside) if file.is_file()}
        async with CellWorker(
            await self._warm(), self._limits, inputs, screened=False, keeps_ledger=False
        ) as worker:
            if any(str(real) != given for given, real in worker.workspace.inputs.items()):
                raise DataFileError(f"{name}: it was replaced by a link. Name the file itself.")
            words = f"{str(path)!a}, {name!a}, {self._limits.wall_s!r}"
            source = f"from {__name__} import print_profile_json\nprint_profile_json({words})"
            if on_progress is None:
                return await worker.run(source)
            watching = asyncio.create_task(_watch(worker.workspace.path / _PROGRESS, on_progress))
            try:
                return await worker.run(source)
            finally:
                watching.cancel()

    async def _warm(self) -> Zygote:
        if self._zygote is None:
            self._zygote = Zygote(_MODULES)
        return await self._zygote.__aenter__()

    @contextlib.asynccontextmanager
    async def _worked(self) -> AsyncIterator[None]:
        """Keep the zygote alive while a file is read, and for a while after."""
        self._at_work += 1
        if self._ending is not None:
            self._ending.cancel()
        try:
            yield
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._ending = asyncio.create_task(self._end_idle())

    async def _end_idle(self) -> None:
        await asyncio.sleep(self._idle_s)
        await self._end()

    async def _end(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            await zygote.close()

    async def close(self) -> None:
        """End the process that forks the workers. Safe to call again."""
        if self._ending is not None:
            self._ending.cancel()
        await self._end()


async def _watch(path: Path, on_progress: Callable[[float], None]) -> None:
    """Forward the worker's progress to the callback, without end."""
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        # The worker reads untrusted files: its output is only a hint, and must not be a link.
        with contextlib.suppress(OSError, ValueError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                share = float(os.read(descriptor, 16))
            finally:
                os.close(descriptor)
            if 0 <= share <= 1:
                on_progress(share)


def _key(name: str, path: Path) -> _Key | None:
    """Return the cache key of a file; `None` if it may change and look the same."""
    if any(path.with_name(path.name + end).exists() for end in _BESIDE):
        return None
    state = path.stat()
    return name, path, state.st_ino, state.st_mtime_ns, state.st_size


def _said(result: CellResult, path: Path, name: str, limits: Limits) -> FileProfile:
    """Return the profile that a worker printed, or a short one if it could not read the file.

    Raises:
        DataFileError: it is not a data file.
    """
    if result.status is CellStatus.TIMEOUT:
        return _unread(path, name, f"reading it took more than {limits.wall_s:.0f} s")
    if result.status is CellStatus.MEMORY:
        return _unread(path, name, f"reading it took more than {limits.memory_bytes // MIB} MiB")
    if result.cut_bytes:
        most = limits.output_bytes // 1024
        return _unread(path, name, f"its profile is larger than {most} KiB")
    try:
        said = json.loads(result.stdout)
        if "fault" in said:
            raise DataFileError(str(said["fault"])[:_FAULT_CHARS])
        return profile_from_json(said["profile"])
    except (ValueError, TypeError, KeyError, RecursionError):
        error = result.error
        return _unread(path, name, f"reading it failed ({error.name if error else result.status})")


def _unread(path: Path, name: str, why: str) -> FileProfile:
    suffix = path.suffix.lower()
    kind = PROMISED.get(suffix, suffix.removeprefix(".") or "file")
    told = f"it was not looked into: {why}. Read a part of it first (nrows, usecols, LIMIT)."
    return FileProfile(name, kind, path.stat().st_size, warnings=(told,))
