"""Execution of a question's steps with pandas: the first of two independent programs.

It also detects questions without a single answer: a tie, a value on the edge of a condition, too
few rows. The second program does not check for these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from training.suites.generated.programs.frame_measures import measure
from training.suites.generated.programs.frames import FrameReader
from training.suites.generated.programs.steps import (
    ProgramAnswer,
    ProgramStep,
    Reading,
    Result,
    ResultRow,
    UnfitError,
)

__all__ = ["run_frames"]

LEAST_ROWS = 6
"""Fewest rows that a condition must leave for a question."""
EDGE = 1e-9
"""Relative distance below which equality of two numbers depends on how they were computed."""
GAP = "(missing)"
_COUNTS = frozenset({"rows", "count", "distinct"})
_OF_ANY_ROWS = frozenset({"sum", "min", "max"})
"""Figures that are meaningful for one or two rows."""

_TESTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": lambda column, value: column == value,
    "!=": lambda column, value: (column != value) & column.notna(),
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
    "in": lambda column, value: column.isin(value),
    "outside": lambda column, value: (column < value[0]) | (column > value[1]),
    "inside": lambda column, value: (column >= value[0]) & (column <= value[1]),
}


def run_frames(
    steps: Sequence[ProgramStep], reader: FrameReader, reading: Reading, shown: Sequence[str] = ()
) -> Result:
    """Return the values and rows that the steps produce.

    Args:
        steps: the steps of the question.
        reader: the reader of the file.
        reading: the interpretation of what the question leaves open.
        shown: the columns of the last table to return; empty for a question about values.

    Raises:
        UnfitError: the question has no single answer on these data.
    """
    program = _Frames(reader, reading)
    for step in steps:
        program.take(step)
    rows = tuple(_row(row) for row in program.frame[list(shown)].itertuples(index=False))
    return Result(program.values, rows if shown else ())


def _row(row: Sequence[Any]) -> ResultRow:
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    """Return a value as a plain Python type, without those of NumPy and pandas."""
    if isinstance(value, pd.Timestamp):
        return value.date().isoformat()
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return None
    return float(value)


class _Frames:
    """Table and values after some steps."""

    def __init__(self, reader: FrameReader, reading: Reading) -> None:
        self.frame: Any = reader.main(reading)
        self.values: dict[str, ProgramAnswer] = {}
        self._reader = reader
        self._reading = reading

    def take(self, step: ProgramStep) -> None:
        """Run one step."""
        getattr(self, f"_{step.do}")(**step.args)

    def _given(self, value: Any) -> Any:
        """Return an argument, with `@name` replaced by the value that an earlier step named."""
        if isinstance(value, str) and value.startswith("@"):
            return self.values[value[1:]]
        if isinstance(value, list):
            return [self._given(one) for one in value]
        return value

    # Steps of a table

    def _present(self, columns: Sequence[str]) -> None:
        if self._reading.skips_gaps:
            return
        if not self._reading.zero_gaps:
            self.frame = self.frame.dropna(subset=list(columns))
            return
        fills: dict[str, Any] = {
            name: 0.0 if self.frame[name].dtype.kind == "f" else GAP for name in columns
        }
        self.frame = self.frame.fillna(fills)

    def _where(self, column: str, test: str, value: Any, least: int = LEAST_ROWS) -> None:
        self.frame = self._kept(self.frame, column, test, value)
        if len(self.frame) < least:
            raise UnfitError("too few rows")

    def _kept(self, frame: Any, column: str, test: str, value: Any) -> Any:
        limit, values = self._given(value), frame[column]
        if values.dtype.kind == "M":
            limit = pd.Timestamp(limit)
        elif values.dtype.kind == "f" and value is not limit:
            for one in limit if isinstance(limit, list) else [limit]:
                if ((values - one).abs() <= EDGE * max(1.0, abs(one))).any():
                    raise UnfitError("on the edge")
        return frame[_TESTS[test](values, limit).astype(bool)]

    def _derive(self, into: str, how: str, of: Any, **options: Any) -> None:
        frame = self.frame
        if how == "calc":
            parts: Any = pd.DataFrame({letter: frame[name] for letter, name in of.items()})
            made = parts.eval(options["expr"])
            if not made.map(math.isfinite).all():
                raise UnfitError("undefined")
        else:
            given = {name: self._given(value) for name, value in options.items()}
            made = _DERIVED[how](frame, of, given, self._reading)
        self.frame = frame.assign(**{into: made})

    def _group(self, by: Sequence[str], make: Sequence[Mapping[str, Any]]) -> None:
        rows = []
        for key, part in self.frame.groupby(list(by), sort=True):
            row = dict(zip(by, key, strict=True))
            for one in make:
                row[one["into"]] = measure(
                    part, one["how"], _names(one.get("of", [])), one.get("q"), self._reading
                )
            rows.append(row)
        self.frame = pd.DataFrame(rows, columns=[*by, *(one["into"] for one in make)])
        if len(self.frame) < 2:
            raise UnfitError("too few groups")

    def _top(self, by: str, order: str, k: int = 1, skip: int = 0) -> None:
        ordered = self.frame.sort_values(by, ascending=order == "lowest", kind="stable")
        if len(ordered) <= k + skip:
            raise UnfitError("too few groups")
        values = [float(value) for value in ordered[by].head(k + skip + 1)]
        for one, other in pairwise(values):
            if abs(one - other) <= EDGE * max(1.0, abs(one)):
                raise UnfitError("tie")
        self.frame = ordered.iloc[skip : skip + k]

    def _keep(
        self, by: str, how: str, of: Any, order: str, k: int = 1, least: int = LEAST_ROWS
    ) -> None:
        names = _names(of)
        figures = pd.Series(
            {
                key: measure(part, how, names, None, self._reading)
                for key, part in self.frame.groupby(by, sort=True)
            }
        ).sort_values(ascending=order == "lowest", kind="stable")
        if len(figures) <= k:
            raise UnfitError("too few groups")
        last, after = float(figures.iloc[k - 1]), float(figures.iloc[k])
        if abs(last - after) <= EDGE * max(1.0, abs(last)):
            raise UnfitError("tie")
        self.frame = self.frame[self.frame[by].isin(figures.index[:k])]
        if len(self.frame) < least:
            raise UnfitError("too few rows")

    def _sort(self, by: str, order: str = "lowest") -> None:
        ordered = self.frame.sort_values(by, ascending=order == "lowest", kind="stable")
        if ordered[by].duplicated().any():
            raise UnfitError("tie")
        self.frame = ordered

    def _fill(self, column: str, how: str, by: str = "") -> None:
        values = self.frame[column]
        if values.notna().all():
            raise UnfitError("nothing to fill")
        if how == "zero":
            filled = values.fillna(0.0)
        elif by:
            filled = values.fillna(self.frame.groupby(by)[column].transform(how))
        else:
            filled = values.fillna(values.agg(how))
        self.frame = self.frame.assign(**{column: filled})

    def _change(self, into: str, of: str, how: str, along: str) -> None:
        frame = _in_order(self.frame, along)
        made = frame[of].pct_change() * 100 if how == "percent" else frame[of].diff()
        self.frame = frame.assign(**{into: made}).iloc[1:]
        if not self.frame[into].map(math.isfinite).all():
            raise UnfitError("undefined")

    def _running(self, into: str, of: str, how: str, along: str, window: int = 0) -> None:
        frame = _in_order(self.frame, along)
        made = frame[of].rolling(window).agg(how) if window else frame[of].cumsum()
        self.frame = frame.assign(**{into: made}).dropna(subset=[into])

    def _join(self, columns: Sequence[str]) -> None:
        lookup = self._reader.lookup()
        key = lookup.columns[0]
        self.frame = self.frame.merge(lookup[[key, *columns]], on=key, how="inner")

    def _gaps(self, columns: Mapping[str, str]) -> None:
        missing = self.frame[list(columns)].isna().sum().rename(columns)
        self.frame = pd.DataFrame(
            {"column": missing.index, "missing": missing.to_numpy(dtype=float)}
        )

    # Steps of a value

    def _value(self, into: str, how: str, of: Any = (), **options: Any) -> None:
        frame = self.frame
        if "only" in options:
            frame = self._kept(frame, **options["only"])
        names = _names(of)
        least = 0 if how in _COUNTS else 1 if how in _OF_ANY_ROWS else LEAST_ROWS // 2
        if len(frame) < least:
            raise UnfitError("too few rows")
        if how in ("min", "max") and frame[names[0]].dtype.kind == "M":
            self.values[into] = _plain(frame[names[0]].agg(how))
            return
        self.values[into] = measure(frame, how, names, options.get("q"), self._reading)

    def _at(self, into: str, column: str, row: int = 0) -> None:
        if row >= len(self.frame):
            raise UnfitError("too few groups")
        self.values[into] = _plain(self.frame[column].iloc[row])

    def _list(self, into: str, column: str) -> None:
        self.values[into] = tuple(str(_plain(value)) for value in self.frame[column])

    def _calc(self, into: str, expr: str) -> None:
        numbers = {name: one for name, one in self.values.items() if isinstance(one, int | float)}
        try:
            row: Any = pd.DataFrame([numbers], dtype=float)
            value = float(row.eval(expr).iloc[0])
        except ZeroDivisionError:
            value = math.nan
        if not math.isfinite(value):
            raise UnfitError("undefined")
        self.values[into] = value

    def _verdict(
        self, into: str, of: str, test: str, than: Any, yes: str = "yes", no: str = "no"
    ) -> None:
        self.values[into] = yes if self._holds(of, test, than) else no

    def _holds(self, of: str, test: str, than: Any) -> bool:
        value, limit = self.values[of], self._given(than)
        if isinstance(value, int | float) and isinstance(limit, int | float):
            if abs(value - limit) <= 1e-6 * max(1.0, abs(limit)):
                raise UnfitError("on the edge")
            return bool(_TESTS[test](value, limit))
        return bool((value == limit) == (test == "=="))

    def _grade(
        self, into: str, of: str, edges: Sequence[float], words: Sequence[str], size: bool = False
    ) -> None:
        value = float(str(self.values[of]))
        value = abs(value) if size else value
        if any(abs(value - edge) < 1e-6 for edge in edges):
            raise UnfitError("on the edge")
        self.values[into] = words[sum(value > edge for edge in edges)]

    def _letters(self, into: str, claims: Sequence[Mapping[str, Any]]) -> None:
        found = [chr(65 + place) for place, one in enumerate(claims) if self._holds(**one)]
        self.values[into] = tuple(found) or "none"


def _names(of: Any) -> list[str]:
    """Return one or several columns as a list."""
    return [of] if isinstance(of, str) else list(of)


def _in_order(frame: pd.DataFrame, along: str) -> pd.DataFrame:
    """Return the rows in the order of their month; a month missing in between is an error."""
    ordered = frame.sort_values(along)
    months = [int(month[:4]) * 12 + int(month[5:]) for month in ordered[along]]
    if any(after - before != 1 for before, after in pairwise(months)):
        raise UnfitError("a month without rows")
    return ordered


Derive = Callable[[pd.DataFrame, Any, Mapping[str, Any], Reading], Any]


def _bins(frame: pd.DataFrame, of: str, options: Mapping[str, Any], _: Reading) -> Any:
    edges = [-math.inf, *options["edges"], math.inf]
    cut = pd.cut(frame[of], edges, right=False, labels=options["names"])
    return cut.astype(object).where(cut.notna(), None)


def _zscore(frame: pd.DataFrame, of: str, _: Mapping[str, Any], reading: Reading) -> Any:
    return (frame[of] - frame[of].mean()) / frame[of].std(ddof=0 if reading.population else 1)


def _minmax(frame: pd.DataFrame, of: str, _: Mapping[str, Any], __: Reading) -> Any:
    return (frame[of] - frame[of].min()) / (frame[of].max() - frame[of].min())


_DERIVED: Mapping[str, Derive] = {
    "year": lambda frame, of, _, __: frame[of].dt.strftime("%Y"),
    "quarter": lambda frame, of, _, __: frame[of].dt.to_period("Q").astype(str)
    .str.replace("Q", "-Q", regex=False),
    "month": lambda frame, of, _, __: frame[of].dt.strftime("%Y-%m"),
    "weekday": lambda frame, of, _, __: frame[of].dt.day_name(),
    "is": lambda frame, of, options, _: (frame[of] == options["value"]).astype(float),
    "since": lambda frame, of, options, _: (frame[of] >= pd.Timestamp(options["value"]))
    .astype(float),
    "above": lambda frame, of, options, _: (frame[of] > options["limit"]).astype(float),
    "bin": _bins,
    "zscore": _zscore,
    "minmax": _minmax,
    "clip": lambda frame, of, options, _: frame[of].clip(options["low"], options["high"]),
    "group_mean": lambda frame, of, options, _: frame.groupby(options["by"])[of].transform("mean"),
    "deviation": lambda frame, of, _, __: (frame[of] - frame[of].mean()).abs(),
}  # fmt: skip
"""Functions for new columns, by name."""
