from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dm_jupyter.core.closed_form import find_answers
from training.scoring.closed_form import MAX_AGREEING, agree, score
from training.scoring.reader import exact_number

LABEL_TEXT = st.text(
    st.characters(exclude_characters="@[]()\\", exclude_categories=["Cs", "Cc"]), max_size=40
)
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str)
NAMES = st.from_regex(r"[a-z][a-z_0-9]{0,20}", fullmatch=True)


def is_right(label: str, answer: str) -> bool:
    return score(f"@x[{answer}]", [("x", label)]).all_right


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("@a[1] and @b[two]", [("a", "1"), ("b", "two")]),
        ("@a[[1, [2]], 3] @b[4]", [("a", "[1, [2]], 3"), ("b", "4")]),
        ("@cut[(0, 5]] @next[[5, 10)]", [("cut", "(0, 5]"), ("next", "[5, 10)")]),
        ("see [1, @a[2]", [("a", "2")]),
        ("@a[1, @b[2]", [("b", "2")]),
        ("@a[[1, 2]\n@b[3]", [("a", "[1, 2"), ("b", "3")]),
        (r"\@mean\_fare\[1.5\]", [("mean_fare", "1.5")]),
        ("@mean fare [\n1.5\n]", [("mean fare", "1.5")]),
        ("@mail[a@b.org]", [("mail", "a@b.org")]),
        ("a[1] @b(2) @c: 3 @d", []),
    ],
)
def test_answers_are_read_with_balanced_brackets(text: str, answers: list[object]) -> None:
    assert list(find_answers(text)) == answers


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("1234.5", "1,234.50"),
        ("1,234", "1234"),
        ("314, 577", "314,577"),
        ("12.5", "12.5 %"),
        ("-0.21", "−0.21"),
        ("7", "007"),
        ("0.0000", "3e-9"),
        ("True", "true"),
        ("New York", "  'new   york' "),
        ("Kuwait, Oman", '["Kuwait", "Oman"]'),
        ("Côte d'Ivoire, Mali", "['Côte d'Ivoire', 'Mali']"),
        ("[[1, 2], [3, 4]]", "((1.0, 2.0), (3, 4))"),
        ("{'a': 1, 'b': [2, 3]}", '{"b": (2.0, 3), "a": 1.0}'),
        ("(0, 5]", "(0,5]"),
        ("2018-01-26", "2018/1/26 00:00"),
        ("nan", "NaN"),
        ("inf", "Infinity"),
        ("None", ""),
        ("", "none"),
        ("9007199254740993", "9007199254740993"),
    ],
)
def test_the_same_value_is_right_however_written(label: str, answer: str) -> None:
    assert is_right(label, answer)


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("34.65", "34.71"),
        ("34.65", "34.654"),
        ("34.65", "$34.65 USD"),
        ("12.5%", "0.125"),
        ("0.0000001", "0"),
        ("0.00001", "0.0000109"),
        ("9007199254740993", "9007199254740992"),
        ("True", "Yes"),
        ("naïve", "naive"),
        ("1, 2, 3", "3, 2, 1"),
        ("1, 2", "1; 2"),
        ("(0, 5]", "[0, 5)"),
        ("{'a': 1}", "{'a': 1, 'b': 2}"),
        ("{'a': 1, 'b': 2}", "1, 2"),
        ("0.5", "1/2"),
        ("16", "0x10"),
        ("none", ""),
        ("2015-01-01", "2015-02-03"),
        ("2015-01-01", "2015-13-01"),
    ],
)
def test_another_value_is_wrong(label: str, answer: str) -> None:
    assert not is_right(label, answer)


@pytest.mark.parametrize(
    "words",
    ["a list of names in any order", "names, the order doesn't matter", "regardless of order"],
)
def test_the_format_of_the_answer_frees_the_order_of_a_list(words: str) -> None:
    def is_right_for(answer: str, asked: str) -> bool:
        pairs = [("x", "Kuwait, Oman, 5.0")]
        asked_for = f"@x[names] where names is {asked}"
        return score(f"@x[{answer}]", pairs, answer_format=asked_for).all_right

    assert is_right_for("5, oman, kuwait", words)
    assert not is_right_for("5, oman, oman", words)
    assert not is_right_for("5, oman", words)
    assert not is_right_for("5, oman, kuwait", "a list of names in the order of size")


