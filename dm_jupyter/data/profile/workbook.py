"""Workbooks: xlsx, xlsb, xls and ods, every sheet of them."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.columns import (
    paired_key,
    profile_columns,
    repeats_warning,
    sample_rows,
)
from dm_jupyter.data.profile.faults import attempted, reading
from dm_jupyter.data.profile.footers import find_footer
from dm_jupyter.data.profile.frame_steps import DROP_EMPTY_ROWS, UNIQUE_NAMES
from dm_jupyter.data.profile.header_rows import filled
from dm_jupyter.data.profile.joined_sheets import LoadedSheet, with_series
from dm_jupyter.data.profile.model import FileProfile, TableProfile
from dm_jupyter.data.profile.month_names import with_month_dates
from dm_jupyter.data.profile.number_plan import number_plan, texts_read_as_numbers
from dm_jupyter.data.profile.read_call import ReadCall, numbers_rows, plain_table
from dm_jupyter.data.profile.sentinels import with_na_codes, with_sentinels
from dm_jupyter.data.profile.sheet_cleaning import cleaning_of, missing_marks
from dm_jupyter.data.profile.sheet_layout import SEARCHED_ROWS, SheetPart, find_sheet_layout
from dm_jupyter.data.profile.sheet_oddities import (
    OddCells,
    Oddities,
    odd_cells,
    oddities_of,
    unsure_dates,
    with_oddities,
)
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.suspicion import suspicions_of
from dm_jupyter.data.profile.table_layout import breaks_warning, grid_of_values
from dm_jupyter.data.profile.text_columns import unified_texts
from dm_jupyter.data.profile.workbook_scan import (
    Merge,
    SheetExtent,
    check_ods,
    check_unpacked_size,
    check_xlsb,
    scan_workbook,
)

__all__ = ["profile_workbook"]

_WHOLE_CELLS = 100_000
_SAMPLE_CELLS = 20_000
_LEAST_ROWS = 100
_NAMED_COLUMNS = 100
_ENGINES: dict[str, Literal["openpyxl", "xlrd", "odf", "calamine"]] = {
    "xlsx": "openpyxl",
    "xlsb": "calamine",
    "xls": "xlrd",
    "ods": "odf",
}
_MAX_SHEETS = 60
_MAX_XLS_BYTES = 64 << 20
_WAY_OUT = "It is damaged or incomplete: open it in a spreadsheet program and save it again."


def profile_workbook(source: Source, kind: str) -> FileProfile:
    """Return the profile of a workbook.

    Args:
        source: the file.
        kind: xlsx, xlsb, xls or ods, by content.

    Raises:
        DataFileError: the workbook is damaged, or unpacks to more than the limit.
        OSError: the file can't be read.
    """
    size = source.path.stat().st_size
    with reading(source.name, "the workbook", _WAY_OUT):
        _check_size(source, kind)
        log = {"logfile": io.StringIO()} if kind == "xls" else {}
        book = pd.ExcelFile(source.path, engine=_ENGINES[kind], engine_kwargs=log)
    with book:
        odd: dict[str, OddCells] = {}
        if kind == "xlsx":
            with attempted():
                odd = odd_cells(source.path)
        opened = _Opened(source, book, kind, _extents(source, kind), odd)
        sheets, notes = _sheets(opened)
    tables = with_series(sheets, source.name, _described)
    notes += [_series_note(table) for table in tables if table.sheets]
    overview = _overview([sheet.profile for sheet in sheets])
    return FileProfile(source.name, kind, size, tuple(tables), overview, tuple(notes))


def _check_size(source: Source, kind: str) -> None:
    """Reject a workbook that would take more memory than allowed.

    Raises:
        DataFileError: it is too large; the message gives the limit and says what to do.
        zipfile.BadZipFile: the archive is damaged.
        KeyError: the archive contains no content.
    """
    if kind == "xls":
        if source.path.stat().st_size > _MAX_XLS_BYTES:
            raise DataFileError(
                f"{source.name}: an .xls file of more than {_MAX_XLS_BYTES >> 20} MiB. Save the "
                "sheet you need as csv."
            )
        return
    check_unpacked_size(source.path, source.name)
    if kind == "ods":
        check_ods(source.path, source.name)
    if kind == "xlsb":
        check_xlsb(source.path, source.name)


def _extents(source: Source, kind: str) -> dict[str, SheetExtent]:
    """Return the sheets' extents if they are cheap to know in the format."""
    extents: tuple[SheetExtent, ...] = ()
    if kind == "xlsx":
        # Unknown extents cost only precision; openpyxl reports parts that can't be read.
        with attempted():
            extents = scan_workbook(source.path)
    return {extent.name: extent for extent in extents}


