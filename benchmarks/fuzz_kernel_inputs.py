"""Throw hostile inputs at everything that the server reads from a kernel, and time each call.

    python -m benchmarks.fuzz_kernel_inputs --inputs 1000000

The same seed gives the same inputs, in parts of a thousand: `--seed 5 --part 17` repeats one. The
exit status is 1 if a call raised an undocumented exception or failed a check.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.fuzz.target import Target
from benchmarks.fuzz.targets import opened_targets

__all__ = ["Figures", "fuzz"]

PART = 1000
"""Inputs that one seed generates."""


@dataclass(slots=True)
class Figures:
    """Results of one target."""

    on_loop: bool
    inputs: int = 0
    documented: int = 0
    """Inputs refused with a documented exception."""
    longest_cpu_s: float = 0.0
    """Processor time of the longest call."""
    longest_s: float = 0.0
    """Clock time of the longest call."""
    longest_part: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    """Undocumented exceptions, by location."""


def fuzz(
    inputs: int, seed: int, folder: Path, parts: Sequence[int] | None = None
) -> dict[str, Figures]:
    """Return the results by target; call it inside an event loop.

    Args:
        inputs: how many, over all targets.
        seed: determines all of them.
        folder: an empty one for the files of the targets.
        parts: numbers of the parts to run; `None` for all.
    """
    figures: dict[str, Figures] = {}
    with opened_targets(folder) as targets:
        figures = {target.name: Figures(target.on_loop) for target in targets}
        weights = [target.weight for target in targets]
        for part in range(-(-inputs // PART)) if parts is None else parts:
            random = Random(f"{seed}-{part}")
            size = PART if parts is not None else min(PART, inputs - part * PART)
            for target in random.choices(targets, weights, k=size):
                _one(target, random, figures[target.name], part)
    return figures


def _one(target: Target, random: Random, figures: Figures, part: int) -> None:
    call = target.prepare(random)
    figures.inputs += 1
    began, began_cpu = time.perf_counter(), time.thread_time()
    try:
        call()
    except target.documented:
        figures.documented += 1
    except Exception as error:  # noqa: BLE001  (what a fuzz looks for)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__}: {str(error)[:80]} at {Path(frame.filename).name}"
        figures.findings[f"{where}:{frame.lineno} (part {part})"] += 1
    took, took_cpu = time.perf_counter() - began, time.thread_time() - began_cpu
    if took_cpu > figures.longest_cpu_s:
        figures.longest_cpu_s, figures.longest_part = took_cpu, part
    figures.longest_s = max(figures.longest_s, took)


def _print(figures: dict[str, Figures], seconds: float) -> bool:
    """Print the table; return whether nothing was found."""
    print("| target | where | inputs | refused | findings | longest, processor | longest, clock |")
    print("|---|---|---|---|---|---|---|")
    for name, one in figures.items():
        where = "event loop" if one.on_loop else "thread"
        print(
            f"| {name} | {where} | {one.inputs:,} | {one.documented:,} | "
            f"{sum(one.findings.values())} | {one.longest_cpu_s * 1e3:.1f} ms (part "
            f"{one.longest_part}) | {one.longest_s * 1e3:.1f} ms |"
        )
    total = sum(one.inputs for one in figures.values())
    print(f"{total:,} inputs in {seconds:.0f} s")
    for name, one in figures.items():
        for finding, count in one.findings.most_common(20):
            print(f"FOUND {name}: {count} x {finding}")
    return not any(one.findings for one in figures.values())


async def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=int, action="append", help="run only this part")
    options = parser.parse_args()
    began = time.perf_counter()
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        figures = fuzz(options.inputs, options.seed, Path(folder), options.part)
    return 0 if _print(figures, time.perf_counter() - began) else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(_main()))
