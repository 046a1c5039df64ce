"""Values as JSON and back: what comes back, and what is said of what does not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest

from dm_jupyter.core.codec import Tagged, decode_json, decode_value, encode_json, encode_value


@dataclass(frozen=True)
class _Point:
    x: float
    y: float = 0.0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(f"x must not be negative, got {self.x:g}")


class _Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class _Shape:
    name: str
    kind: Literal["line", "area"]
    points: tuple[_Point, ...] = ()
    size: tuple[int, str] = (0, "px")
    sides: int | None = None
    is_open: bool = False
    notes: Mapping[str, str | int] | None = None
    rest: Any = None
    file: Path | None = None
    colour: _Colour = _Colour.RED


class MoveTo(Tagged, frozen=True):
    to: _Point


class Erase(Tagged, frozen=True, forbid_unknown_fields=True):
    times: int = 1


_Stroke = MoveTo | Erase
WHOLE = _Shape(
    "a", "area", (_Point(1), _Point(2.5, 3)), (4, "mm"), None, True, {"by": "me", "year": 3},
    [1], Path("a/b.csv"),
)  # fmt: skip
RAW = {
    "name": "a",
    "kind": "area",
    "points": [{"x": 1, "y": 0.0}, {"x": 2.5, "y": 3}],
    "size": [4, "mm"],
    "sides": None,
    "is_open": True,
    "notes": {"by": "me", "year": 3},
    "rest": [1],
    "file": "a/b.csv",
    "colour": "red",
}


def test_a_value_comes_back_with_its_own_types() -> None:
    assert decode_value(_Shape, {**RAW, "unknown": "left out"}, "shape") == WHOLE
    assert decode_json(_Shape, json.dumps(RAW), "shape") == WHOLE
    assert encode_value(WHOLE) == RAW
    assert decode_json(_Shape, encode_json(WHOLE), "shape") == WHOLE


def test_one_of_a_union_is_told_by_its_name() -> None:
    for stroke, raw in (
        (MoveTo(_Point(1, 2)), {"kind": "move_to", "to": {"x": 1, "y": 2}}),
        (Erase(), {"kind": "erase", "times": 1}),
    ):
        assert encode_value(stroke) == raw
        assert decode_value(_Stroke, raw, "stroke") == stroke
    assert Erase().replaced(times=3) == Erase(3)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([], "shape: Expected `object`, got `array`"),
        ({"kind": "line"}, "shape: Object missing required field `name`"),
        ({"name": 1}, "shape.name: Expected `str`, got `int`"),
        ({"kind": "circle"}, "shape.kind: Invalid enum value 'circle'"),
        ({"kind": ["line"]}, "shape.kind: Expected `str`, got `array`"),
        ({"points": {"x": 1}}, "shape.points: Expected `array`, got `object`"),
        ({"points": [{"x": 1}, {"y": 1}]}, "shape.points[1]: Object missing required field `x`"),
        ({"points": [{"x": True}]}, "shape.points[0].x: Expected `float`, got `bool`"),
        ({"points": [{"x": -2}]}, "shape.points[0]: x must not be negative, got -2"),
        ({"size": [1]}, "shape.size: Expected `array` of length 2"),
        ({"size": [1.5, "px"]}, "shape.size[0]: Expected `int`, got `float`"),
        ({"sides": "3"}, "shape.sides: Expected `int | null`, got `str`"),
        ({"is_open": 1}, "shape.is_open: Expected `bool`, got `int`"),
        ({"notes": {"by": None}}, "shape.notes[...]: Expected `int | str`, got `null`"),
        ({"file": 3}, "shape.file: Expected `str`, got `int`"),
        ({"colour": "blue"}, "shape.colour: Invalid enum value 'blue'"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(raw: object, said: str) -> None:
    if isinstance(raw, dict) and raw != {"kind": "line"}:
        raw = {"name": "a", "kind": "line", **raw}
    for read in (decode_value, lambda kind, raw, name: decode_json(kind, json.dumps(raw), name)):
        with pytest.raises(ValueError, match="shape") as caught:
            read(_Shape, raw, "shape")
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.json: Expecting value"),
        ('{"kind": "er', "a.json: Unterminated string"),
        (b'{"kind": "erase\xff"}', "a.json: 'utf-8' codec can't decode byte 0xff"),
        ("[" * 100_000, "a.json"),
        ('{"kind":"erase","more":' + "[" * 100_000, "a.json"),
        ('{"kind": "paint"}', "a.json.kind: Invalid value 'paint'"),
        ('{"kind": 3}', "a.json.kind: Expected `str`"),
        ("{}", "a.json: Object missing required field `kind`"),
        ('{"kind": "erase", "times": NaN}', "a.json.times: Expected `int`, got `float`"),
        ('{"kind": "erase", "colour": 1}', "a.json: Object contains unknown field `colour`"),
    ],
)
def test_a_text_that_is_none_is_refused_by_name(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=r"a\.json") as caught:
        decode_json(_Stroke, text, "a.json")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("word", ["x" * 5000, "x - at `$.here`"])
def test_a_wrong_word_is_repeated_in_short_and_is_no_path(word: str) -> None:
    with pytest.raises(ValueError, match=r"^a\.json\.kind: Invalid value 'x") as caught:
        decode_json(_Stroke, json.dumps({"kind": word}), "a.json")
    assert len(str(caught.value)) < 200


def test_what_only_python_writes_is_read_and_never_written() -> None:
    assert decode_json(dict[str, float], '{"a": Infinity}', "x") == {"a": float("inf")}
    assert encode_json({"a": float("nan")}) == '{"a":null}'


def test_half_a_character_survives() -> None:
    text = encode_json(["\ud800", _Point(1)])
    assert text == '["\\ud800",{"x":1,"y":0.0}]'
    assert decode_json(list[Any], text, "x")[0] == "\ud800"
    assert encode_value({"a": "\ud800"}) == {"a": "\ud800"}


def test_what_inherits_from_a_plain_type_is_written_as_that() -> None:
    class Name(str):
        __slots__ = ()

    assert encode_value(MappingProxyType({"a": Name("b"), "c": [Name("d")]})) == {
        "a": "b",
        "c": ["d"],
    }
    with pytest.raises(TypeError, match="object has no form in JSON"):
        encode_json(object())


def test_what_runs_in_a_kernel_does_not_load_it() -> None:
    modules = (
        "kernel_sandbox.forkserver.zygote",
        "kernel_sandbox.forkserver.forking",
        "kernel_sandbox.jupyter.launch",
        "kernel_sandbox.jupyter.ipykernel_app",
        "dm_jupyter.data.kernel_variables",
        "dm_jupyter.agent.sql_runtime",
    )
    program = f"import sys, {', '.join(modules)}; sys.exit('msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
