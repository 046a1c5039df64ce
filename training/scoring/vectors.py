"""Scorer vectors: responses with recorded verdicts, and the agreement of our rules with them.

A row is one JSON object: `id`, `kind`, `label`, `response`, `scorers` (verdicts of published
scorers, run unmodified), `sensible` (a person's judgement; per name for `closed_form`) and `note`.
The kinds compared here are those of `KINDS`. Rows of training rewards, `trajectory_format` and
`length_penalty`, are not scores of answers and are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.scoring import closed_form
from training.scoring.short_answer import answers_equal
from training.scoring.tables import read_csv, tables_equal

__all__ = ["KINDS", "Disagreement", "disagreements", "read_vectors", "report"]

KINDS = ("closed_form", "tablebench_em", "table_compare")
"""Kinds with a label as (name, value) pairs, as a short answer, and as an unordered csv table."""
PUBLISHED = "infiagent.eval_closed_form"

Verdict = bool | dict[str, bool]
"""Verdict on the entire response, or per name."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row where a rule set and a recorded verdict differ."""

    row: dict[str, Any]
    ours: Verdict
    recorded: Verdict

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
    """Return the rows of one kind.

    Raises:
        OSError: the file can't be read.
        ValueError: a line is not JSON.
    """
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line)
    return [row for row in rows if row["kind"] == kind]


def disagreements(
    rows: list[dict[str, Any]], rules: closed_form.RuleSet = "sensible"
) -> Iterator[Disagreement]:
    """Yield the rows where `sensible` differs from the judgement, or `strict` from InfiAgent.

    Strict rules are compared on closed forms alone. The published scorer drops an empty response,
    so such rows aren't compared.
    """
    for row in rows:
        if row["kind"] == "closed_form":
            ours, recorded = _closed_form(row, rules)
        elif rules == "sensible":
            ours, recorded = _whole(row), row["sensible"]
        else:
            continue
        if ours != recorded:
            yield Disagreement(row, ours, recorded)


def _closed_form(row: dict[str, Any], rules: closed_form.RuleSet) -> tuple[Verdict, Verdict]:
    pairs = [(name, value) for name, value in row["label"]]
    by_name = closed_form.score(row["response"], pairs, rules).by_name
    if rules == "sensible":
        return by_name, row["sensible"]
    recorded = row["scorers"].get(PUBLISHED, {}).get("correct") or {}
    return {name: by_name[name] for name in recorded}, recorded


def _whole(row: dict[str, Any]) -> bool:
    label, response = row["label"], row["response"]
    if row["kind"] == "tablebench_em":
        return answers_equal(label, response)
    return tables_equal(read_csv(label), read_csv(response))


def report(path: Path) -> list[str]:
    """Return the lines of the comparison for each kind: the shares and each disagreement.

    Raises:
        OSError: the file can't be read.
        ValueError: a line is not JSON, or a table is not csv.
    """
    lines = []
    for kind in KINDS:
        rows = read_vectors(path, kind)
        if rows:
            lines += _compared(f"{kind}, sensible against the judgements", rows, "sensible")
        if rows and kind == "closed_form":
            lines += _compared(f"{kind}, strict against {PUBLISHED}", rows, "strict")
    return lines


def _compared(title: str, rows: list[dict[str, Any]], rules: closed_form.RuleSet) -> list[str]:
    found = list(disagreements(rows, rules))
    agreeing = len(rows) - len(found)
    share = agreeing / len(rows)
    first = f"{title}: {agreeing} of {len(rows)} rows agree ({share:.1%})"
    return [first, *(f"  {one}" for one in found)]
