from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.scoring.lists import pairs_of, parse_group, read_range, readings
from training.scoring.reader import CLOSED_FORM, SHORT_ANSWER
from training.scoring.values import values_equal

WORDS = st.lists(
    st.text(string.ascii_lowercase, min_size=1, max_size=6).filter(
        lambda w: w not in {"and", "to"}
    ),
    min_size=3,
    max_size=5,
)
FORMS = {
    "bare": ", ".join,
    "semicolons": "; ".join,
    "lines": "\n".join,
    "bullets": lambda items: "\n".join(f"- {item}" for item in items),
    "numbered": lambda items: "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1)),
    "brackets": lambda items: f"[{', '.join(items)}]",
    "quotes": lambda items: str(list(items)),
    "and": lambda items: f"{', '.join(items[:-1])} and {items[-1]}",
    "comma and": lambda items: f"{', '.join(items[:-1])}, and {items[-1]}",
}
NAMES = st.sampled_from(sorted(FORMS))


@given(WORDS, NAMES, NAMES)
def test_a_list_is_the_same_in_every_form(words: list[str], one: str, other: str) -> None:
    for policy in (CLOSED_FORM, SHORT_ANSWER):
        assert values_equal(FORMS[one](words), FORMS[other](words), policy)


@given(WORDS, WORDS, NAMES, NAMES)
def test_another_list_is_another_in_every_form(
    words: list[str], others: list[str], one: str, other: str
) -> None:
    is_same = values_equal(FORMS[one](words), FORMS[other](others), CLOSED_FORM)
    assert is_same == (words == others)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(), min_size=2))
def test_pairs_are_the_same_in_braces_bare_and_on_lines(entries: dict[str, int]) -> None:
    backwards = dict(reversed(entries.items()))
    bare = ", ".join(f"{key}: {value}" for key, value in backwards.items())
    lines = "\n".join(f"* {key} = {value}" for key, value in backwards.items())
    for form in (str(entries), str(backwards), bare, lines):
        assert values_equal(str(entries), form, CLOSED_FORM)


def test_pairs_need_words_for_keys_unless_braces_say_so() -> None:
    assert pairs_of(parse_group("10:30, 11:30")) is None
    assert pairs_of(parse_group("{10: 30, 11: 30}")) == {"10": " 30", "11": " 30"}
    assert pairs_of(parse_group("a: 1, a: 2")) is None
    assert pairs_of(parse_group("(a: 1]")) is None


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("10-20", ("10", "20")),
        ("1,000 \u2013 2,000", ("1,000", "2,000")),
        ("-5 to 5", ("-5", "5")),
        ("10-20%", ("10", "20%")),
        ("20-10", None),
        ("2011-12", None),
        ("01-02", None),
        ("5", None),
        ("-5", None),
        ("1e-5", None),
        ("a-b", None),
        ("1-2-3", None),
    ],
)
def test_a_range_has_two_ends(text: str, ends: tuple[str, str] | None) -> None:
    assert read_range(text) == ends


def test_the_marks_of_bullets_go_only_where_every_line_has_one() -> None:
    def last(text: str) -> tuple[str, ...]:
        return list(readings(text))[-1].items

    assert last("- a\n\n- b") == ("a", "b")
    assert last("1. a\n2. b") == ("a", "b")
    assert last("3. a\n4. b") == ("3. a", "4. b")
    assert last("- a\nb") == ("- a", "b")
    assert last("1. a\n- b") == ("1. a", "- b")


@pytest.mark.parametrize("text", ["\n", "- ", ";", ", and ", "1.\n", "[,", "a:", "'", '{"'])
def test_a_long_list_is_read_in_time_and_is_itself(text: str) -> None:
    long = text * 6_000
    assert values_equal(long, long, CLOSED_FORM)
    assert not values_equal("a, b", long, CLOSED_FORM)


@given(st.text(), st.text())
def test_no_text_raises(one: str, other: str) -> None:
    assert values_equal(one, other, CLOSED_FORM) in {True, False}
    assert values_equal(one, one, SHORT_ANSWER)
    assert read_range(one) is None or one
