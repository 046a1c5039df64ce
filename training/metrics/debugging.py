"""How runs failed, and how many got out of an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from training.metrics.questions import Share, share_of
from training.records.records import EvalRecord

__all__ = ["failure_counts", "self_debugging"]


def failure_counts(records: Sequence[EvalRecord]) -> dict[str, int]:
    """Returns how many runs failed in which way, the most frequent first.

    The words are those of `training.records.failures`; every run that is not right by the strict
    rules has one.
    """
    return dict(Counter(record.failure for record in records if record.failure).most_common())


def self_debugging(records: Sequence[EvalRecord]) -> Share | None:
    """Returns the success rate of self-debugging; `None` where no cell raised.

    Among the runs that met an error in a cell, the share whose last cell ran. Own definition: what
    it ended with may still be wrong. Test: `test_self_debugging_by_hand`.
    """
    met = [record for record in records if record.is_mended is not None]
    return share_of(met, lambda record: bool(record.is_mended)) if met else None
