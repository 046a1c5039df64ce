"""Figures of two or three points, whose words anybody can check."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dm_jupyter.agent.figures.figure_words import figure_words
from dm_jupyter.agent.figures.plotly_figures import plotly_words
from dm_jupyter.agent.figures.vega_figures import vega_lite_words

TWO = {"x": [1, 2], "y": [3, 4]}
LETTERS = ["a", "b", "a"]


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        ({"type": "bar", "x": [3, 1], "y": ["a", "b"]}, "bars of 2: lowest 1 at b, highest 3 at a"),
        ({"type": "bar", "x": LETTERS, "y": [1, 2, 3]},
         "bars of 2: lowest 2 at b, highest 4 at a, each of them a sum"),
        ({"type": "bar", "x": ["a", "b"], "y": [1, 2], "base": [0, 1]},
         "bars of 2, each from a start to an end"),
        ({"type": "histogram", "x": LETTERS}, "bars of 2: lowest 1 at b, highest 2 at a"),
        ({"type": "histogram", "y": LETTERS}, "bars of 2: lowest 1 at b, highest 2 at a"),
        ({"type": "histogram", "x": LETTERS, "y": [1, 2, 3]},
         "bars of 2: lowest 2 at b, highest 4 at a"),
        ({"type": "histogram", "x": LETTERS, "y": [1, 4, 3], "histfunc": "avg"},
         "bars of 2: lowest 2 at a, highest 4 at b"),
        ({"type": "histogram", "y": [1, 5, 2]}, "histogram of 3 values: 1 to 5"),
        ({"type": "histogram", "x": []}, "histogram: no point"),
        ({"x": ["a", "b"], "y": ["c", "d"]}, "line of 2 points"),
        ({**TWO}, "line of 2 points: lowest 3 at 1, highest 4 at 2"),
        ({**TWO, "mode": "markers"}, "scatter of 2 points: lowest 3 at 1, highest 4 at 2"),
        ({**TWO, "mode": "lines+markers"}, "line of 2 points: lowest 3 at 1, highest 4 at 2"),
        ({**TWO, "mode": "text"}, "text of 2 points: lowest 3 at 1, highest 4 at 2"),
        ({**TWO, "fill": "tozeroy"}, "area of 2 points: lowest 3 at 1, highest 4 at 2"),
        ({**TWO, "fill": "none"}, "line of 2 points: lowest 3 at 1, highest 4 at 2"),
        ({**TWO, "stackgroup": "s"}, "area of 2 points: lowest 3 at 1, highest 4 at 2"),
        ({"type": "pie", "labels": LETTERS}, "pie of 2: a 66.7 %, b 33.3 %"),
        ({"type": "pie", "values": [1, 3]}, "pie of 2: 1 75.0 %, 0 25.0 %"),
        ({"type": "table", "cells": {"values": [[1, 2, 3], [4, 5]]}}, "table of 3 rows, 2 columns"),
        ({"type": "heatmap", "z": [[1, 2], [3]], "x": ["a", "b"], "y": ["c", "d"]},
         "heat map of 2 x 2: 1 to 3, highest at a, d"),
        ({"type": "heatmap", "z": [[1, 2, 5]]}, "heat map of 1 x 3: 1 to 5"),
        ({"type": "heatmap", "z": [[None]]}, "heat map: all values are missing"),
        ({"type": "box", "y": [1, 2, 30]},
         "box of 3 points: lowest 1 at 0, highest 30 at 2, median 2"),
        ({"type": "violin", "x": [1, 2, 30], "orientation": "h"},
         "violin of 3 points: lowest 1 at 0, highest 30 at 2, median 2"),
        ({"type": "scatterpolar", "r": [1, 2, 3]},
         "scatterpolar of 3 points: lowest 1 at 0, highest 3 at 2"),
        ({"type": "indicator", "value": 4}, "indicator: 4"),
        ({**TWO, "visible": "legendonly", "name": "n"},
         "line 'n' of 2 points: lowest 3 at 1, highest 4 at 2 (hidden)"),
    ],
)  # fmt: skip
def test_one_trace_of_plotly(trace: dict[str, Any], words: str) -> None:
    assert plotly_words({"data": [trace]}).endswith(words)


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ({}, "x: 1 to 2; "),
        ({"title": "years"}, "x 'years': 1 to 2; "),
        ({"title": {"text": "a<br>b"}}, "x 'a b': 1 to 2; "),
        ({"range": [0, 9]}, "x: 0 to 9; "),
        ({"range": [0, 3], "type": "log"}, "x: 1 to 1000; "),
        ({"range": [0]}, "x: 1 to 2; "),
    ],
)
def test_an_axis_is_told_as_it_was_set(axis: dict[str, Any], words: str) -> None:
    assert words in plotly_words({"data": [TWO], "layout": {"xaxis": axis}})


def test_a_trace_that_was_switched_off_is_not_told() -> None:
    shown = {**TWO, "name": "on", "xaxis": "x2", "yaxis": "y2"}
    words = plotly_words({"data": [{**TWO, "name": "off", "visible": False}, shown]})
    assert "line 'on'" in words
    assert "off" not in words


ROWS = [
    {"place": "n", "kind": "a", "sales": 1},
    {"place": "s", "kind": "a", "sales": 5},
    {"place": "n", "kind": "b", "sales": 3},
]
PLACE, KIND = ({"field": name, "type": "nominal"} for name in ("place", "kind"))
SALES = {"field": "sales", "type": "quantitative"}
COUNT = {"aggregate": "count"}


@pytest.mark.parametrize(
    ("mark", "encoding", "words"),
    [
        ("bar", {"x": PLACE, "y": SALES},
         "y 'sales'; bars of 2: lowest 4 at n, highest 5 at s, each the sum of its part of 3 rows"),
        ("point", {"x": PLACE, "y": SALES}, "scatter of 3 points: lowest 1 at n, highest 5 at s"),
        ("point", {"x": SALES, "y": PLACE},
         "x 'sales': 1 to 5; y 'place': 2 ticks (n, s); scatter of 3 points: lowest 1 at n, "
         "highest 5 at s"),
        ("rect", {"x": PLACE, "y": KIND, "color": SALES},
         "heat map of 2 x 2: 1 to 5, highest at s, a"),
        ("rect", {"x": PLACE, "color": {**SALES, "aggregate": "mean"}},
         "heat map of 1 x 2: 2 to 5, highest at s, "),
        ("rect", {"x": PLACE, "y": KIND}, "heat map of 3 rows"),
        ("bar", {"x": PLACE, "y": {**SALES, "aggregate": "mean"}},
         "y 'mean of sales'; bars of 2: lowest 2 at n, highest 5 at s, each the mean of its part "
         "of 3 rows"),
        ("bar", {"x": PLACE, "y": {**SALES, "aggregate": "stdev"}},
         "bars: stdev of sales, of 3 rows"),
        ("line", {"x": PLACE, "y": SALES, "color": KIND},
         "line 'a' of 2 points: lowest 1 at n, highest 5 at s; line 'b' of 1 points: lowest 3 at "
         "n, highest 3 at n"),
        ("arc", {"theta": SALES, "color": PLACE}, "pie of 2: s 55.6 %, n 44.4 %"),
        ("bar", {"x": PLACE, "y": COUNT},
         "y 'count of rows'; bars of 2: lowest 1 at s, highest 2 at n, each the count of its part "
         "of 3 rows"),
        ("area", {"x": PLACE, "y": SALES},
         "area of 2 points: lowest 4 at n, highest 5 at s, each the sum of its part of 3 rows"),
        ("tick", {"x": SALES}, "x 'sales': 1 to 5; tick of 3 points: lowest 1, highest 5"),
        ("bar", {"x": {**SALES, "bin": True}, "y": COUNT},
         "x 'bins of sales'; y 'count of rows'; bars of 3 rows, drawn by bins of sales"),
        ("point", {"x": {**SALES, "scale": {"domain": [0, 9]}}, "y": SALES}, "x 'sales': 0 to 9; "),
        ("point", {"x": {**SALES, "title": "Sum"}, "y": SALES}, "x 'Sum': 1 to 5; "),
        ("point", {"x": {**SALES, "axis": {"title": "Sum"}}, "y": SALES}, "x 'Sum': 1 to 5; "),
    ],
)  # fmt: skip
def test_one_view_of_vega_lite(mark: str, encoding: dict[str, Any], words: str) -> None:
    raw = {"mark": mark, "data": {"values": ROWS}, "encoding": encoding}
    assert words in vega_lite_words(raw)


def test_bars_with_one_row_each_are_no_sums() -> None:
    raw = {"mark": "bar", "data": {"values": ROWS[:2]}, "encoding": {"x": PLACE, "y": SALES}}
    assert vega_lite_words(raw).endswith("y 'sales'; bars of 2: lowest 1 at n, highest 5 at s")


VEGA = {
    "data": [{"name": "t", "values": [{"a": 1, "b": 2}, {"a": 2, "b": 5}]}],
    "marks": [
        {
            "type": "rect",
            "from": {"data": "t"},
            "encode": {"update": {"x": {"field": "a"}, "y": {"field": "b"}}},
        }
    ],
}
LITE = {"mark": "bar", "data": {"values": ROWS}, "encoding": {"x": PLACE, "y": SALES}}


@pytest.mark.parametrize(
    ("figure", "options", "words"),
    [
        (VEGA, {"mode": "vega"}, "bars of 2 points: lowest 2 at 1, highest 5 at 2"),
        (LITE, {"mode": "vega-lite"}, "bars of 2: lowest 4 at n"),
        (LITE, {}, "bars of 2: lowest 4 at n"),
        (LITE, "of the page's own", "bars of 2: lowest 4 at n"),
    ],
)
def test_a_page_says_whether_its_figure_is_of_vega(figure: Any, options: Any, words: str) -> None:
    call = f"(function(spec, options){{}})({json.dumps(figure)}, {json.dumps(options)});"
    page = f'<script src="vega-embed"></script><script>{call}</script>'
    assert words in figure_words({"text/html": page})
