"""Append-only file of records, so that killing its writer loses nothing.

It has one JSON value per line, flushed to disk before `append` returns. An incomplete last line is
removed. Any other damage is an error, and `salvage` can set it aside: intact lines stay, the others
move to a second file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from training.durable.atomic import write_whole

__all__ = ["DurableLog", "LogError", "Salvaged"]

Record = TypeVar("Record")
Key = TypeVar("Key", bound=Hashable)
_NO_RECORD = (TypeError, ValueError, KeyError, AttributeError, RecursionError)
"""Errors of decoding a line that is not a record."""


class LogError(ValueError):
    """A line is not a record; the message names the file, the line and the way out."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Result of salvaging a file of records."""

    kept: int
    """Records that stay."""
    damaged: int
    """Lines that were set aside."""


class DurableLog(Generic[Key, Record]):
    """File of records; only one process at a time may write it, see `folder_lock`."""

    def __init__(
        self,
        path: Path,
        encode: Callable[[Record], str],
        decode: Callable[[bytes], Record],
        key: Callable[[Record], Key],
        way_out: str = "",
    ) -> None:
        """Create the log without file access.

        Args:
            path: the file; the first append creates it, in a folder that exists.
            encode: returns a record as JSON, on one line.
            decode: the inverse. For any other line, it raises `ValueError`, `TypeError`,
                `KeyError`, `AttributeError` or `RecursionError`.
            key: returns a record's unique key.
            way_out: ends the message about damage: what the user can do.
        """
        self._path = path
        self._encode = encode
        self._decode = decode
        self._key = key
        self._way_out = way_out
        self._writing = threading.Lock()
        self._is_cut = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def damaged_path(self) -> Path:
        """File for the damaged lines of `salvage`: `NAME.damaged.jsonl` next to `NAME.jsonl`."""
        return self._path.with_name(f"{self._path.stem}.damaged{self._path.suffix}")

    def read(self) -> list[Record]:
        """Return the records so far; an incomplete last line is removed from the file.

        Raises:
            LogError: a line other than the last is not a record.
            OSError: the file can't be read.
        """
        self.cut()
        return self.peek()

    def peek(self) -> list[Record]:
        """Return the records so far without changes, since the last may still be in writing.

        Raises:
            LogError: a line other than the last is not a record.
            OSError: the file can't be read.
        """
        return list(self.each())

    def each(self, decode: Callable[[bytes], Record] | None = None) -> Iterator[Record]:
        """Yield each record without changing the file; only one at a time is in memory.

        Args:
            decode: replaces the log's own, such as one that reads a part of each record.

        Raises:
            LogError: a line other than the last is not a record.
            OSError: the file can't be read.
        """
        decode = decode or self._decode
        if not self._path.exists():
            return
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    record = decode(line[:-1])
                except _NO_RECORD as error:
                    what = f"{self._path}, line {number}: no record ({error})."
                    raise LogError(f"{what} {self._way_out}".rstrip()) from error
                yield record

    def index(self) -> dict[Key, int]:
        """Return the offset of each key's last record, for `at`; remove an incomplete last line.

        Raises:
            LogError: a line other than the last is not a record.
            OSError: the file can't be read.
        """
        self.cut()
        found: dict[Key, int] = {}
        start = end = 0

        def decode(line: bytes) -> Record:
            nonlocal start, end
            start, end = end, end + len(line) + 1
            return self._decode(line)

        for record in self.each(decode):
            found[self._key(record)] = start
        return found

    def at(self, offset: int) -> Record:
        """Return the record at an offset that `index` or `append` returned.

        Raises:
            LogError: there is no record.
            OSError: the file can't be read.
        """
        with self._path.open("rb") as file:
            file.seek(offset)
            line = file.readline()
        try:
            return self._decode(line)
        except _NO_RECORD as error:
            what = f"{self._path}, byte {offset}: no record ({error})."
            raise LogError(f"{what} {self._way_out}".rstrip()) from error

    def by_key(self) -> dict[Key, Record]:
        """Return the last record of each key; an incomplete last line is removed from the file.

        Raises:
            LogError: a line other than the last is not a record.
            OSError: the file can't be read.
        """
        return {self._key(record): record for record in self.read()}

    def append(self, record: Record) -> int:
        """Append one record and flush it to disk; any thread may call it.

        Returns:
            Its offset in the file, in bytes; for `at`.

        Raises:
            OSError: it can't be written; a partial write is undone.
        """
        line = self._encode(record).encode("utf-8", "replace") + b"\n"
        if not self._is_cut:
            self.cut()
        with self._writing, self._path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                _write_all(file.fileno(), line)
                os.fsync(file.fileno())
            except BaseException:
                os.ftruncate(file.fileno(), before)
                raise
        return before

    def salvage(self, decode: Callable[[bytes], Record] | None = None) -> Salvaged:
        """Move the lines that are not complete records to `damaged_path`.

        A repeated record of a key moves as well. The moved bytes are unchanged, one line each,
        after those of an earlier call. They are on disk before the records are rewritten, so an
        interruption at any time loses nothing. Without a file, or without damage, nothing is
        written.

        Args:
            decode: stricter than the log's own; receives a line without its line end.

        Raises:
            OSError: a file can't be read or written; the records are then unchanged.
        """
        if not self._path.exists():
            return Salvaged(0, 0)
        kept, damaged = self._sorted(self._path.read_bytes(), decode or self._decode)
        if damaged:
            with self.damaged_path.open("ab") as aside:
                aside.writelines(line + b"\n" for line in damaged)
                aside.flush()
                os.fsync(aside.fileno())
            write_whole(b"".join(line + b"\n" for line in kept), self._path)
        return Salvaged(len(kept), len(damaged))

    def _sorted(
        self, raw: bytes, decode: Callable[[bytes], Record]
    ) -> tuple[list[bytes], list[bytes]]:
        kept: list[bytes] = []
        damaged: list[bytes] = []
        seen: set[Key] = set()
        for line in raw.split(b"\n"):
            if not line.strip():
                continue
            try:
                key = self._key(decode(line))
            except _NO_RECORD:
                damaged.append(line)
                continue
            (damaged if key in seen else kept).append(line)
            seen.add(key)
        return kept, damaged

    def cut(self) -> None:
        """Remove an incomplete last line, to which the next record would be appended.

        Raises:
            OSError: the file can't be read or written.
        """
        self._is_cut = True
        if not self._path.exists():
            return
        with self._writing, self._path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            whole = _end_of_last_line(file.fileno(), size)
            if whole < size:
                file.truncate(whole)


_BLOCK_BYTES = 1 << 16


def _end_of_last_line(descriptor: int, size: int) -> int:
    """Return the offset after the last line end; 0 without one."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK_BYTES)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
