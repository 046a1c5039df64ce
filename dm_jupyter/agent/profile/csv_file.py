"""Delimited text: csv, tsv, txt."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types
from pandas.errors import ParserError

from dm_jupyter.agent.profile.columns import profile_columns, sample_rows
from dm_jupyter.agent.profile.csv_layout import CsvLayout, find_layout
from dm_jupyter.agent.profile.csv_rows import RowScan, scan_rows
from dm_jupyter.agent.profile.csv_stream import (
    StreamedPass,
    misfit_warning,
    streamed_table,
    unparsed_warning,
)
from dm_jupyter.agent.profile.encoding import TextEncoding, detect_encoding
from dm_jupyter.agent.profile.faults import attempted, reading
from dm_jupyter.agent.profile.grain import paired_key
from dm_jupyter.agent.profile.model import FileProfile, TableProfile
from dm_jupyter.agent.profile.number_plan import NumberPlan, csv_numbers
from dm_jupyter.agent.profile.plain_load import plain_table
from dm_jupyter.agent.profile.read_call import ReadCall
from dm_jupyter.agent.profile.source import Source, inferred_compression
from dm_jupyter.agent.profile.suspicion import suspicions_of
from dm_jupyter.agent.profile.table_pass import Deadline, noted
from dm_jupyter.core.errors import DataFileError

__all__ = ["profile_csv"]

LAYOUT_BYTES = 256 * 1024
WHOLE_BYTES = 16 << 20
SAMPLE_ROWS = 50_000
"""Rows of a large file from which its load call is made at first."""
_START_CELLS = 500_000
_LEAST_START_ROWS = 500
_FORMAT_COLUMNS = 10_000
_SCAN_SHARE = 0.3
"""Of the time for a file, for the check of its lines."""
_NAMED_COLUMNS = 50
_WAY_OUT = "Open it in a text editor and check that it is a delimited table."


def profile_csv(source: Source) -> FileProfile:
    """Returns the profile of a delimited text file.

    Raises:
        DataFileError: the file is blank, no table, or can't be decoded.
        OSError: the file can't be read.
    """
    encoding = TextEncoding("utf-8")
    with attempted():
        encoding = detect_encoding(source)
        return _profiled(source, encoding)
    with reading(source.name, "the text", _WAY_OUT):
        return _plain(source, encoding)


def _profiled(source: Source, encoding: TextEncoding) -> FileProfile:
    text = source.head(LAYOUT_BYTES).decode(encoding.codec, "replace")
    if not text.strip("\ufeff \t\r\n\x00"):
        raise DataFileError(f"{source.name}: the file holds only blank lines; nothing to read.")
    unpacked = source.unpacked_bytes()
    is_aligned_name = Path(source.name).suffix.lower() in {".txt", ".dat"}
    layout = find_layout(text, is_whole=unpacked <= LAYOUT_BYTES, may_be_aligned=is_aligned_name)
    began = time.monotonic()
    rows = scan_rows(source, encoding, layout, stop_at=began + _SCAN_SHARE * source.effort.seconds)
    call = _call(source, encoding, layout, rows)
    if unpacked <= WHOLE_BYTES:
        table = _table(source, call)
    else:
        table = _large_table(source, _without_python_engine(call, rows), rows, began)
    warnings = (*encoding.warnings, *_layout_warnings(layout, rows), *table.warnings)
    return FileProfile(
        source.name,
        "csv",
        source.path.stat().st_size,
        (replace(table, warnings=()),),
        warnings,
        _notes(source, encoding, layout),
    )


def _plain(source: Source, encoding: TextEncoding) -> FileProfile:
    """Returns the profile of the first rows, as `pd.read_csv` reads them by itself.

    Raises:
        Exception: whatever pandas raises; the caller wraps it in `reading`.
    """
    call = _call(source, encoding, CsvLayout(), RowScan())
    frame, call, warnings = _read(source.path, call, {"nrows": SAMPLE_ROWS})
    table = plain_table(frame, call.source(source.name), name=source.name, what="table")
    if len(frame) == SAMPLE_ROWS:
        table = replace(table, row_count=None, sampled_rows=SAMPLE_ROWS)
    told = (*encoding.warnings, *table.warnings, *warnings)
    table, size = replace(table, warnings=()), source.path.stat().st_size
    return FileProfile(source.name, "csv", size, (table,), told)


def _call(source: Source, encoding: TextEncoding, layout: CsvLayout, rows: RowScan) -> ReadCall:
    """Returns the shortest `read_csv` call that reads the file right."""
    arguments: dict[str, Any] = {
        "encoding": encoding.argument,
        "encoding_errors": "replace" if encoding.errors == "replace" else None,
        "sep": layout.separator if layout.separator != "," else None,
        "skiprows": layout.skipped_lines or None,
    }
    if rows.repeated_headers:
        arguments["skiprows"] = [*range(layout.skipped_lines), *rows.repeated_headers]
    if source.compression != inferred_compression(source.name):
        arguments["compression"] = source.compression
    kept = [(key, value) for key, value in arguments.items() if value is not None]
    if "compression" in arguments and source.compression is None:
        kept.append(("compression", None))
    if not layout.has_header:
        kept.append(("header", None))
        if len(layout.header) <= _NAMED_COLUMNS:
            kept.append(("names", [f"column_{i}" for i in range(1, len(layout.header) + 1)]))
    if layout.has_trailing_separator or rows.has_stray_first_row:
        kept.append(("index_col", False))
    if rows.long_lines:
        kept.append(("on_bad_lines", "warn"))
    if rows.footer_rows:
        # Only the Python engine leaves out a footer.
        kept += [("skipfooter", rows.footer_rows), ("engine", "python")]
    return ReadCall("read_csv", tuple(kept))


def _without_python_engine(call: ReadCall, rows: RowScan) -> ReadCall:
    """Returns the call with a footer left out by counting: the Python engine can't be streamed."""
    if not rows.footer_rows:
        return call
    return call.with_arguments(skipfooter=None, engine=None, nrows=rows.loaded_rows)


