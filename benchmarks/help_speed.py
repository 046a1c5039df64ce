"""Seconds that `dm-jupyter --help` takes as a process, compared with an empty Python."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time

RUNS = 9
HELP = [sys.executable, "-c", "from dm_jupyter.cli import main; main()", "--help"]
EMPTY = [sys.executable, "-c", "pass"]


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> None:
    seconds(HELP)
    pairs = [(seconds(HELP), seconds(EMPTY)) for _ in range(RUNS)]
    shown, empty = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {RUNS}")
    print(f"dm-jupyter --help  {shown:.3f} s\nempty Python       {empty:.3f} s")


if __name__ == "__main__":
    main()
