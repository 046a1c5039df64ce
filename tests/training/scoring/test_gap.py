from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from training.suites.dsbench_modeling import relative_gap

FINITE = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("score", "baseline", "best", "gap"),
    [
        (0.75, 0.5, 1.0, 0.5),  # more is better: (0.75 - 0.5) / 0.5
        (0.4, 0.5, 1.0, 0.0),  # below the baseline
        (15.0, 20.0, 10.0, 0.5),  # less is better: -5 / -10
        (25.0, 20.0, 10.0, 0.0),
        (9.0, 20.0, 10.0, 1.1),  # beyond the best: -11 / -10
        (math.nan, 0.5, 1.0, 0.0),
        (math.inf, 0.5, 1.0, 0.0),
    ],
)
def test_the_gap_by_hand(score: float, baseline: float, best: float, gap: float) -> None:
    assert relative_gap(score, baseline, best) == pytest.approx(gap)


@pytest.mark.parametrize(("baseline", "best"), [(1.0, 1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_no_gap_lies_between_equal_or_undefined_ends(baseline: float, best: float) -> None:
    with pytest.raises(ValueError, match="no gap lies between"):
        relative_gap(0.5, baseline, best)


@given(FINITE, FINITE, FINITE)
def test_the_gap_is_the_same_on_the_mirrored_scale(score: float, low: float, high: float) -> None:
    assume(abs(low - high) > 1e-3)
    assert relative_gap(score, low, high) == relative_gap(-score, -low, -high)
    assert relative_gap(score, low, high) >= 0
    assert (relative_gap(low, low, high), relative_gap(high, low, high)) == (0, 1)


def test_the_published_scores_of_one_model_over_all_competitions(shared_data: Path) -> None:
    scores = json.loads((shared_data / "dsbench" / "data_modeling_scores.json").read_text())
    model = "gpt-3.5-turbo-0125"
    gaps = {
        name: relative_gap(float(row[model]), float(row["baseline"]), float(row["GT"]))
        if model in row
        else None
        for name, row in scores.items()
    }
    # (0.8520433831816293 - 0.5) / 0.5, and (362.894 - 1080.738) / (0 - 1080.738)
    assert gaps["playground-series-s3e24"] == pytest.approx(0.7040867663632586)
    assert gaps["playground-series-s3e14"] == pytest.approx(0.664217, abs=1e-6)
    assert gaps["dont-overfit-ii"] == 0
    assert sum(gap is not None for gap in gaps.values()) == 12
    mean = sum(gap or 0.0 for gap in gaps.values()) / len(gaps)  # 0 without a submission
    assert mean == pytest.approx(0.0651844, abs=1e-7)