def _table(source: Source, call: ReadCall) -> TableProfile:
    frame, call, warnings = _read(source.path, call, {})
    plain = call
    if frame.shape[1] > _FORMAT_COLUMNS:  # a second reading of so many takes as long as the first
        told = f"number formats and codes are not looked for in over {_FORMAT_COLUMNS:,} columns"
        numbers = NumberPlan(warnings=[told])
    else:
        call, numbers = csv_numbers(source.path, call, {})
    frame = frame if call == plain else call.run(source.path)
    suspicions = suspicions_of(frame)
    if suspicions.day_first:
        frame, call, more = _with_dates(source.path, call, frame, suspicions.day_first)
        warnings += more
    columns = noted(profile_columns(frame), suspicions.notes, numbers.notes)
    return TableProfile(
        source.name,
        len(frame),
        columns,
        sample_rows(frame),
        call.source(source.name),
        key=paired_key(frame, columns),
        warnings=(*warnings, *numbers.warnings, *suspicions.warnings),
    )


def _large_table(source: Source, call: ReadCall, rows: RowScan, began: float) -> TableProfile:
    """Returns the facts of a file in one pass, which begins with what its first rows show."""
    effort = source.effort
    deadline = Deadline(began + effort.seconds, effort.tell)
    most = max(_LEAST_START_ROWS, min(SAMPLE_ROWS, _START_CELLS // max(1, rows.expected)))
    limit = {"nrows": min(most, rows.loaded_rows or most)}
    _, call, _ = _read(source.path, call, limit)
    call, start = csv_numbers(source.path, call, limit)
    settings = StreamedPass(deadline=deadline)
    return streamed_table(source, call, settings, row_count=rows.loaded_rows, start=start)


def _read(
    path: Path, call: ReadCall, limit: dict[str, int]
) -> tuple[pd.DataFrame, ReadCall, list[str]]:
    """Returns the frame, with the call mended where pandas stumbles over a row too long."""
    try:
        return call.run(path, **limit), call, []
    except ParserError as error:
        mended = call.with_arguments(on_bad_lines="warn")
        return mended.run(path, **limit), mended, [misfit_warning(error)]


def _with_dates(
    path: Path, call: ReadCall, frame: pd.DataFrame, names: list[str]
) -> tuple[pd.DataFrame, ReadCall, list[str]]:
    """Returns the frame with day-first dates parsed, where every value of a column parses."""
    dated = call.with_arguments(parse_dates=names, dayfirst=True)
    parsed = dated.run(path)
    failed = [name for name in names if not types.is_datetime64_any_dtype(parsed[name].dtype)]
    if not failed:
        return parsed, dated, []
    return frame, call, [unparsed_warning(failed)]


def _layout_warnings(layout: CsvLayout, rows: RowScan) -> list[str]:
    warnings = list(rows.warnings())
    if not layout.has_header:
        warnings.append("the first row is data: the file has no header")
        return warnings
    named = [name.strip() for name in layout.header]
    repeated = sorted(name for name, times in Counter(named).items() if name and times > 1)
    if repeated:
        shown = ", ".join(map(repr, repeated[:5]))
        warnings.append(
            f"several columns are called {shown}: pandas adds .1, .2 … in the order of the file"
        )
    unnamed = named.count("")
    if unnamed:
        warnings.append(
            f"{unnamed} column(s) without a name: pandas calls them 'Unnamed: <position>'"
        )
    return warnings


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