@dataclass(frozen=True)
class _Opened:
    """A workbook, and what is known of its sheets before they are read."""

    source: Source
    book: pd.ExcelFile
    kind: str
    extents: dict[str, SheetExtent]
    odd: dict[str, OddCells]


def _sheets(opened: _Opened) -> tuple[list[LoadedSheet], list[str]]:
    sheets: list[LoadedSheet] = []
    notes: list[str] = []
    book = opened.book
    names = [str(name) for name in book.sheet_names]
    room = _WHOLE_CELLS
    for name in names[:_MAX_SHEETS]:
        is_hidden = _is_hidden_xls(book, name, opened.kind)
        extent = opened.extents.get(name) or SheetExtent(name, is_hidden, 0, -1)
        call = ReadCall("read_excel", (("sheet_name", name),) if len(names) > 1 else ())
        is_whole = extent.cells <= room
        found: list[LoadedSheet] = []
        with attempted():
            found = _sheet(opened, call, extent, is_whole=is_whole)
        sheets += found or [LoadedSheet(_plain(opened.source, book, call, extent))]
        room -= max(0, extent.cells) if is_whole else 0
    if len(names) > _MAX_SHEETS:
        notes.append(f"{len(names) - _MAX_SHEETS} more sheets are not described")
    return sheets, notes


def _is_hidden_xls(book: pd.ExcelFile, name: str, kind: str) -> bool:
    workbook: Any = book.book
    if kind == "xlsb":
        about = next(sheet for sheet in workbook.sheets_metadata if sheet.name == name)
        return str(about.visible) != "SheetVisibleEnum.Visible"
    return kind == "xls" and bool(workbook.sheet_by_name(name).visibility)


def _plain(source: Source, book: pd.ExcelFile, call: ReadCall, extent: SheetExtent) -> TableProfile:
    """Return a sheet as `pd.read_excel` loads it by itself.

    Raises:
        DataFileError: the library can't read it either.
    """
    if extent.dense_rows is not None:  # a stray cell would take all memory
        call = call.with_arguments(usecols=f"A:{extent.last_column}", nrows=extent.dense_rows)
    with reading(source.name, f"the sheet {extent.name!r}", _WAY_OUT):
        frame = call.run(book)
    code = _engine_named(book, call).source(source.name)
    table = plain_table(frame, code, name=extent.name, what="sheet")
    return replace(table, is_hidden=extent.is_hidden)


def _engine_named(book: pd.ExcelFile, call: ReadCall) -> ReadCall:
    """Return the call with its engine, for the notebook; an open book takes no such argument.

    pandas 4 changes the default for xlsx, and 3.1 warns of it if calamine is installed. A named
    engine reads the same everywhere.
    """
    engine = getattr(book, "engine", None)  # missing from the type stubs
    is_named = engine in {"openpyxl", "calamine"}
    return call.with_arguments(engine=engine) if is_named else call


def _sheet(
    opened: _Opened, call: ReadCall, extent: SheetExtent, *, is_whole: bool
) -> list[LoadedSheet]:
    """Return the tables of a sheet, or one without columns."""
    book = opened.book
    empty = TableProfile(extent.name, 0, is_hidden=extent.is_hidden)
    if extent.cells == 0:
        return [LoadedSheet(empty)]
    if extent.dense_rows is not None:
        call = call.with_arguments(usecols=f"A:{extent.last_column}")
        is_whole = False
    top = min(SEARCHED_ROWS, extent.dense_rows or SEARCHED_ROWS)
    first = {} if is_whole else {"nrows": top}
    grid = call.run(book, header=None, dtype=object, **first)
    if grid.empty:
        return [LoadedSheet(empty)]
    parts = find_sheet_layout(grid, extent.merges, is_whole=is_whole)
    if extent.dense_rows is not None:
        parts = parts[:1]
    loaded = [_part(opened, call, extent, part, is_whole=is_whole) for part in parts]
    if len(parts) == 1:
        return loaded
    return [
        LoadedSheet(replace(one.profile, name=f"{extent.name}!{part.range}"))
        for one, part in zip(loaded, parts, strict=True)
    ]


