"""Seconds and memory to profile a long and a wide csv file, each in five fresh processes.

    python benchmarks/profile_speed.py

Prints medians. Time is that of `profile_file` and `render` together, pandas already imported;
memory is the highest resident size of the whole process, imports included. The aims: the long file
in under 2 s and 300 MB, the wide one under 2,000 tokens, taking three characters for one token.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_RUNS = 5
_ONE_RUN = """
import json, resource, sys, time
from pathlib import Path
import pandas
import pandas.api.types
from dm_jupyter.agent.profile import profile_file, render
began = time.perf_counter()
profile = profile_file(Path(sys.argv[1]))
text = render(profile)
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
rows = profile.tables[0].row_count
print(json.dumps({"seconds": seconds, "peak_mb": peak, "chars": len(text), "rows": rows}))
"""


def main() -> None:
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in (_long(Path(folder)), _wide(Path(folder))):
            runs = [_measured(path) for _ in range(_RUNS)]
            seconds = statistics.median(run["seconds"] for run in runs)
            peak = statistics.median(run["peak_mb"] for run in runs)
            chars = int(runs[0]["chars"])
            print(
                f"{path.name}: {int(runs[0]['rows']):,} rows, {seconds:.2f} s, {peak:.0f} MB peak, "
                f"{chars:,} characters (about {chars // 3:,} tokens)"
            )


def _long(folder: Path) -> Path:
    path = folder / "rows_200k.csv"
    with path.open("w") as stream:
        stream.write("id,when,value\n")
        stream.writelines(
            f"{i},2024-{1 + i % 12:02d}-{1 + i % 28:02d} {i % 24:02d}:00,0.{i * 7919 % 10000:04d}\n"
            for i in range(200_000)
        )
    return path


def _wide(folder: Path) -> Path:
    path = folder / "columns_5000.csv"
    names = ["id", *(f"v{i:04d}" for i in range(1, 4990)), *(f"note {i * i}" for i in range(10))]
    with path.open("w") as stream:
        stream.write(",".join(names) + "\n")
        for row in range(50):
            numbers = (f"{row * column % 97}.5" for column in range(4990))
            stream.write(",".join([*numbers, *("text" for _ in range(10))]) + "\n")
    return path


def _measured(path: Path) -> dict[str, float]:
    command = [sys.executable, "-c", _ONE_RUN, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found


if __name__ == "__main__":
    main()
