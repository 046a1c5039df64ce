"""Steps that turn the frame of a sheet laid out for the eye into a table."""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.cell_words import MISSING_WORDS
from dm_jupyter.data.profile.frame_steps import (
    DROP_EMPTY_COLUMNS,
    DROP_EMPTY_ROWS,
    LEVEL_MARK,
    NAMES_AS_TEXT,
    STRIP_TEXT,
    UNIQUE_NAMES,
    FrameStep,
    drop_columns,
    fill_down,
    name_rows,
    rename_columns,
    split_sections,
)
from dm_jupyter.data.profile.suspicion import is_text
from dm_jupyter.data.profile.workbook_scan import Merge

__all__ = ["Cleaning", "cleaning_of", "missing_marks"]

SECTION = "section"
"""Name of the column for headings that were between the rows."""
_MARK = re.compile(r"\[[^\]]{1,20}\]|\([a-z]\)|[:~.*-]+")
"""How statistical offices write "no figure": `[x]`, `[no data]`, `(z)`, `:`, `..`."""
LABEL = "label"
"""Name given to a column of texts without one."""
_NAMELESS = "Unnamed:"
_PARTS = re.compile(r"\s*[,;/]\s*|\s+and\s+")
_FOOTNOTE = re.compile(r"\s*(?:\d+/|\[\w+\]|\*+)$")
_MADE_UP = re.compile(r"^Unnamed:|^column_\d+$|\.\d+$")
"""Generated names, of columns that have none of their own."""
_MANY_BLANKS = 0.3


@dataclass
class Cleaning:
    """The steps, in order, and the warnings about them."""

    steps: list[FrameStep] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def missing_marks(frame: pd.DataFrame) -> list[str]:
    """Return the texts that mean "no figure", if nothing else makes numbers text."""
    marks: dict[str, None] = {}
    for position in range(frame.shape[1]):
        values = frame.iloc[:, position]
        if not types.is_object_dtype(values.dtype):
            continue
        present = list(values.dropna())
        texts = [value for value in present if isinstance(value, str)]
        numbers = sum(isinstance(value, Real) for value in present)
        if texts and numbers >= 0.5 * len(present) and all(map(_is_mark, texts)):
            marks |= dict.fromkeys(texts)
    return list(marks)


def cleaning_of(
    frame: pd.DataFrame,
    merges: tuple[Merge, ...],
    above: int,
    kept: Sequence[str] = (),
    *,
    is_laid_out: bool = False,
) -> Cleaning:
    """Return the cleaning for a frame with all rows of a sheet.

    In a sheet laid out for the eye, rows are named by their labels. A figure is then found by row
    and column, as a reader finds it. Such a sheet has a title, a second header row, or anything to
    clean.

    Args:
        frame: as read, with names of one level.
        merges: the sheet's merged cells, as far as they are known.
        above: rows of the sheet above the frame's first, including the header.
        kept: columns that stay although they are empty.
        is_laid_out: whether the sheet is known to be laid out for the eye.
    """
    found = Cleaning()
    frame = _named(found, frame)
    if names := _names_for(frame, [m for m in merges if m.is_across and m.bottom == above]):
        frame = _add(found, rename_columns(names), frame)
    merges = tuple(merge.lowered(above) for merge in merges if merge.top > above)
    indents = [_indent(value) for value in frame.iloc[:, 0]]
    if _has_blanks_around(frame):
        frame = _add(found, STRIP_TEXT, frame)
    merged_labels = _merged_labels(frame, merges)
    has_sections = _has_sections(frame, merges, indents)
    groups = {part for name in frame.columns for part in _groups(name)}
    empty = frame.columns[frame.isna().all()]
    if any(_MADE_UP.search(name) or name in groups for name in empty):
        left_out = [str(name) for name in empty if name not in kept]
        step = DROP_EMPTY_COLUMNS if len(left_out) == len(empty) else drop_columns(left_out)
        frame = _add(found, step, frame)
    if has_sections and SECTION not in frame.columns:
        frame = _add(found, split_sections(SECTION), frame)
        found.warnings.append("headings between the rows are in the column 'section'")
    elif frame.isna().all(axis="columns").any():
        frame = _add(found, DROP_EMPTY_ROWS, frame)
    labels = [name for name in merged_labels if name in frame.columns] or _grouping_label(frame)
    if labels:
        frame = _add(found, fill_down(labels), frame)
        shown = ", ".join(map(repr, labels))
        found.warnings.append(f"labels that stand once for several rows are filled down: {shown}")
    if (found.steps or above > 1 or is_laid_out) and _names_rows(frame):
        _add(found, name_rows(str(frame.columns[0])), frame)
    return found


def _names_rows(frame: pd.DataFrame) -> bool:
    """Return whether the first column has a unique label for each row, and the rest figures."""
    if frame.shape[1] < 2 or not len(frame):
        return False
    labels, figures = frame.iloc[:, 0], frame.iloc[:, 1:].select_dtypes("number")
    return (
        figures.shape[1] >= (frame.shape[1] - 1) / 2
        and all(map(_is_label, labels))
        and labels.is_unique
    )


def _add(found: Cleaning, step: FrameStep, frame: pd.DataFrame) -> pd.DataFrame:
    found.steps.append(step)
    return step.run(frame)


def _named(found: Cleaning, frame: pd.DataFrame) -> pd.DataFrame:
    if [str(label).strip() for label in frame.columns] != list(frame.columns):
        frame = _add(found, NAMES_AS_TEXT, frame)
    return frame if frame.columns.is_unique else _add(found, UNIQUE_NAMES, frame)


