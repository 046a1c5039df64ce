from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.outcomes import tried, tries
from training.metrics.accuracy import (
    abq,
    by_question,
    has_sub_answers,
    is_right,
    parts_of,
    pasq,
    question_means,
    share_of,
    uasq,
    uasq_interval,
)
from training.metrics.intervals import FEW_QUESTIONS, wilson
from training.records.records import EvalRecord


def _parted(name: str, *parts: bool, trial: int = 0) -> EvalRecord:
    right = bool(parts) and all(parts)
    return tried(name, right, trial, parts={str(n): part for n, part in enumerate(parts)})


PARTED = [_parted("a", True, False), _parted("b", True), _parted("c", True, True, False, False)]


def test_the_three_accuracies_by_hand() -> None:
    assert abq(PARTED, "ours").share == pytest.approx(1 / 3)
    assert pasq(PARTED, "ours").share == pytest.approx((1 / 2 + 1 + 2 / 4) / 3)
    assert uasq(PARTED, "ours") == pytest.approx((1 + 1 + 2) / (2 + 1 + 4))


def test_unanswered_questions_stay_in_the_denominator() -> None:
    silent = _parted("d", False, False, False)
    records = [*PARTED, silent]
    assert abq(records, "ours").share == pytest.approx(1 / 4)
    assert pasq(records, "ours").share == pytest.approx(2 / 4)
    assert uasq(records, "ours") == pytest.approx(4 / 10)


def test_a_run_of_unknown_parts_is_one_wrong_part() -> None:
    records = [*PARTED, _parted("d")]
    assert pasq(records, "ours").share == pytest.approx(2 / 4)
    assert uasq(records, "ours") == pytest.approx(4 / 8)


def test_tries_at_a_question_are_averaged() -> None:
    records = [_parted("a", True, False), _parted("a", True, True, trial=1), _parted("b", False)]
    assert pasq(records, "ours").share == pytest.approx((0.75 + 0) / 2)
    assert abq(records, "ours").share == pytest.approx((0.5 + 0) / 2)


def test_strict_parts_are_ours_where_a_suite_does_not_tell_them_apart() -> None:
    ours = {"n": True, "m": True}
    plain = tried("a", True, parts=ours)
    split = tried("a", True, strict_correct=False, parts=ours, strict_parts={"n": True, "m": False})
    assert parts_of(plain, "strict") == parts_of(split, "ours") == ours
    assert uasq([split], "strict") == 0.5
    assert (is_right(split, "strict"), is_right(split, "ours")) == (False, True)


def test_ways_to_be_right_are_no_sub_answers() -> None:
    assert has_sub_answers(PARTED)
    assert not has_sub_answers([_parted("a", True), _parted("b", False)])
    assert not has_sub_answers([*PARTED, tried("e", True, parts={"rows": True, "file": False})])
    published = tried("f", True, parts={"answer": True, "published": True}, has_sub_answers=False)
    assert not has_sub_answers([published])
    assert has_sub_answers([tried("g", False), *PARTED])  # one without a verdict


def test_an_interval_of_all_sub_answers_draws_whole_questions() -> None:
    records = [_parted(str(n), *[n % 2 == 0] * (1 + n % 3)) for n in range(40)]
    low, high = uasq_interval(records, "ours") or (1.0, 0.0)
    assert low < uasq(records, "ours") < high
    assert high - low < 0.5
    assert uasq_interval(records[:FEW_QUESTIONS], "ours") is not None
    assert uasq_interval(records[: FEW_QUESTIONS - 1], "ours") is None


def test_every_question_counts_once_however_often_it_was_tried() -> None:
    records = [*tries("a", [True, False, False, False]), tried("b", True)]
    share = share_of(records, lambda record: record.correct)
    assert (share.questions, share.runs, share.right) == (2, 5, 2)
    assert share.share == pytest.approx((1 / 4 + 1) / 2)
    assert share.interval == wilson(1.25, 2)


def test_a_share_of_nothing_is_wholly_uncertain() -> None:
    share = share_of([], lambda record: record.correct)
    assert (share.questions, share.share, share.interval) == (0, 0.0, (0.0, 1.0))
    assert uasq([], "strict") == 0.0


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=8))
def test_partly_right_answers_only_ever_help(answers: list[list[bool]]) -> None:
    records = [_parted(str(n), *parts) for n, parts in enumerate(answers)]
    assert abq(records, "ours").share <= pasq(records, "ours").share + 1e-12
    assert abq(records, "ours") == share_of(records, lambda record: record.correct)
    if len({len(parts) for parts in answers}) == 1:
        assert uasq(records, "ours") == pytest.approx(pasq(records, "ours").share)


def test_questions_keep_the_order_of_the_records() -> None:
    records = [tried("z", True), tried("a", False), tried("z", False, 1)]
    assert list(by_question(records)) == ["z", "a"]
    assert question_means(records, lambda record: record.correct) == [0.5, 0.0]
