"""The values that cross the seam: checks, views, JSON."""

import json

import pytest

from kernel_sandbox.types import (
    CellError,
    CellResult,
    CellStatus,
    Display,
    Limits,
    Stream,
    output_from_nbformat,
)

RESULT = CellResult(
    CellStatus.ERROR,
    (
        Stream("stdout", "a"),
        Stream("stderr", "b"),
        Display({"text/plain": "1"}, {"k": 1}),
        Display({"text/plain": "2"}, {}, 3),
        CellError("E", "text", ("line",)),
    ),
    execution_count=3,
    seconds=0.5,
    peak_bytes=10,
    cut_bytes=1,
    message="m",
    state_lost=True,
    ended_by="disk",
)


def test_a_result_survives_json():
    assert CellResult.from_json(json.loads(json.dumps(RESULT.to_json()))) == RESULT


def test_a_result_shows_its_parts():
    assert (RESULT.stdout, RESULT.stderr, RESULT.ok) == ("a", "b", False)
    assert RESULT.error == CellError("E", "text", ("line",))
    assert CellResult(CellStatus.OK).error is None


def test_text_of_a_notebook_may_come_in_lines():
    raw = {"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}
    assert output_from_nbformat(raw) == Stream("stdout", "a\nb")


def test_unknown_outputs_and_limits_without_sense_are_refused():
    with pytest.raises(ValueError, match="not an nbformat 4 output"):
        output_from_nbformat({"output_type": "smell"})
    with pytest.raises(ValueError, match="wall_s must be positive"):
        Limits(wall_s=0)