def _names_for(frame: pd.DataFrame, headers: list[Merge]) -> dict[str, str]:
    """Return names for the columns under a merged header, and for labels without any header."""
    taken = {str(name) for name in frame.columns}
    names: dict[str, str] = {}
    for header in headers:
        names |= _names_under(list(frame.columns[header.left - 1 : header.right]))
    nameless = [
        str(name)
        for position, name in enumerate(frame.columns)
        if name.startswith(_NAMELESS) and name not in names and is_text(frame.iloc[:, position])
    ]
    for count, name in enumerate(nameless):
        names[name] = f"{LABEL}.{count}" if count else LABEL
    return {name: new for name, new in names.items() if new not in taken}


def _names_under(shared: Sequence[str]) -> dict[str, str]:
    """Return names for columns that share a header: its own parts if it has one for each.

    `Product, country code and name` over three columns names all three; otherwise they are
    numbered.
    """
    if not shared:  # merged beyond the last column with a value
        return {}
    first, *others = shared
    if _MADE_UP.search(first) or not all(name.startswith(_NAMELESS) for name in others):
        return {}
    parts = _PARTS.split(_FOOTNOTE.sub("", first))
    if others and len(set(filter(None, parts))) == len(shared):
        return dict(zip(shared, parts, strict=True))
    return {name: f"{first}.{count}" for count, name in enumerate(others, start=1)}


def _is_mark(text: str) -> bool:
    said = text.strip().casefold()
    return said in MISSING_WORDS or _MARK.fullmatch(said) is not None


def _groups(name: str) -> Iterator[str]:
    """Return the levels above a column's own name in a header of several rows."""
    parts = name.split(LEVEL_MARK)
    return (LEVEL_MARK.join(parts[:count]) for count in range(1, len(parts)))


def _has_blanks_around(frame: pd.DataFrame) -> bool:
    return any(
        value != value.strip()
        for _, values in frame.items()
        if is_text(values)
        for value in values.dropna()
        if isinstance(value, str)
    )


def _merged_labels(frame: pd.DataFrame, merges: tuple[Merge, ...]) -> list[str]:
    """Return the columns whose blank cells are all below a filled cell they are merged with."""
    is_row = frame.notna().any(axis="columns").to_numpy()
    by_column: dict[int, list[Merge]] = defaultdict(list)
    for merge in merges:
        if merge.is_down:
            by_column[merge.left - 1].append(merge)
    labels = []
    for position, name in enumerate(frame.columns):
        down = by_column[position]
        blank = frame.iloc[:, position].isna().to_numpy() & is_row
        if not down or not blank.any():
            continue
        for merge in down:
            if merge.top <= len(blank) and not blank[merge.top - 1]:
                blank[merge.top : merge.bottom] = False
        if not blank.any():
            labels.append(name)
    return labels


def _grouping_label(frame: pd.DataFrame) -> list[str]:
    """Return the first column if it has labels above blanks that the next column fills."""
    places = [place for place, name in enumerate(frame.columns) if name != SECTION]
    if len(places) < 3 or len(frame) < 4:
        return []
    first, second = frame.iloc[:, places[0]], frame.iloc[:, places[1]]
    blank = first.isna()
    is_grouping = (
        all(map(_is_label, first.dropna()))
        and is_text(second)
        and blank.mean() >= _MANY_BLANKS
        and not blank.head(3).all()
        and first.nunique() > 1
        and second[blank].notna().all()
    )
    return [str(first.name)] if is_grouping else []


def _is_label(value: Any) -> bool:
    """Return whether a cell can head rows: text, or a year."""
    return isinstance(value, str) or (isinstance(value, Real) and 1000 <= float(value) <= 2999)


def _has_sections(frame: pd.DataFrame, merges: tuple[Merge, ...], indents: list[int]) -> bool:
    """Return whether rows with a text only in their first column are headings.

    They are if each is merged across, follows a blank row, comes first, or is indented less than
    the row below. They also are if the same labels come again under each. Otherwise one may be a
    row without figures.
    """
    if frame.shape[1] < 3:
        return False
    firsts = frame.iloc[:, 0]
    is_empty = frame.isna().all(axis="columns").tolist()
    others = frame.iloc[:, 1:].isna().all(axis="columns").tolist()
    heads = [row for row, alone in enumerate(others) if alone and not is_empty[row]]
    if not heads or len(heads) > is_empty.count(False) / 2 or heads[-1] + 1 == len(frame):
        return False
    across = {merge.top - 1 for merge in merges if merge.left == 1 and merge.is_across}
    stand_out = all(
        row in across or row == 0 or is_empty[row - 1] or indents[row + 1] > indents[row]
        for row in heads
    )
    are_texts = all(isinstance(firsts.iloc[row], str) for row in heads)
    return are_texts and (stand_out or _come_again(firsts, heads))


def _come_again(firsts: pd.Series[Any], heads: list[int]) -> bool:
    """Return whether labels repeat under other headings, but never under the same one."""
    labels = firsts.drop(firsts.index[heads]).dropna()
    under = [bisect(heads, row) for row in labels.index]
    pairs = pd.DataFrame({"under": under, "label": labels.to_numpy()})
    return bool(labels.duplicated().any() and not pairs.duplicated().any())


def _indent(value: object) -> int:
    return len(value) - len(value.lstrip()) if isinstance(value, str) else 0
