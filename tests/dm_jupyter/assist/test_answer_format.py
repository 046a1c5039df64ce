from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.assist.critique import misfits
from dm_jupyter.core import prompts

QUESTIONS = Path(__file__).parents[4] / "shared/data/dabench/open/questions.jsonl"
P_VALUE = '@p[p_value] where "p_value" is a number between 0 and 1, rounded to four decimals.'
DECISION = '@d[decision] where "decision" is a string, which should be either "Yes" or "No".'
BOTH = (
    '@p[p_value] @d[decision] where "p_value" is a number between 0 and 1, and "decision" is a '
    'string with either of the exact values: "normal" or "not normal".'
)

SEVERAL = (
    '@skewness[skewness] @shape[shape] @id[id] where "skewness" is the skewness, a number rounded '
    'to 3 decimal places; "shape" is the shape, one of "left" or "right"; "id" is the slip number, '
    "written as in the data."
)


@pytest.mark.parametrize(
    ("answer_format", "values", "said"),
    [
        (P_VALUE, {"p": "0.05"}, ""),
        (P_VALUE, {"p": "1e-7"}, ""),
        (
            P_VALUE,
            {"p": "49572.0"},
            "@p has to be a number between 0 and 1 (a test gives the statistic first, then the "
            "p-value), not 49572.0.",
        ),
        (
            '@a[age] where "age" is a number between 0 and 120.',
            {"a": "-3"},
            "@a has to be a number between 0 and 120, not -3.",
        ),
        ('@n[c] where "c" is a number between 0 and 1,000.', {"n": "500"}, ""),
        (
            '@n[c] where "c" is a number between 1 and 1,000,000, with no comma.',
            {"n": "1000001"},
            "@n has to be a number between 1 and 1,000,000, not 1000001.",
        ),
        ('@n[c] where "c" is a number between 0 and 100%.', {"n": "101"}, ""),
        (P_VALUE, {"p": "Yes"}, "@p has to be a single number, not Yes."),
        (P_VALUE, {"p": "nan"}, ""),
        (P_VALUE, {}, ""),
        (DECISION, {"d": "yes"}, ""),
        (DECISION, {"d": "'No'"}, ""),
        (DECISION, {"d": "0.0"}, "@d has to be 'Yes' or 'No', not 0.0."),
        (BOTH, {"p": "0.1", "d": "normal"}, ""),
        (BOTH, {"p": "0.1", "d": "0.1"}, "@d has to be 'normal' or 'not normal', not 0.1."),
        (
            '@n[Is there one(Yes/No)] where "Is there one" can be "Yes" or "No".',
            {"n": "1"},
            "@n has to be 'Yes' or 'No', not 1.",
        ),
        ('@b[flag] where "flag" is a boolean value.', {"b": "True"}, ""),
        (
            '@b[flag] where "flag" is a boolean.',
            {"b": "0.3"},
            "@b has to be True or False, not 0.3.",
        ),
        ('@n[a] @m[b] where "a" and "b" are numbers.', {"n": "1,200", "m": "5%"}, ""),
        (
            '@n[a] @m[b] where "a" and "b" are floats.',
            {"m": "x y"},
            "@m has to be a single number, not x y.",
        ),
        ('@l[a] where "a" is a list of integers.', {"l": "[1, 2]"}, ""),
        ('@l[a, b] where "a" and "b" are numbers.', {"l": "1, 2"}, ""),
        ("@n[number]", {"n": "many"}, ""),
        (SEVERAL, {"skewness": "1.942", "shape": "right", "id": "S12"}, ""),
        (
            SEVERAL,
            {"skewness": "right", "shape": "1.942", "id": "7"},
            "@skewness has to be a single number, not right. "
            "@shape has to be 'left' or 'right', not 1.942.",
        ),
    ],
)
def test_values_of_another_kind_are_told(
    answer_format: str, values: dict[str, str], said: str
) -> None:
    told = [prompts.fill("critique_misfit", **m._asdict()) for m in misfits(answer_format, values)]
    assert " ".join(told) == said


@pytest.mark.skipif(not QUESTIONS.is_file(), reason="skipped: no ../shared")
def test_every_gold_answer_fits_its_format() -> None:
    questions = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    assert {
        question["id"]: told
        for question in questions
        if (told := misfits(question["format"], question["label"]))
    } == {}


@given(st.text(max_size=200), st.text(max_size=40))
def test_no_text_raises(answer_format: str, value: str) -> None:
    asked = f'@a[b] {answer_format} "b" is a number {answer_format}'
    assert all(misfit.tag == "a" for misfit in misfits(asked, {"a": value}))
