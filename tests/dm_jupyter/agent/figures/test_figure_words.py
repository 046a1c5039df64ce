"""Figures of plotly, Altair and Vega in words; the JSON in `figures.json` is their own."""

from __future__ import annotations

import base64
import copy
import json
import random
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.agent.figures.figure_words import figure_of_text, figure_words, is_figure
from dm_jupyter.agent.figures.plotly_figures import plotly_words
from dm_jupyter.agent.figures.vega_figures import vega_lite_words, vega_words
from dm_jupyter.agent.notebook_context import NotebookCell, NotebookView, notebook_context
from dm_jupyter.agent.notebook_context import cells_of_document as cells_of
from dm_jupyter.agent.observe import describe, figures_in
from kernel_sandbox.types import CellResult, CellStatus, Display

FIGURES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "data" / "figures.json").read_text("utf-8")
)
PLOTLY, LITE = "application/vnd.plotly.v1+json", "application/vnd.vegalite.v5+json"
TWO_YEARS = "x 'year': 2020-01-01 to 2021-01-01; y 'sales': "
REGIONS = "3 ticks (north, south, east)"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "bar",
            f"Figure 'Sales by region': x 'region': {REGIONS}; y 'Sales (M)'; "
            "bars of 3: lowest 3 at east, highest 12 at south",
        ),
        ("stacked bars", "bars 'a' of 3: lowest 3 at east, highest 11.5 at south; bars 'b' of 3"),
        ("lines", f"{TWO_YEARS}3 to 12; line 'north' of 2 points: lowest 7.5 at 2020-01-01"),
        ("scatter", "x 'dose': 0 to 10; y 'answer': 1 to 9; scatter of 4 points"),
        ("scatter", "lowest 1 at 1, highest 9 at 3, 1 missing"),
        ("log", "x 'x': 1 to 1000;"),
        ("pie", "pie of 3: south 50.8 %, north 33.5 %, east 15.7 %"),
        ("histogram", "y 'count'; histogram of 6 values: 3 to 12"),
        ("counts", "y 'avg of sales'; bars of 3: lowest 3.625 at east, highest 11.75 at south"),
        ("box", "box of 6 points: lowest 3 at east, highest 12 at south, median 7.75"),
        ("image", "heat map of 2 x 3: 0 to 5"),
        ("heat map", "heat map of 2 x 3: 1 to 9, highest at c, v"),
        ("facets", "'region=north'; x 'year'"),
        ("facets", ". Next: 'region=south'; "),
        ("map", "choropleth of 2 points: lowest 1.5 at FRA, highest 2.5 at DEU"),
        ("levels", "3 ticks (a / 1, a / 2, b / 1); bars of 3: lowest 1 at a / 1"),
        ("frames", "This is the first of its 2 frames"),
        ("subplots", "'First'; x: 1 to 2; y: 3 to 4; line 'seen' of 2 points"),
        ("subplots", "line 'off' of 2 points: lowest 1 at 0, highest 2 at 1 (hidden)"),
        ("indicator", "indicator 'Profit': 400"),
        ("empty", "Figure: nothing is drawn in it"),
        ("missing", "line: all 2 values are missing"),
        (
            "means",
            f"Figure 'Mean sales': x 'region': {REGIONS}; y 'mean of sales'; bars of 3: lowest "
            "3.625 at east, highest 11.75 at south, each the mean of its part of 6 rows",
        ),
        ("rows", f"x 'count of rows'; y 'region': {REGIONS}; bars of 3: lowest 2 at north"),
        ("sums", "x 'Region': 3 ticks"),
        ("sums", "bars 'b' of 3: lowest 4.25 at east, highest 12 at south"),
        ("bins", "x 'bins of sales'; y 'count of rows'; bars of 6 rows, drawn by bins of sales"),
        ("points", f"{TWO_YEARS}0 to 20; scatter 'north' of 2 points: lowest 7.5 at 2020-01-01"),
        ("years", "line of 2 points: lowest 11.5 at 2021, highest 12 at 2020, each the max of"),
        ("arcs", "pie of 3: south 50.8 %, north 33.5 %, east 15.7 %"),
        ("cells", "heat map of 2 x 3: 3 to 12, highest at south, b"),
        ("layers", "scatter of 6 points: lowest 3 at 2020-01-01, highest 12 at 2020-01-01; rule"),
        ("beside", "Figure: 'L'; x 'region'"),
        ("beside", ". Next: 'R'; x 'kind': 2 ticks (a, b); y 'count of rows'"),
        ("faceted", "scatter 'east' of 2 points: lowest 3 at 2020-01-01"),
        ("filtered", "scatter of what is computed first (filter) from 6 rows"),
        ("elsewhere", "x 'a'; y 'b'; scatter, whose data are not in the figure"),
        ("no rows", "scatter: no point"),
        ("page of altair", "Figure 'Mean sales': x 'region'"),
        ("page of plotly", "Figure 'Two': x 'x': 2 ticks (a, b); y 'y'; bars of 2: lowest 1 at a"),
        ("vega", "Figure 'Bars': x 'category'; y 'amount'; bars of 2 points: lowest 28 at A"),
    ],
)
def test_what_a_figure_shows(name: str, words: str) -> None:
    assert words in figure_words(FIGURES[name])


