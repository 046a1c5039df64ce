import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.closed_form import answer_names, find_answers, is_undefined
from dm_jupyter.core.task import Task


def test_reads_names_and_values_in_order() -> None:
    assert find_answers("so @mean[34.65], and @r [0.2]\n@x[]") == (
        ("mean", "34.65"),
        ("r", "0.2"),
        ("x", ""),
    )


def test_brackets_inside_a_value_balance() -> None:
    assert find_answers("@l[[1, 2], [3]] tail]") == (("l", "[1, 2], [3]"),)


def test_an_unclosed_value_ends_at_the_bracket_of_its_line_or_is_none() -> None:
    assert find_answers("@a[1, [2] \n@b[3]") == (("a", "1, [2"), ("b", "3"))
    assert find_answers("@a[1, [2\n@b[3]") == (("b", "3"),)


def test_names_of_a_format_come_once() -> None:
    wanted = "@mean[mean_value], @sd[sd_value]\nwhere @mean[x] is a number"
    assert answer_names(wanted) == ("mean", "sd")


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("@a[x], @b[{'m': y", ("a", "b")),
        ("@wind[{'month_1':avg_1, ..., 'month_12':avg_12", ("wind",)),
        ("a JSON object", ()),
        ("", ()),
    ],
)
def test_a_format_may_lack_its_last_bracket(wanted: str, names: tuple[str, ...]) -> None:
    assert answer_names(wanted) == names
    assert Task("t", "?", answer_format=wanted).is_closed_form is bool(names)


def test_undefined_values() -> None:
    assert is_undefined(" NaN ")
    assert is_undefined("")
    assert not is_undefined("0")
    assert not is_undefined("None")


@given(st.text())
def test_never_raises(text: str) -> None:
    assert isinstance(find_answers(text), tuple)


@given(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.from_regex(r"[0-9a-z .,]*", fullmatch=True)
)
def test_finds_what_was_written(name: str, value: str) -> None:
    assert find_answers(f"@{name}[{value}]") == ((name, value.strip()),)
