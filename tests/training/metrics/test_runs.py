from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.outcomes import tried, tries
from training.durable.budget import Price
from training.metrics.intervals import FEW_QUESTIONS
from training.metrics.runs import (
    UNGROUPED,
    by_group,
    costs_of,
    failure_counts,
    grades_of,
    group_names,
    self_debugging,
)


def test_levels_go_from_easy_to_hard_and_other_groups_by_size() -> None:
    records = [
        tried("a", True, groups={"level": ["hard"], "concept": ["rare", "often"]}),
        tried("b", True, groups={"level": ["easy"], "concept": ["often"]}),
        tried("c", True, groups={"level": ["medium"], "concept": ["often"]}),
    ]
    assert group_names(records) == ["level", "concept"]
    assert list(by_group(records, "level")) == ["easy", "medium", "hard"]
    sizes = {value: len(members) for value, members in by_group(records, "concept").items()}
    assert list(sizes.items()) == [("often", 3), ("rare", 1)]


def test_records_without_a_group_are_not_lost() -> None:
    records = [tried("a", True), tried("b", True, groups={"file": ["csv", "csv"]})]
    assert {k: len(v) for k, v in by_group(records, "file").items()} == {"csv": 1, UNGROUPED: 1}
    assert group_names([]) == []


@given(st.lists(st.lists(st.sampled_from("xyz"), unique=True), max_size=9))
def test_every_record_stands_in_each_of_its_groups(values: list[list[str]]) -> None:
    records = [tried(str(n), True, groups={"concept": one}) for n, one in enumerate(values)]
    found = by_group(records, "concept")
    assert sum(map(len, found.values())) == sum(max(1, len(one)) for one in values)


def test_failures_are_counted_the_most_frequent_first() -> None:
    kinds = ["void", "", "format", "void"]
    records = [tried(str(n), not kind, failure=kind) for n, kind in enumerate(kinds)]
    assert list(failure_counts(records).items()) == [("void", 2), ("format", 1)]


def test_self_debugging_by_hand() -> None:
    records = [
        tried("a", True, 0, self_corrected=True),
        tried("a", False, 1, self_corrected=False),
        tried("b", False, self_corrected=True),
        tried("c", True),
    ]
    mended = self_debugging(records)
    assert mended is not None
    assert (mended.questions, mended.runs, mended.right) == (2, 3, 2)
    assert mended.share == pytest.approx((1 / 2 + 1) / 2)
    assert self_debugging([tried("c", True)]) is None


def test_costs_by_hand() -> None:
    records = [tried(str(n), True, tokens=tokens) for n, tokens in enumerate([10, 20, 90])]
    spread = costs_of(records)["tokens"]
    assert (spread.mean, spread.median, spread.total) == (40.0, 20.0, 120.0)
    assert "dollars" not in costs_of(records)
    dollars = costs_of(records, Price(0, 1_000_000))["dollars"]
    assert (dollars.mean, dollars.total) == (40.0, 120.0)
    assert costs_of([]) == {}


def test_grades_by_hand() -> None:
    graded = [
        tried("a", True, 0, grades={"content": 2.0}),
        tried("a", True, 1, grades={"content": 4.0}),
        tried("b", True, grades={"content": 5.0}),
        tried("c", False),
    ]
    grade = grades_of(graded)["content"]
    assert (grade.questions, grade.ungraded, grade.mean) == (2, 1, (3 + 5) / 2)
    assert grades_of(tries("d", [True])) == {}


def test_few_graded_questions_have_no_interval() -> None:
    records = [tried(str(n), True, grades={"gap": n % 2}) for n in range(FEW_QUESTIONS)]
    low, high = grades_of(records)["gap"].interval or (1.0, 0.0)
    assert low < 0.5 < high
    assert grades_of(records[1:])["gap"].interval is None
