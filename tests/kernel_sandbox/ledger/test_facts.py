"""Facts as a kernel sends them: whatever it says, what comes of it is small and of known kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_sandbox.ledger.facts import MOST_FACTS, TEXT_CHARS, Coverage, Fact, facts_from
from kernel_sandbox.types import CellResult, CellStatus

FACT = Fact(
    "kept",
    "[]",
    before=344,
    after=0,
    condition="country == 'Great Britain'",
    coverage=(Coverage("country == 'Great Britain'", 0, "country", near=(("'UK'", 12),)),),
    line=3,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)
fields = st.fixed_dictionaries(
    {"kind": st.sampled_from(["kept", "lost", "nothing", "no kind"]), "operation": st.text()},
    optional=dict.fromkeys(
        ("before", "after", "condition", "result", "coverage", "line", "times", "other"),
        json_values,
    ),
)


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    return deep


def test_a_result_with_facts_is_stored_and_read() -> None:
    result = CellResult(CellStatus.OK, facts=(FACT,))
    assert CellResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_a_result_of_a_release_without_facts_is_read() -> None:
    raw = CellResult(CellStatus.OK).to_json()
    del raw["facts"]
    assert CellResult.from_json(raw) == CellResult(CellStatus.OK)


@given(json_values | st.lists(fields))
def test_anything_gives_bounded_facts(raw: object) -> None:
    for fact in facts_from(raw):
        assert facts_from([fact.to_json()]) == (fact,)
        assert len(json.dumps(fact.to_json(), allow_nan=False)) < 40 * TEXT_CHARS


@pytest.mark.parametrize(
    "raw",
    [None, "kept", 7, float("nan"), {}, {"kind": "kept"}, [None], [[]], [{"kind": ["kept"]}],
     [{"kind": "kept"}], [{"kind": "kept", "operation": 3}], _deep()],
)  # fmt: skip
def test_what_is_no_fact_is_left_out(raw: object) -> None:
    assert facts_from(raw) == ()


def test_many_and_long_facts_are_cut() -> None:
    one = {
        "kind": "kept",
        "operation": "o" * 10**6,
        "condition": "c" * 10**6,
        "coverage": [{"part": "p" * 10**6, "near": [["n" * 10**6, 1]] * 999}] * 999,
    }
    facts = facts_from([one] * 10_000)
    assert len(facts) == MOST_FACTS
    assert len(json.dumps([fact.to_json() for fact in facts])) < 2_000_000


@pytest.mark.parametrize("count", [-1, 2**60, 1.5, float("nan"), "3", True, None, [3]])
def test_a_count_that_is_none_is_unknown(count: object) -> None:
    (fact,) = facts_from([{"kind": "kept", "operation": "[]", "before": count, "times": count}])
    assert fact.before is None
    assert fact.times == 1


def test_texts_can_move_no_cursor_and_turn_no_writing_round() -> None:
    (fact,) = facts_from(
        [{"kind": "kept", "operation": "[]", "condition": "a\x1b[2J\n\r\tb\u202ec\ud800\x00d"}]
    )
    assert fact.condition == "a[2J bcd"
    fact.condition.encode()
