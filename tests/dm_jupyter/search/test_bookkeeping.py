"""The parts of a search that are arithmetic: PUCT, votes and values."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.agent.candidates import (
    Candidate,
    best_by_mode,
    best_by_value,
    best_by_vote,
    groups_of,
    say_the_same,
)
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from dm_jupyter.search.puct import SearchTree, TreeNode


def _candidate(answer: str | None, value: float | None = None) -> Candidate:
    stop = StopReason.TURN_LIMIT if answer is None else StopReason.ANSWERED
    trajectory = Trajectory(Task("t", "q"), "markdown", stop=stop, answer=answer)
    return Candidate(trajectory, value=value)


def _answers(*texts: str | None) -> list[Candidate]:
    return [_candidate(text) for text in texts]


def test_puct_is_the_formula_of_the_paper() -> None:
    parent = TreeNode(0, visits=9)
    child = TreeNode(1, parent, prior=0.5, visits=2, value_sum=1.0)
    # Q = 1/2; U = 1.25 * 0.5 * sqrt(9) / (1 + 2) = 0.625
    assert child.puct(1.25) == pytest.approx(1.125)
    assert child.puct(0.0) == 0.5


def test_a_node_without_visits_is_worth_nothing_yet() -> None:
    assert TreeNode(1).q == 0.0
    assert TreeNode(0).puct(1.25) == 0.0  # the root has nobody above it


def test_without_exploration_the_better_mean_is_followed() -> None:
    tree = SearchTree(exploration=0.0)
    good, bad = (tree.add(tree.root, 0.9, is_terminal=False) for _ in range(2))
    tree.back_up(good, 0.2)
    tree.back_up(bad, -0.4)
    assert tree.select() is good
    assert tree.root.visits == 2
    assert tree.root.value_sum == pytest.approx(-0.2)


def test_exploration_prefers_what_is_likely_and_seldom_seen() -> None:
    tree = SearchTree(exploration=1.25)
    often, seldom = (tree.add(tree.root, prior, is_terminal=False) for prior in (0.5, 0.6))
    for _ in range(5):
        tree.back_up(often, 0.1)
    tree.back_up(seldom, 0.1)
    assert tree.select() is seldom


def test_ended_nodes_are_never_selected_and_close_those_above() -> None:
    tree = SearchTree(exploration=0.0)
    ended = tree.add(tree.root, 1.0, is_terminal=True)
    open_one = tree.add(tree.root, 1.0, is_terminal=False)
    tree.back_up(ended, 1.0)
    tree.back_up(open_one, -1.0)
    assert tree.select() is open_one
    tree.add(open_one, 1.0, is_terminal=True)
    assert tree.select() is None
    assert [node.open_leaves for node in tree.nodes] == [0, 0, 0, 0]


def test_a_leaf_that_cannot_be_expanded_is_closed() -> None:
    tree = SearchTree(exploration=0.0)
    tree.end(tree.root)
    assert tree.select() is None


def test_an_exhausted_tree_opens_again_below_its_root() -> None:
    tree = SearchTree(exploration=0.0)
    tree.add(tree.root, 1.0, is_terminal=True)
    assert tree.select() is None
    more = tree.add(tree.root, 1.0, is_terminal=False)
    assert tree.select() is more


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans(), st.floats(-1, 1)), max_size=60))
def test_a_tree_counts_what_is_open_and_what_it_was_told(
    growth: list[tuple[int, bool, float]],
) -> None:
    tree = SearchTree(exploration=1.25, seed=3)
    for _, is_terminal, value in growth:
        leaf = tree.select() or tree.root
        tree.back_up(tree.add(leaf, 0.5, is_terminal=is_terminal), value)
    leaves = [node for node in tree.nodes if not node.children and not node.is_terminal]
    assert tree.root.open_leaves == len(leaves)
    assert tree.root.visits == len(growth)
    assert tree.root.value_sum == pytest.approx(sum(value for *_, value in growth), abs=1e-9)
    for node in tree.nodes:
        assert node.open_leaves == sum(node in leaf.way_up() for leaf in leaves)
        assert math.isfinite(node.puct(1.25))


def test_the_shares_of_the_leaves_are_those_of_single_runs() -> None:
    tree = SearchTree(0.0)
    first, second, third = (tree.add(tree.root, 0.9, is_terminal=False) for _ in range(3))
    for _ in range(2):
        tree.add(second, 0.9, is_terminal=True)
    assert tree.root.share == 1
    assert [node.share for node in (first, *second.children, third)] == [
        *[Fraction(1, 3), Fraction(1, 6), Fraction(1, 6), Fraction(1, 3)]
    ]
    tree.add(tree.root, 0.9, is_terminal=True)  # the root is drawn from again
    assert third.share == Fraction(1, 4)


def test_an_answer_counts_what_its_candidate_weighs() -> None:
    said = _answers("@n[3]", "@n[4]", "@n[4]")
    weights = [Fraction(1, 3), Fraction(1, 9), Fraction(1, 9)]
    weighed = [replace(one, weight=weight) for one, weight in zip(said, weights, strict=True)]
    assert best_by_vote(weighed, say_the_same) == 0
    assert best_by_vote(said, say_the_same) == 1


def test_votes_are_counted_under_the_given_equality() -> None:
    candidates = _answers("@n[1.0]", "@n[2]", "@n[2.0]", None, "@n[1]", "@n[2.00]")
    assert groups_of(candidates, say_the_same) == [[1, 2, 5], [0, 4]]
    assert best_by_vote(candidates, say_the_same) == 1


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("@n[1000000]", "@n[1000000.5]", True),
        ("@n[0.001]", "@n[0.0010005]", False),
        ("@n[1] @m[2]", "@n[1]", False),
        ("@n[1]", "@m[1]", False),
        ("@n[a  b]", "@n[A b]", True),
        ("It is 5.", "5 it is", True),
        ("It is 5.", "It is 6.", False),
        ("Yes.", "yes.", True),
        ("Yes.", "No.", False),
    ],
)
def test_two_answers_say_the_same_by_names_and_values(
    first: str, second: str, is_same: bool
) -> None:
    one, other = _answers(first, second)
    assert say_the_same(one, other) is is_same
    assert say_the_same(other, one) is is_same


def test_of_equal_votes_the_first_answer_stands() -> None:
    assert best_by_vote(_answers("@n[3]", "@n[4]"), say_the_same) == 0
    assert best_by_vote(_answers(None, "@n[4]", "@n[3]"), say_the_same) == 1
    assert best_by_vote(_answers(None, None), say_the_same) == 0


def test_by_mode_each_candidate_counts_one_whatever_it_weighs() -> None:
    said = _answers("@n[3]", "@n[nan]", "@n[nan]", None)
    heavy = [replace(said[0], weight=Fraction(9)), *said[1:]]
    assert best_by_mode(heavy, say_the_same) == 1
    assert best_by_vote(heavy, say_the_same) == 0
    assert best_by_mode(_answers(None, "@n[4]", "@n[3]"), say_the_same) == 1
    assert best_by_mode(_answers(None, None), say_the_same) == 0


def test_an_undefined_answer_gives_way_to_any_other() -> None:
    assert best_by_vote(_answers("@n[nan]", "@n[nan]", "@n[4]"), say_the_same) == 2
    assert best_by_vote(_answers("@n[nan]", None), say_the_same) == 0


def test_an_answer_of_another_kind_gives_way_to_one_that_fits() -> None:
    task = Task("t", "q", answer_format='@p[value] where "value" is a number between 0 and 1')
    said = ["@p[49572.0]", "@p[49572.0]", "@p[nan]", "@p[0.03]"]
    candidates = [
        Candidate(replace(one.trajectory, task=task), value=None) for one in _answers(*said)
    ]
    assert best_by_vote(candidates, say_the_same) == 3
    assert best_by_vote(candidates[:3], say_the_same) == 0


def test_by_value_the_highest_that_answered_is_chosen() -> None:
    candidates = [_candidate(None, 0.9), _candidate("@n[1]", 0.2), _candidate("@n[2]", 0.4)]
    assert best_by_value(candidates) == 2
    assert best_by_value([replace(one, value=None) for one in candidates]) == 1
    assert best_by_value(_answers(None)) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("@n[1], @m[a b]", "@m[A  b] @n[1.0000001]", True),
        ("@n[1]", "@n[1] @m[2]", False),
        ("@n[1]", "@n[1.001]", False),
        ("Forty of them.", "forty  OF them.", True),
        ("Forty of them.", "40", False),
        ("", "", False),
        ("The sales add up to **40**.", "It is 40.0 in all.", True),
        ("1,200 of 3", "3 rows: 1200.00", True),
        ("Some 1.2 million.", "1,200,000", True),
        ("45% of them", "a share of 0.45", True),
        ("45 percent", "45.0 %", True),
        ("40", "40 and 41", False),
        ("40 and 40", "40", True),
        ("34.65", "34.6512", False),
        ("It fell by -3.", "It fell by 3.", False),
        ("North sold most.", "North  SOLD most.", True),
        ("North sold most.", "South sold most.", False),
        ("@n[40]", "40", False),
    ],
)  # fmt: skip
def test_answers_that_say_the_same(one: str, other: str, same: bool) -> None:
    assert say_the_same(_candidate(one), _candidate(other)) is same
    assert say_the_same(_candidate(other), _candidate(one)) is same


_TEXTS = st.text() | st.text(alphabet="0123456789.,-%eEkM @n[] ", max_size=12)


@given(_TEXTS, _TEXTS)
def test_comparing_any_two_texts_is_symmetric(one: str, other: str) -> None:
    first, second = _candidate(one), _candidate(other)
    assert say_the_same(first, second) is say_the_same(second, first)


@given(_TEXTS)
def test_every_answer_says_the_same_as_itself(text: str) -> None:
    assert say_the_same(_candidate(text), _candidate(text)) is bool(text.strip())


@given(st.lists(st.decimals(-(10**9), 10**9, places=3), min_size=1, max_size=4), st.randoms())
def test_neither_order_nor_notation_of_numbers_makes_a_difference(
    numbers: list[Decimal], random: Random
) -> None:
    shuffled = random.sample(numbers, len(numbers))
    plain = _candidate(" and ".join(f"{number:f}" for number in numbers))
    grouped = _candidate("Found: " + "; ".join(f"{number:,.5f}" for number in shuffled))
    assert say_the_same(plain, grouped)
    other = _candidate(f"{max(numbers) + 1:f}")
    assert not say_the_same(plain, other)


def test_free_answers_are_counted_by_what_they_state() -> None:
    candidates = _answers("It is 41.", "The sum is 40.", "Together they make 40.00!")
    assert groups_of(candidates, say_the_same) == [[1, 2], [0]]