def test_the_last_of_several_answers_to_a_name_counts() -> None:
    assert score("@x[value] … @x[3]", [("x", "3")]).all_right
    assert not score("@x[3] @x[4]", [("x", "3")]).all_right


def test_a_repeated_label_name_needs_each_of_its_values() -> None:
    labels = [("c", "0.38"), ("c", "0.78")]
    half = score("@c[0.78]", labels)
    assert [part.right for part in half.parts] == [False, True]
    assert half.by_name == {"c": False}
    assert score("@c[0.78] @c[0.38]", labels).all_right


def test_repeated_answers_to_a_repeated_name_are_one() -> None:
    labels = [("s", "significant"), ("s", "non-significant")]
    assert score("@s[non-significant] @s[significant] @s[significant]", labels).all_right


def test_names_that_differ_in_case_alone_stay_apart() -> None:
    result = score("@t[1] @T[2]", [("t", "1"), ("T", "2")])
    assert result.all_right
    assert score("@Mean-Fare[2]", [("mean_fare", "2")]).all_right


def test_silence_is_wrong_and_extra_names_cost_nothing() -> None:
    assert not score("no idea", [("x", "nan")]).all_right
    assert not score("", [("x", "")]).all_right
    assert score("@x[1] @y[2]", [("x", "1")]).all_right
    assert not score("@x[1]", []).all_right


@pytest.mark.parametrize(
    ("response", "label", "right"),
    [
        ("@x[34.650]", "34.65", True),
        ("@x[34.6500009]", "34.65", True),
        ("@x[34.654]", "34.65", False),
        ("@x[1,234]", "1234", False),
        ("@x[Yes]", "yes", False),
        ("@x[1.0, b]", "1, b", True),
        ("@x[b, 1]", "1, b", False),
        ("@x[[1]]", "[1]", False),
        ("@X[1]", "1", False),
        ("", "1", False),
    ],
)
def test_strict_is_the_benchmarks_own_reading(response: str, label: str, right: bool) -> None:
    assert score(response, [("x", label)], "strict").all_right is right


def test_strict_takes_the_last_of_repeated_labels() -> None:
    result = score("@c[0.78]", [("c", "0.38"), ("c", "0.78")], "strict")
    assert [part.label for part in result.parts] == ["0.78"]
    assert result.all_right


@pytest.mark.parametrize(
    "text",
    ["@x[" * 10_000, "@x" + "[" * 30_000 + "]" * 30_000, "@x[" + "'" * 30_000 + "]", "@" * 30_000],
    ids=["unclosed", "nested", "quotes", "at-signs"],
)
def test_hostile_text_is_read_in_linear_time_and_wrong(text: str) -> None:
    assert not score(text, [("x", "1")]).all_right
    assert not score(text, [("x", "1")], "strict").all_right


@given(NAMES, LABEL_TEXT)
def test_the_label_itself_is_right(name: str, label: str) -> None:
    assert score(f"so: @{name}[{label}].", [(name, label)]).all_right


@given(NAMES, st.lists(NUMBERS, min_size=1, max_size=5))
def test_a_list_of_numbers_is_right_in_both_rule_sets(name: str, numbers: list[str]) -> None:
    label = ", ".join(numbers)
    response = f"@{name}[{label}]"
    assert score(response, [(name, label)]).all_right
    assert score(response, [(name, label)], "strict").all_right


@given(st.one_of(NUMBERS, LABEL_TEXT), st.one_of(NUMBERS, LABEL_TEXT))
def test_equality_is_symmetric_but_for_the_named_exceptions(one: str, other: str) -> None:
    nothing = {"", "none", "null", "[]", "()", "{}"}
    assume(not {one.strip().casefold(), other.strip().casefold()} & nothing)
    assume(not any(0 < abs(exact_number(text) or 0) < 1e-4 for text in (one, other)))
    assert is_right(one, other) == is_right(other, one)


