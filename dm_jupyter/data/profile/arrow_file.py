"""Arrow files, which feather is a name of, and Arrow streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd
import pyarrow as pa
from pyarrow import feather

from dm_jupyter.data.profile.faults import reading
from dm_jupyter.data.profile.frame_table import LookedAt, in_pieces, table_of
from dm_jupyter.data.profile.literals import quoted
from dm_jupyter.data.profile.model import FileProfile
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.table_pass import Deadline

__all__ = ["profile_arrow"]

_PIECE_CELLS = 1 << 20
_WAY_OUT = "It is damaged or incomplete: download or write it again."


def profile_arrow(source: Source, kind: str) -> FileProfile:
    """Returns the profile of an Arrow file or stream.

    Args:
        source: the file.
        kind: feather for a file, arrow for a stream.

    Raises:
        DataFileError: the file is damaged or incomplete.
        OSError: the file can't be read.
    """
    name = quoted(source.name)
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
    """Returns the frame of an Arrow file, or of the first version of feather."""
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
    """Yields the batches of a stream.

    Yields:
        Frames.
    """
    with source.open() as stream:
        reader = pa.ipc.open_stream(stream)
        yield reader.schema.empty_table().to_pandas()
        yield from _split(reader)


def _split(batches: Iterable[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    """Yields record batches, which have any size, in pieces of a bounded one.

    Yields:
        Frames.
    """
    for batch in batches:
        size = max(1, _PIECE_CELLS // max(1, batch.num_columns))
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size).to_pandas()
