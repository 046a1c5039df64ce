"""Numbers in the forms of many countries: the right ones, or text with a word about it."""

from __future__ import annotations

import csv
import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.data.profile import FileProfile, profile_file
from dm_jupyter.data.profile.number_plan import number_plan
from tests.dm_jupyter.data.profile.locales import LOCALES, Column, columns
from tests.examples import examples, some_quick

WORDS = ["Öl", "a b", "Müller & Co", "see note", "x1", "", "NA2", "(none)", "3rd"]
CODES = st.text("0123456789", min_size=5, max_size=5).map("0".__add__)
OTHER_READING = "is read with a decimal point"


def assert_right(values: pd.Series[Any], column: Column, told: str, separator: str) -> None:
    """Checks that a column is the numbers that its texts mean, or its texts with a word about it.

    Bare numbers with a point between commas have two readings. The code takes the usual one, and
    the profile names the other: this alone excuses a number that was meant otherwise.
    """
    if not pd.api.types.is_numeric_dtype(values.dtype):
        for text, value in zip(column.texts, values.tolist(), strict=True):
            assert value == text or pd.isna(value), (value, text)
            assert not pd.isna(value) or column.numbers[column.texts.index(text)] is None, text
        assert told, f"left as text, and nothing is said: {column.texts}"
        return
    found = values.tolist()
    is_right = all(
        math.isnan(value) if number is None else math.isclose(value, float(number), rel_tol=1e-12)
        for value, number in zip(found, column.numbers, strict=True)
    )
    assert is_right or (separator == "," and OTHER_READING in told), (found, column.texts)


def told_of(profile: FileProfile, position: int, name: str) -> str:
    """Returns what a profile says of one column."""
    lines = [line for line in profile.warnings if f"'{name}'" in line]
    return "\n".join([*lines, profile.tables[0].columns[position].note or ""]).strip()


@pytest.mark.parametrize("name", some_quick(LOCALES, 2))
@examples(30)
@given(data=st.data())
def test_a_csv_of_a_locale_gives_no_wrong_value(name: str, data: st.DataObject) -> None:
    locale = LOCALES[name]
    rows = data.draw(st.integers(1, 12))
    numbers = data.draw(st.lists(columns(locale, rows), min_size=1, max_size=3))
    words = data.draw(st.lists(st.sampled_from(WORDS), min_size=rows, max_size=rows))
    codes = data.draw(st.lists(CODES, min_size=rows, max_size=rows))
    separator = data.draw(st.sampled_from(locale.separators))
    labels = [f"c{position}" for position in range(len(numbers))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter=separator)
            writer.writerow([*labels, "word", "code"])
            for row in zip(*(column.texts for column in numbers), words, codes, strict=True):
                writer.writerow(row)
        profile = profile_file(path)
        place: dict[str, Any] = {"pd": pd}
        exec(str(profile.tables[0].load_code).replace('"x.csv"', repr(str(path))), place)
    frame = place["df"]
    assert [*frame.columns] == [*labels, "word", "code"]
    for position, column in enumerate(numbers):
        told = told_of(profile, position, f"c{position}")
        assert_right(frame[f"c{position}"], column, told, separator)
    assert ["" if pd.isna(value) else value for value in frame["word"]] == words
    assert frame["code"].tolist() == codes


@pytest.mark.parametrize("name", some_quick(LOCALES, 2))
@examples(30)
@given(data=st.data(), native=st.lists(st.integers(1, 10**6), max_size=4))
def test_a_sheet_column_of_a_locale_gives_no_wrong_value(
    name: str, data: st.DataObject, native: list[int]
) -> None:
    column = data.draw(columns(LOCALES[name], data.draw(st.integers(1, 8))))
    texts = [text or None for text in column.texts]
    frame = pd.DataFrame({"c0": pd.Series([*texts, *native], dtype=object)})
    plan = number_plan(frame)
    place: dict[str, Any] = {"pd": pd, "df": frame.copy()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("\n".join(step.source for step in plan.steps), place)
    told = "\n".join([*plan.warnings, *plan.notes.values()])
    whole = Column([*column.texts, *native], [*column.numbers, *native])  # type: ignore[list-item]
    assert_right(place["df"]["c0"], whole, told, "")
    pd.testing.assert_frame_equal(place["df"], plan.finish(frame))


@pytest.mark.parametrize("last", ["5", "-"])
def test_the_other_reading_of_a_point_is_told_beside_missing_values_too(
    tmp_path: Path, last: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("n,word\n" + "0,a\n" * 8 + f"1.000,a\n{last},a\n")
    (told,) = (line for line in profile_file(path).warnings if "'n'" in line)
    assert f"'1.000' {OTHER_READING}" in told
    assert told.endswith("it would be 1000")
