"""Interactive charts that are drawn by a library of the page, as far as they load nothing.

*Covered*: Vega-Lite and Plotly charts whose data lie in them. Maps, pictures, tooltips, and
anything with an address or an expression in it are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["inert_chart"]

_VEGA_LITE = re.compile(r"application/vnd\.vegalite\.v\d+(?:\.\d+)*\+json")
_PLOTLY = "application/vnd.plotly.v1+json"
_VEGA_LITE_KEYS = frozenset({
    "$schema", "aggregate", "angle", "autosize", "axis", "background", "band", "bandPosition",
    "bin", "color", "column", "columns", "concat", "condition", "config", "continuousHeight",
    "continuousWidth", "data", "datasets", "description", "detail", "encoding", "facet", "field",
    "fill", "fillOpacity", "format", "formatType", "hconcat", "height", "labelAngle", "labels",
    "layer", "legend", "mark", "name", "opacity", "order", "orient", "padding", "point", "range",
    "resolve", "row", "scale", "scheme", "shape", "size", "sort", "spacing", "stack", "stroke",
    "strokeDash", "strokeOpacity", "strokeWidth", "text", "theta", "tickCount", "timeUnit",
    "title", "type", "value", "values", "vconcat", "view", "width", "x", "x2", "xOffset", "y",
    "y2", "yOffset", "zero", "domain", "nice", "grid", "filled", "interpolate", "bandwidth",
})  # fmt: skip
_ROWS = frozenset({"datasets", "values"})
"""Under these lie the data, whose columns may have any name."""
_LOADS = re.compile(r"//|\\\\|url\(|<|(?:https?|ftp|data|javascript):", re.IGNORECASE)
_MAPS = re.compile(r"geo|map|choropleth|image", re.IGNORECASE)
_PLOTLY_LEFT_OUT = frozenset({"images", "source", "geojson", "topojsonURL", "plotlyServerURL"})
_MOST_DEEP = 40


def inert_chart(media_type: str, content: Any) -> dict[str, Any] | None:
    """Returns the chart without its settings for the page, `None` where it could load something."""
    if not isinstance(content, Mapping):
        return None
    if _VEGA_LITE.fullmatch(media_type):
        chart = {key: value for key, value in content.items() if key != "$schema"}
        is_inert = all(_is_plain(item, _VEGA_LITE_KEYS) for item in _items(chart, 0))
        schema = "https://vega.github.io/schema/vega-lite/v5.json"
        return {**chart, "$schema": schema} if is_inert else None
    if media_type == _PLOTLY:
        chart = {key: content[key] for key in ("data", "layout") if key in content}
        is_inert = all(_is_plain(item) for item in _items(chart, 0)) and not _has_map(chart)
        return chart if is_inert else None
    return None


def _has_map(chart: Mapping[str, Any]) -> bool:
    traces = chart.get("data")
    if not isinstance(traces, list):
        return True
    return any(not isinstance(x, Mapping) or _MAPS.search(str(x.get("type", ""))) for x in traces)


def _is_plain(item: tuple[str | None, Any], known: frozenset[str] | None = None) -> bool:
    """Whether one key with its value neither is nor names something to load."""
    key, value = item
    if isinstance(value, str) and _LOADS.search(value):
        return False
    if key is None:
        return True
    return key in known if known is not None else key not in _PLOTLY_LEFT_OUT


def _items(value: Any, depth: int, *, is_data: bool = False) -> Iterator[tuple[str | None, Any]]:
    """Yields each key (`None` for a place in a list or a column of data) with its value."""
    if depth > _MOST_DEEP:
        yield None, "//"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield (None if is_data else str(key)), inner
            yield from _items(inner, depth + 1, is_data=is_data or key in _ROWS)
    elif isinstance(value, list):
        for inner in value:
            yield None, inner
            yield from _items(inner, depth + 1, is_data=is_data)
