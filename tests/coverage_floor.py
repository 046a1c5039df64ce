"""Fails when the parts that must not break are tested less than they should be."""

from __future__ import annotations

import json
import sys
from pathlib import Path

FLOORS = dict.fromkeys(
    (
        "kernel_sandbox",
        *(f"dm_jupyter/{room}" for room in ("core", "assist", "data", "models", "agent", "search")),
    ),
    90.0,
)
"""Percent of lines and branches, by folder."""


def share_covered(report: dict, folder: str) -> float:
    """Returns the percentage of lines and branches of a folder that ran."""
    totals = [
        entry["summary"] for name, entry in report["files"].items() if name.startswith(f"{folder}/")
    ]
    seen = sum(t["covered_lines"] + t.get("covered_branches", 0) for t in totals)
    there = sum(t["num_statements"] + t.get("num_branches", 0) for t in totals)
    return 100.0 * seen / max(1, there)


def main() -> int:
    report = json.loads(Path(sys.argv[1]).read_text())
    shares = {folder: share_covered(report, folder) for folder in FLOORS}
    for folder, share in shares.items():
        print(f"{folder}: {share:.1f} % covered, at least {FLOORS[folder]:.0f} % wanted")
    return 0 if all(share >= FLOORS[folder] for folder, share in shares.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