@given(st.text(), st.text())
def test_no_text_raises(response: str, label: str) -> None:
    for text in (response, f"@x[{response}]", f"@x[{response}] @x[{label}]"):
        for rules in ("sensible", "strict"):
            parts = score(text, [("x", label), ("y", label)], rules).parts
            assert len(parts) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@a[1] @b[x]", "@B['X'] first, then @a[1.00]"),
        ("@a[1] @b[x]", "@a[1] @b[x] @c[7]"),
        ("@a[[1, 2]]", "@a[1, 2]"),
        ("@a[1]\n@a[2]", "@a[2]"),
        ("@a[2] @a[1] @A[2.0]", "@a[3] @a[2]"),
    ],
)
def test_responses_agree_by_the_values_of_the_names_asked_for(one: str, other: str) -> None:
    assert agree(one, other, ("a", "b"))
    assert agree(other, one, ("a", "b"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@a[1] @b[x]", "@a[1]"),
        ("@a[1] @b[x]", "@a[1] @b[y]"),
        ("@a[0.4] @a[0.7]", "@a[0.4]"),
        ("@c[1]", "@c[1]"),
        ("1", "1"),
        ("", ""),
    ],
)
def test_other_values_missing_ones_and_silence_do_not_agree(one: str, other: str) -> None:
    assert not agree(one, other, ("a", "b"))
    assert not agree(other, one, ("a", "b"))


def test_names_asked_for_each_group_agree_by_all_their_different_values() -> None:
    def agree_for_each(one: str, other: str) -> bool:
        assert agree(one, other, ("a",), is_for_each=True) == agree(
            other, one, ("a",), is_for_each=True
        )
        return agree(one, other, ("a",), is_for_each=True)

    assert agree_for_each("@a[0.4] @a[0.40] @a[0.7]", "@a[0.7] @a[0.4]")
    assert not agree_for_each("@a[0.4] @a[0.7]", "@a[0.7]")
    assert not agree_for_each("@a[0.4] @a[0.7]", "@a[0.5] @a[0.7]")


@given(st.lists(NUMBERS, min_size=1, max_size=3), st.lists(NUMBERS, max_size=3), NUMBERS)
def test_responses_that_agree_are_both_right_or_both_wrong(
    one: list[str], other: list[str], label: str
) -> None:
    said, others = (
        "".join(f"@x[{value}]" for value in values) for values in (one, [*other, one[-1]])
    )
    assert agree(said, others, ("x",))
    verdicts = {score(text, [("x", label)]).all_right for text in (said, others)}
    assert len(verdicts) == 1


def test_without_names_every_value_counts() -> None:
    assert agree("@A b[1]", "@a_b[1.0]")
    assert not agree("@a[1]", "@a[1] @b[2]")


def test_names_that_differ_in_case_alone_agree_apart() -> None:
    assert agree("@t[1] @T[2]", "@T[2] @t[1]", ("t", "T"))
    assert not agree("@t[1] @T[2]", "@t[2] @T[1]", ("t", "T"))


@pytest.mark.parametrize("huge", ["9" * 310, "99e999999", "-99e999999", "1e-999999"])
def test_numbers_beyond_every_float_agree_with_themselves_alone(huge: str) -> None:
    assert agree(f"@n[{huge}]", f"@n[ {huge}]")
    assert not agree(f"@n[{huge}]", "@n[5]")
    assert not is_right(f"{huge}, 0.0000001", f"{huge}, 0")  # within the strict tolerance alone


def test_many_values_agree_word_by_word_only() -> None:
    many = " ".join(f"@a[[{number}, x]]" for number in range(MAX_AGREEING + 1))
    bare = many.replace("[[", "[").replace("]]", "]")
    assert agree(many, many, ("a",), is_for_each=True)
    assert not agree(many, bare, ("a",), is_for_each=True)
    assert agree(many, bare, ("a",))


@given(st.text(), st.text(), st.lists(NAMES, max_size=2))
def test_agreement_is_symmetric_and_never_raises(one: str, other: str, names: list[str]) -> None:
    for first, second in ((one, other), (f"@a[{one}]", f"@a[{other}]")):
        assert agree(first, second, names) == agree(second, first, names)


@given(NAMES, LABEL_TEXT, NUMBERS)
def test_a_response_agrees_with_itself(name: str, value: str, number: str) -> None:
    response = f"@{name}[{value}] and @{name}_2[{number}]"
    assert agree(response, response)
    assert agree(response, response, (name,))
