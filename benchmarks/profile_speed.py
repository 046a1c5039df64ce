"""Processor time and memory to profile large files, compared with DuckDB, Polars and pandas.

    python -m benchmarks.profile_speed [--rounds 3] [--only NAME …]

Each run is a fresh process with its libraries imported. The programs alternate, and the medians
count. Time is processor time over all threads. Memory is the growth of the peak resident size after
the imports. Ours has no time budget here, so that all programs read the complete file. The work of
each:

- ours: `profile_file` and `render`
- DuckDB: SUMMARIZE, whose distinct counts are estimates
- DuckDB, exact: count, min, max and count(DISTINCT) of every column
- Polars: null_count, min, max and n_unique of every column of a lazy scan, streaming
- pandas: read, then dtypes, isna().sum(), nunique(), min and max
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

_LIMIT_S = 180
"""Time limit; a program that exceeds it on a file, or fails, does not run on it again."""
_RUN = """
import json, math, resource, sys, threading, time
from pathlib import Path
path = sys.argv[1]
{imports}

def resident_mb():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize() / 1e6

before, peak, is_done = resident_mb(), 0.0, False

def watch():
    global peak
    while not is_done:
        peak = max(peak, resident_mb())
        time.sleep(0.01)

threading.Thread(target=watch, daemon=True).start()
cpu, wall = time.process_time(), time.perf_counter()
{work}
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
peak = max(peak, resident_mb())
is_done = True
print(json.dumps({{"cpu_s": cpu, "wall_s": wall, "mb": peak - before}}))
"""
_OURS = (
    """
import pandas, pyarrow.parquet, pyarrow.csv
from dm_jupyter.data.profile import profile_file
from dm_jupyter.data.profile import render
from dm_jupyter.data.profile import csv_file, parquet_file
from dm_jupyter.data.profile.source import Effort""",
    "text = render(profile_file(Path(path), effort=Effort(seconds=1e9)))\n"
    'assert "nothing is known of the rest" not in text',
)
_DUCKDB = (
    'import duckdb\nduckdb.sql("SET enable_progress_bar = false")',
    "duckdb.sql(f\"SUMMARIZE FROM '{path}'\").fetchall()",
)
_DUCKDB_EXACT = (
    _DUCKDB[0],
    """
names = [row[0] for row in duckdb.sql(f"DESCRIBE FROM '{path}'").fetchall()]
parts = []
for name in names:
    quoted = '"' + name + '"'
    parts.append(f"count({quoted}), min({quoted}), max({quoted}), count(DISTINCT {quoted})")
duckdb.sql(f"SELECT count(*), {', '.join(parts)} FROM '{path}'").fetchall()""",
)
_POLARS = (
    "import polars as pl",
    """
scan = (pl.scan_csv if path.endswith("csv") else pl.scan_parquet)(path)
every = pl.all()
scan.select(
    every.null_count().name.suffix(":null"),
    every.min().name.suffix(":min"),
    every.max().name.suffix(":max"),
    every.n_unique().name.suffix(":unique"),
).collect(engine="streaming")""",
)
_PANDAS = (
    "import pandas as pd",
    """
frame = (pd.read_csv if path.endswith("csv") else pd.read_parquet)(path)
frame.isna().sum()
for _, values in frame.items():
    values.nunique(), values.min(), values.max()""",
)
_PROGRAMS: dict[str, tuple[str, tuple[str, str]]] = {
    "ours": ("pandas", _OURS),
    "DuckDB": ("duckdb", _DUCKDB),
    "DuckDB, exact": ("duckdb", _DUCKDB_EXACT),
    "Polars": ("polars", _POLARS),
    "pandas": ("pandas", _PANDAS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile large files beside other programs.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(_CASES), default=list(_CASES))
    parser.add_argument("--programs", nargs="*", choices=list(_PROGRAMS), default=list(_PROGRAMS))
    chosen = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    programs = {name: _PROGRAMS[name] for name in chosen.programs}
    for name in [name for name, (module, _) in programs.items() if find_spec(module) is None]:
        print(f"{name}: left out, {programs.pop(name)[0]} is not installed")
    print(f"{'file':28}{'MB':>6}  {'program':14}{'CPU s':>8}{'wall s':>8}{'MB':>7}{'ours/it':>9}")
    for case in chosen.only:
        with tempfile.TemporaryDirectory() as folder:
            _compare(case, _CASES[case](Path(folder)), programs, chosen.rounds)


def _compare(
    case: str, path: Path, programs: dict[str, tuple[str, tuple[str, str]]], rounds: int
) -> None:
    """Print the medians of the programs on a file, which run in turns."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    failed = set()
    for name in list(programs) * rounds:
        if name in failed:
            continue
        _, (imports, work) = programs[name]
        if found := _measured(path, _RUN.format(imports=imports, work=work)):
            runs[name].append(found)
        else:
            failed.add(name)
    medians = {
        name: {key: statistics.median(run[key] for run in done) for key in done[0]}
        for name, done in runs.items()
        if done
    }
    size = path.stat().st_size / 1e6
    for name in programs:
        if name not in medians:
            print(f"{case:28}{size:6.0f}  {name:14}  failed")
            continue
        one = medians[name]
        ratio = medians["ours"]["cpu_s"] / one["cpu_s"] if "ours" in medians else float("nan")
        print(
            f"{case:28}{size:6.0f}  {name:14}{one['cpu_s']:8.2f}{one['wall_s']:8.2f}"
            f"{one['mb']:7.0f}{ratio:9.2f}",
            flush=True,
        )


