"""Workbooks: xlsx, xlsb, xls and ods, every sheet of them."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from dm_jupyter.agent.profile.columns import profile_columns, sample_rows
from dm_jupyter.agent.profile.faults import attempted, reading
from dm_jupyter.agent.profile.frame_steps import JOIN_HEADER_LEVELS
from dm_jupyter.agent.profile.grain import paired_key
from dm_jupyter.agent.profile.model import FileProfile, TableProfile
from dm_jupyter.agent.profile.number_plan import number_plan, texts_read_as_numbers
from dm_jupyter.agent.profile.ods_scan import check_ods
from dm_jupyter.agent.profile.plain_load import plain_table
from dm_jupyter.agent.profile.read_call import ReadCall
from dm_jupyter.agent.profile.sheet_cleaning import cleaning_of, missing_marks
from dm_jupyter.agent.profile.sheet_layout import (
    SEARCHED_ROWS,
    SheetLayout,
    find_footer,
    find_sheet_layout,
)
from dm_jupyter.agent.profile.source import Source
from dm_jupyter.agent.profile.suspicion import suspicions_of
from dm_jupyter.agent.profile.xlsb_scan import check_xlsb
from dm_jupyter.agent.profile.xlsx_scan import (
    Merge,
    SheetExtent,
    check_unpacked_size,
    scan_workbook,
)
from dm_jupyter.core.errors import DataFileError

__all__ = ["profile_workbook"]

_WHOLE_CELLS = 100_000
_SAMPLE_CELLS = 20_000
_LEAST_ROWS = 100
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
    """Returns the profile of a workbook.

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
        tables, notes = _sheets(source, book, _extents(source, kind), kind)
    return FileProfile(source.name, kind, size, tuple(tables), _overview(tables), tuple(notes))


def _check_size(source: Source, kind: str) -> None:
    """Refuses a workbook that would take more memory than one may.

    Raises:
        DataFileError: with the limit and the way out.
        zipfile.BadZipFile: the archive is damaged.
        KeyError: the archive holds no content.
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
    """Returns the sheets' extents where the format lets them be known cheaply."""
    extents: tuple[SheetExtent, ...] = ()
    if kind == "xlsx":
        # Unknown extents cost precision alone; whether the parts can be read, openpyxl says.
        with attempted():
            extents = scan_workbook(source.path)
    return {extent.name: extent for extent in extents}


def _sheets(
    source: Source, book: pd.ExcelFile, extents: dict[str, SheetExtent], kind: str
) -> tuple[list[TableProfile], list[str]]:
    tables: list[TableProfile] = []
    notes: list[str] = []
    names = [str(name) for name in book.sheet_names]
    room = _WHOLE_CELLS
    for name in names[:_MAX_SHEETS]:
        extent = extents.get(name) or SheetExtent(name, _is_hidden_xls(book, name, kind), 0, -1)
        call = ReadCall("read_excel", (("sheet_name", name),) if len(names) > 1 else ())
        is_whole = extent.cells <= room
        table: TableProfile | None = None
        with attempted():
            table = _sheet(source, book, call, extent, is_whole=is_whole)
        tables.append(table or _plain(source, book, call, extent))
        room -= max(0, extent.cells) if is_whole else 0
    if len(names) > _MAX_SHEETS:
        notes.append(f"{len(names) - _MAX_SHEETS} more sheets are not described")
    return tables, notes


def _is_hidden_xls(book: pd.ExcelFile, name: str, kind: str) -> bool:
    workbook: Any = book.book
    if kind == "xlsb":
        about = next(sheet for sheet in workbook.sheets_metadata if sheet.name == name)
        return str(about.visible) != "SheetVisibleEnum.Visible"
    return kind == "xls" and bool(workbook.sheet_by_name(name).visibility)


