"""A file of records that is only appended to, so that killing its writer loses nothing.

One JSON value a line, on the disk before `append` returns. A last line that broke off is cut. Any
other damage is named, and can be set aside: the good lines stay, the others move to a file beside.
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
"""What decoding raises where a line holds no record."""


class LogError(ValueError):
    """A line is no record; the message names the file, the line and the way out."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was found in a file of records."""

    kept: int
    """Records."""
    damaged: int
    """Lines that were set aside."""


class DurableLog(Generic[Key, Record]):
    """A file of records. One process writes it at a time; see `folder_lock`."""

    def __init__(
        self,
        path: Path,
        encode: Callable[[Record], str],
        decode: Callable[[bytes], Record],
        key: Callable[[Record], Key],
        way_out: str = "",
    ) -> None:
        """Touches nothing yet.

        Args:
            path: the file; the first append makes it, in a folder that exists.
            encode: returns a record as JSON, on one line.
            decode: the inverse; it raises `ValueError` or `TypeError` for another line.
            key: what tells a record from all others.
            way_out: ends the message about damage: what a person can do.
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
        """Where `salvage` moves damaged lines: `NAME.damaged.jsonl` beside `NAME.jsonl`."""
        return self._path.with_name(f"{self._path.stem}.damaged{self._path.suffix}")

    def read(self) -> list[Record]:
        """Returns the records so far; a last line that broke off is cut from the file.

        Raises:
            LogError: a line other than the last is no record.
            OSError: the file can't be read.
        """
        self.cut()
        return self.peek()

    def peek(self) -> list[Record]:
        """Returns the records so far and changes nothing: somebody may be writing the last one.

        Raises:
            LogError: a line other than the last is no record.
            OSError: the file can't be read.
        """
        return list(self.each())

    def each(self, decode: Callable[[bytes], Record] | None = None) -> Iterator[Record]:
        """Yields each record and changes nothing; memory holds one at a time.

        Args:
            decode: in place of the log's own, such as one that reads a part of each record.

        Raises:
            LogError: a line other than the last is no record.
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
        """Returns where the last record of each key begins, for `at`; a broken last line is cut.

        Raises:
            LogError: a line other than the last is no record.
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
        """Returns the record that begins at an offset, as `index` or `append` returned it.

        Raises:
            LogError: there is none.
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
        """Returns the last record of each key; a last line that broke off is cut from the file.

        Raises:
            LogError: a line other than the last is no record.
            OSError: the file can't be read.
        """
        return {self._key(record): record for record in self.read()}

    def append(self, record: Record) -> int:
        """Writes one record and makes sure that it is on the disk; any thread may call it.

        Returns:
            Where it begins in the file, bytes; for `at`.

        Raises:
            OSError: it can't be written; what had been written of it is taken back.
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
        """Moves the lines that are no whole records to `damaged_path`.

        Also moved is the second record of a key. The moved bytes are as they were, one line each
        after those of an earlier call. They are on the disk before the records are written again,
        so that stopping this at any time loses nothing. Without a file, or without damage, nothing
        is written.

        Args:
            decode: stricter than the log's own; gets a line without its end.

        Raises:
            OSError: a file can't be read or written; the records are then as they were.
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
        """Cuts a last line that broke off: the next record would be written behind it.

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
    """Returns the offset behind the last end of a line; 0 without one."""
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
