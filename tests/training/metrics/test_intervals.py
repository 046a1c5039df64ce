from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from training.metrics.intervals import FEW_QUESTIONS, bootstrap, share_interval, wilson

shares = st.floats(0, 1, allow_subnormal=False)
DUST = 1e-9


def test_wilson_by_hand() -> None:
    # 5 of 10: z^2 = 3.841459, scale 1.384146; 1.959964 * sqrt(0.025 + 0.009604) / scale = 0.2634
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    # 0 of 10: the upper end is z^2 / (10 + z^2)
    assert wilson(0, 10) == pytest.approx((0, 3.841459 / 13.841459), abs=1e-6)
    # 22 of 43: centre 0.5562 / 1.0893, spread 0.1559 / 1.0893
    assert wilson(22, 43) == pytest.approx((0.3675, 0.6538), abs=5e-4)


def test_of_nothing_nothing_is_known() -> None:
    assert wilson(0, 0) == share_interval([]) == (0.0, 1.0)


def test_bootstrap_by_hand() -> None:
    # of 0, 0, 0, 1 the mean is binomial(4, 1/4) / 4: chance 0.32 of 0, 0.051 of 3/4 or more,
    # 0.004 of 1, so that 2.5 % are cut off at 0 and at 3/4
    assert bootstrap([0, 0, 0, 1]) == (0.0, 0.75)


def test_a_bootstrap_is_the_same_for_the_same_seed_in_any_order() -> None:
    values = list(np.random.default_rng(1).random(30))
    assert bootstrap(values, seed=4) == bootstrap(values[::-1], seed=4)
    assert bootstrap(values, seed=4) != bootstrap(values, seed=5)


def test_values_that_are_all_the_same_have_no_bootstrap() -> None:
    assert bootstrap([0.5] * 40) is None
    assert share_interval([0.5] * 40) == wilson(20, 40)


def test_there_is_no_bootstrap_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing to resample"):
        bootstrap([])


def test_a_bootstrap_of_few_questions_is_too_narrow() -> None:
    draws = np.random.default_rng(0)

    def covered(questions: int) -> tuple[float, float]:
        """How often the bootstrap and `share_interval` hold the true share, 5/7."""
        hits = np.zeros(2)
        for _ in range(200):
            values = list(draws.binomial(4, draws.beta(1, 0.4, questions)) / 4)
            for place, interval in enumerate((bootstrap(values), share_interval(values))):
                hits[place] += interval is not None and interval[0] <= 5 / 7 <= interval[1]
        return hits[0] / 200, hits[1] / 200

    narrow, used = covered(5)
    assert narrow < 0.88
    assert used > 0.94
    assert covered(FEW_QUESTIONS)[1] > 0.88


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_share_and_mirrors(counts: tuple[int, int]) -> None:
    right, total = counts
    low, high = wilson(right, total)
    assert 0 <= low <= right / total + DUST
    assert right / total - DUST <= high <= 1
    assert wilson(total - right, total) == pytest.approx((1 - high, 1 - low), abs=DUST)


@examples(40)
@given(st.lists(shares, min_size=1, max_size=60))
def test_an_interval_contains_the_share(values: list[float]) -> None:
    low, high = share_interval(values)
    mean = math.fsum(values) / len(values)
    assert -DUST <= low <= mean + DUST
    assert mean - DUST <= high <= 1 + DUST


@examples(20)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=FEW_QUESTIONS, max_size=40))
def test_tries_never_widen_what_whole_questions_would_give(values: list[float]) -> None:
    low, high = share_interval(values)
    widest = wilson(sum(values), len(values))
    assert high - low <= (widest[1] - widest[0]) * 1.2