def test_a_figure_is_told_to_the_model_and_kept_for_the_next_question() -> None:
    result = CellResult(CellStatus.OK, tuple(Display(data) for data in FIGURES.values()))
    told = describe(result, 100_000)
    assert told.count("[a figure was shown. Figure") == len(FIGURES)
    assert figures_in(result) == [figure_words(data) for data in FIGURES.values()]
    nothing = CellResult(CellStatus.OK, (Display({PLOTLY: 5}),))
    assert "nothing is drawn" in describe(nothing)
    table = CellResult(CellStatus.OK, (Display({"text/html": "<table>", "text/plain": "a"}),))
    assert describe(table) == "a"
    assert figures_in(table) == []


def test_a_figure_in_a_notebook_is_told_near_the_cursor() -> None:
    outputs = [{"output_type": "display_data", "data": FIGURES[name]} for name in ("bar", "means")]
    cell = {"cell_type": "code", "source": "draw()", "outputs": outputs, "execution_count": 1}
    by_file = cells_of({"cells": [cell]})
    bundles = tuple(json.dumps(FIGURES[name]) for name in ("bar", "means"))
    by_tab = [NotebookCell("code", "draw()", "", 1, figures=bundles)]
    for cells in (by_file, by_tab):
        (part,) = notebook_context(NotebookView(cells, 0), 12_000)
        assert "[a figure. Figure 'Sales by region': x 'region'" in part.text
        assert "[a figure. Figure 'Mean sales'" in part.text


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "[" * 100_000, '{"text/plain": "a"}'])
def test_a_figure_that_a_tab_could_not_send_is_told_as_one(text: str) -> None:
    words = figure_of_text(text)
    assert words == ("[a figure, too large to be put in words]" if not text else "[a figure]")


def test_what_is_no_figure_has_no_words() -> None:
    for data in ({}, {"text/plain": "a"}, {"text/html": "vega-embed })({"}, {"text/html": 5}):
        assert figure_words(data) == ""
        assert not is_figure(data)
    assert is_figure({PLOTLY: None})


