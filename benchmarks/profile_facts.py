"""Compare the profile's facts about large files with DuckDB's.

    python -m benchmarks.profile_facts [--megabytes 24] [--only NAME …]

There are ten kinds of files, each once sorted and once shuffled, all too large to be read entirely.
Of every column, type, missing, minimum, maximum and distinct values must equal DuckDB's exact ones.
The exit code is 1 if they do not.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dm_jupyter.data.profile import ColumnProfile, profile_file
from dm_jupyter.data.profile.source import Effort

__all__ = ["KINDS", "Kind", "differences", "written"]

_SECONDS = 600.0
"""Time budget of a profile, generous because this compares facts and not speed."""
_CLOSE = 1e-9
_WORDS = ["Köln", "São Paulo", 'a "b", c', "x; y", "naïve", "東京", "O'Hara", "first\nsecond"]


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    make: Callable[[np.random.Generator, int], pd.DataFrame]
    """Creates a part with the given number of rows."""
    row_bytes: int
    """Approximate bytes per row in the file."""
    suffix: str = "csv"
    sort: str = "key"
    """Sort column of the sorted file."""
    read: str = "read_csv('{path}', sample_size=-1, header=true)"
    """How DuckDB reads it, so that its types are the intended ones."""
    csv: tuple[tuple[str, Any], ...] = ()
    """Options of `to_csv`."""


def _plain(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "key": np.arange(rows),
            "year": rng.integers(1990, 2024, rows),
            "amount": rng.gamma(2, 50, rows).round(2),
            "city": np.array(["Bonn", "Ulm", "Jena"])[rng.integers(0, 3, rows)],
        }
    )


def _gaps(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    count = rng.integers(0, 50_000, rows).astype(float)
    count[rng.random(rows) < 0.2] = np.nan
    late = np.full(rows, np.nan)
    late[-5:] = range(5)
    return pd.DataFrame(
        {
            "key": rng.permutation(rows),
            "count": pd.array(count, dtype="Int64"),
            "late": late,
            "word": np.where(rng.random(rows) < 0.5, "left", None),  # type: ignore[arg-type]
        }
    )


def _magnitudes(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    small = rng.normal(0, 1, rows)
    return pd.DataFrame(
        {
            "key": np.arange(rows) * 1_000_003 - 5_000_000_000,
            "tiny": small * 1e-12,
            "huge": small.round(4) * 1e15,
            "large": rng.integers(-(2**62), 2**62, rows),
            "late": np.where(np.arange(rows) < rows - 3, 1.0, 1.5),
        }
    )


def _words(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    words = np.array(_WORDS, dtype=object)
    numbers = rng.integers(0, rows, rows)
    return pd.DataFrame(
        {
            "key": [f"k{number:09d}" for number in range(rows)],
            "text": words[rng.integers(0, len(words), rows)],
            "name": [f"n{number}" for number in numbers],
        }
    )


def _days(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    start = pd.Timestamp("1999-12-31 23:59:00")
    return pd.DataFrame(
        {
            "key": start + pd.to_timedelta(np.arange(rows) * 61, "s"),
            "day": (start + pd.to_timedelta(rng.integers(0, 9000, rows), "D")).strftime("%Y-%m-%d"),
            "n": rng.integers(0, 9, rows),
        }
    )


def _codes(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    # The leading zeros come after the rows that are read first.
    numbers = np.arange(rows)
    zips = [f"{99_999 - number * 95_000 // rows:05d}" for number in numbers]
    return pd.DataFrame({"key": numbers, "zip": zips, "n": rng.integers(0, 100, rows)})


def _signs(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    cents = rng.integers(-9_999_999, 99_999_999, rows)
    texts = [f"{cent / 100:,.2f}".translate(str.maketrans(",.", ".,")) for cent in cents]
    late = [str(number) for number in rng.integers(0, 1000, rows)]
    late[-2:] = ["1.234", "12.345.678"]
    return pd.DataFrame({"key": np.arange(rows), "betrag": texts, "spät": late})


def _flags(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    flag = rng.random(rows) < 0.3
    return pd.DataFrame(
        {
            "key": np.arange(rows),
            "flag": flag,
            "some": pd.array(np.where(rng.random(rows) < 0.1, None, flag), dtype="boolean"),
            "level": rng.integers(1, 4, rows),
        }
    )


def _typed(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    numbers = rng.integers(0, 70_000, rows)
    days = pd.date_range("1980-01-01", periods=20_000).date
    floats = rng.normal(0, 1, rows).astype("float32")
    return pd.DataFrame(
        {
            "key": np.arange(rows, dtype="uint64") * 3,
            "short": numbers.astype("int32") - 35_000,
            "price": [Decimal(int(number)) / 100 for number in numbers],
            "day": days[rng.integers(0, len(days), rows)],
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(numbers, "s"),
            "name": [f"name {number}" for number in numbers],
            "flag": np.where(rng.random(rows) < 0.1, None, numbers % 2 == 0),  # type: ignore[arg-type]
            "level": np.where(rng.random(rows) < 0.5, np.nan, 2.0 * (numbers % 7)),
            "float": floats.astype(float),
        }
    )


_BETRAG = "replace(replace(betrag, '.', ''), ',', '.')::DOUBLE AS betrag"
_SPAET = "replace(spät, '.', '')::DOUBLE::BIGINT AS spät"
KINDS: dict[str, Kind] = {
    "plain": Kind(_plain, 25),
    "gaps": Kind(_gaps, 19),
    "magnitudes": Kind(_magnitudes, 82),
    "words": Kind(_words, 30),
    "days": Kind(_days, 33),
    "codes": Kind(
        _codes,
        16,
        read="read_csv('{path}', types={{'zip': 'VARCHAR'}}, header=true)",
    ),
    "signs": Kind(
        _signs,
        22,
        read=f"(SELECT key, {_BETRAG}, {_SPAET} FROM read_csv('{{path}}', delim=';', header=true, "
        "types={{'betrag': 'VARCHAR', 'spät': 'VARCHAR'}}))",
        csv=(("sep", ";"),),
    ),
    "flags": Kind(_flags, 20),
    "typed": Kind(_typed, 40, suffix="parquet", read="'{path}'"),
    "records": Kind(
        _plain, 62, suffix="jsonl", read="read_json('{path}', format='newline_delimited')"
    ),
}
"""Kinds by name. Two load columns by special rules: codes with leading zeros are text, and amounts
in German notation are numbers."""


def main() -> None:
    """Run the comparison and print the differences."""
    parser = argparse.ArgumentParser(description="Compare the facts of large files with DuckDB's.")
    parser.add_argument("--megabytes", type=int, default=24)
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    chosen = parser.parse_args()
    duckdb.sql("SET enable_progress_bar = false")
    failed = 0
    for name in chosen.only:
        for is_sorted in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                path = written(Path(folder), name, chosen.megabytes << 20, is_sorted=is_sorted)
                found = differences(path, KINDS[name].read)
                size = path.stat().st_size / 1e6
            order = "sorted" if is_sorted else "shuffled"
            print(f"{name:12}{order:10}{size:5.0f} MB  {'; '.join(found) or 'equal'}", flush=True)
            failed += bool(found)
    print(f"{2 * len(chosen.only) - failed} of {2 * len(chosen.only)} files equal")
    sys.exit(bool(failed))


def written(folder: Path, name: str, size_bytes: int, *, is_sorted: bool) -> Path:
    """Write a file of a kind, always the same, and return its path.

    Args:
        folder: to write to.
        name: of the kind.
        size_bytes: approximate size; a parquet file has as many rows as a csv file of this size.
        is_sorted: whether its rows are sorted or shuffled.
    """
    kind = KINDS[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    frame = kind.make(rng, size_bytes // kind.row_bytes)
    frame = frame.sort_values(kind.sort) if is_sorted else frame.sample(frac=1, random_state=3)
    path = folder / f"{name}.{kind.suffix}"
    if kind.suffix == "parquet":
        frame.to_parquet(path, index=False, row_group_size=100_000)
    elif kind.suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, **dict(kind.csv))
    return path


def differences(path: Path, read: str) -> list[str]:
    """Return the differences between the profile and DuckDB as text; empty if there are none.

    Args:
        path: of the file.
        read: DuckDB's expression for it, with `{path}`.
    """
    profile = profile_file(path, effort=Effort(seconds=_SECONDS))
    table = profile.tables[0]
    source = read.format(path=path)
    types = duckdb.sql(f"DESCRIBE FROM {source}").fetchall()
    said = []
    rows = _row(f"SELECT count(*) FROM {source}")[0]
    if (table.row_count, table.sampled_rows) != (rows, None):
        said.append(f"{table.row_count} rows ({table.sampled_rows} seen), not {rows}")
    if [column.name for column in table.columns] != [name for name, *_ in types]:
        return [*said, "the names of the columns"]
    for column, (name, kind, *_) in zip(table.columns, types, strict=True):
        quoted = f'"{name}"'
        missing, low, high, distinct = _row(
            f"SELECT count(*) - count({quoted}), min({quoted}), max({quoted}), "
            f"count(DISTINCT {quoted}) FROM {source}"
        )
        facts = (
            ("type", column.dtype, _dtypes(kind, missing, path.suffix)),
            ("missing", column.missing, missing),
            ("distinct", column.unique, distinct),
            *_ends(column, kind, low, high),
        )
        said += [
            f"{name}: {what} {ours!r}, not {theirs!r}"
            for what, ours, theirs in facts
            if not _is_same(ours, theirs)
        ]
        if column.is_unique_estimated:
            said.append(f"{name}: distinct is an estimate")
    return said


def _row(query: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] = duckdb.sql(query).fetchall()[0]
    return row


def _ends(
    column: ColumnProfile, kind: str, low: Any, high: Any
) -> tuple[tuple[str, Any, Any], ...]:
    """Return minimum and maximum; texts and booleans have none in a profile."""
    if kind in {"VARCHAR", "BOOLEAN"}:
        return ()
    return ("minimum", column.minimum, low), ("maximum", column.maximum, high)


def _dtypes(kind: str, missing: int, suffix: str) -> tuple[str, ...]:
    """Return pandas' types for a DuckDB type: names differ, and missing values give floats."""
    if kind.startswith(("BIGINT", "INTEGER", "UBIGINT", "HUGEINT", "SMALLINT", "TINYINT")):
        return ("float64",) if missing else ("int64", "int32", "uint64")
    if kind.startswith(("DATE", "TIMESTAMP")):
        return ("str", "object") if suffix != ".parquet" else ("datetime64[", "object (date)")
    if kind.startswith("DECIMAL"):
        return ("object (Decimal)",)
    if kind == "BOOLEAN":
        return ("object (bool)",) if missing else ("bool",)
    return ("float64", "float32") if kind in {"DOUBLE", "FLOAT"} else ("str", "object")


def _is_same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, tuple):
        return str(ours).startswith(theirs)
    if isinstance(ours, str):
        return ours == str(theirs).removesuffix(" 00:00:00")
    if isinstance(ours, float) and theirs is not None:
        return math.isclose(ours, theirs, rel_tol=_CLOSE)
    return bool(ours == theirs)


if __name__ == "__main__":
    main()
