"""A person's notes on the tries of a run, kept beside its records.

One JSON object a line: `id` and `trial` name the try, `text` is the note, `at` when it was written
(UTC, ISO 8601). The file is written whole each time: a reader finds the old notes or the new ones.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from training.atomic import write_lines

__all__ = ["MAX_NOTE_CHARS", "Note", "NoteConflictError", "keep_note", "notes_file", "read_notes"]

MAX_NOTE_CHARS = 10_000
MAX_FILE_BYTES = 64 * 2**20

_WRITING = Lock()
"""Held from reading the notes to writing them: one process writes at a time, whoever asks."""


class NoteConflictError(ValueError):
    """The note is another than the one that was to be changed; the message is its text."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a person wrote on one try."""

    id: str
    trial: int
    text: str
    at: str

    @property
    def key(self) -> tuple[str, int]:
        """The try."""
        return self.id, self.trial


def notes_file(run: Path) -> Path:
    """Returns the file of a run's notes; beside a file of records it is named after that."""
    return run / "notes.jsonl" if run.is_dir() else run.with_suffix(".notes.jsonl")


def read_notes(file: Path) -> dict[tuple[str, int], Note]:
    """Returns the notes by try; none where there is no such file.

    Raises:
        OSError: the file can't be read.
        ValueError: the file is too large, or a line is no note; the message names it.
    """
    if not file.exists():
        return {}
    if file.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{file} is larger than {MAX_FILE_BYTES >> 20} MiB: it holds no notes")
    notes = {}
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if line.strip():
            note = _note(line, f"{file}, line {number}")
            notes[note.key] = note
    return notes


def keep_note(file: Path, key: tuple[str, int], text: str, was: str) -> Note | None:
    """Writes the note on a try, or takes it away where the text is blank; returns what is kept.

    Args:
        file: of the notes.
        key: the try.
        text: the new note.
        was: the text that it is to replace; empty where there was none.

    Raises:
        NoteConflictError: another text stands there, which nobody has seen.
        OSError: the file can't be read or written; an old one is then as it was.
        ValueError: the note is too long, or the file holds something else.
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
