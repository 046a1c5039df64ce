from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from dm_jupyter.core.coding import decoded


@dataclass(frozen=True)
class _Point:
    x: float
    y: float = 0.0


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


def test_a_value_comes_back_with_its_own_types() -> None:
    raw = {
        "name": "a",
        "kind": "area",
        "points": [{"x": 1}, {"x": 2.5, "y": 3}],
        "size": [4, "mm"],
        "sides": None,
        "is_open": True,
        "notes": {"by": "me", "year": 3},
        "rest": [1],
        "unknown": "left out",
    }
    points = (_Point(1), _Point(2.5, 3))
    assert decoded(_Shape, raw) == _Shape(
        "a", "area", points, (4, "mm"), None, True, {"by": "me", "year": 3}, [1]
    )


def test_a_value_that_is_one_already_is_kept() -> None:
    point = _Point(1)
    assert decoded(_Shape, {"name": "", "kind": "line", "points": [point]}).points == (point,)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([], "_Shape can't be"),
        ({"kind": "line"}, "_Shape: name is missing"),
        ({"name": 1}, "_Shape: name can't be 1"),
        ({"kind": "circle"}, "kind can't be 'circle'"),
        ({"kind": ["line"]}, "kind can't be"),
        ({"points": {"x": 1}}, "points can't be"),
        ({"points": [{"y": 1}]}, "points: x is missing"),
        ({"points": [{"x": True}]}, "points: x can't be True"),
        ({"size": [1]}, "size can't be"),
        ({"size": [1.5, "px"]}, "size can't be 1.5"),
        ({"sides": "3"}, "sides can't be '3'"),
        ({"is_open": 1}, "is_open can't be 1"),
        ({"notes": {"by": None}}, "notes can't be"),
        ({"name": ["x" * 500]}, "…"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(raw: object, said: str) -> None:
    if isinstance(raw, dict) and raw != {"kind": "line"}:
        raw = {"name": "a", "kind": "line", **raw}
    with pytest.raises(ValueError, match=said) as caught:
        decoded(_Shape, raw)
    assert len(str(caught.value)) < 200
