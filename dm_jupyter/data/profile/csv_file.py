"""Delimited text: csv, tsv, txt."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
from pandas.api import types
from pandas.errors import ParserError

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.columns import (
    paired_key,
    profile_columns,
    repeats_warning,
    sample_rows,
)
from dm_jupyter.data.profile.csv_call import csv_call, is_padded, layout_warnings, with_columns
from dm_jupyter.data.profile.csv_layout import CsvLayout, find_layout
from dm_jupyter.data.profile.csv_numbers import csv_numbers
from dm_jupyter.data.profile.csv_rows import RowScan, scan_rows
from dm_jupyter.data.profile.csv_stream import (
    FirstRows,
    StreamedPass,
    misfit_warning,
    streamed_table,
    unparsed_warning,
)
from dm_jupyter.data.profile.encoding import TextEncoding, detect_encoding
from dm_jupyter.data.profile.faults import attempted, reading
from dm_jupyter.data.profile.frame_steps import STRIP_TEXT
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.data.profile.month_names import with_month_dates
from dm_jupyter.data.profile.number_plan import NumberPlan
from dm_jupyter.data.profile.read_call import ReadCall, plain_table
from dm_jupyter.data.profile.sentinels import shared_marks, with_na_codes, with_sentinels
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.suspicion import suspicions_of
from dm_jupyter.data.profile.table_pass import Deadline, noted
from dm_jupyter.data.profile.text_columns import unified_texts

__all__ = ["profile_csv"]

LAYOUT_BYTES = 256 * 1024
_PARTS_BYTES = 2 << 20
"""Largest file of which all is searched for tables below each other."""
WHOLE_BYTES = 16 << 20
SAMPLE_ROWS = 50_000
"""First rows of a large file, from which its first load call is built."""
_START_CELLS = 500_000
_LEAST_START_ROWS = 500
_FORMAT_COLUMNS = 10_000
_SCAN_SHARE = 0.3
"""Share of the time for a file that the check of its lines may take."""
_WAY_OUT = "Open it in a text editor and check that it is a delimited table."


def profile_csv(source: Source) -> FileProfile:
    """Return the profile of a delimited text file.

    Raises:
        DataFileError: the file is blank, is not a table, or can't be decoded.
        OSError: the file can't be read.
    """
    encoding = TextEncoding("utf-8")
    with attempted():
        encoding = detect_encoding(source)
        return _profiled(source, encoding)
    with reading(source.name, "the text", _WAY_OUT):
        return _plain(source, encoding)


def _profiled(source: Source, encoding: TextEncoding) -> FileProfile:
    unpacked = source.unpacked_bytes()
    size = unpacked if unpacked <= _PARTS_BYTES else LAYOUT_BYTES
    text = source.head(size).decode(encoding.codec, "replace")
    if not text.strip("\ufeff \t\r\n\x00"):
        raise DataFileError(f"{source.name}: the file holds only blank lines; nothing to read.")
    is_aligned_name = Path(source.name).suffix.lower() in {".txt", ".dat"}
    layouts = find_layout(text, is_whole=size == unpacked, may_be_aligned=is_aligned_name)
    tables, warnings = [], list(encoding.warnings)
    for layout in layouts:
        is_large = unpacked > WHOLE_BYTES and layout.row_count is None
        table = _laid_out(source, encoding, layout, is_large=is_large)
        if len(layouts) > 1:
            tables.append(_part(table, layout))
        else:
            tables.append(replace(table, warnings=()))
            warnings += table.warnings
    if len(layouts) > 1:
        warnings.append(f"the file holds {len(layouts)} tables: each has load code of its own")
    file_size = source.path.stat().st_size
    notes = _notes(source, encoding, layouts[0])
    return FileProfile(source.name, "csv", file_size, tuple(tables), tuple(warnings), notes)


def _laid_out(
    source: Source, encoding: TextEncoding, layout: CsvLayout, *, is_large: bool
) -> TableProfile:
    """Return a table, with warnings about its layout."""
    began = time.monotonic()
    rows = RowScan()
    if layout.row_count is None:
        stop_at = began + _SCAN_SHARE * source.effort.seconds
        rows = scan_rows(source, encoding, layout, stop_at=stop_at)
    call = csv_call(source, encoding, layout, rows)
    table = _large_table(source, call, rows, began) if is_large else _table(source, call)
    told = layout_warnings(layout, rows, [column.name for column in table.columns])
    expected = layout.row_count if layout.row_count is not None else rows.loaded_rows
    if expected is not None and table.row_count not in {None, expected}:
        told.append(f"{expected:,} rows of data were counted, but {table.row_count:,} are loaded")
    if layout.texts and not _is_as_written(source, call, layout):
        told.append("not every cell was read as the file shows it: check the rows")
    columns = _measured(table.columns, layout)
    return replace(table, columns=columns, warnings=(*told, *table.warnings))


def _is_as_written(source: Source, call: ReadCall, layout: CsvLayout) -> bool:
    """Return whether the call returns the rows of a table cut out of a text, cell by cell."""
    plain = replace(call, steps=())
    texts = plain.run(source.path, dtype=str, keep_default_na=False)
    read = [tuple(map(str, row)) for row in texts.itertuples(index=False, name=None)]
    written = [tuple(row[: texts.shape[1]]) for row in layout.texts]
    if layout.colspecs and layout.row_count is None:
        read = read[: len(written)]
    return read == written


def _measured(columns: tuple[ColumnProfile, ...], layout: CsvLayout) -> tuple[ColumnProfile, ...]:
    """Return the columns with their units in a note."""
    if len(layout.units) < len(columns):
        return columns
    units = layout.units[layout.columns[0] :] if layout.columns else layout.units
    return tuple(
        replace(column, note="; ".join(filter(None, (f"in {unit}", column.note))))
        if unit
        else column
        for column, unit in zip(columns, units, strict=False)
    )


def _part(table: TableProfile, layout: CsvLayout) -> TableProfile:
    """Return one of several tables, named by its lines."""
    first = layout.skipped_lines + 1
    last = "" if layout.row_count is None else f" to {layout.last_row + 1}"
    title = f" ({layout.title[:60]})" if layout.title else ""
    return replace(table, name=f"lines {first}{last}{title}")


def _plain(source: Source, encoding: TextEncoding) -> FileProfile:
    """Return the profile of the first rows, as `pd.read_csv` reads them by itself.

    Raises:
        Exception: whatever pandas raises; the caller wraps it in `reading`.
    """
    call = csv_call(source, encoding, CsvLayout(), RowScan())
    frame, call, warnings = _read(source.path, call, {"nrows": SAMPLE_ROWS})
    table = plain_table(frame, call.source(source.name), name=source.name, what="table")
    if len(frame) == SAMPLE_ROWS:
        table = replace(table, row_count=None, sampled_rows=SAMPLE_ROWS)
    told = (*encoding.warnings, *table.warnings, *warnings)
    table, size = replace(table, warnings=()), source.path.stat().st_size
    return FileProfile(source.name, "csv", size, (table,), told)


def _table(source: Source, call: ReadCall) -> TableProfile:
    frame, call, warnings = _read(source.path, call, {})
    plain = call
    call, told = with_columns(call, frame)
    if is_padded(frame):
        call = replace(call, steps=(*call.steps, STRIP_TEXT))
    if marks := shared_marks(frame):
        call = call.with_arguments(na_values=dict(marks))
        words = ", ".join(dict.fromkeys(repr(word) for found in marks.values() for word in found))
        told.append(f"{words} among the numbers of {len(marks)} columns is read as missing")
    path = source.path
    call, codes = with_na_codes(call, frame, lambda one: one.run(path, dtype=str), keeps=True)
    warnings += [*told, *codes]
    if frame.shape[1] > _FORMAT_COLUMNS:  # a second reading of so many takes as long as the first
        unseen = f"number formats and codes are not looked for in over {_FORMAT_COLUMNS:,} columns"
        numbers = NumberPlan(warnings=[unseen])
    else:
        call, numbers = csv_numbers(source.path, call, {})
    frame = frame if call == plain else call.run(source.path)
    sentinels = with_sentinels(frame)
    frame = sentinels.finish(frame)
    named = with_month_dates(frame)
    frame = named.finish(frame)
    frame, unified, unifying = unified_texts(frame)
    call = replace(call, steps=(*call.steps, *sentinels.steps, *named.steps, *unified))
    suspicions = suspicions_of(frame)
    if suspicions.day_first:
        frame, call, more = _with_dates(source.path, call, frame, suspicions.day_first)
        warnings += more
    columns = noted(profile_columns(frame), suspicions.notes, {**numbers.notes, **named.notes})
    return TableProfile(
        source.name,
        len(frame),
        columns,
        sample_rows(frame),
        call.source(source.name),
        key=paired_key(frame, columns),
        warnings=(
            *warnings,
            *numbers.warnings,
            *sentinels.warnings,
            *unifying,
            *suspicions.warnings,
            *repeats_warning(frame, columns),
        ),
    )


def _large_table(source: Source, call: ReadCall, rows: RowScan, began: float) -> TableProfile:
    """Return the profile of a file from one pass, which starts from its first rows."""
    effort = source.effort
    deadline = Deadline(began + effort.seconds, effort.tell)
    most = max(_LEAST_START_ROWS, min(SAMPLE_ROWS, _START_CELLS // max(1, rows.expected)))
    limit = {"nrows": min(most, rows.loaded_rows or most)}
    frame, call, _ = _read(source.path, call, limit)
    call, told = with_columns(call, frame)
    path = source.path
    told += with_na_codes(
        call, frame, lambda one: one.run(path, **{**limit, "dtype": str}), keeps=False
    )[1]
    call, start = csv_numbers(source.path, call, limit)
    sentinels = with_sentinels(start.finish(call.run(source.path, **limit)))
    settings = StreamedPass(deadline=deadline, likely_rows=_likely_rows(source))
    first = FirstRows(limit["nrows"], start, sentinels)
    table = streamed_table(source, call, settings, row_count=rows.loaded_rows, start=first)
    return replace(table, warnings=(*told, *table.warnings))


def _likely_rows(source: Source) -> int | None:
    """Return about how many rows a file has; `None` for one that would be unpacked to tell."""
    if source.compression is not None:
        return None
    head = source.head(LAYOUT_BYTES)
    return source.unpacked_bytes() * head.count(b"\n") // len(head)


def _read(
    path: Path, call: ReadCall, limit: dict[str, int]
) -> tuple[pd.DataFrame, ReadCall, list[str]]:
    """Return the frame, with the call changed if pandas fails at a row that is too long."""
    try:
        return call.run(path, **limit), call, []
    except ParserError as error:
        mended = call.with_arguments(on_bad_lines="warn")
        return mended.run(path, **limit), mended, [misfit_warning(error)]


def _with_dates(
    path: Path, call: ReadCall, frame: pd.DataFrame, names: list[str]
) -> tuple[pd.DataFrame, ReadCall, list[str]]:
    """Return the frame with day-first dates parsed, if every value of a column parses."""
    dated = call.with_arguments(parse_dates=names, dayfirst=True)
    parsed = dated.run(path)
    failed = [name for name in names if not types.is_datetime64_any_dtype(parsed[name].dtype)]
    if not failed:
        return parsed, dated, []
    return frame, call, [unparsed_warning(failed)]


def _notes(source: Source, encoding: TextEncoding, layout: CsvLayout) -> tuple[str, ...]:
    notes: list[str] = []
    if encoding.argument:
        notes.append(f"encoding {encoding.argument}")
    if source.compression:
        notes.append(f"compressed with {source.compression}")
    if layout.preamble:
        first = layout.preamble[0][:80]
        notes.append(f"{layout.skipped_lines} lines above the header are skipped: {first!r} …")
    return tuple(notes)
