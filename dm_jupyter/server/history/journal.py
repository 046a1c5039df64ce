"""The journal of one run, with each message on disk at once; and the undoing of a run.

Each run has a folder, named by the run's id:

    journal.jsonl     the messages in order; between them `{"in_file": N}`, which says that the
                      notebook's file contains the operations up to `seq` N
    summary.json      the run's entry in a list
    trajectory.json   the run as a trajectory, once it has ended
    lock              locked by the server that writes the journal, while the run is active
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from dm_jupyter.core.codec import decode_json, encode_json, encode_value
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.models.local.runtime import try_lock
from dm_jupyter.server.protocol import (
    CellClosed,
    CellOpened,
    Operated,
    RunClosed,
    RunMessage,
    RunUndone,
)
from dm_jupyter.server.protocol.operations import (
    ClearOutputs,
    DeleteCell,
    InsertCell,
    Operation,
    SetSource,
)

__all__ = ["Journal", "undo"]

FILE_NAME = "journal.jsonl"
LOCK_NAME = "lock"
_CLOSED = RunClosed.__struct_config__.tag


class _Line(msgspec.Struct):
    """The fields that identify a line; its other fields are not decoded."""

    kind: str = ""
    seq: int = 0
    in_file: int = 0


class Journal:
    """An append-only file of a run's messages, with one writer."""

    def __init__(self, folder: Path) -> None:
        """Open a journal, which may be new; its last line may be torn.

        Args:
            folder: the folder of the run, which exists.
        """
        self.folder = folder
        self.last = 0
        """The `seq` of the last message."""
        self.in_file = 0
        """The `seq` up to which the notebook's file contains the operations."""
        self.is_closed = False
        """Whether the run has ended."""
        self._listeners: list[Callable[[RunMessage], None]] = []
        self._is_torn = False
        self._lock: IO[str] | None = None
        self._count()

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.folder.name

    def catch_up(self) -> None:
        """Call the listeners with the messages that another server has added.

        Raises:
            ValueError: the journal is damaged.
        """
        known = self.last
        self._count()
        for message in self.messages(after=known):
            for listener in self._listeners:
                listener(message)

    def _count(self) -> None:
        for _, _, line in self._lines():
            self.in_file = line.in_file or self.in_file
            self.last = line.seq or self.last
            self.is_closed = self.is_closed or line.kind == _CLOSED

    def hold(self) -> bool:
        """Become the only writer until `release`; return false if another server or run is.

        The kernel frees the lock if this process dies. On a disk without locks, nobody holds one.
        """
        if self._lock is not None:
            return True
        try:
            self._lock = try_lock(self.folder / LOCK_NAME)
        except OSError:
            return True
        return self._lock is not None

    def release(self) -> None:
        """Let others write the journal; a second call has no effect."""
        if self._lock is not None:
            # Not only closed: a forked child may still hold the same open file.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._lock.close()
            self._lock = None

    def listen(self, listener: Callable[[RunMessage], None]) -> None:
        """Call the listener with each message, after it is on disk."""
        self._listeners.append(listener)

    def add(self, kind: type[RunMessage], **values: Any) -> RunMessage:
        """Create the next message, write it, call the listeners, and return it.

        Args:
            kind: the type of the message.
            **values: its fields except `run_id`, `seq` and `at`.

        Raises:
            NotebookError: it can't be written; the listeners have been called all the same.
        """
        if "at" in kind.__struct_fields__:
            values["at"] = time.time()
        message = kind(run_id=self.run_id, seq=self.last + 1, **values)
        self.last += 1
        self.is_closed = self.is_closed or isinstance(message, RunClosed)
        try:
            self._append(encode_json(message))
        finally:
            for listener in self._listeners:
                listener(message)
        return message

    def operate(self, operation: Operation) -> None:
        """Add an operation on the notebook.

        Raises:
            NotebookError: it can't be written.
        """
        self.add(Operated, operation=operation)

    def mark_in_file(self, seq: int) -> None:
        """Record that the notebook's file contains the operations up to `seq`."""
        if self.in_file < seq <= self.last:
            self.in_file = seq
            self._append(encode_json({"in_file": seq}))

    def messages(self, after: int = 0) -> Iterator[RunMessage]:
        """Yield the messages after a `seq`, as they are on disk.

        Raises:
            ValueError: a line is not a message; the text says which, and what is wrong with it.
        """
        file = str(self.folder / FILE_NAME)
        for number, text, line in self._lines():
            if line.seq > after:
                message: RunMessage = decode_json(RunMessage, text, f"{file}, line {number}")
                yield message

    def to_json(self) -> list[dict[str, Any]]:
        """Return all messages as they are sent."""
        return [encode_value(message) for message in self.messages()]

    def applied_for_sure(self) -> int:
        """Return the `seq` up to which a document read from the file needs no operation.

        If a cell was running when the file was saved, its outputs in the file are not known to the
        byte. They are written again, from the `ClearOutputs` with which each cell begins.
        """
        seq, begun, is_open = self.in_file, 0, False
        for message in self.messages():
            if message.seq > self.in_file:
                break
            if isinstance(message, CellOpened):
                begun, is_open = 0, True
            elif isinstance(message, CellClosed):
                is_open = False
            elif isinstance(message, Operated) and isinstance(message.operation, ClearOutputs):
                begun = message.seq
        return begun - 1 if is_open and begun else seq

    def _append(self, line: str) -> None:
        try:
            with (self.folder / FILE_NAME).open("a", encoding="utf-8") as file:
                file.write(f"\n{line}\n" if self._is_torn else f"{line}\n")
            self._is_torn = False
        except OSError as error:
            self._is_torn = True
            raise NotebookError(
                f"the run can't be kept in {self.folder}: {error.strerror}; free some space"
            ) from error

    def _lines(self) -> Iterator[tuple[int, bytes, _Line]]:
        try:
            file = (self.folder / FILE_NAME).open("rb")
        except FileNotFoundError:
            return
        with file:
            for number, text in enumerate(file, 1):
                self._is_torn = not text.endswith(b"\n")  # by a crash, or a full disk
                try:
                    line = decode_json(_Line, text, FILE_NAME)
                except ValueError:
                    continue
                yield number, text, line


def undo(journal: Journal) -> None:
    """Remove the cells of an ended run from the notebook, except those that the person changed.

    Raises:
        NotebookError: another server writes the journal, or it can't be written.
        ValueError: the journal is damaged.
    """
    if not journal.hold():
        raise NotebookError(
            "another JupyterLab server works on this run: stop it there, or wait until it has ended"
        )
    try:
        journal.catch_up()
        for cell_id, source in reversed(_sources(journal).items()):
            journal.operate(DeleteCell(cell_id, if_source=source))
        journal.add(RunUndone)
    finally:
        journal.release()


def _sources(journal: Journal) -> dict[str, str]:
    """Return the source of each cell of a run, as the run has written it last."""
    sources: dict[str, str] = {}
    for message in journal.messages():
        if not isinstance(message, Operated):
            continue
        match message.operation:
            case InsertCell(cell_id=cell_id, source=source):
                sources[cell_id] = source
            case SetSource(cell_id=cell_id, source=source):
                sources[cell_id] = source
            case DeleteCell(cell_id=cell_id):
                sources.pop(cell_id, None)
            case _:
                pass
    return sources
