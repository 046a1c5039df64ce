"""Files in Arrow's formats: parquet, feather, and Arrow streams.

For parquet, the footer gives rows, ranges and gaps; a pass over all rows gives everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from dm_jupyter.data.profile.column_facts import scalar
from dm_jupyter.data.profile.columns import (
    paired_key,
    profile_columns,
    repeats_warning,
    sample_rows,
)
from dm_jupyter.data.profile.faults import attempted, reading
from dm_jupyter.data.profile.literals import text_literal
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.data.profile.number_plan import number_plan
from dm_jupyter.data.profile.read_call import ReadCall, plain_table
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.suspicion import suspicions_of
from dm_jupyter.data.profile.table_pass import Deadline, LookedAt, in_pieces, large_table, table_of
from dm_jupyter.data.profile.text_columns import unified_texts

__all__ = ["profile_arrow", "profile_parquet"]

_WHOLE_CELLS = 2_000_000
_WHOLE_BYTES = 64 << 20
_PIECE_CELLS = 1 << 20
_PIECE_BYTES = 64 << 20
_BUFFER_BYTES = 1 << 20
_LEAST_ROWS = 100
_PLAIN_ROWS = 20_000
_ARROW_PIECE_CELLS = 1 << 20
_WAY_OUT = "It is damaged or incomplete: download or write it again."


def profile_parquet(source: Source) -> FileProfile:
    """Return the profile of a parquet file.

    Raises:
        DataFileError: the file is damaged or incomplete.
        OSError: the file can't be read.
    """
    way_out = "It is damaged or incomplete: download or write it again."
    table: TableProfile | None = None
    call = ReadCall("read_parquet")
    code = call.source(source.name)
    with reading(source.name, "the parquet file", way_out), _opened(source) as file:
        metadata = file.metadata
        footer = _Footer.of(file)
        is_whole = footer.cells <= _WHOLE_CELLS and footer.unpacked_bytes <= _WHOLE_BYTES
        frame = call.run(source.path) if is_whole else _first_rows(file, footer)
    with attempted():
        table = _described(frame, call, source.name) if is_whole else _large(source, footer, code)
    if table is None:
        table = plain_table(frame, code, name=source.name, what="table")
        if not is_whole:
            told = f"statistics are those of the first {len(frame):,} rows alone"
            table = replace(table, sampled_rows=len(frame), warnings=(told, *table.warnings))
    warnings, size = table.warnings, source.path.stat().st_size
    table = replace(table, row_count=metadata.num_rows, warnings=())
    return FileProfile(source.name, "parquet", size, (table,), warnings)


def _opened(source: Source) -> pq.ParquetFile:
    """Return the file, opened to keep neither a full row group nor earlier ones in memory."""
    return pq.ParquetFile(source.path, buffer_size=_BUFFER_BYTES, pre_buffer=False)


def _described(frame: pd.DataFrame, call: ReadCall, name: str) -> TableProfile:
    numbers = number_plan(frame)
    frame = numbers.finish(frame)
    frame, unified, unifying = unified_texts(frame)
    suspicions = suspicions_of(frame)
    columns = tuple(
        replace(column, note=numbers.notes.get(position) or suspicions.notes.get(position))
        for position, column in enumerate(profile_columns(frame))
    )
    return TableProfile(
        name,
        len(frame),
        columns,
        sample_rows(frame),
        replace(call, steps=(*numbers.steps, *unified)).source(name),
        key=paired_key(frame, columns),
        warnings=(
            *numbers.warnings,
            *unifying,
            *suspicions.warnings,
            *repeats_warning(frame, columns),
        ),
    )


@dataclass(frozen=True)
class _Footer:
    """Facts from the end of the file."""

    rows: int
    cells: int
    unpacked_bytes: int
    piece_rows: int
    """Rows of a piece, so that its size is bounded."""
    ranges: dict[str, tuple[Any, Any]]
    """Extremes of columns of numbers and times, if every row group has them.
    Texts are left out: writers may cut them."""
    missing: dict[str, int]
    """Missing counts of columns without fractions: NaN is a value to parquet."""

    @classmethod
    def of(cls, file: pq.ParquetFile) -> _Footer:
        """Return the facts from the footer."""
        metadata = file.metadata
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        unpacked = sum(group.total_byte_size for group in groups)
        rows, width = metadata.num_rows, max(1, metadata.num_columns)
        by_bytes = _PIECE_BYTES * rows // max(1, unpacked)
        ranges: dict[str, tuple[Any, Any]] = {}
        missing: dict[str, int] = {}
        places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
        for column in file.schema_arrow:
            if column.name not in places or not groups or not _is_measure(column.type):
                continue
            found = [group.column(places[column.name]).statistics for group in groups]
            _note(column, found, ranges, missing)
        return cls(
            rows,
            rows * metadata.num_columns,
            unpacked,
            max(_LEAST_ROWS, min(_PIECE_CELLS // width, by_bytes)),
            ranges,
            missing,
        )

    def corrected(self, column: ColumnProfile) -> ColumnProfile:
        """Return a partly seen column with what the footer says of all rows."""
        low, high = self.ranges.get(column.name, (None, None))
        if low is not None and column.minimum is not None:
            column = replace(column, minimum=scalar(low), maximum=scalar(high))
        missing = self.missing.get(column.name)
        return column if missing is None else replace(column, missing=missing)


def _is_measure(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_time(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _note(
    column: pa.Field,
    found: list[Any],
    ranges: dict[str, tuple[Any, Any]],
    missing: dict[str, int],
) -> None:
    """Add the range and missing count of a column, from the statistics of all row groups."""
    if any(each is None for each in found):
        return
    is_counted = all(each.has_null_count for each in found)
    if is_counted and not pa.types.is_floating(column.type):
        missing[column.name] = sum(each.null_count for each in found)
    present = [each for each in found if not (each.has_null_count and not each.num_values)]
    if not present or not all(each.has_min_max for each in present):
        return
    low, high = min(each.min for each in present), max(each.max for each in present)
    if pa.types.is_timestamp(column.type):
        low, high = pd.Timestamp(low), pd.Timestamp(high)
    ranges[column.name] = (low, high)


def _large(source: Source, footer: _Footer, code: str) -> TableProfile:
    """Return the findings of a pass over all rows, and the footer's for rows it does not reach.

    Raises:
        Exception: whatever pyarrow raises on a damaged row group.
    """
    deadline = Deadline.of(source.effort)

    def pieces(names: list[Any] | None) -> Iterator[pd.DataFrame]:
        with _opened(source) as file:
            for batch in file.iter_batches(footer.piece_rows, columns=names):
                yield batch.to_pandas()

    table = large_table(source.name, pieces, code, deadline, row_count=footer.rows)
    if table.sampled_rows is None:
        return table
    columns = tuple(map(footer.corrected, table.columns))
    known = [column.name for column in columns if column.name in footer.ranges]
    told = f"ranges of {len(known):,} columns are those of the whole file, as its footer says"
    warnings = (*table.warnings, told) if known else table.warnings
    return replace(table, columns=columns, warnings=warnings)


def _first_rows(file: pq.ParquetFile, footer: _Footer) -> pd.DataFrame:
    batches = file.iter_batches(min(_PLAIN_ROWS, footer.piece_rows))
    frame: pd.DataFrame = next(batches).to_pandas()
    return frame


def profile_arrow(source: Source, kind: str) -> FileProfile:
    """Return the profile of an Arrow file or stream.

    Args:
        source: the file.
        kind: feather for a file, arrow for a stream.

    Raises:
        DataFileError: the file is damaged or incomplete.
        OSError: the file can't be read.
    """
    name = text_literal(source.name)
    with reading(source.name, "the Arrow file", _WAY_OUT):
        if kind == "arrow":
            code = (
                f'import pyarrow as pa\nwith open({name}, "rb") as file:\n'
                "    df = pa.ipc.open_stream(file).read_pandas()"
            )
            looked_at = in_pieces(_batches(source), Deadline.of(source.effort))
        else:
            code = f"df = pd.read_feather({name})"
            looked_at = _file(source)
        table = table_of(source.name, looked_at, code)
    size = source.path.stat().st_size
    return FileProfile(source.name, kind, size, (table,))


def _file(source: Source) -> LookedAt:
    """Return the frame of an Arrow file, or of the first version of feather."""
    if source.head(6) != b"ARROW1":
        frame: pd.DataFrame = feather.read_feather(source.path)
        return LookedAt(frame)
    with pa.memory_map(str(source.path)) as mapped:
        file = pa.ipc.open_file(mapped)
        if not file.num_record_batches:
            return LookedAt(file.schema.empty_table().to_pandas())
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        return in_pieces(_split(batches), Deadline.of(source.effort))


def _batches(source: Source) -> Iterator[pd.DataFrame]:
    """Yield the batches of a stream.

    Yields:
        Frames.
    """
    with source.open() as stream:
        reader = pa.ipc.open_stream(stream)
        yield reader.schema.empty_table().to_pandas()
        yield from _split(reader)


def _split(batches: Iterable[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    """Yield record batches, which have any size, in pieces of bounded size.

    Yields:
        Frames.
    """
    for batch in batches:
        size = max(1, _ARROW_PIECE_CELLS // max(1, batch.num_columns))
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size).to_pandas()
