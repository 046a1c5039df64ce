"""Parquet files: counts from the metadata, values from a bounded number of rows."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyarrow.parquet as pq

from dm_jupyter.agent.profile.columns import profile_columns, sample_rows
from dm_jupyter.agent.profile.faults import attempted, reading
from dm_jupyter.agent.profile.grain import paired_key
from dm_jupyter.agent.profile.model import FileProfile, TableProfile
from dm_jupyter.agent.profile.number_plan import number_plan
from dm_jupyter.agent.profile.plain_load import plain_table
from dm_jupyter.agent.profile.read_call import ReadCall
from dm_jupyter.agent.profile.source import Source
from dm_jupyter.agent.profile.suspicion import suspicions_of

__all__ = ["profile_parquet"]

_WHOLE_CELLS = 2_000_000
_WHOLE_BYTES = 64 << 20
_SAMPLE_ROWS = 20_000


def profile_parquet(source: Source) -> FileProfile:
    """Returns the profile of a parquet file.

    Raises:
        DataFileError: the file is damaged or incomplete.
        OSError: the file can't be read.
    """
    way_out = "It is damaged or incomplete: download or write it again."
    with reading(source.name, "the parquet file", way_out), pq.ParquetFile(source.path) as file:
        metadata = file.metadata
        unpacked = sum(
            metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)
        )
        cells = metadata.num_rows * metadata.num_columns
        call = ReadCall("read_parquet")
        is_whole = cells <= _WHOLE_CELLS and unpacked <= _WHOLE_BYTES
        frame = call.run(source.path) if is_whole else _first_rows(file)
    code = call.source(source.name)
    table: TableProfile | None = None
    with attempted():
        table = _described(frame, call, source.name)
    table = table or plain_table(frame, code, name=source.name, what="table")
    sampled = None if is_whole else len(frame)
    if not is_whole:
        told = f"statistics and number formats are those of the first {len(frame):,} rows alone"
        table = replace(table, warnings=(told, *table.warnings))
    warnings, size = table.warnings, source.path.stat().st_size
    table = replace(table, row_count=metadata.num_rows, sampled_rows=sampled, warnings=())
    table = table if is_whole else replace(table, key=())
    return FileProfile(source.name, "parquet", size, (table,), warnings)


def _described(frame: pd.DataFrame, call: ReadCall, name: str) -> TableProfile:
    numbers = number_plan(frame)
    frame = numbers.finish(frame)
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
        replace(call, steps=numbers.steps).source(name),
        key=paired_key(frame, columns),
        warnings=(*numbers.warnings, *suspicions.warnings),
    )


def _first_rows(file: pq.ParquetFile) -> pd.DataFrame:
    """Returns the first rows; small batches keep a wide or nested file within memory."""
    columns = max(1, file.metadata.num_columns)
    size = max(100, min(_SAMPLE_ROWS, _WHOLE_CELLS // columns))
    batch = next(file.iter_batches(batch_size=size))
    frame: pd.DataFrame = batch.to_pandas()
    return frame
