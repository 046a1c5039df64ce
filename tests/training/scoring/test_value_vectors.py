"""One table of values, `vectors/values.jsonl`, and the suites that each row is for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from training.scoring.closed_form import is_exception, score, strictly_equal
from training.scoring.short_answer import answers_equal
from training.scoring.tables import tables_equal

VECTORS = Path(__file__).with_name("vectors") / "values.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()
]
MILLION = 10**6
WRITTEN = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(-(10**6), 10**6, places=3).map(str),
    st.from_regex(r"[a-z0-9]{1,6}(, ?[a-z0-9]{1,6}){0,2}", fullmatch=True),
    st.from_regex(r"0[0-9]{1,5}", fullmatch=True),
)


def is_right(label: str, answer: str, rules: str = "sensible") -> bool:
    return score(f"@x[{answer}]", [("x", label)], rules).all_right  # type: ignore[arg-type]


SUITES: dict[str, Callable[[str, str], bool]] = {
    "closed_form": is_right,
    "short_answer": answers_equal,
    "table": lambda label, answer: tables_equal([(label,)], [(answer,)]),
}


@pytest.mark.parametrize("suite", SUITES)
def test_each_suite_gives_the_verdicts_of_the_table(suite: str) -> None:
    other = [
        (row["label"], row["answer"], row["right"], row["why"])
        for row in ROWS
        if suite in row["suites"] and SUITES[suite](row["label"], row["answer"]) != row["right"]
    ]
    assert other == []


def test_the_table_is_large_enough_and_gives_a_reason_for_each_row() -> None:
    counts = Counter(suite for row in ROWS for suite in row["suites"])
    assert counts["closed_form"] >= 300
    assert counts["short_answer"] >= 250
    assert counts["table"] >= 200
    assert all(row["why"] for row in ROWS)


FORMS = st.sampled_from(
    ["{}", "{}.0", "{}.", "+{}", "{}, 1", "0{}", " {}", "{}00", "{}e0", "{}_0", "{}.0000001"]
)
TEXT = st.text(st.characters(exclude_characters="[]", exclude_categories=["Cs"]), max_size=12)
"""Without brackets: strict ends an answer at the first one, ours at the one that closes it."""
PAIRS = st.one_of(
    st.tuples(WRITTEN, WRITTEN),
    st.tuples(WRITTEN, FORMS).map(lambda pair: (pair[0], pair[1].format(pair[0]))),
    st.tuples(st.floats(), st.floats(-1e-6, 1e-6)).map(lambda p: (repr(p[0]), repr(p[0] + p[1]))),
    st.tuples(TEXT, TEXT),
    TEXT.map(lambda text: (text, text)),
)


@given(PAIRS)
def test_what_strict_takes_ours_takes_but_for_the_listed_exceptions(pair: tuple[str, str]) -> None:
    label, answer = pair
    assume(not is_exception(label, answer))
    assert is_right(label, answer) or not is_right(label, answer, "strict")


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("2139", "02139"),
        ("02139", "2139"),
        ("1, 02139", "1, 2139"),
        ("0.0000001", "0"),
        ("0.00000052", "0.0000005"),
        ("9007199254740993", "9007199254740992"),
    ],
)
def test_each_listed_exception_is_one(label: str, answer: str) -> None:
    assert strictly_equal(label, answer)
    assert is_exception(label, answer)
    assert not is_right(label, answer)


@pytest.mark.parametrize("suite", SUITES)
@given(st.data())
def test_a_value_is_its_own_answer_and_equality_has_no_side(
    suite: str, data: st.DataObject
) -> None:
    rows = st.sampled_from([row for row in ROWS if suite in row["suites"]])
    text = st.one_of(WRITTEN, rows.map(lambda row: row["label"]), rows.map(lambda r: r["answer"]))
    label, answer = data.draw(text), data.draw(text)
    if "[" not in label and "]" not in label and label.strip():
        assert SUITES[suite](label, label)
    if suite == "table":
        assert SUITES[suite](label, answer) == SUITES[suite](answer, label)


@given(st.decimals(-(10**9), 10**9, places=3), st.decimals("0.001", 10**6, places=3), st.booleans())
def test_another_number_of_the_same_precision_is_wrong_in_every_suite(
    number: Decimal, step: Decimal, is_grouped: bool
) -> None:
    for one, other in ((number, number + step), (number + step, number)):
        answer = f"{other:,}" if is_grouped else str(other)
        assert not any(equal(str(one), answer) for equal in SUITES.values())


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("text", ["9", "1 ", "[", "'", "0", ",", "- ", "**", "a, "])
def test_a_long_answer_is_wrong_and_a_long_label_is_its_own_answer(suite: str, text: str) -> None:
    long = text * (MILLION // len(text))
    assert not SUITES[suite]("34.65", long)
    if suite != "closed_form" or text != "[":
        assert SUITES[suite](long, long)
