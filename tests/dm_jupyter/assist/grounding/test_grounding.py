from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.assist.grounding import stated_numbers, unsupported_numbers


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
        ("1. North: 500\n2. South: 300\n3. East: 200", "500 300 200"),
        ("As asked:\n\n1) North\n2) South\n\nElse:\n\n**1.** East", ""),
        ("Sales were 100 and 200, a fall of 7.", "A,100,200\nB,-7,300"),
        ("Sales were 100200.", "A,100,200"),
        ("It took $5bn, or 5 bn, or 5,000mn.", "5000000000"),
        ("It took 5m, or 5,000k.", "5000000"),
        ("It was on 2012/12/17, not on 16.12.2012 or 2012.12.15.", "day 2012/12/17"),
        ("The 1st quarter, the 22nd and the 90th percentile.", ""),
        ("The p-value is below 0.05, so it holds at the 95% level.", ""),
        ("With a significance level of 0.01 (alpha = 0.05), a 99 % confidence interval.", ""),
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
        ("500. That is all.", "5", ("500",)),
        ("2. That is all.", "5", ("2",)),
        ("It was\n1.", "5", ("1",)),
        ("In all 95% came, 0.05 of them late.", "5", ("95%", "0.05")),
        ("At the 42% level, below 0.2.", "5", ("42%", "0.2")),
        ("It took $6bn.", "5000000000", ("6bn",)),
        ("Sales were 100 and 201.", "A,100,200", ("201",)),
    ],
)
def test_unsupported(answer: str, output: str, missing: tuple[str, ...]) -> None:
    assert unsupported_numbers(answer, [output]) == missing


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("3 thousand", 3_000), ("3k", 3_000), ("3K", 3_000), ("3 million", 3_000_000),
        ("3 mn", 3_000_000), ("3 Mio", 3_000_000), ("3 mio", 3_000_000), ("3 mln", 3_000_000),
        ("3m", 3_000_000), ("3 M", 3_000_000), ("3 billion", 3_000_000_000),
        ("3 bn", 3_000_000_000), ("3 Mrd", 3_000_000_000), ("3B", 3_000_000_000),
        ("3 trillion", 3_000_000_000_000), ("3 %", Decimal("0.03")), ("3 percent", Decimal("0.03")),
        ("3 per cent", Decimal("0.03")), ("-3", -3), ("1,200.50", Decimal("1200.5")),
        ("1.5e-3", Decimal("0.0015")), ("2 × 10⁻³", Decimal("0.002")), ("3 x 10^2", 300),
    ],
)  # fmt: skip
def test_a_number_is_worth_what_its_words_say(text: str, worth: Decimal) -> None:
    assert stated_numbers(f"It was {text} in all.") == {worth}


def test_the_question_supports_its_own_numbers() -> None:
    assert unsupported_numbers("In 2014: 7.", ["7", "How many in 2014?"]) == ()


def test_names_with_digits_are_no_numbers() -> None:
    assert unsupported_numbers("Column x2 of Q3_sales.", []) == ()


@given(st.text(), st.text())
def test_never_raises(answer: str, source: str) -> None:
    assert isinstance(unsupported_numbers(answer, [source]), tuple)


@given(
    st.dictionaries(
        st.sampled_from(["mean mass", "total sales", "median age", "rows kept", "share lost"]),
        st.decimals(-9_999, 99_999, places=2),
        min_size=1,
    )
)
def test_what_is_copied_with_its_label_is_supported(values: dict[str, Decimal]) -> None:
    lines = [f"{label}: {value}" for label, value in values.items()]
    for line in lines:
        assert unsupported_numbers(line, ["\n".join(lines)]) == ()


@pytest.mark.parametrize(
    ("labels", "answer", "wrong"),
    [
        (("sun", "fog"), "There are 714 days of 'sun' and 411 days of fog.", ()),
        (("sun", "fog"), "Sun has 714 days.", ()),
        (("sun", "fog"), "There are 714 days of fog.", ("714",)),
        (("Sun", "Mon"), "There are 714 rows on Sunday and 411 on Monday.", ()),
        (("Sun", "Mon"), "Mon has 714 rows.", ("714",)),
    ],
)
def test_the_sun_is_no_sunday(labels: tuple[str, str], answer: str, wrong: tuple[str, ...]) -> None:
    output = f"{labels[0]}    714\n{labels[1]}    411\nName: count, dtype: int64\n"
    assert unsupported_numbers(answer, [output]) == wrong
