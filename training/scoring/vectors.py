"""Scorer vectors: responses with recorded verdicts, and how far our rules agree with them.

A row is one JSON object: `id`, `kind` (`closed_form` rows are read here), `label` as (name, value)
pairs, `response`, `scorers` (what published scorers said when run unmodified), `sensible` (a
person's judgement per name) and `note`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.scoring import closed_form

__all__ = ["Disagreement", "disagreements", "read_vectors", "report"]

PUBLISHED = "infiagent.eval_closed_form"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row where a rule set and a recorded verdict differ."""

    row: dict[str, Any]
    ours: dict[str, bool]
    recorded: dict[str, bool]

    def __str__(self) -> str:
        return "  ".join(
            [
                self.row["id"],
                f"label {json.dumps(self.row['label'], ensure_ascii=False)}",
                f"response {self.row['response'][:120]!r}",
                f"ours {self.ours}",
                f"recorded {self.recorded}",
                f"note {self.row['note'] or '-'}",
            ]
        )


def read_vectors(path: Path, kind: str = "closed_form") -> list[dict[str, Any]]:
    """Returns the rows of one kind.

    Raises:
        OSError: the file can't be read.
        ValueError: a line is not JSON.
    """
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line)
    return [row for row in rows if row["kind"] == kind]


def disagreements(rows: list[dict[str, Any]], rules: closed_form.RuleSet) -> Iterator[Disagreement]:
    """Yields the rows where `sensible` differs from the judgement, or `strict` from InfiAgent.

    The published scorer says nothing of an empty response, which it drops; it isn't compared.
    """
    for row in rows:
        result = closed_form.score(row["response"], [(n, v) for n, v in row["label"]], rules)
        if rules == "sensible":
            ours, recorded = result.by_name, row["sensible"]
        else:
            recorded = row["scorers"].get(PUBLISHED, {}).get("correct") or {}
            ours = {name: result.by_name[name] for name in recorded}
        if ours != recorded:
            yield Disagreement(row, ours, recorded)


def report(path: Path) -> list[str]:
    """Returns the lines of the comparison of both rule sets, each disagreement and the shares.

    Raises:
        OSError: the file can't be read.
        ValueError: a line is not JSON.
    """
    rows = read_vectors(path)
    lines = []
    for rules, against in (("sensible", "the judgements"), ("strict", PUBLISHED)):
        found = list(disagreements(rows, "sensible" if rules == "sensible" else "strict"))
        agreeing = len(rows) - len(found)
        share = agreeing / len(rows) if rows else 1.0
        lines += [f"{rules} against {against}: {agreeing} of {len(rows)} rows agree ({share:.1%})"]
        lines += [f"  {one}" for one in found]
    return lines
