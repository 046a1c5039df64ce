"""Notes and legends below a table: texts that are not rows of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dm_jupyter.data.profile.header_rows import filled, is_text_cell
from dm_jupyter.data.profile.numbers import parse_number

__all__ = ["end_of_data", "find_footer", "is_note_text"]

_NOTE = re.compile(
    r"\s*(©|\*|†|[¹²³]|\(\d\)|\d\)|\(?\d+ (rows?|records?|lines|zeilen|datensätze)\b"
    r"|((foot)?notes?|sources?|remarks?|quellen?|anmerkung(en)?|hinweise?|fu(ß|ss)noten?|legend"
    r"|generated|created|exported|downloaded|last updated|copyright|nota|fuente|bron|fonte)\b)",
    re.IGNORECASE,
)
"""Beginning of a note below a table."""
_LEGEND = re.compile(
    r"\s*(legend|legende|key|abbreviations|abkürzungen|notes?|explanations?|codes)\s*:?\s*",
    re.IGNORECASE,
)
_SENTENCE_WORDS = 6
_FOOTER_ROWS = 200


def is_note_text(text: str) -> bool:
    """Return whether a text begins as notes do."""
    return _NOTE.match(text) is not None


def end_of_data(body: list[list[Any]]) -> int:
    """Return the number of rows without the notes and blank rows at the end."""
    width = max((len(row) for row in body), default=0)
    end = len(body) - (find_footer(body, width)[0] if width > 1 else 0)
    while end and not filled(body[end - 1]):
        end -= 1
    return end


def find_footer(rows: Sequence[Sequence[Any]], width: int) -> tuple[int, str]:
    """Return the number of rows of the notes below a table, and the first note.

    A note is a text that is alone in its row. It also says that it is one, follows a blank row, or
    reads as a sentence. A last row that lacks its figures is not one. Blank rows between notes
    count, those above the first do not.

    Args:
        rows: rows of data, or the last of them.
        width: columns of the table.
    """
    tail = rows[max(0, len(rows) - _FOOTER_ROWS) :]
    legend = _legend(tail)
    end = len(tail) if legend is None else legend
    notes = [*_notes(tail[:end], width), *tail[end:]]
    while notes and not filled(notes[0]):
        notes = notes[1:]
    if not notes:
        return 0, ""
    return len(notes), str(next(value for value in notes[0] if value is not None))


def _notes(tail: Sequence[Sequence[Any]], width: int) -> Sequence[Sequence[Any]]:
    """Return the notes at the end of some rows, from the first one on."""
    start = len(tail)
    while start and _is_note(tail[start - 1]):
        start -= 1
    is_set_off = start < len(tail) and not filled(tail[start])
    while start < len(tail) and not filled(tail[start]):
        start += 1
    notes = tail[start:]
    while notes and not (is_set_off or _says_note(notes[0], width)):
        blank = next((at for at, row in enumerate(notes) if not filled(row)), len(notes))
        is_set_off = blank < len(notes)
        notes = notes[blank:] if blank and not _any_says(notes[:blank], width) else notes[1:]
        while notes and not filled(notes[0]):
            notes = notes[1:]
    return notes


def _legend(tail: Sequence[Sequence[Any]]) -> int | None:
    """Return where a legend begins: a word for it, below a blank row, and only texts below it."""
    for at, row in enumerate(tail):
        text = next((value for value in row if value is not None), None)
        if at and filled(row) == 1 and not filled(tail[at - 1]) and _LEGEND.fullmatch(str(text)):
            below = tail[at + 1 :]
            if all(
                filled(line) <= 2 and all(map(is_text_cell, filter(None, line))) for line in below
            ):
                return at
    return None


def _any_says(rows: Sequence[Sequence[Any]], width: int) -> bool:
    return any(_says_note(row, width) for row in rows)


def _is_note(row: Sequence[Any]) -> bool:
    cells = [value for value in row if value is not None]
    if not all(isinstance(cell, str) for cell in cells):
        return False
    if len(cells) <= 1:
        return not cells or row[0] is not None or len(row) < 2
    # "(1)" marks a note, but is minus one at the start of a row without gaps.
    is_data = len(cells) == len(row) and parse_number(cells[0].strip()) is not None
    return not is_data and _NOTE.match(cells[0]) is not None and len(cells) <= 3


def _says_note(row: Sequence[Any], width: int) -> bool:
    text = next((str(value) for value in row if value is not None), "")
    words = len(text.split())
    is_sentence = words >= _SENTENCE_WORDS or (words > 2 and (text.endswith(".") or " = " in text))
    return bool(_NOTE.match(text)) or (width > 1 and is_sentence)
