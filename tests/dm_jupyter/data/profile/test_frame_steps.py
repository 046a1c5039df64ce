"""The code that a notebook is told to run does what the profile did."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dm_jupyter.data.profile import frame_steps
from dm_jupyter.data.profile.frame_steps import (
    FrameStep,
    blank_numbers,
    drop_columns,
    fill_down,
    name_rows,
    rename_columns,
    split_sections,
)

LEVELS = pd.MultiIndex.from_tuples([("A ", "Unnamed: 1"), ("B", "x"), ("Unnamed: 2", "Unnamed: 3")])
SHEET = pd.DataFrame(
    {
        "k ": ["One", " p", None, "Two", "q"],
        "v": [None, 1.0, None, None, 2.0],
        2014: [None, "s ", None, None, "  "],
        "none": [None] * 5,
    }
)
STEPS = [
    (frame_steps.JOIN_HEADER_LEVELS, pd.DataFrame([[1, 2, 3]], columns=LEVELS)),
    (frame_steps.UNIQUE_NAMES, pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])),
    (frame_steps.NAMES_AS_TEXT, SHEET),
    (frame_steps.DROP_EMPTY_COLUMNS, SHEET),
    (frame_steps.DROP_EMPTY_ROWS, SHEET),
    (frame_steps.STRIP_TEXT, SHEET),
    (split_sections('so "called"'), SHEET),
    (name_rows("v"), SHEET),
    (rename_columns({"k ": 'the "key"', "v": "v.1"}), SHEET),
    (fill_down(["k ", "v"]), SHEET),
    (drop_columns(["none", "v"]), SHEET),
    (blank_numbers(["v"], [1, 99.5]), SHEET),
]


@pytest.mark.parametrize(("step", "frame"), STEPS)
def test_code_and_function_do_the_same(step: FrameStep, frame: pd.DataFrame) -> None:
    names: dict[str, Any] = {"pd": pd, "df": frame.copy()}
    exec(step.source, names)
    pd.testing.assert_frame_equal(names["df"], step.run(frame.copy()))
    with pytest.raises(AssertionError):
        pd.testing.assert_frame_equal(names["df"], frame)
