"""The data of a page: the records of a run, each with its trajectory, and the files beside them.

One of these files contains a person's notes on the attempts, one JSON object a line: `id` and
`trial` name the attempt, `text` is the note, `at` when it was written (UTC, ISO 8601). The file is
replaced atomically: a reader finds the old notes or the new ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.trajectory import Trajectory
from training.durable.json_lines import write_lines
from training.judge.judged import JudgedRecord, read_column
from training.records.records import EvalRecord, RunError, read_object, read_run_lines
from training.report.search import SearchError, StoredSearch, search_from_json

__all__ = [
    "MAX_NOTE_CHARS",
    "Note",
    "NoteConflictError",
    "ReportRun",
    "Tried",
    "keep_note",
    "notes_file",
    "read_notes",
    "read_report_runs",
    "title_of",
]

MAX_NOTE_CHARS = 10_000
MAX_FILE_BYTES = 64 * 2**20
_WRITING = Lock()
"""Lock between threads, from reading the notes to writing them; one process writes at a time."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One record with its stored parts parsed."""

    record: EvalRecord
    trajectory: Trajectory | None
    """Trajectory of the run; `None` for a compact record."""
    search: StoredSearch | None
    """The votes or the tree; `None` for a single run."""
    judged: JudgedRecord | None = None
    """A judge's row on this very answer; `None` if there is none."""
    note: Note | None = None
    """A person's note on the attempt."""


@dataclass(frozen=True, slots=True)
class ReportRun:
    """One run."""

    name: str
    """Name of its folder, made unique among the runs of a page."""
    manifest: Mapping[str, Any]
    """Contents of `run.json`; empty if the run has none."""
    summary: Mapping[str, Any]
    """Summary as the run wrote it; empty if the run did not end."""
    tries: tuple[Tried, ...]

    @property
    def records(self) -> list[EvalRecord]:
        """The records without their parsed parts."""
        return [one.record for one in self.tries]


def read_report_runs(folders: Sequence[Path], *, are_running: bool = False) -> list[ReportRun]:
    """Return the runs in the given order, without changing anything in the folders.

    Args:
        folders: folders of the runs, or files of records, each a run without a manifest.
        are_running: whether the runs may still be writing their last lines, which are then omitted.

    Raises:
        RunError: a file is missing or invalid; the message names it, and the line.
    """
    names = _names([folder.resolve() for folder in folders])
    return [_read(folder, name, are_running) for folder, name in zip(folders, names, strict=True)]


def title_of(runs: Sequence[ReportRun]) -> str:
    """Return the default title of a page."""
    return f"Evaluation: {', '.join(run.name for run in runs)}"


def _read(path: Path, name: str, is_running: bool) -> ReportRun:
    file = path / "records.jsonl" if path.is_dir() else path
    lines = read_run_lines(path, is_running=is_running)
    tries = tuple(_tried(record, f"{file}, line {number}") for number, record in lines.items())
    return ReportRun(
        name=name,
        manifest=read_object(path / "run.json") if path.is_dir() else {},
        summary=read_object(file.parent / "summary.json"),
        tries=_noted(_judged(tries, file.parent), notes_file(path)),
    )


def _noted(tries: Sequence[Tried], file: Path) -> tuple[Tried, ...]:
    try:
        notes = read_notes(file)
    except (OSError, ValueError) as error:
        raise RunError(str(error)) from error
    return tuple(replace(one, note=notes.get(one.record.key)) for one in tries)


def _judged(tries: Sequence[Tried], folder: Path) -> tuple[Tried, ...]:
    """Return the attempts with a judge's rows; a row about another answer is ignored."""
    try:
        rows = read_column(folder)
    except (OSError, ValueError) as error:
        raise RunError(str(error)) from error
    beside = ((one, rows.get(one.record.key)) for one in tries)
    return tuple(
        replace(one, judged=row) if row is not None and row.answer == one.record.answer else one
        for one, row in beside
    )


def _tried(record: EvalRecord, place: str) -> Tried:
    try:
        trajectory = Trajectory.from_json(record.trajectory) if record.trajectory else None
        search = search_from_json(record.search) if record.search else None
    except TrajectoryError as error:
        raise RunError(f"{place}, field 'trajectory': {error}") from error
    except SearchError as error:
        raise RunError(f"{place}, field 'search': {error}") from error
    return Tried(record, trajectory, search)


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the names of the folders; equal ones get their parents' names, then numbers."""
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}/{path.name}" for path in paths]
    counts = {name: names.count(name) for name in names}
    return [
        f"{name} ({names[:place].count(name) + 1})" if counts[name] > 1 else name
        for place, name in enumerate(names)
    ]


class NoteConflictError(ValueError):
    """The stored note is not the one to be replaced; the message is the text of the stored one."""


@dataclass(frozen=True, slots=True)
class Note:
    """A person's note on one attempt."""

    id: str
    trial: int
    text: str
    at: str

    @property
    def key(self) -> tuple[str, int]:
        """Id and number of the attempt."""
        return self.id, self.trial


def notes_file(run: Path) -> Path:
    """Return the path of a run's notes; beside a file of records it is named after that file."""
    return run / "notes.jsonl" if run.is_dir() else run.with_suffix(".notes.jsonl")


def read_notes(file: Path) -> dict[tuple[str, int], Note]:
    """Return the notes by attempt; none if there is no such file.

    Raises:
        OSError: the file can't be read.
        ValueError: the file is too large, or a line is not a note; the message names it.
    """
    if not file.exists():
        return {}
    if file.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(
            f"{file} is larger than {MAX_FILE_BYTES >> 20} MiB, so it is not a file of notes"
        )
    notes = {}
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if line.strip():
            note = _note(line, f"{file}, line {number}")
            notes[note.key] = note
    return notes


def keep_note(file: Path, key: tuple[str, int], text: str, was: str) -> Note | None:
    """Write the note on an attempt, or delete it if the text is blank; return the stored note.

    Args:
        file: the file of the notes.
        key: the id and number of the attempt.
        text: the new note.
        was: the text to replace; empty if there was none.

    Raises:
        NoteConflictError: the stored text is another one, which the caller has not seen.
        OSError: the file can't be read or written; an existing one is unchanged.
        ValueError: the note is too long, or the file contains something else.
    """
    if len(text) > MAX_NOTE_CHARS:
        raise ValueError(f"a note has at most {MAX_NOTE_CHARS:,} characters")
    with _WRITING:
        notes = read_notes(file)
        found = notes.get(key)
        if (found.text if found else "") != was:
            raise NoteConflictError(found.text if found else "")
        if text == was:
            return found
        notes.pop(key, None)
        kept = None
        if text.strip():
            kept = Note(*key, text, datetime.now(UTC).isoformat(timespec="seconds"))
            notes[key] = kept
        write_lines([asdict(note) for note in notes.values()], file)
    return kept


def _note(line: bytes, place: str) -> Note:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: no note ({error})") from error
    match found:
        case {"id": str(name), "trial": int(trial), "text": str(text), "at": str(at)}:
            return Note(name, trial, text, at)
    raise ValueError(f"{place}: no note (expected id, trial, text and at)")
