from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.scoring.moments import read_moment
from training.scoring.reader import MAX_SCALAR_CHARS

DAYS = st.dates(date(1000, 1, 1))
CLEAR = [
    "{0:%Y-%m-%d}", "{0:%Y/%m/%d}", "{0:%Y.%m.%d}", "{0:%Y-%m-%dT00:00:00}", "{0:%d %B %Y}",
    "{0:%B %d, %Y}", "{0:%A, %B %d, %Y}", "{0:%d-%b-%Y}", "{0:%a %d %b %Y}", "{0:%Y %b %d}",
]  # fmt: skip


@given(DAYS, st.sampled_from(CLEAR), st.sampled_from(CLEAR))
def test_a_day_is_the_same_in_every_clear_form(day: date, one: str, other: str) -> None:
    assert read_moment(one.format(day)) == read_moment(other.format(day)) is not None


@given(DAYS, DAYS, st.sampled_from(CLEAR), st.sampled_from(CLEAR))
def test_two_days_are_two_in_every_form(day: date, after: date, one: str, other: str) -> None:
    is_same = read_moment(one.format(day)) == read_moment(other.format(after))
    assert is_same == (day == after)


@given(DAYS, st.sampled_from("-/."))
def test_a_slashed_day_is_read_where_it_has_one_reading(day: date, mark: str) -> None:
    text = mark.join((f"{day:%d}", f"{day:%m}", f"{day:%Y}"))
    has_one = day.day > 12 or day.day == day.month
    assert read_moment(text) == (read_moment(day.isoformat()) if has_one else None)


@given(st.datetimes(datetime(1000, 1, 1)))
def test_a_time_is_read_to_its_last_figure(moment: datetime) -> None:
    found = read_moment(moment.isoformat(" "))
    assert found is not None
    assert found == read_moment(moment.replace(tzinfo=UTC).isoformat())
    assert found.time == (moment.hour, moment.minute, moment.second, moment.microsecond * 1000)
    assert read_moment(f"{moment:%I:%M %p}") == read_moment(f"{moment:%H:%M:00}")


@pytest.mark.parametrize(
    "text",
    [
        "", "2024", "05", "2011-12", "25:00", "10:60", "1:45.61", "13:00 PM", "0:30 AM", "12:00:61",
        "2015-02-30", "2023-02-29", "31/02/2024", "0000-01-01", "2024-13", "Monday, 5 January 2024",
        "May", "Jan 5", "January 32, 2024", "Marchy 5, 2024", "05.01.24", "20240105",
        "2024-01-05x", "2024-01-05 and 2024-01-06", "2024-01-05 99:00", "2024-01 10:30",
        "9" * MAX_SCALAR_CHARS + ":", "\u00b2024-01-05", "March of 300 penguins",
    ],
)  # fmt: skip
def test_other_text_is_no_date(text: str) -> None:
    assert read_moment(text) is None


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert read_moment(text) is None or text