def _measured(path: Path, code: str) -> dict[str, float] | None:
    command = [sys.executable, "-c", code, str(path)]
    try:
        run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"ended after {_LIMIT_S} s", file=sys.stderr)
        return None
    if run.returncode:
        print(run.stderr[-400:] or f"ended with {run.returncode}", file=sys.stderr)
        return None
    found: dict[str, float] = json.loads(run.stdout)
    return found


def _sales(rows: int, seed: int) -> pd.DataFrame:
    """Return typical orders of a shop: keys, times, names, amounts, missing values."""
    rng = np.random.default_rng(seed)
    start = seed * rows
    cities = np.array([f"city {number:03d}" for number in range(300)])
    shops = np.array(["web", "store", "phone", "partner"])
    ages = rng.integers(18, 90, rows).astype(float)
    ages[rng.random(rows) < 0.1] = np.nan
    seconds = start + np.arange(rows) * 7 + rng.integers(0, 7, rows)
    return pd.DataFrame(
        {
            "order_id": np.arange(start, start + rows),
            "ordered": (pd.Timestamp("2015-01-01") + pd.to_timedelta(seconds, "s")),
            "customer": rng.integers(0, 400_000, rows),
            "city": cities[rng.integers(0, 300, rows)],
            "channel": shops[rng.integers(0, 4, rows)],
            "amount": rng.gamma(2.0, 40.0, rows).round(2),
            "weight_kg": rng.normal(5, 1, rows).round(4),
            "age": ages,
            "year": 2000 + np.arange(start, start + rows) // 400_000,
        }
    )


def _csv(folder: Path, name: str, parts: int, rows: int) -> Path:
    path = folder / name
    for part in range(parts):
        frame = _sales(rows, part)
        frame.to_csv(path, mode="a", index=False, header=part == 0)
    return path


def _parquet(folder: Path) -> Path:
    import pyarrow as pa  # noqa: PLC0415 - optional
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = folder / "sales_5m.parquet"
    schema = pa.Table.from_pandas(_sales(10, 0), preserve_index=False).schema
    with pq.ParquetWriter(path, schema) as writer:
        for part in range(10):
            writer.write_table(pa.Table.from_pandas(_sales(500_000, part), schema=schema))
    return path


def _wide(folder: Path) -> Path:
    path = folder / "columns_3000.csv"
    rng = np.random.default_rng(5)
    kinds = [
        lambda: rng.integers(0, 1000, 3000),
        lambda: rng.normal(0, 1, 3000).round(3),
        lambda: rng.choice(["a", "b", "c"], 3000),
    ]
    frame = pd.DataFrame({f"v{at:04d}": kinds[at % 3]() for at in range(3000)})
    frame.to_csv(path, index=False)
    return path


_CASES: dict[str, Callable[[Path], Path]] = {
    "csv, 3.4 M rows": lambda folder: _csv(folder, "sales.csv", 17, 200_000),
    "parquet, 5 M rows": _parquet,
    "csv, 3,000 columns": _wide,
    "csv, 15 M rows": lambda folder: _csv(folder, "sales_large.csv", 75, 200_000),
}

if __name__ == "__main__":
    main()
