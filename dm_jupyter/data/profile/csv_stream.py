"""Profile of a large csv file, from one pass by the same load call that is recommended."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.errors import ParserError

from dm_jupyter.data.profile.column_facts import ColumnFacts
from dm_jupyter.data.profile.columns import TableFacts
from dm_jupyter.data.profile.csv_numbers import with_text
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.model import TableProfile
from dm_jupyter.data.profile.number_inference import NumberKind
from dm_jupyter.data.profile.number_plan import NumberPlan
from dm_jupyter.data.profile.number_stream import NumberStream
from dm_jupyter.data.profile.read_call import ReadCall
from dm_jupyter.data.profile.sentinels import Sentinel, Sentinels
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.table_pass import Deadline, TablePass

__all__ = ["FirstRows", "StreamedPass", "misfit_warning", "streamed_table", "unparsed_warning"]

_PIECE_CELLS = 1 << 20
_RUN_ROWS = 128
"""Rows of the smallest part by which pandas infers types, apart from the last one.
True of files with fewer than 2,000 columns."""
_NUMBER_LIKE = re.compile(
    r"\s*([-+]?[\d.,' ]*\d[\d.,' ]*(e[-+]?\d+)?|[-+]?inf(inity)?|true|false)\s*", re.IGNORECASE
)
_CODES = "identifiers, kept as text (leading zeros)"
_ZERO_LED = r"\s*0\d+\s*$"
_LONGEST_CODE, _MOST_BLANKS = 64, 8
_LISTED = 8


@dataclass(frozen=True)
class StreamedPass:
    """Settings of the passes over a large file."""

    piece_cells: int = _PIECE_CELLS
    """Cells kept in memory at once."""
    deadline: Deadline = field(default_factory=Deadline)
    """Deadline of all passes together; one piece is read in any case."""
    likely_rows: int | None = None
    """Estimate of the table's rows, for the reported share if they were not counted."""


@dataclass(frozen=True)
class FirstRows:
    """Findings from the first rows of a file, before the passes over all of it."""

    count: int = 0
    """Number of these rows."""
    numbers: NumberPlan | None = None
    """Plan of the columns that pandas itself converts to numbers."""
    sentinels: Sentinels = field(default_factory=Sentinels)


def streamed_table(
    source: Source,
    call: ReadCall,
    settings: StreamedPass,
    *,
    row_count: int | None,
    start: FirstRows | None = None,
) -> TableProfile:
    """Return the profile of a file read in pieces, in the memory of one piece.

    Columns that turn out to be numbers in their own format, codes or day-first dates are read
    again, as the load call then returns them.

    Args:
        source: the file.
        call: the load call so far; findings of the pass are added to its steps.
        settings: settings of the passes.
        row_count: result of a count of the lines, for a file that is not read to its end.
        start: findings from the first rows.

    Raises:
        Exception: whatever pandas raises; callers wrap it in `reading`.
    """
    start = start or FirstRows()
    found = _Found(source, call, settings, row_count, layout_steps=call.steps)
    found.sentinels = start.sentinels
    found.start = frozenset(dict(call.arguments).get("dtype") or ())
    try:
        found.gather()
    except ParserError as error:
        found.call = call.with_arguments(on_bad_lines="warn")
        found.warnings.append(misfit_warning(error))
        found.gather()
    suspicions = found.seen.suspicions()
    plan = found.numbers.plan(separator=_separator(call), reads_plain=True, known=start.numbers)
    if found.seen.is_whole:
        plan = found.settled(plan, suspicions.day_first)
    else:
        found.call = with_text(found.call, plan.text_columns)
        plan = plan.without_steps("not every value was seen")
        found.sentinels = found.sentinels.without_steps()
    first = f"in the first {start.count:,} rows"
    read, left = replace(found.sentinels, named=()), replace(found.sentinels, sure=())
    found.warnings += [*read.warnings, *(f"{words} ({first})" for words in left.warnings)]
    return found.seen.table(
        source.name,
        found.call.source(source.name),
        row_count,
        notes=plan.notes,
        warnings=(*plan.warnings, *found.warnings),
        suspicions=suspicions,
    )


def misfit_warning(error: ParserError) -> str:
    """Return the warning for rows that are too long for pandas."""
    reason = re.sub(r"^.*C error: ", "", " ".join(str(error).split()))
    return f"rows that don't fit the header are left out by the load line ({reason})"


def unparsed_warning(names: list[str]) -> str:
    """Return the warning for columns of day-first dates that contain other values too."""
    return f"day-first dates with values that don't parse: {', '.join(map(repr, names))}"


