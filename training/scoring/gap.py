"""The relative performance gap (DSBench, arXiv 2409.07703): scores of any scale on one from 0 up.

RPG = max(0, (p - b) / (g - b)) of one competition, with the submission's score p, the baseline's
b and the best known g, and their mean over all competitions, a missing submission counting 0. The
sign of g - b says whether more is better, so that no metric needs a direction here. As published,
it is not cut at 1: a score beyond the best known one counts more than 1. Deviates from the
released script in nothing but its errors: an undefined score is 0 there as well.
Test: `test_the_gap_by_hand`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["mean_gap", "relative_gap"]


def relative_gap(score: float, baseline: float, best: float) -> float:
    """Returns the part of the way from the baseline to the best that a score has gone.

    Raises:
        ValueError: the baseline or the best is undefined, or they are the same.
    """
    if not (math.isfinite(baseline) and math.isfinite(best)) or baseline == best:
        raise ValueError(f"no gap lies between the baseline {baseline} and the best {best}")
    if not math.isfinite(score):
        return 0.0
    return max(0.0, (score - baseline) / (best - baseline))


def mean_gap(gaps: Sequence[float | None]) -> float:
    """Returns the mean over competitions; None stands for one without a submission.

    Raises:
        ValueError: there are no competitions.
    """
    if not gaps:
        raise ValueError("there is no mean gap of no competitions")
    return sum(gap or 0.0 for gap in gaps) / len(gaps)