def _part(
    opened: _Opened, call: ReadCall, extent: SheetExtent, part: SheetPart, *, is_whole: bool
) -> LoadedSheet:
    """Return one table of a sheet."""
    call = _part_call(opened.book, call, part)
    if extent.dense_rows is not None:
        call = call.with_arguments(nrows=max(0, extent.dense_rows - part.above))
        is_whole = True
    is_whole = is_whole or part.block.bottom is not None
    limit = None if is_whole else max(_LEAST_ROWS, _SAMPLE_CELLS // part.width)
    warnings = _layout_warnings(part, extent)
    odd = oddities_of(
        opened.odd.get(extent.name), part, call.run(opened.book, nrows=1).columns.tolist()
    )
    if is_whole:
        call, cleaned = _cleaned(opened.book, call, extent.merges, part, odd)
        warnings += cleaned
    call, frame, told = _loaded(opened.book, call, limit)
    call = _engine_named(opened.book, call)
    table = _described(frame, call.source(opened.source.name), limit is None, odd)
    if limit is not None and table.row_count == limit:
        rows = max(limit, extent.rows - part.above)
        told.append(f"number formats and codes were looked for in the first {limit:,} rows alone")
        table = replace(table, row_count=rows, sampled_rows=limit)
    warnings += [*odd.warnings, *told]
    table = replace(
        table,
        name=extent.name,
        is_hidden=extent.is_hidden,
        warnings=(*warnings, *_names_of_rows(call), *table.warnings),
    )
    if odd != Oddities():
        return LoadedSheet(table)
    steps = tuple(step for step in call.steps if not step.names_rows)
    return LoadedSheet(table, replace(call, steps=steps), frame, tuple(warnings))


def _names_of_rows(call: ReadCall) -> list[str]:
    return [
        f"rows are named by {step.names_rows!r}: df.loc[label, column] is one figure"
        for step in call.steps
        if step.names_rows
    ]


def _part_call(book: pd.ExcelFile, call: ReadCall, part: SheetPart) -> ReadCall:
    """Return the call that reads a table, with pandas' own names if they are correct."""
    plain = part.call(call)
    if not part.block.header.is_deep and not part.is_named_before:
        return plain
    named = [str(name) for name in UNIQUE_NAMES.run(plain.run(book, nrows=1)).columns]
    if [" ".join(name.split()) for name in named] == list(
        part.names
    ) or part.width > _NAMED_COLUMNS:
        return plain
    return part.call(call, is_named=True)


def _loaded(
    book: pd.ExcelFile, call: ReadCall, limit: int | None
) -> tuple[ReadCall, pd.DataFrame, list[str]]:
    """Return the call that keeps codes as text, its frame, and warnings about codes."""
    told_of = {"nrows": limit} if limit is not None else {}
    frame = call.run(book, **told_of)
    if codes := texts_read_as_numbers(frame, call.run(book, **told_of, dtype=object)):
        call = call.with_arguments(dtype=dict.fromkeys(codes, str))
        frame = call.run(book, **told_of)
    _, told = with_na_codes(
        call, frame, lambda one: one.run(book, **{**told_of, "dtype": str}), keeps=False
    )
    return call, frame, told


def _described(
    frame: pd.DataFrame, code: str, is_whole: bool, odd: Oddities | None = None
) -> TableProfile:
    """Return the profile of a frame, with the steps that make numbers and dates of its texts.

    Args:
        frame: as the code creates it.
        code: creates the frame as `df`.
        is_whole: whether it has all rows.
        odd: the odd cells of its sheet.
    """
    numbers = number_plan(frame)
    frame = numbers.finish(frame)
    sentinels = with_sentinels(frame)
    frame = sentinels.finish(frame)
    named = with_month_dates(frame)
    frame = named.finish(frame)
    frame, unified, unifying = unified_texts(frame)
    suspicions = suspicions_of(frame)
    notes = {**suspicions.notes, **named.notes, **numbers.notes}
    columns = tuple(
        replace(column, note=notes.get(position))
        for position, column in enumerate(profile_columns(frame))
    )
    columns = with_oddities(columns, odd or Oddities(), unsure_dates(frame))
    steps = (*numbers.steps, *sentinels.steps, *named.steps, *unified)
    told = [*numbers.warnings, *sentinels.warnings, *unifying, *suspicions.warnings]
    return TableProfile(
        "",
        len(frame),
        columns,
        sample_rows(frame),
        "\n".join([code, *(step.source for step in steps)]),
        warnings=(*told, *(repeats_warning(frame, columns) if is_whole else ())),
        key=paired_key(frame, columns) if is_whole else (),
    )


def _cleaned(
    book: pd.ExcelFile, call: ReadCall, merges: tuple[Merge, ...], part: SheetPart, odd: Oddities
) -> tuple[ReadCall, list[str]]:
    """Return the call that turns an entire sheet into a table, and warnings about its changes."""
    warnings: list[str] = []
    frame = call.run(book)
    footer_rows, note = find_footer(grid_of_values(frame.to_numpy(dtype=object)), frame.shape[1])
    if frame.shape[1] > 1 and footer_rows and dict(call.arguments).get("nrows") is None:
        # Without the notes the columns above them get their types back.
        call = call.with_arguments(skipfooter=footer_rows)
        warnings.append(f"the last {footer_rows} rows are notes and left out: {note[:60]!r}")
        frame = call.run(book)
    if marks := missing_marks(frame):
        call = call.with_arguments(na_values=marks)
        warnings.append(f"read as missing: {', '.join(map(repr, marks[:4]))}")
        frame = call.run(book)
    if numbers_rows(frame) and not part.block.header.is_deep:
        call = call.with_arguments(index_col=0)
        warnings.append("the first column has no name and numbers the rows: it is the index")
        frame = call.run(book)
    found = sum(bool(filled(row)) for row in grid_of_values(frame.to_numpy(dtype=object)))
    if part.row_count not in {None, found}:
        warnings.append(f"the sheet shows {part.row_count:,} rows of data, {found:,} are loaded")
    kept = list(odd.uncalculated)
    inside = part.merges(merges)
    cleaning = cleaning_of(frame, inside, part.above, kept)
    if DROP_EMPTY_ROWS in cleaning.steps and not any(merge.is_down for merge in inside):
        call = _without_blanks(call, part)
        cleaning = cleaning_of(call.run(book), inside, part.above, kept, is_laid_out=True)
    call = replace(call, steps=(*call.steps, *cleaning.steps))
    return call, [*warnings, *cleaning.warnings]


def _without_blanks(call: ReadCall, part: SheetPart) -> ReadCall:
    """Return the call without the blank rows between data, so that integers stay integers."""
    told = dict(call.arguments)
    is_named = "names" in told and bool(part.block.header.rows)
    spare = dict(part.call(ReadCall(call.function), is_named=is_named, skips_blanks=True).arguments)
    rows = told.get("nrows") if part.block.bottom is None else spare.get("nrows")
    return call.with_arguments(skiprows=spare.get("skiprows"), nrows=rows)


def _layout_warnings(part: SheetPart, extent: SheetExtent) -> list[str]:
    warnings = breaks_warning(part.breaks)
    block = part.block
    if extent.dense_rows is not None:
        warnings.append(
            f"a stray cell far away (row {extent.rows:,}) makes the sheet absurdly large: only "
            f"columns A to {extent.last_column}, rows 1 to {extent.dense_rows:,} are read"
        )
    if block.titles:
        shown = "; ".join(title[:60] for title in block.titles[:2])
        warnings.append(f"text above the table is skipped: {shown!r}")
    if not block.header.rows:
        warnings.append("the first row is data: the table has no header")
    if block.header.is_deep:
        warnings.append(
            f"the header has {len(block.header.rows)} rows; the load code joins them with ' | '"
        )
    if any(block.header.units):
        shown = ", ".join(
            f"{name}: {unit}" for name, unit in zip(part.names, block.header.units, strict=False)
            if unit
        )  # fmt: skip
        warnings.append(f"the row of units is left out: {shown[:200]}")
    if part.repeated_names and not block.header.is_deep:
        shown = ", ".join(map(repr, part.repeated_names[:5]))
        warnings.append(f"several columns are called {shown}: pandas adds .1, .2 …")
    if part.repeats:
        rows = ", ".join(str(row + 1) for row in part.repeats[:3])
        warnings.append(f"the header comes again in row {rows}: left out when loading")
    return warnings


def _series_note(table: TableProfile) -> str:
    return (
        f"the sheets {table.name!r} continue one another: the load code joins them, and "
        f"{table.columns[-1].name!r} has the name of each row's sheet"
    )


def _overview(tables: list[TableProfile]) -> tuple[str, ...]:
    warnings: list[str] = []
    filled = [table.name.rpartition("!")[0] or table.name for table in tables if table.columns]
    sheets = Counter(filled)
    if len(sheets) > 1:
        warnings.append(
            f"{len(sheets)} sheets hold data; pd.read_excel without sheet_name reads only the first"
        )
    warnings += [
        f"the sheet {name!r} holds {count} tables: each has load code of its own"
        for name, count in sheets.items()
        if count > 1
    ]
    hidden = [table.name for table in tables if table.is_hidden]
    if hidden:
        warnings.append(f"hidden: {', '.join(map(repr, hidden))}")
    empty = [table.name for table in tables if not table.columns]
    if empty:
        warnings.append(f"empty: {', '.join(map(repr, empty))}")
    return tuple(warnings)