@dataclass
class _Found:
    """Results of the passes over a file."""

    source: Source
    call: ReadCall
    settings: StreamedPass
    row_count: int | None
    seen: TablePass = field(default_factory=TablePass)
    numbers: NumberStream = field(default_factory=NumberStream)
    warnings: list[str] = field(default_factory=list)
    sentinels: Sentinels = field(default_factory=Sentinels)
    layout_steps: tuple[FrameStep, ...] = ()
    """Steps applied to the rows before their numbers are inspected."""
    start: frozenset[Any] = frozenset()
    """Columns that are read as text because of the first rows."""
    is_indexed: bool = False
    """Whether the rows have names: pandas makes an index of a column that the header lacks."""

    def gather(self) -> None:
        """Read the file, again until the call returns one type for every column."""
        self.seen, self.numbers = TablePass(), NumberStream()
        unstable: set[int] = set()
        pieces = _pieces(self.source, self.call, self.settings.piece_cells)
        rows = self.row_count or self.settings.likely_rows
        for piece in self.seen.through(pieces, self.settings.deadline, row_count=rows):
            self.numbers.add(piece)
            self.is_indexed = not isinstance(piece.index, pd.RangeIndex)
            unstable |= _with_runs(self.seen.facts, piece, unstable)
        mixed = {at for at, each in enumerate(self.seen.facts.columns) if _is_mixed(each)}
        # pandas' type for such a column depends on where it cuts the file.
        self.call = with_text(self.call, self._labels(mixed | unstable))
        if mixed:
            self.gather()

    def settled(self, plan: NumberPlan, day_first: list[str]) -> NumberPlan:
        """Read again the columns that the first pass did not see as they will be loaded.

        Returns:
            The plan, without what could not be checked in time.
        """
        codes = self._codes()
        texts = [*plan.text_columns, *codes]
        read = dict(self.call.arguments).get("dtype") or {}
        plain = [
            one.label
            for one in plan.columns
            if one.kind is NumberKind.PLAIN and one.label in self.start and one.label not in texts
        ]
        kept = {label: kind for label, kind in read.items() if label not in plain}
        call = with_text(self.call.with_arguments(dtype=kept or None), texts)
        converted = [one.label for one in plan.converted]
        changed = list(dict.fromkeys([*codes, *plain, *converted, *self.sentinels.labels]))
        before = list(self.seen.facts.columns)
        if changed and not self._retaken(call, plan, changed):
            self.seen.facts.columns = before
            plan = plan.without_steps("there was no time to check every value")
            self.sentinels = self.sentinels.without_steps()
            self.warnings += [_unchecked_warning(codes)] if codes else []
            call = with_text(self.call, plan.text_columns)
        elif codes:
            notes = {self.seen.facts.labels.tolist().index(label): _CODES for label in codes}
            plan = replace(plan, notes={**plan.notes, **notes})
        self.call = replace(call, steps=(*call.steps, *plan.steps, *self.sentinels.steps))
        self.seen.change_samples(lambda rows: self.sentinels.finish(plan.finish(rows)))
        if day_first:
            self._date(day_first)
        return plan

    def _retaken(self, call: ReadCall, plan: NumberPlan, changed: list[Any]) -> bool:
        """Read columns again as they will be loaded; return whether there was time for it.

        A value that seemed to mean missing in the first rows stays where it is like later ones.
        """
        counts = Counter[Sentinel]()

        def loaded() -> Iterator[pd.DataFrame]:
            for piece in self._columns(call, changed):
                numbers = plan.finish(piece)
                counts.update(self.sentinels.counts(numbers))
                yield self.sentinels.finish(numbers)

        if not self.seen.retake(loaded(), self.settings.deadline):
            return False
        facts = self.seen.facts
        columns = {
            label: each.profile()
            for label, each in zip(facts.labels, facts.columns, strict=False)
            if label in self.sentinels.labels
        }
        known = self.sentinels
        self.sentinels = known.checked(columns, facts.rows, counts)
        kept = [label for label in known.labels if label not in self.sentinels.labels]
        again = (plan.finish(piece)[kept] for piece in self._columns(call, changed))
        return not kept or self.seen.retake(again, self.settings.deadline)

    def _date(self, names: list[str]) -> None:
        """Make the call parse day-first dates, if every value of the columns parses."""

        def parsed(piece: pd.DataFrame) -> pd.DataFrame:
            for name in names:
                piece[name] = pd.to_datetime(piece[name], dayfirst=True, errors="coerce")
            return piece

        before = {at: each for at, each in enumerate(self.seen.facts.columns) if each.name in names}
        again = (parsed(piece) for piece in self._columns(self.call, names))
        if not self.seen.retake(again, self.settings.deadline):
            shown = ", ".join(map(repr, names))
            self.warnings.append(f"no time was left to parse the day-first dates in {shown}")
            return
        columns = self.seen.facts.columns
        failed = [one.name for at, one in before.items() if columns[at].missing != one.missing]
        if failed:
            for at, one in before.items():
                columns[at] = one
            self.warnings.append(unparsed_warning(failed))
        else:
            self.call = self.call.with_arguments(parse_dates=names, dayfirst=True)

    def _columns(self, call: ReadCall, names: list[Any]) -> Iterator[pd.DataFrame]:
        """Yield some of the columns, as the layout's own steps leave them."""
        call = replace(call, steps=self.layout_steps)
        if not (self.is_indexed or self.layout_steps):
            call = call.with_arguments(usecols=names)
        for piece in _pieces(self.source, call, self.settings.piece_cells):
            yield piece[names]

    def _codes(self) -> list[Any]:
        """Return the columns of whole numbers in which some begin with a zero in the file."""
        whole = {at for at, each in enumerate(self.seen.facts.columns) if _is_whole(each)}
        suspected, deadline = self._labels(whole), self.settings.deadline
        if not suspected or not _may_have_codes(self.source, self.call, deadline):
            return []
        found: set[Any] = set()
        for piece in self._columns(with_text(self.call, suspected), suspected):
            if deadline.is_over:
                self.warnings.append(_unchecked_warning(suspected))
                break
            found |= {
                label
                for label in suspected
                if label not in found and piece[label].str.match(_ZERO_LED).any()
            }
        return [label for label in suspected if label in found]

    def _labels(self, places: set[int]) -> list[Any]:
        return [self.seen.facts.labels[at] for at in sorted(places)]


