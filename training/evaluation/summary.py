"""The figures of an evaluation: shares with intervals by level, means, failures by kind."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from training.records import EvalRecord

__all__ = ["print_summary", "summary_of", "wilson", "write_summary"]


def wilson(right: int, total: int) -> tuple[float, float]:
    """Returns the 95 % interval of a share (Wilson 1927): both ends between 0 and 1.

    Test: `test_wilson_interval` has the numbers by hand.
    """
    if total == 0:
        return 0.0, 1.0
    z = 1.959964
    share = right / total
    centre = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def summary_of(records: Sequence[EvalRecord]) -> dict[str, Any]:
    """Returns every figure of a run as plain JSON values."""
    levels = sorted({record.level for record in records if record.level})
    return {
        "all": _figures(records),
        "levels": {
            level: _figures([record for record in records if record.level == level])
            for level in levels
        },
        "failures": dict(Counter(record.failure for record in records if record.failure)),
    }


def _figures(records: Sequence[EvalRecord]) -> dict[str, Any]:
    total = len(records)
    strict = sum(record.strict for record in records)
    low, high = wilson(strict, total)
    return {
        "questions": total,
        "strict": strict,
        "strict_interval": [round(low, 4), round(high, 4)],
        "ours": sum(record.right for record in records),
        "answered": sum(record.answer is not None for record in records),
        "mean_turns": _mean([record.turns for record in records]),
        "mean_tokens": _mean([record.tokens for record in records]),
        "mean_seconds": _mean([record.seconds for record in records]),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 2) if values else 0.0


def write_summary(records: Sequence[EvalRecord], path: Path) -> None:
    """Writes the figures as JSON."""
    path.write_text(json.dumps(summary_of(records), indent=2) + "\n", encoding="utf-8")


def print_summary(records: Sequence[EvalRecord]) -> None:
    """Prints the figures as tables."""
    summary = summary_of(records)
    table = Table(
        "level", "questions", "strict", "95 %", "ours", "answered", "turns", "tokens", "s"
    )
    for name, figures in {**summary["levels"], "all": summary["all"]}.items():
        low, high = figures["strict_interval"]
        share = figures["strict"] / max(1, figures["questions"])
        table.add_row(
            name,
            str(figures["questions"]),
            f"{figures['strict']} ({share:.1%})",
            f"{low:.0%}-{high:.0%}",
            str(figures["ours"]),
            str(figures["answered"]),
            f"{figures['mean_turns']:.1f}",
            f"{figures['mean_tokens']:.0f}",
            f"{figures['mean_seconds']:.0f}",
        )
    console = Console()
    console.print(table)
    kinds = sorted(summary["failures"].items(), key=lambda pair: -pair[1])
    if kinds:
        console.print("failures: " + ", ".join(f"{kind} {count}" for kind, count in kinds))
