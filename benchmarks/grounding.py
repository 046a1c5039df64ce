"""Measure how well the check of an answer's numbers works: `python -m benchmarks.grounding`.

`tests/data/grounding` contains pairs of an answer and the outputs it is about, with each fault
marked. Developers of the check may read the pairs of `building`. The pairs of `held_out` were
written before the last change of the check, and are only counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dm_jupyter.assist.grounding import ground

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "grounding"
HALVES = ("building", "held_out")


@dataclass(frozen=True, slots=True)
class Score:
    """Results of the check on the numbers of one half."""

    caught: int
    missed: int
    false: int
    numbers: int
    pairs: int

    @property
    def precision(self) -> float:
        """Share of the alarms that name a fault."""
        alarms = self.caught + self.false
        return self.caught / alarms if alarms else 1.0

    @property
    def recall(self) -> float:
        """Share of the faults that are named."""
        faults = self.caught + self.missed
        return self.caught / faults if faults else 1.0


def pairs(half: str) -> Iterator[dict[str, Any]]:
    """Yield the pairs of one half.

    Args:
        half: `building` or `held_out`.
    """
    for line in (FOLDER / f"{half}.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)


def judged(pair: dict[str, Any]) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield each number of a pair: text, verdict, whether it is doubted, and whether it should."""
    found = ground(pair["answer"], pair["outputs"], pair["question"])
    for one in found:
        if not any(start < one.end and one.start < end for start, end in pair["ignored"]):
            is_fault = any(start < one.end and one.start < end for start, end in pair["faults"])
            yield one.text, f"{one.verdict}: {one.why}", one.is_doubtful, is_fault
    for start, end in pair["faults"]:
        if not any(start < one.end and one.start < end for one in found):
            yield pair["answer"][start:end], "not seen", False, True


def score(half: str) -> Score:
    """Return the results of the check on one half.

    Args:
        half: `building` or `held_out`.
    """
    verdicts = [one[2:] for pair in pairs(half) for one in judged(pair)]
    return Score(
        caught=sum(doubted and fault for doubted, fault in verdicts),
        missed=sum(fault and not doubted for doubted, fault in verdicts),
        false=sum(doubted and not fault for doubted, fault in verdicts),
        numbers=len(verdicts),
        pairs=sum(1 for _ in pairs(half)),
    )


def main() -> None:
    """Print precision and recall, and on request the errors on half `building`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--errors", action="store_true", help="show what is wrong among those of building"
    )
    settings = parser.parse_args()
    if settings.errors:
        for pair in pairs("building"):
            wrong = [one for one in judged(pair) if one[2] != one[3]]
            if wrong:
                print("\n\n".join(pair["outputs"]), pair["answer"], wrong, sep="\n", end="\n---\n")
    print("pairs            numbers  faults  precision  recall")
    for half in HALVES:
        began = time.perf_counter()
        found = score(half)
        seconds = time.perf_counter() - began
        print(f"{half:9} {found.pairs:5}  {found.numbers:8}  {found.caught + found.missed:6}  "
              f"{found.precision:9.3f}  {found.recall:6.3f}  "
              f"{1e3 * seconds / found.pairs:.1f} ms a pair")  # fmt: skip


if __name__ == "__main__":
    main()
