"""How far a judge agrees with the rules on the same answers: accuracy, kappa, where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from training.judge.judged import JudgedRecord

__all__ = ["Agreement", "agreement_of"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The confusion table of a judge and the rules; answers without a verdict are not in it."""

    both_right: int
    judge_only: int
    """Right by the judge alone."""
    rules_only: int
    """Right by the rules alone."""
    both_wrong: int
    unscored: int
    """Answers of which the judge gave no verdict."""
    differing: tuple[str, ...]
    """Ids where they differ, `id#trial` beyond the first try, in the order of the run."""

    @property
    def total(self) -> int:
        """Answers that have both verdicts."""
        return self.both_right + self.judge_only + self.rules_only + self.both_wrong

    @property
    def accuracy(self) -> float | None:
        """The share on which they agree; `None` without answers."""
        return (self.both_right + self.both_wrong) / self.total if self.total else None

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance: (p_o - p_e) / (1 - p_e), Cohen 1960.

        `None` where chance alone explains all: without answers, or with one and the same verdict
        by both everywhere. Test: `test_kappa_by_hand`.
        """
        if self.accuracy is None:
            return None
        judge = (self.both_right + self.judge_only) / self.total
        rules = (self.both_right + self.rules_only) / self.total
        chance = judge * rules + (1 - judge) * (1 - rules)
        return (self.accuracy - chance) / (1 - chance) if chance < 1 else None


def agreement_of(
    rows: Iterable[JudgedRecord], rules: Literal["right", "strict"] = "right"
) -> Agreement:
    """Returns how the judge's verdicts compare with one rule set.

    Args:
        rows: a judge's column.
        rules: our rules, or the benchmark's own.
    """
    known = list(rows)
    marked: Sequence[tuple[JudgedRecord, bool]] = [
        (row, row.right if rules == "right" else row.strict)
        for row in known
        if row.judged is not None
    ]
    return Agreement(
        both_right=sum(bool(row.judged) and right for row, right in marked),
        judge_only=sum(bool(row.judged) and not right for row, right in marked),
        rules_only=sum(not row.judged and right for row, right in marked),
        both_wrong=sum(not row.judged and not right for row, right in marked),
        unscored=len(known) - len(marked),
        differing=tuple(_name(row) for row, right in marked if row.judged is not right),
    )


def _name(row: JudgedRecord) -> str:
    return f"{row.id}#{row.trial}" if row.trial else row.id
