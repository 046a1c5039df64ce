"""A large csv file, described in one pass by the very load call that is recommended."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
from pandas.errors import ParserError

from dm_jupyter.agent.profile.column_facts import ColumnFacts
from dm_jupyter.agent.profile.columns import OnTexts, TableFacts, rows_of, spread_positions
from dm_jupyter.agent.profile.model import ColumnProfile, Scalar, TableProfile
from dm_jupyter.agent.profile.read_call import ReadCall
from dm_jupyter.agent.profile.source import Source
from dm_jupyter.agent.profile.suspicion import suspicions_of

__all__ = ["StreamedPass", "misfit_warning", "noted", "streamed_table", "unparsed_warning"]

_PIECE_CELLS = 1 << 20
_SAMPLED_PIECES = 6
_RUN_ROWS = 128
"""pandas infers types part by part, and no part of a file with fewer than 2,000 columns is smaller,
but for the last one."""
_NUMBER_LIKE = re.compile(
    r"\s*([-+]?[\d.,' ]*\d[\d.,' ]*(e[-+]?\d+)?|[-+]?inf(inity)?|true|false)\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class StreamedPass:
    """How a large file is gone through."""

    piece_cells: int = _PIECE_CELLS
    """Cells that are held at once."""
    stop_at: float = math.inf
    """When to end at the latest, as `time.monotonic` counts; one piece is read in any case."""
    on_texts: OnTexts | None = None
    """Is shown every distinct value of each piece of a column of text."""


def streamed_table(
    source: Source, call: ReadCall, settings: StreamedPass, *, row_count: int | None
) -> TableProfile:
    """Returns the profile of a file, read in pieces; memory stays that of a piece.

    Args:
        source: the file.
        call: the load call so far; columns that mix numbers and text, and day-first dates, are
            added to it.
        settings: how to go through it.
        row_count: what a count of the lines gave, for a file that is not read to its end.

    Raises:
        Exception: whatever pandas raises; callers wrap it in `reading`.
    """
    warnings: list[str] = []
    try:
        gathered = _gathered(source, call, settings)
    except ParserError as error:
        call = call.with_arguments(on_bad_lines="warn")
        warnings.append(misfit_warning(error))
        gathered = _gathered(source, call, settings)
    call, facts = gathered.call, gathered.facts
    suspicions = suspicions_of(facts.distinct_texts(), facts.label_counts())
    if suspicions.day_first and gathered.is_whole:
        call, more = _dated(source, call, suspicions.day_first, facts, settings)
        warnings += more
    if not gathered.is_whole:
        warnings.append(_unseen_warning(facts.rows, row_count))
    return TableProfile(
        source.name,
        facts.rows if gathered.is_whole else row_count,
        noted(facts.profiles(), suspicions.notes),
        _sampled(gathered.samples),
        call.source(source.name),
        sampled_rows=None if gathered.is_whole else facts.rows,
        warnings=tuple(warnings + suspicions.warnings),
    )


def _unseen_warning(seen: int, row_count: int | None) -> str:
    share = f" of {row_count:,} ({100 * seen / row_count:.0f} %)" if row_count else ""
    return (
        f"the file is too large to be read whole in time: types, ranges and counts are those of "
        f"the first {seen:,} rows{share}; nothing is known of the rest"
    )


def noted(
    columns: Sequence[ColumnProfile],
    notes: Mapping[int, str],
    first: Mapping[int, str] | None = None,
) -> tuple[ColumnProfile, ...]:
    """Returns the columns with what their texts are; parsed dates need no such note.

    Args:
        columns: in order.
        notes: on the texts, by position.
        first: those that are shown instead, where there are some.
    """
    return tuple(
        replace(
            column,
            note=(first or {}).get(position)
            or (None if "datetime" in column.dtype else notes.get(position)),
        )
        for position, column in enumerate(columns)
    )


def misfit_warning(error: ParserError) -> str:
    """Returns what to say where pandas stumbles over rows that are too long."""
    reason = re.sub(r"^.*C error: ", "", " ".join(str(error).split()))
    return f"rows that don't fit the header are left out by the load line ({reason})"


def unparsed_warning(names: list[str]) -> str:
    """Returns what to say of columns of day-first dates that hold other values too."""
    return f"day-first dates with values that don't parse: {', '.join(map(repr, names))}"


@dataclass
class _Gathered:
    """What a pass over the file gave."""

    call: ReadCall
    facts: TableFacts
    samples: list[pd.DataFrame] = field(default_factory=list)
    is_whole: bool = True


def _gathered(source: Source, call: ReadCall, settings: StreamedPass) -> _Gathered:
    """Returns the facts, some rows, and the call that gives every column one type."""
    facts = TableFacts(settings.on_texts)
    found = _Gathered(call, facts)
    unstable: set[str] = set()
    for piece in _pieces(source, call, settings.piece_cells):
        if facts.rows and time.monotonic() > settings.stop_at:
            found.is_whole = False
            break
        facts.add(piece)
        unstable |= _with_runs(facts, piece, unstable)
        _keep_samples(found.samples, piece)
    known = dict(call.arguments).get("dtype") or {}
    mixed = [each.name for each in facts.columns if _is_mixed(each)]
    texts = {name: str for name in (*mixed, *sorted(unstable)) if name not in known}
    if texts:
        # What pandas makes of such a column depends on where it cuts the file.
        call = call.with_arguments(dtype={**known, **texts})
    if mixed:
        return _gathered(source, call, settings)
    found.call = call
    return found


def _with_runs(facts: TableFacts, piece: pd.DataFrame, known: set[str]) -> set[str]:
    """Returns the columns of text in which numbers or gaps follow each other for long.

    A part of the file that holds nothing else would not become text.
    """
    return {
        each.name
        for position, each in enumerate(facts.columns)
        if each.kinds == {"text"} and each.name not in known and _has_run(piece.iloc[:, position])
    }


def _has_run(values: pd.Series[Any]) -> bool:
    firsts = values.iloc[::_RUN_ROWS].tolist()
    return any(
        all(map(_is_number_like, values.iloc[at * _RUN_ROWS : (at + 1) * _RUN_ROWS]))
        for at, first in enumerate(firsts)
        if _is_number_like(first)
    )


def _is_number_like(value: object) -> bool:
    return not isinstance(value, str) or bool(_NUMBER_LIKE.fullmatch(value))


def _pieces(source: Source, call: ReadCall, piece_cells: int) -> Iterator[pd.DataFrame]:
    width = call.run(source.path, nrows=1).shape[1]
    size = max(1024, piece_cells // max(1, width) // _RUN_ROWS * _RUN_ROWS)
    extra: dict[str, Any] = {"chunksize": size}
    if _is_c(call):
        # Each piece is then judged as a whole, not in parts of pandas' own choosing.
        extra["low_memory"] = False
    with contextlib.closing(call.chunks(source.path, **extra)) as pieces:
        for piece in pieces:
            yield call.finish(piece)


def _is_c(call: ReadCall) -> bool:
    return call.function == "read_csv" and dict(call.arguments).get("engine", "c") == "c"


def _is_mixed(facts: ColumnFacts) -> bool:
    return (len(facts.kinds) > 1 and "text" in facts.kinds) or facts.kinds == {"number", "bool"}


def _keep_samples(samples: list[pd.DataFrame], piece: pd.DataFrame) -> None:
    """Keeps a few rows of each piece, and of ever fewer pieces as their number grows."""
    rows = piece.iloc[spread_positions(len(piece))].copy()
    rows.index = pd.RangeIndex(len(rows))
    samples.append(rows)
    if len(samples) > 4 * _SAMPLED_PIECES:
        samples[1:-1] = samples[2:-1:2]


def _sampled(samples: list[pd.DataFrame]) -> tuple[tuple[Scalar, ...], ...]:
    """Returns the first two rows of all, some from between, and the last."""
    if not samples:
        return ()
    if len(samples) == 1:
        return rows_of(samples[0])
    middle = [samples[len(samples) * part // 4].iloc[:1] for part in (1, 2, 3)]
    chosen = [samples[0].iloc[:2], *middle, samples[-1].iloc[-1:]]
    return tuple(row for frame in chosen for row in rows_of(frame))


def _dated(
    source: Source, call: ReadCall, names: list[str], facts: TableFacts, settings: StreamedPass
) -> tuple[ReadCall, list[str]]:
    """Returns the call that parses day-first dates, where every value of the columns parses."""
    dated = call.with_arguments(parse_dates=names, dayfirst=True)
    places = {each.name: at for at, each in enumerate(facts.columns)}
    parsed = TableFacts()
    plain = replace(call, steps=()).with_arguments(usecols=names)
    for piece in _pieces(source, plain, settings.piece_cells):
        for name in names:
            piece[name] = pd.to_datetime(piece[name], dayfirst=True, errors="coerce")
        parsed.add(piece)
    failed = [
        each.name
        for each in parsed.columns
        if each.missing != facts.columns[places[each.name]].missing
    ]
    if failed:
        return call, [unparsed_warning(failed)]
    for each in parsed.columns:
        facts.columns[places[each.name]] = each
    return dated, []