def _plain(source: Source, book: pd.ExcelFile, call: ReadCall, extent: SheetExtent) -> TableProfile:
    """Returns a sheet as `pd.read_excel` loads it by itself.

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
    """Returns the call as the notebook needs it; an open book takes no such argument.

    pandas 4 changes the default for xlsx, and 3.1 warns of it where calamine is installed: named,
    it reads the same everywhere.
    """
    engine = getattr(book, "engine", None)  # missing from the type stubs
    is_named = engine in {"openpyxl", "calamine"}
    return call.with_arguments(engine=engine) if is_named else call


def _sheet(
    source: Source, book: pd.ExcelFile, call: ReadCall, extent: SheetExtent, *, is_whole: bool
) -> TableProfile:
    if extent.cells == 0:
        return TableProfile(extent.name, 0, is_hidden=extent.is_hidden)
    is_stray = extent.dense_rows is not None
    if is_stray:
        call = call.with_arguments(usecols=f"A:{extent.last_column}")
    top = min(SEARCHED_ROWS, extent.dense_rows or SEARCHED_ROWS)
    grid = call.run(book, header=None, dtype=object, nrows=top)
    if grid.empty:
        return TableProfile(extent.name, 0, is_hidden=extent.is_hidden)
    layout = find_sheet_layout(grid)
    above = layout.header[-1] + 1
    is_deep = len(layout.header) > 1
    header: object = list(layout.header) if is_deep else layout.header[0] or None
    steps = (JOIN_HEADER_LEVELS,) if is_deep else ()
    call = replace(call.with_arguments(header=header), steps=steps)
    if extent.dense_rows is not None:
        call = call.with_arguments(nrows=max(0, extent.dense_rows - above))
        is_whole = True
    limit = None if is_whole else max(_LEAST_ROWS, _SAMPLE_CELLS // grid.shape[1])
    warnings = _layout_warnings(layout, extent)
    if is_whole:
        call, cleaned = _cleaned(book, call, extent.merges, above)
        warnings += cleaned
    table = _table(source, book, call, limit)
    if limit is not None and table.row_count == limit:
        part = f"number formats and codes were looked for in the first {limit:,} rows alone"
        table = replace(
            table,
            row_count=max(limit, extent.rows - above),
            sampled_rows=limit,
            warnings=(*table.warnings, part),
        )
    return replace(
        table,
        name=extent.name,
        is_hidden=extent.is_hidden,
        warnings=(*warnings, *table.warnings),
    )


def _table(source: Source, book: pd.ExcelFile, call: ReadCall, limit: int | None) -> TableProfile:
    frame = call.run(book) if limit is None else call.run(book, nrows=limit)
    told_of = {"nrows": limit} if limit is not None else {}
    if codes := texts_read_as_numbers(frame, call.run(book, **told_of, dtype=object)):
        call = call.with_arguments(dtype=dict.fromkeys(codes, str))
        frame = call.run(book, **told_of)
    numbers = number_plan(frame)
    call = replace(call, steps=(*call.steps, *numbers.steps))
    frame = numbers.finish(frame)
    suspicions = suspicions_of(frame)
    columns = tuple(
        replace(column, note=numbers.notes.get(position) or suspicions.notes.get(position))
        for position, column in enumerate(profile_columns(frame))
    )
    rows = sample_rows(frame)
    code = _engine_named(book, call).source(source.name)
    told = (*numbers.warnings, *suspicions.warnings)
    key = paired_key(frame, columns) if limit is None else ()
    return TableProfile("", len(frame), columns, rows, code, warnings=told, key=key)


def _cleaned(
    book: pd.ExcelFile, call: ReadCall, merges: tuple[Merge, ...], above: int
) -> tuple[ReadCall, list[str]]:
    """Returns the call that makes a table of a whole sheet, and what it does to it."""
    warnings: list[str] = []
    frame = call.run(book)
    footer_rows, note = find_footer(frame)
    if footer_rows and dict(call.arguments).get("nrows") is None:
        # Without the notes the columns above them get their types back.
        call = call.with_arguments(skipfooter=footer_rows)
        warnings.append(f"the last {footer_rows} rows are notes and left out: {note[:60]!r}")
        frame = call.run(book)
    if marks := missing_marks(frame):
        call = call.with_arguments(na_values=marks)
        warnings.append(f"read as missing: {', '.join(map(repr, marks[:4]))}")
        frame = call.run(book)
    cleaning = cleaning_of(frame, merges, above)
    call = replace(call, steps=(*call.steps, *cleaning.steps))
    return call, [*warnings, *cleaning.warnings]


def _layout_warnings(layout: SheetLayout, extent: SheetExtent) -> list[str]:
    warnings: list[str] = []
    if extent.dense_rows is not None:
        warnings.append(
            f"a stray cell far away (row {extent.rows:,}) makes the sheet absurdly large: only "
            f"columns A to {extent.last_column}, rows 1 to {extent.dense_rows:,} are read"
        )
    if layout.titles:
        shown = "; ".join(title[:60] for title in layout.titles[:2])
        warnings.append(f"text above the table is skipped: {shown!r}")
    if len(layout.header) > 1:
        warnings.append(
            f"the header has {len(layout.header)} rows; the load code joins them with ' | '"
        )
    return warnings


def _overview(tables: list[TableProfile]) -> tuple[str, ...]:
    warnings: list[str] = []
    filled = [table.name for table in tables if table.columns]
    if len(filled) > 1:
        warnings.append(
            f"{len(filled)} sheets hold data; pd.read_excel without sheet_name reads only the first"
        )
    hidden = [table.name for table in tables if table.is_hidden]
    if hidden:
        warnings.append(f"hidden: {', '.join(map(repr, hidden))}")
    empty = [table.name for table in tables if not table.columns]
    if empty:
        warnings.append(f"empty: {', '.join(map(repr, empty))}")
    return tuple(warnings)