def _is_whole(facts: ColumnFacts) -> bool:
    is_float = facts.dtype == "float64" and facts.missing > 0
    return facts.kinds == {"number"} and (is_float or facts.dtype.startswith(("int", "uint")))


def _unchecked_warning(labels: list[Any]) -> str:
    more = f" and {len(labels) - _LISTED:,} more" if len(labels) > _LISTED else ""
    return (
        "no time was left to look for leading zeros, as codes have them, in "
        f"{', '.join(map(repr, labels[:_LISTED]))}{more}: check that they are numbers"
    )


def _may_have_codes(source: Source, call: ReadCall, deadline: Deadline) -> bool:
    """Return whether some field of the file may be a whole number with a leading zero."""
    separator = _separator(call)
    if len(separator) > 1 or str(dict(call.arguments).get("encoding", "")).startswith(
        ("utf-16", "utf-32")
    ):
        return True
    ends = np.zeros(256, dtype=bool)
    ends[[*b'\r\n"', *separator.encode("latin-1", "replace")]] = True
    kept = b"\n"
    for block in source.chunks():
        if deadline.is_over or _has_code(kept + block, ends):
            return True
        kept = block[-_LONGEST_CODE:]
    return _has_code(kept + b"\n", ends)


def _has_code(block: bytes, ends: np.ndarray[Any, Any]) -> bool:
    content = np.frombuffer(block, dtype=np.uint8)
    zeros = np.flatnonzero(content[1:-1] == 48) + 1
    zeros = zeros[_are_digits(content[zeros + 1])]
    before = zeros - 1
    for _ in range(_MOST_BLANKS):
        is_blank = content[before] == 32
        if not is_blank.any():
            break
        before = before - is_blank
    zeros = zeros[ends[content[before]]]
    if not len(zeros):
        return False
    others = np.flatnonzero(~_are_digits(content))
    behind = np.searchsorted(others, zeros)
    behind = others[behind[behind < len(others)]]
    return bool((ends[content[behind]] | (content[behind] == 32)).any())


def _are_digits(content: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    digits: np.ndarray[Any, Any] = content - np.uint8(48) < 10
    return digits


def _separator(call: ReadCall) -> str:
    return str(dict(call.arguments).get("sep") or ",")


def _with_runs(facts: TableFacts, piece: pd.DataFrame, known: set[int]) -> set[int]:
    """Return the positions of text columns with long runs of numbers or gaps.

    A part of the file that contains nothing else would not become text.
    """
    return {
        position
        for position, each in enumerate(facts.columns)
        if each.kinds == {"text"} and position not in known and _has_run(piece.iloc[:, position])
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
        # pandas then judges each piece at once, not in parts of its own choosing.
        extra["low_memory"] = False
    with contextlib.closing(call.chunks(source.path, **extra)) as pieces:
        yield from map(call.finish, pieces)


def _is_c(call: ReadCall) -> bool:
    return call.function == "read_csv" and dict(call.arguments).get("engine", "c") == "c"


def _is_mixed(facts: ColumnFacts) -> bool:
    return (len(facts.kinds) > 1 and "text" in facts.kinds) or facts.kinds == {"number", "bool"}
