"""The tables of a web page.

Covered: addresses in a page, none of which is opened; cells that claim to span more than a table
has. Not covered: what a page would show only after its scripts ran.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pandas as pd
from lxml.etree import HTMLParser, parse, tostring

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.encoding import detect_encoding
from dm_jupyter.data.profile.faults import reading
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import text_literal
from dm_jupyter.data.profile.model import FileProfile, TableProfile
from dm_jupyter.data.profile.read_call import ReadCall
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.table_pass import LookedAt, table_of

__all__ = ["profile_html"]

_read_html: Any = pd.read_html
"""`pd.read_html`; its stubs know neither a page in bytes nor thousands without a mark."""
_MAX_BYTES = 40 << 20
_MAX_TABLES = 30
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=", re.I)
_SPAN = re.compile(rb"(?:col|row)span\s*=\s*[\"']?\s*\+?0*[1-9]\d{4}", re.I)
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)*|[.,]\d+)")
_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+")
_POINT_GROUPS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+(,\d+)?")
_COMMA_GROUPS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_WAY_OUT = "Open it in a browser, and save what you need as .csv or .xlsx."
_JOINED_HEADER = FrameStep(
    """\
df.columns = [
    " | ".join(dict.fromkeys(str(p) for p in parts if not str(p).startswith("Unnamed:")))
    for parts in df.columns
]""",
    lambda frame: frame.set_axis(
        [
            " | ".join(dict.fromkeys(str(p) for p in parts if not str(p).startswith("Unnamed:")))
            for parts in frame.columns
        ],
        axis="columns",
    ),
)
"""Step that joins a header of several rows into one name per column; a tall cell counts once."""


def profile_html(source: Source) -> FileProfile:
    """Return the profile of the tables of a web page.

    Raises:
        DataFileError: there is no table, or the page is too large.
        OSError: the file can't be read.
    """
    source.refuse_larger(_MAX_BYTES, "HTML")
    if _is_spanning(source):
        raise DataFileError(
            f"{source.name}: a cell of this web page spans more rows or columns than any table "
            "has, so it would unfold without end. It is not read."
        )
    if source.compression == "zip":
        raise DataFileError(f"{source.name}: unpack it first: pandas reads no web page in a zip.")
    with reading(source.name, "the web page", _WAY_OUT):
        options = _html_options(source)
        try:
            found = _read_tables(source, {**options, "thousands": None})
        except ValueError as error:
            if "No tables found" not in str(error):
                raise
            found = []
        grids = _grids(source, options)
        tables = [
            _html_table(source, options, position, _grid_of(grids, position, frame.shape))
            for position, frame in enumerate(found[:_MAX_TABLES])
            if frame.shape[0] > 0 and frame.shape[1] > 1
        ]
    if not tables:
        raise DataFileError(
            f"{source.name}: this is a web page (HTML) without a table that pd.read_html finds; "
            f"a page may load its figures later. {_WAY_OUT}"
        )
    if len(tables) == 1:
        tables = [replace(tables[0], name=source.name)]
    notes = []
    if left := len(found) - len(tables):
        notes.append(f"{left} more tables of the page are a single column, or too many to describe")
    size = source.path.stat().st_size
    return FileProfile(source.name, "html", size, tuple(tables), (), tuple(notes))


def _is_spanning(source: Source) -> bool:
    """Return whether a cell claims to span ten thousand rows or columns, or more."""
    rest = b""
    for block in source.chunks():
        if _SPAN.search(rest + block):
            return True
        rest = block[-100:]
    return False


def _html_options(source: Source) -> dict[str, Any]:
    """Return the options for every reading of the page: an encoding that it does not declare."""
    head = source.head(4096)
    if _CHARSET.search(head) or head.startswith((b"<?xml", b"\xef\xbb\xbf", b"\xff\xfe")):
        return {}
    codec = detect_encoding(source).codec
    return {"encoding": codec}


def _read_tables(source: Source, arguments: dict[str, Any]) -> list[pd.DataFrame]:
    with source.open() as stream:
        found: list[pd.DataFrame] = _read_html(stream, **arguments)
    return found


def _grids(source: Source, options: dict[str, Any]) -> list[pd.DataFrame]:
    """Return the tables with every cell as text, as the page shows it.

    One table at a time: pandas takes converters for all tables of a page, and fails if one of them
    is narrower.
    """
    parser = HTMLParser(encoding=options.get("encoding"), recover=True, no_network=True)
    with source.open() as stream:
        page = parse(stream, parser)
    found: list[pd.DataFrame] = []
    for table in page.iter("table"):
        text = tostring(table, encoding="unicode", with_tail=False)
        try:
            width = _read_html(io.StringIO(text))[0].shape[1]
            as_text: dict[Any, Any] = dict.fromkeys(range(width), str)
            grid = _read_html(
                io.StringIO(text), converters=as_text, keep_default_na=False, thousands=None
            )[0]
        except (ValueError, IndexError):  # no row at all, or a narrower table inside the table
            continue
        found.append(grid)
        if len(found) == _MAX_TABLES:
            break
    return found


def _grid_of(grids: list[pd.DataFrame], position: int, shape: tuple[int, ...]) -> pd.DataFrame:
    """Return a table as text; an empty one if the page is too tangled to identify it."""
    if position < len(grids) and grids[position].shape == shape:
        return grids[position]
    return pd.DataFrame()


def _html_table(
    source: Source, options: dict[str, Any], position: int, raw: pd.DataFrame
) -> TableProfile:
    """Return one table.

    Args:
        source: the page.
        options: options for every reading of it.
        position: position of the table in pandas' result.
        raw: its cells as text.
    """
    # pandas' own default drops every comma, which makes 12,50 more than a thousand.
    arguments: dict[str, Any] = {**options, "thousands": None}
    body = raw
    if _has_header_below(raw):
        arguments["header"] = 0
        body = raw.iloc[1:].set_axis([str(cell) for cell in raw.iloc[0]], axis="columns")
    arguments.update(_marks(body))
    coded = [name for place, name in enumerate(body.columns) if _is_code(body.iloc[:, place])]
    named = [name for name in coded if isinstance(name, str)]
    if named:
        arguments["converters"] = dict.fromkeys(named, str)
    frame = _read_tables(source, arguments)[position]
    words = ", ".join([_opened(source), *ReadCall("", tuple(arguments.items())).words()])
    code = f"df = pd.read_html({words})[{position}]"
    if source.compression:
        code = f"import {_module(source)}\n{code}"
    if isinstance(frame.columns, pd.MultiIndex):
        frame = _JOINED_HEADER.run(frame)
        code = f"{code}\n{_JOINED_HEADER.source}"
    table = table_of(f"table {position}", LookedAt(frame), code)
    told = []
    if arguments.get("decimal") == ",":
        told.append("the decimal mark is a comma; points between digits are grouping")
    if lost := [name for name in coded if name not in named]:
        told.append(f"leading zeros are lost in column(s) {', '.join(map(repr, lost[:8]))}")
    return replace(table, warnings=(*table.warnings, *told))


def _opened(source: Source) -> str:
    """Return code for the source of the page; pandas does not unpack one."""
    name = text_literal(source.name)
    return f'{_module(source)}.open({name}, "rb")' if source.compression else name


def _module(source: Source) -> str:
    named = {"xz": "lzma", "zstd": "zstandard"}
    return named.get(str(source.compression), str(source.compression))


def _has_header_below(raw: pd.DataFrame) -> bool:
    """Return whether a table without header cells has its header as the first row."""
    if len(raw) < 2 or any(isinstance(label, (str, tuple)) for label in raw.columns):
        return False
    first = [str(cell).strip() for cell in raw.iloc[0]]
    if not all(first) or len(set(first)) < len(first) or any(map(_NUMBER.fullmatch, first)):
        return False
    # Names above numbers; a table of words alone keeps all of its rows.
    return any(_NUMBER.fullmatch(str(cell).strip()) for cell in raw.iloc[1])


def _marks(body: pd.DataFrame) -> dict[str, str | None]:
    """Return the marks within numbers, if every number of the table agrees with them."""
    cells = [str(cell).strip() for cell in body.to_numpy().ravel()]
    marked = [cell for cell in cells if _NUMBER.fullmatch(cell) and ("," in cell or "." in cell)]
    commas = [cell for cell in marked if "," in cell]
    points = [cell for cell in marked if "." in cell]
    is_comma = any(_COMMA.fullmatch(cell) and not _COMMA_GROUPS.fullmatch(cell) for cell in commas)
    is_comma = is_comma and all(map(_COMMA.fullmatch, commas))
    if is_comma and all(map(_POINT_GROUPS.fullmatch, points)):
        return {"decimal": ",", "thousands": "." if points else None}
    # One cell such as 3,4 in a table rules the mark out; such columns stay text, and are reported.
    has_other = any(not _COMMA_GROUPS.fullmatch(cell) for cell in commas)
    if not commas or has_other:
        return {}
    # 1,234 alone may be 1.234 elsewhere; 1,234,567 or 1,234.5 may not.
    is_sure = any(cell.count(",") > 1 or "." in cell for cell in commas) or bool(points)
    return {"thousands": ","} if is_sure else {}


def _is_code(values: pd.Series[Any]) -> bool:
    """Return whether digits are names rather than amounts: some begin with a zero, or are long."""
    cells = [str(cell).strip() for cell in values if str(cell).strip()]
    if not cells or not all(cell.isdecimal() for cell in cells):
        return False
    return any((len(cell) > 1 and cell[0] == "0") or len(cell) > 15 for cell in cells)
