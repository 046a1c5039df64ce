"""Run the named benchmarks of the sandbox, or all, and print one table each.

python -m benchmarks.sandbox [NAME ...] [--rounds N] [--quick] [--markdown]
                             [--out records.jsonl] [--from records.jsonl] [--plot picture.png]
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
from pathlib import Path

from benchmarks.sandbox.table import Run, machine

NAMES = (
    *("confine", "start", "worker", "trip", "throughput", "trajectories", "branch", "tree"),
    *("notebooks", "endurance", "growth"),
)
_PLOT = Path(__file__).parents[2] / "docs" / "img" / "sandbox-growth.png"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, help="rounds of each, instead of its own number")
    parser.add_argument("--quick", action="store_true", help="the least that shows it works")
    parser.add_argument("--markdown", action="store_true", help="tables to paste into a page")
    parser.add_argument("--out", type=Path, help="adds what was measured to a file of JSON lines")
    parser.add_argument("--from", dest="earlier", type=Path, help="such a file to go on from")
    parser.add_argument("--plot", type=Path, help=f"where the picture of `growth` goes; {_PLOT}")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return options


def _run(options: argparse.Namespace) -> Run:
    earlier = ()
    if options.earlier is not None:
        lines = options.earlier.read_text(encoding="utf-8").splitlines()
        earlier = tuple(json.loads(line) for line in lines)
    plot = options.plot or (None if options.quick else _PLOT)
    return Run(options.rounds, options.quick, options.out, earlier, plot)


def main() -> None:
    options = _options()
    run, names = _run(options), options.names or NAMES
    print(machine(names), flush=True)
    for name in names:
        module = importlib.import_module(f"benchmarks.sandbox.{name}")
        table = asyncio.run(module.measure(run))
        table.record(run, f"{name} table")
        print(
            "", table.to_markdown() if options.markdown else table.to_text(), sep="\n", flush=True
        )


if __name__ == "__main__":
    main()
