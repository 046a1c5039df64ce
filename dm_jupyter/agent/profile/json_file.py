"""JSON and JSON lines: a list of records, a dictionary of columns, or records further inside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd

from dm_jupyter.agent.profile.columns import profile_columns, sample_rows
from dm_jupyter.agent.profile.encoding import detect_encoding
from dm_jupyter.agent.profile.faults import reading
from dm_jupyter.agent.profile.literals import quoted
from dm_jupyter.agent.profile.model import FileProfile, TableProfile
from dm_jupyter.agent.profile.number_plan import NumberPlan, number_plan
from dm_jupyter.agent.profile.read_call import ReadCall
from dm_jupyter.agent.profile.source import Source, inferred_compression
from dm_jupyter.agent.profile.suspicion import suspicions_of
from dm_jupyter.core.errors import DataFileError

__all__ = ["profile_json"]

_MAX_BYTES = 100 << 20
_WHOLE_BYTES = 16 << 20
_SAMPLE_ROWS = 20_000


def profile_json(source: Source, *, is_lines: bool) -> FileProfile:
    """Returns the profile of a JSON file.

    Raises:
        DataFileError: the file is no JSON, holds no records, or is too large to be parsed whole.
        OSError: the file can't be read.
    """
    way_out = "Check that the file is whole, and that it is JSON."
    with reading(source.name, "the JSON", way_out):
        codec = detect_encoding(source).codec
        is_lines = is_lines or _is_lines(source, codec)
        frame, code, count, numbers = (
            _lines(source, codec) if is_lines else _document(source, codec)
        )
        suspicions = suspicions_of(frame)
        columns = tuple(
            replace(column, note=numbers.notes.get(position) or suspicions.notes.get(position))
            for position, column in enumerate(profile_columns(frame))
        )
        table = TableProfile(
            source.name,
            count,
            columns,
            sample_rows(frame),
            code,
            sampled_rows=None if len(frame) == count else len(frame),
        )
    kind = "jsonl" if is_lines else "json"
    warnings = (*numbers.warnings, *suspicions.warnings, *_nested(frame))
    return FileProfile(source.name, kind, source.path.stat().st_size, (table,), warnings)


def _is_lines(source: Source, codec: str) -> bool:
    """Says whether each of the first two lines is a JSON object by itself."""
    text = source.head(256 * 1024).decode(codec, "replace").strip("\ufeff \r\n\t")
    lines = [line for line in text.splitlines()[:2] if line.strip()]
    if len(lines) < 2:
        return False
    try:
        return all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def _call(source: Source, codec: str, **arguments: Any) -> ReadCall:
    if codec != "utf-8":
        arguments["encoding"] = codec
    if source.compression != inferred_compression(source.name):
        arguments["compression"] = source.compression
    return ReadCall("read_json", tuple(arguments.items()))


def _lines(source: Source, codec: str) -> tuple[pd.DataFrame, str, int, NumberPlan]:
    call = _call(source, codec, lines=True)
    if source.unpacked_bytes() <= _WHOLE_BYTES:
        call, frame, numbers = _with_numbers(source, call)
        return frame, call.source(source.name), len(frame), numbers
    call, frame, numbers = _with_numbers(source, call, nrows=_SAMPLE_ROWS)
    numbers.warnings.append(
        f"number formats and codes were looked for in the first {len(frame):,} rows alone"
    )
    with source.open() as stream:
        count = sum(1 for line in stream if line.strip())
    return frame, call.source(source.name), count, numbers


def _with_numbers(
    source: Source, call: ReadCall, **limit: int
) -> tuple[ReadCall, pd.DataFrame, NumberPlan]:
    """Returns the call, its frame, and what is done about numbers in texts.

    pandas makes numbers of texts in JSON, and loses the zeros of "007"; where one text is not
    plain, all texts are kept, and those that are numbers are converted.
    """
    kept = call.with_arguments(dtype=False)
    texts = kept.run(source.path, **limit)
    numbers = number_plan(texts)
    if not numbers.text_columns:
        return call, call.run(source.path, **limit), NumberPlan()
    return replace(kept, steps=numbers.steps), numbers.finish(texts), numbers


def _document(source: Source, codec: str) -> tuple[pd.DataFrame, str, int, NumberPlan]:
    size = source.unpacked_bytes()
    if size > _MAX_BYTES:
        raise DataFileError(
            f"{source.name}: {size / 1e6:,.0f} MB of JSON in one piece need many times that "
            "memory. Convert it to JSON lines or parquet first."
        )
    with source.open() as stream:
        data = json.loads(stream.read().decode(codec))
    if _is_flat(data):
        call = _call(source, codec)
        call, frame, numbers = _with_numbers(source, call)
        return frame, call.source(source.name), len(frame), numbers
    records, steps = _records(data)
    if not records:
        raise DataFileError(
            f"{source.name}: the JSON holds no list of records, so there is no table to read. "
            "Load it with json.load and build a DataFrame from the part you need."
        )
    frame = pd.json_normalize(records)
    numbers = number_plan(frame)
    code = _normalising_code(source, codec, steps)
    code = "\n".join([code, *(step.source for step in numbers.steps)])
    return numbers.finish(frame), code, len(frame), numbers


def _is_flat(data: object) -> bool:
    """Says whether `pd.read_json` makes the right table by itself."""
    if isinstance(data, list):
        return bool(data) and all(
            isinstance(record, dict) and not any(isinstance(v, dict) for v in record.values())
            for record in data
        )
    if not isinstance(data, dict) or not data:
        return False
    columns = list(data.values())
    is_lists = all(isinstance(column, list) for column in columns)
    if is_lists and len({len(column) for column in columns}) == 1:
        return not any(
            isinstance(item, (dict, list)) for column in columns for item in column[:100]
        )
    is_maps = all(isinstance(column, dict) for column in columns)
    return is_maps and all(
        column.keys() == columns[0].keys() and not any(isinstance(v, dict) for v in column.values())
        for column in columns
    )


def _records(data: object) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the longest list of records within three levels, and the keys that lead to it."""
    best: tuple[list[dict[str, Any]], list[str]] = ([], [])
    waiting: list[tuple[object, list[str]]] = [(data, [])]
    while waiting:
        value, steps = waiting.pop(0)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            if len(value) > len(best[0]):
                best = (value, steps)
        elif isinstance(value, dict) and len(steps) < 3:
            waiting += [(inner, [*steps, key]) for key, inner in value.items()]
    if not best[0] and isinstance(data, dict):
        return [data], []
    return best


def _normalising_code(source: Source, codec: str, steps: list[str]) -> str:
    path = "".join(f"[{quoted(step)}]" for step in steps)
    opening = f"open({quoted(source.name)}, encoding={quoted(codec)})"
    head = "import json"
    if source.compression:
        module = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma"}.get(source.compression, "gzip")
        head += f"\nimport {module}"
        opening = f'{module}.open({quoted(source.name)}, "rt", encoding={quoted(codec)})'
    return (
        f"{head}\nwith {opening} as file:\n    data = json.load(file)\n"
        f"df = pd.json_normalize(data{path})"
    )


def _nested(frame: pd.DataFrame) -> tuple[str, ...]:
    """Returns a warning for columns whose cells are lists or dictionaries."""
    names = [
        str(label)
        for position, label in enumerate(frame.columns)
        if any(isinstance(value, (list, dict)) for value in frame.iloc[:50, position])
    ]
    if not names:
        return ()
    shown = ", ".join(map(repr, names[:8]))
    return (f"cells are lists or dictionaries in {shown}: use df.explode or pd.json_normalize",)
