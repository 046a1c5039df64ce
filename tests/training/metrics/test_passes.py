from __future__ import annotations

import math
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.outcomes import tries
from training.metrics.accuracy import any_of_each, pass_at, pass_of_each, reported_ks, share_of

outcomes = st.lists(st.booleans(), min_size=1, max_size=7)


def test_pass_at_by_hand() -> None:
    # 2 of 5 are right: 3 of the 10 pairs hold none of them
    assert pass_at(2, tries=5, right=2) == pytest.approx(1 - 3 / 10)
    assert pass_at(1, tries=5, right=2) == pytest.approx(2 / 5)
    assert pass_at(4, tries=5, right=2) == 1.0
    assert pass_at(5, tries=5, right=0) == 0.0


def test_many_tries_overflow_nowhere() -> None:
    # one right among a million: half of the tries hold it half of the time
    assert pass_at(500_000, tries=1_000_000, right=1) == pytest.approx(0.5)
    assert math.isfinite(pass_at(1_000, tries=100_000, right=90_000))


@pytest.mark.parametrize(
    ("k", "tries", "right"), [(0, 5, 1), (6, 5, 1), (1, 0, 0), (1, 5, 6), (1, 5, -1)]
)
def test_counts_that_can_not_be_are_refused(k: int, tries: int, right: int) -> None:
    with pytest.raises(ValueError, match="tries"):
        pass_at(k, tries, right)


@given(outcomes, st.data())
def test_the_estimator_is_the_mean_over_all_subsets(
    rights: list[bool], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(rights)))
    subsets = [any(subset) for subset in combinations(rights, k)]
    assert pass_at(k, len(rights), sum(rights)) == pytest.approx(sum(subsets) / len(subsets))


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6))
def test_more_tries_never_hurt_and_all_of_them_are_the_union(questions: list[list[bool]]) -> None:
    records = [one for n, rights in enumerate(questions) for one in tries(str(n), rights)]
    passes = [fmean(pass_of_each(k, records, "strict")) for k in range(1, 5)]
    assert passes == sorted(passes)
    assert passes[0] == pytest.approx(share_of(records, lambda record: record.strict_correct).share)
    assert passes[-1] == pytest.approx(fmean(any_of_each(records, "strict")))


def test_the_union_counts_questions() -> None:
    records = [*tries("a", [False, True]), *tries("b", [False, False]), *tries("c", [True, True])]
    assert any_of_each(records, "ours") == [1.0, 0.0, 1.0]
    assert any_of_each([], "ours") == []


@pytest.mark.parametrize(
    ("counts", "ks"), [([1, 1], [1]), ([8, 8], [1, 2, 4, 8]), ([5, 9], [1, 2, 4, 5]), ([], [])]
)
def test_passes_are_reported_as_far_as_every_question_was_tried(
    counts: list[int], ks: list[int]
) -> None:
    records = [one for n, count in enumerate(counts) for one in tries(str(n), [True] * count)]
    assert reported_ks(records) == ks


def test_a_question_with_too_few_tries_is_an_error() -> None:
    with pytest.raises(ValueError, match="pass@2 needs 1 <= k <= 1"):
        pass_of_each(2, [*tries("a", [True, True]), *tries("b", [True])], "strict")
