"""The pandas call that reads a text of a given layout, and the warnings about the layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.csv_layout import CsvLayout
from dm_jupyter.data.profile.csv_rows import RowScan
from dm_jupyter.data.profile.encoding import TextEncoding
from dm_jupyter.data.profile.frame_steps import DROP_EMPTY_COLUMNS, DROP_EMPTY_ROWS
from dm_jupyter.data.profile.read_call import ReadCall, numbers_rows
from dm_jupyter.data.profile.source import Source, inferred_compression
from dm_jupyter.data.profile.suspicion import is_text
from dm_jupyter.data.profile.table_layout import breaks_warning

__all__ = ["csv_call", "is_padded", "layout_warnings", "with_columns"]

_NAMED_COLUMNS = 50
_LOOKED_AT_ROWS, _LOOKED_AT_COLUMNS = 1_000, 1_000
_Arguments = list[tuple[str, Any]]


def csv_call(source: Source, encoding: TextEncoding, layout: CsvLayout, rows: RowScan) -> ReadCall:
    """Return the shortest call that reads a table correctly."""
    is_aligned = bool(layout.colspecs)
    dialect = layout.dialect
    arguments: dict[str, Any] = {
        "encoding": encoding.argument,
        "encoding_errors": "replace" if encoding.errors == "replace" else None,
        "colspecs": list(layout.colspecs) or None,
        "sep": layout.separator if layout.separator != "," and not is_aligned else None,
        "quotechar": dialect.quote if dialect.quote != '"' else None,
        "escapechar": dialect.escape,
        "skipinitialspace": True if dialect.has_spaces else None,
        "skiprows": _skipped(layout, rows),
    }
    if source.compression != inferred_compression(source.name):
        arguments["compression"] = source.compression
    kept = [(key, value) for key, value in arguments.items() if value is not None]
    if "compression" in arguments and source.compression is None:
        kept.append(("compression", None))
    kept += _header(layout)
    if layout.columns is not None:
        kept.append(("usecols", list(range(*layout.columns))))
    if layout.has_trailing_separator or rows.has_stray_first_row:
        kept.append(("index_col", False))
    if rows.long_lines:
        kept.append(("on_bad_lines", "warn"))
    kept += _limits(layout, rows)
    steps = (DROP_EMPTY_ROWS,) if rows.unnamed_empty else ()
    return ReadCall("read_fwf" if is_aligned else "read_csv", tuple(kept), steps)


def _skipped(layout: CsvLayout, rows: RowScan) -> int | list[int] | None:
    skipped = layout.skipped
    left_out = rows.left_out
    if rows.has_more_remarks:
        left_out = [row for row in left_out if row not in set(rows.remarks)]
    if not left_out:
        return skipped
    above = list(range(skipped)) if isinstance(skipped, int) else skipped or []
    return sorted({*above, *left_out})


def _header(layout: CsvLayout) -> _Arguments:
    names = list(layout.names)
    if not layout.has_header and len(layout.header) <= _NAMED_COLUMNS:
        names = [f"column_{i}" for i in range(1, len(layout.header) + 1)]
    if layout.has_header and not names:
        return []
    return [("header", None), *([("names", names)] if names else [])]


def _limits(layout: CsvLayout, rows: RowScan) -> _Arguments:
    kept: _Arguments = []
    if rows.has_more_remarks:
        kept.append(("comment", "#"))
    if layout.row_count is not None:
        kept.append(("nrows", layout.row_count))
    elif rows.is_cut and rows.loaded_rows is not None:
        kept.append(("nrows", rows.loaded_rows + rows.unnamed_empty))
    return kept


def with_columns(call: ReadCall, frame: pd.DataFrame) -> tuple[ReadCall, list[str]]:
    """Return the call that restores the index from a column that pandas once wrote as one.

    Columns without a name and without a value, as a spreadsheet program adds them, are dropped.

    Args:
        call: the call so far.
        frame: the frame that it returns.
    """
    arguments = dict(call.arguments)
    told: list[str] = []
    if not {"names", "index_col", "usecols"}.isdisjoint(arguments) or frame.empty:
        return call, told
    nameless = [
        place for place, name in enumerate(frame.columns)
        if str(name).startswith("Unnamed:") and frame.iloc[:, place].isna().all()
    ]  # fmt: skip
    kept = [place for place in range(frame.shape[1]) if place not in set(nameless)]
    if nameless and kept:
        told.append(f"{len(nameless)} empty column(s) without a name are left out")
        if len(kept) <= _NAMED_COLUMNS:
            call = call.with_arguments(usecols=kept)
        else:
            call = replace(call, steps=(*call.steps, DROP_EMPTY_COLUMNS))
    if numbers_rows(frame) and 0 in kept:
        call = call.with_arguments(index_col=0)
        told.append("the first column has no name and numbers the rows: it is the index")
    return call, told


def is_padded(frame: pd.DataFrame) -> bool:
    """Return whether padding blanks fill up most texts of a column to one length."""
    for place in range(min(frame.shape[1], _LOOKED_AT_COLUMNS)):
        values = frame.iloc[:_LOOKED_AT_ROWS, place]
        if not is_text(values):
            continue
        texts = [value for value in values.dropna() if isinstance(value, str)]
        ended = [text for text in texts if text != text.rstrip()]
        if len(texts) > 1 and len(ended) > len(texts) / 2 and len(set(map(len, texts))) == 1:
            return True
    return False


def layout_warnings(layout: CsvLayout, rows: RowScan, columns: Sequence[str]) -> list[str]:
    """Return the warnings about a table's header and rows.

    Args:
        layout: layout of the table.
        rows: result of a pass over its rows.
        columns: names of the columns as they are loaded.
    """
    warnings = [*rows.warnings(), *breaks_warning(layout.breaks)]
    if remarks := layout.remark_count + rows.remark_count:
        warnings.append(f"{remarks:,} lines of remarks (#) are left out")
    if not layout.has_header:
        warnings.append("the first row is data: the file has no header")
        return warnings
    if layout.is_deep:
        warnings.append("the header has several rows: their names are joined with ' | '")
        return warnings
    named = [name.strip() for name in layout.header]
    repeated = sorted(name for name, times in Counter(named).items() if name and times > 1)
    if repeated:
        shown = ", ".join(map(repr, repeated[:5]))
        warnings.append(
            f"several columns are called {shown}: pandas adds .1, .2 … in the order of the file"
        )
    unnamed = sum(name.startswith("Unnamed:") for name in columns)
    if unnamed:
        warnings.append(
            f"{unnamed} column(s) without a name: pandas calls them 'Unnamed: <position>'"
        )
    return warnings
