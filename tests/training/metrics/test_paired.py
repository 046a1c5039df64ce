from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.outcomes import tried, tries
from training.metrics.paired import Pairing, difference_of, match, mcnemar, mcnemar_of
from training.records.records import EvalRecord

counts = st.integers(0, 60)


def _run(**rights: bool) -> list[EvalRecord]:
    return [tried(name, right) for name, right in rights.items()]


def _several(run: list[list[bool]]) -> list[EvalRecord]:
    return [record for n, rights in enumerate(run) for record in tries(str(n), rights)]


def _pairing(first: list[list[bool]], second: list[list[bool]]) -> Pairing:
    return match(_several(first), _several(second), "strict")


def test_mcnemar_by_hand() -> None:
    # 1 and 7: (1 + 8) of 256 ways are as lopsided, twice; the mid-p leaves out the 8 once. The
    # published example (Bentur et al. in Fagerland et al. 2013) has 0.0703 and 0.0391.
    test = mcnemar(1, 7)
    assert (test.p_exact, test.p_mid) == (18 / 256, 10 / 256)
    # 3 and 3: 20 of 64 ways, half of which the mid-p leaves out
    even = mcnemar(3, 3)
    assert (even.p_exact, even.p_mid) == (1.0, 1 - 20 / 64 / 2)
    assert (mcnemar(0, 0).p_exact, mcnemar(0, 0).p_mid) == (1.0, 1.0)
    assert mcnemar(0, 1000).p_exact == 2.0**-999


def test_counts_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="below zero"):
        mcnemar(-1, 3)


@given(counts, counts)
def test_mcnemar_is_symmetric_and_a_probability(b: int, c: int) -> None:
    test, mirrored = mcnemar(b, c), mcnemar(c, b)
    assert (test.p_exact, test.p_mid) == (mirrored.p_exact, mirrored.p_mid)
    assert 0 <= test.p_mid <= test.p_exact <= 1


@given(counts, st.integers(1, 60))
def test_mcnemar_falls_as_changes_grow_one_sided(b: int, more: int) -> None:
    assert mcnemar(b, b + more + 1).p_exact <= mcnemar(b, b + more).p_exact


def test_runs_are_matched_by_question_and_nothing_is_lost() -> None:
    pairing = match(_run(a=True, b=False, c=True), _run(d=True, c=False, b=True), "ours")
    assert [pair.id for pair in pairing.pairs] == ["b", "c"]
    assert [pair.shares for pair in pairing.pairs] == [(0, 1), (1, 0)]
    assert [record.id for record in pairing.only_first] == ["a"]
    assert [record.id for record in pairing.only_second] == ["d"]


def test_tries_are_matched_by_their_number() -> None:
    first, second = tries("a", [True, False, True]), tries("a", [False, False])
    pairing = match(first, second, "strict", by="try")
    assert [(pair.trial, pair.change) for pair in pairing.pairs] == [(0, -1.0), (1, 0.0)]
    assert [record.key for record in pairing.only_first] == [("a", 2)]
    by_question = match(first, second, "strict")
    assert by_question.pairs[0].shares == (2 / 3, 0)
    assert (pairing.is_balanced, by_question.is_balanced) == (True, False)


def test_the_rules_decide_what_is_right() -> None:
    loose = [tried("a", True, strict_correct=False)]
    assert match(loose, loose, "ours").pairs[0].shares == (1, 1)
    assert match(loose, loose, "strict").pairs[0].shares == (0, 0)


def test_difference_by_hand() -> None:
    first = _run(a=True, b=False, c=False, d=False)
    second = _run(a=True, b=True, c=False, d=False)
    difference = difference_of(match(first, second, "strict").pairs)
    assert difference.points == 25.0
    # of 0, 0, 0, 100 the mean is 100 / 4 * binomial(4, 1/4)
    assert difference.interval == (0.0, 75.0)


def test_whole_questions_are_drawn_however_tries_are_matched() -> None:
    first, second = _several([[False] * 4, [True] * 4]), _several([[True] * 4, [True] * 4])
    by_question = difference_of(match(first, second, "strict", "question").pairs)
    assert difference_of(match(first, second, "strict", "try").pairs) == by_question
    assert by_question.interval == (0.0, 100.0)


def test_several_tries_count_one_change_a_question() -> None:
    pairs = _pairing([[True, False], [True, True]], [[True, True], [True, True]]).pairs
    test = mcnemar_of(pairs)
    assert (test.b, test.c) == (0, 1)


def test_without_a_change_there_is_no_interval() -> None:
    same = _run(a=True, b=False)
    difference = difference_of(match(same, same, "strict").pairs)
    assert (difference.points, difference.interval) == (0.0, None)


def test_no_common_question_is_an_error() -> None:
    with pytest.raises(ValueError, match="without a common question"):
        difference_of(match(_run(a=True), _run(b=True), "strict").pairs)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_swapping_the_runs_turns_the_sign(outcomes: list[tuple[bool, bool]]) -> None:
    first = [tried(str(n), one) for n, (one, _) in enumerate(outcomes)]
    second = [tried(str(n), other) for n, (_, other) in enumerate(outcomes)]
    there, back = match(first, second, "ours").pairs, match(second, first, "ours").pairs
    assert difference_of(there).points == pytest.approx(-difference_of(back).points)
    test, mirrored = mcnemar_of(there), mcnemar_of(back)
    assert (test.b, test.c, test.p_exact) == (mirrored.c, mirrored.b, mirrored.p_exact)
    interval = difference_of(there).interval
    assert interval is None or interval[0] <= difference_of(there).points <= interval[1]