def _typed(code: str, *values: float) -> dict[str, str]:
    names = {"b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "f": "f4", "d": "f8"}
    packed = struct.pack(f"<{len(values)}{code}", *values)
    return {"dtype": names[code], "bdata": base64.b64encode(packed).decode()}


@pytest.mark.parametrize("code", "bBhHiIfd")
def test_arrays_of_every_type_are_read(code: str) -> None:
    raw = {"data": [{"type": "bar", "x": ["a", "b", "c"], "y": _typed(code, 5, 1, 100)}]}
    assert "bars of 3: lowest 1 at b, highest 100 at c" in plotly_words(raw)


@pytest.mark.parametrize(
    "array",
    [
        {"dtype": "f8", "bdata": "!!"},
        {"dtype": "f8", "bdata": "AAA="},
        {"dtype": "i9", "bdata": "AAAA"},
        {"dtype": [], "bdata": 5},
        {"bdata": "AAAA"},
    ],
)
def test_an_array_that_is_none_holds_nothing(array: dict[str, Any]) -> None:
    assert "line: no point" in plotly_words({"data": [{"y": array}]})


def test_of_many_points_the_number_is_told_and_the_first_are_looked_at() -> None:
    packed = base64.b64encode(b"\x01" * 50_000 + b"\x7f" * 50_000).decode()
    words = plotly_words({"data": [{"y": {"dtype": "i1", "bdata": packed}}]})
    assert "line of 100000 points, the first 10,000 of which: lowest 1 at 0, highest 1" in words


@pytest.mark.parametrize("figure", [None, "bar", "means", "cells", "image", "beside"])
def test_a_figure_that_is_made_to_take_long_is_told_in_time(figure: str | None) -> None:
    if figure is None:
        points = {"name": "n" * 10**6, "x": [*range(50_000)], "y": ["1"] * 50_000}
        kinds = ("bar", "box", "histogram", "scatter") * 200
        layout = {"title": "t" * 10**6, "annotations": [{}] * 10**5}
        raw: Any = {"data": [{"type": kind, **points} for kind in kinds], "layout": layout}
    else:
        raw = copy.deepcopy(next(iter(FIGURES[figure].values())))
        rows = [{"region": str(i), "kind": "k", "sales": i} for i in range(70_000)]
        raw["datasets"] = dict.fromkeys(raw.get("datasets", {}), rows)
        raw["layer"] = [{"mark": "bar", "encoding": raw.get("encoding", {})}] * 300
        raw["hconcat"] = [raw["layer"][0] | {"hconcat": raw.get("hconcat", [])}] * 300
    begun = time.process_time()
    words = (plotly_words if figure is None else vega_lite_words)(raw)
    assert len(words) <= 1_300
    assert time.process_time() - begun < 20  # a walk over all of it would take minutes


ODD: tuple[Any, ...] = (
    None, True, 5, -1, 10**400, 1e308, float("inf"), float("nan"), "", "x", "1_0", "2024-13-45",
    "<" * 500, [], [[]], [[[]]], {}, {"text": {}}, [None], ["a", 1], {"dtype": "f8", "bdata": "A"},
    {"type": None}, "application", {"field": "a.b.c"}, {"aggregate": {"argmax": 5}},
)  # fmt: skip


def _mutated(raw: Any, chance: random.Random) -> Any:
    """A figure in which one value, at any depth, is another."""
    raw = copy.deepcopy(raw)
    place = raw
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return raw
        key = chance.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.2:
            place[key] = copy.deepcopy(chance.choice(ODD))
            if isinstance(place, dict) and chance.random() < 0.1:
                del place[key]
            return raw
        place = inner


@pytest.mark.slow
def test_no_figure_of_another_shape_raises_or_takes_long() -> None:
    """The functions below the one that catches: that one would hide what they raise."""
    chance = random.Random(7)
    bundles = [data for data in FIGURES.values() if "text/html" not in data]
    tell = {"plotly": plotly_words, "vegalite": vega_lite_words, "vega": vega_words}
    for _ in range(4_000):
        ((kind, raw),) = chance.choice(bundles).items()
        for _ in range(chance.randint(1, 4)):
            raw = _mutated(raw, chance) if isinstance(raw, dict | list) else raw
        library = kind.removeprefix("application/vnd.").partition(".")[0]
        words = tell[library](raw)
        assert words.startswith("Figure")
        assert len(words) <= 1_300
        assert len(figure_words({kind: raw})) <= 1_200
    for odd in ODD:
        for tells in tell.values():
            assert "nothing is drawn" in tells(odd)


def test_a_page_of_another_shape_has_no_words_or_few() -> None:
    chance = random.Random(8)
    for name in ("page of altair", "page of plotly"):
        page = FIGURES[name]["text/html"]
        for _ in range(300):
            at, size = chance.randrange(len(page)), chance.randint(1, 200)
            cut = (
                page[:at]
                + chance.choice(["", "[" * 5_000, '"', "}", "1" * 5_000])
                + page[at + size :]
            )
            assert len(figure_words({"text/html": cut})) <= 1_200
