import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.agent.grounding import unsupported_numbers


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("The mean is 34.65.", "34.650000001"),
        ("About 3.5 on average.", "3.4962"),
        ("It was 1,234,567 in all.", "total 1234567"),
        ("It was 1234 in all.", "1,234"),
        ("Some 1.2 million people.", "1234567"),
        ("45% of them.", "0.4512"),
        ("45.1 % of them.", "45.12"),
        ("It fell by 3.", "change -3.0"),
        ("There were 12.", "12.0"),
        ("No numbers here.", ""),
        ("In 2014 it was 7.", "year 2014 value 7"),
        ("2.5e-3 is tiny.", "0.0025"),
        ("Rounded half even: 0.12.", "0.125"),
        ("Rounded half up: 0.13.", "0.125"),
    ],
)
def test_supported(answer: str, output: str) -> None:
    assert unsupported_numbers(answer, [output]) == ()


@pytest.mark.parametrize(
    ("answer", "output", "missing"),
    [
        ("The mean is 34.66.", "34.65", ("34.66",)),
        ("There are 4 and 5.", "4", ("5",)),
        ("7 of 7", "", ("7",)),
        ("3.47 exactly", "3.4", ("3.47",)),
        ("46%", "0.4512", ("46%",)),
        ("2 million", "1234567", ("2 million",)),
    ],
)
def test_unsupported(answer: str, output: str, missing: tuple[str, ...]) -> None:
    assert unsupported_numbers(answer, [output]) == missing


def test_the_question_supports_its_own_numbers() -> None:
    assert unsupported_numbers("In 2014: 7.", ["7", "How many in 2014?"]) == ()


def test_names_with_digits_are_no_numbers() -> None:
    assert unsupported_numbers("Column x2 of Q3_sales.", []) == ()


@given(st.text(), st.text())
def test_never_raises(answer: str, source: str) -> None:
    assert isinstance(unsupported_numbers(answer, [source]), tuple)


@given(st.text(alphabet="0123456789.,-eE% kM", max_size=40))
def test_a_text_supports_itself(text: str) -> None:
    assert unsupported_numbers(text, [text]) == ()
