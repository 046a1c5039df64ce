"""JSON and JSON lines: records, columns, rows by name, pandas' own orients, or nested records.

In GeoJSON, each feature is one row, with its properties and the type of its shape as columns.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pandas as pd

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.columns import profile_columns, sample_rows
from dm_jupyter.data.profile.encoding import detect_encoding
from dm_jupyter.data.profile.faults import attempted, reading
from dm_jupyter.data.profile.json_layout import JsonLayout, find_json_layout, is_same
from dm_jupyter.data.profile.literals import text_literal
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.data.profile.number_plan import number_plan
from dm_jupyter.data.profile.read_call import ReadCall, plain_table
from dm_jupyter.data.profile.source import Source, inferred_compression
from dm_jupyter.data.profile.suspicion import suspicions_of
from dm_jupyter.data.profile.table_pass import Deadline, LookedAt, large_table, table_of

__all__ = ["profile_geojson", "profile_json"]

_MAX_BYTES = 100 << 20
_WHOLE_BYTES = 16 << 20
_PIECE_ROWS = 20_000
_COUNT_SHARE = 0.2
_WAY_OUT = "Check that the file is whole, and that it is JSON."
_GEOJSON_WAY_OUT = "Check that the file is whole, and that it is GeoJSON."
_OPENERS = {None: "open", "gzip": "gzip.open", "bz2": "bz2.open", "xz": "lzma.open"}


def profile_json(source: Source, *, is_lines: bool) -> FileProfile:
    """Return the profile of a JSON file.

    Raises:
        DataFileError: the file is not JSON, contains no records, or is too large to be parsed in
            one piece.
        OSError: the file can't be read.
    """
    codec = "utf-8"
    with attempted():
        codec = detect_encoding(source).codec
    with reading(source.name, "the JSON", _WAY_OUT):
        is_lines = is_lines or _is_lines(source, codec)
        data = None if is_lines else _parsed(source, codec)
    table: TableProfile | None = None
    with attempted():
        table = _lines(source, codec) if is_lines else _document(source, codec, data)
    if table is None:
        call = _call(source, codec, **({"lines": True} if is_lines else {}))
        with reading(source.name, "the JSON", _WAY_OUT):
            frame = call.run(source.path)
        table = plain_table(frame, call.source(source.name), name=source.name, what="table")
    warnings, kind = table.warnings, "jsonl" if is_lines else "json"
    size = source.path.stat().st_size
    return FileProfile(source.name, kind, size, (replace(table, warnings=()),), warnings)


def _is_lines(source: Source, codec: str) -> bool:
    """Return whether each of the first two lines is a JSON object by itself."""
    text = source.head(256 * 1024).decode(codec, "replace").strip("\ufeff \r\n\t")
    lines = [line for line in text.split("\n", 2)[:2] if line.strip()]
    if len(lines) < 2:
        return False
    try:
        return all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def _parsed(source: Source, codec: str) -> object:
    """Return the entire document.

    Raises:
        DataFileError: it is too large to be parsed in one piece.
        ValueError: it is not JSON.
    """
    size = source.unpacked_bytes()
    if size > _MAX_BYTES:
        raise DataFileError(
            f"{source.name}: {size / 1e6:,.0f} MB of JSON in one piece need many times that "
            "memory. Convert it to JSON lines or parquet first."
        )
    with source.open() as stream:
        return json.loads(stream.read().decode(codec))


def _call(source: Source, codec: str, **arguments: Any) -> ReadCall:
    if codec != "utf-8":
        arguments["encoding"] = codec
    if source.compression != inferred_compression(source.name):
        arguments["compression"] = source.compression
    return ReadCall("read_json", tuple(arguments.items()))


def _lines(source: Source, codec: str) -> TableProfile:
    call = _call(source, codec, lines=True)
    if source.unpacked_bytes() <= _WHOLE_BYTES:
        with source.open() as stream:
            exact = pd.DataFrame([json.loads(line) for line in stream if line.strip()])
        call, frame = _verified(source, call, exact) or (call, call.run(source.path))
        return _table(source, frame, call.source(source.name))
    # How pandas reads numbers in quotes, and names that sound like times, depends on where it cuts
    # the file.
    return _large_lines(source, codec, call.with_arguments(dtype=False, convert_dates=False))


def _large_lines(source: Source, codec: str, call: ReadCall) -> TableProfile:
    deadline = Deadline.of(source.effort)
    unpacked = call.with_arguments(compression=None, encoding=None)

    def pieces(names: list[Any] | None) -> Iterator[pd.DataFrame]:
        with source.open() as stream:
            texts = io.TextIOWrapper(stream, codec, newline="\n")
            while lines := list(islice(texts, _PIECE_ROWS)):
                piece = unpacked.run(io.StringIO("".join(lines)))
                yield piece if names is None else piece.reindex(columns=names)

    table = large_table(
        source.name, pieces, call.source(source.name), deadline, row_count=_line_count(source)
    )
    return replace(table, warnings=(*table.warnings, *_nested(table.columns)))


def _line_count(source: Source) -> int | None:
    """Return the number of records; `None` if counting them takes too long."""
    stop_at = time.monotonic() + _COUNT_SHARE * source.effort.seconds
    count = 0
    with source.open() as stream:
        while lines := list(islice(stream, _PIECE_ROWS)):
            count += sum(1 for line in lines if line.strip())
            if time.monotonic() > stop_at:
                return None
    return count


def _document(source: Source, codec: str, data: object) -> TableProfile:
    layout = find_json_layout(data)
    if layout is None:
        raise DataFileError(
            f"{source.name}: the JSON contains no list of records, so there is no table to read. "
            "Load it with json.load and build a DataFrame from the part you need."
        )
    frame, code = _shortest(source, codec, data, layout)
    table = _table(source, frame, code)
    return replace(table, warnings=(*layout.warnings, *table.warnings))


def _shortest(
    source: Source, codec: str, data: object, layout: JsonLayout
) -> tuple[pd.DataFrame, str]:
    """Return the frame, by `pd.read_json` if that keeps every value, and its code."""
    if layout.orient == "table":
        # Its schema says more than the values: times and categories come back as they were.
        with attempted():
            call = _call(source, codec, orient="table")
            return call.run(source.path), call.source(source.name)
    exact = layout.build(data)
    if layout.orient in {"", "index", "split"}:
        given = {"orient": layout.orient} if layout.orient else {}
        if verified := _verified(source, _call(source, codec, **given), exact):
            return verified[1], verified[0].source(source.name)
    return exact, _parsing_code(source, codec, layout.code)


def _verified(
    source: Source, call: ReadCall, exact: pd.DataFrame
) -> tuple[ReadCall, pd.DataFrame] | None:
    """Return the first call that returns what the document says, with its frame."""
    options: tuple[dict[str, bool], ...] = (
        {},
        {"dtype": False},
        {"dtype": False, "convert_axes": False},
    )
    for option in options:
        tried = call.with_arguments(**option)
        with attempted():
            frame = tried.run(source.path)
            if is_same(frame, exact):
                return tried, frame
    return None


def _table(source: Source, frame: pd.DataFrame, code: str) -> TableProfile:
    numbers = number_plan(frame)
    frame = numbers.finish(frame)
    suspicions = suspicions_of(frame)
    columns = tuple(
        replace(column, note=numbers.notes.get(position) or suspicions.notes.get(position))
        for position, column in enumerate(profile_columns(frame))
    )
    return TableProfile(
        source.name,
        len(frame),
        columns,
        sample_rows(frame),
        "\n".join([code, *(step.source for step in numbers.steps)]),
        warnings=(*numbers.warnings, *suspicions.warnings, *_nested(columns)),
    )


def _parsing_code(source: Source, codec: str, expression: str) -> str:
    opening = f"open({text_literal(source.name)}, encoding={text_literal(codec)})"
    head = "import json"
    if source.compression:
        module = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma"}.get(source.compression, "gzip")
        head += f"\nimport {module}"
        opening = (
            f'{module}.open({text_literal(source.name)}, "rt", encoding={text_literal(codec)})'
        )
    return f"{head}\nwith {opening} as file:\n    data = json.load(file)\ndf = {expression}"


def _nested(columns: Iterable[ColumnProfile]) -> tuple[str, ...]:
    """Return a warning for columns whose cells are lists or dictionaries: they are not counted."""
    names = [one.name for one in columns if one.unique is None and one.missing is not None]
    shown = ", ".join(map(repr, names[:8]))
    told = f"cells are lists or dictionaries in {shown}: use df.explode or pd.json_normalize"
    return (told,) if names else ()


def profile_geojson(source: Source) -> FileProfile:
    """Return the profile of a collection of features.

    Raises:
        DataFileError: it is not JSON, has no features, or is too large to be parsed in one piece.
        OSError: the file can't be read.
    """
    if source.compression not in _OPENERS:
        raise DataFileError(f"{source.name}: unpack it first: GeoJSON in a {source.compression}.")
    source.refuse_larger(_MAX_BYTES, "GeoJSON")
    with reading(source.name, "the GeoJSON", _GEOJSON_WAY_OUT):
        codec = detect_encoding(source).codec
        with source.open() as stream:
            data = json.loads(stream.read().decode(codec))
        features = _features(data, source.name)
        is_points = all(_type(one) in {"Point", None} for one in features)
        frame = _frame(features, is_points=is_points)
        code = _code(source, codec, is_points=is_points)
        table = table_of(source.name, LookedAt(frame), code)
    warnings = (*_projection(data), *table.warnings)
    note = (
        "one row is one feature; coordinates are longitude, then latitude; "
        "data['features'][i]['geometry'] has the shapes"
    )
    size = source.path.stat().st_size
    table = replace(table, warnings=())
    return FileProfile(source.name, "geojson", size, (table,), warnings, (note,))


def _features(data: object, name: str) -> list[dict[str, object]]:
    """Return the features.

    Raises:
        DataFileError: there are none.
    """
    found = data.get("features") if isinstance(data, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise DataFileError(f"{name}: the GeoJSON holds no features.")
    return found


def _geometry(feature: dict[str, object]) -> dict[str, object]:
    geometry = feature.get("geometry")
    return geometry if isinstance(geometry, dict) else {}


def _type(feature: dict[str, object]) -> object:
    return _geometry(feature).get("type")


def _frame(features: list[dict[str, object]], *, is_points: bool) -> pd.DataFrame:
    """Return the frame that the code creates."""
    frame = pd.json_normalize([one.get("properties") or {} for one in features])  # type: ignore[misc]
    shapes = [one.get("geometry") or {} for one in features]
    frame["geometry.type"] = [shape.get("type") for shape in shapes]  # type: ignore[attr-defined]
    if is_points:
        points = [shape.get("coordinates") or [None, None] for shape in shapes]  # type: ignore[attr-defined]
        frame["geometry.longitude"] = [point[0] for point in points]
        frame["geometry.latitude"] = [point[1] for point in points]
    return frame


def _code(source: Source, codec: str, *, is_points: bool) -> str:
    opener = _OPENERS[source.compression]
    module, mode = opener.partition(".")[0], '"rt", ' if "." in opener else ""
    lines = [
        "import json",
        *([f"import {module}"] if mode else []),
        f"with {opener}({text_literal(source.name)}, {mode}"
        f"encoding={text_literal(codec)}) as file:",
        "    data = json.load(file)",
        'df = pd.json_normalize([one.get("properties") or {} for one in data["features"]])',
        'shapes = [one.get("geometry") or {} for one in data["features"]]',
        'df["geometry.type"] = [shape.get("type") for shape in shapes]',
    ]
    if is_points:
        lines += [
            'points = [shape.get("coordinates") or [None, None] for shape in shapes]',
            'df["geometry.longitude"] = [point[0] for point in points]',
            'df["geometry.latitude"] = [point[1] for point in points]',
        ]
    return "\n".join(lines)


def _projection(data: dict[str, object]) -> tuple[str, ...]:
    """Return a warning if the file names a coordinate system of its own."""
    crs = data.get("crs")
    named = json.dumps(crs)[:120] if isinstance(crs, dict) else ""
    if not named or "CRS84" in named or "4326" in named:
        return ()
    return (f"coordinates are not degrees: the file's coordinate system is {named}",)
