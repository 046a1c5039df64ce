"""Sanitizer for kernel outputs and messages, so that a page that shows them loads nothing remote.

*Covered*: every media type. A few pass unchanged, some are rewritten, and unknown ones are left
out and named. Messages of widgets: those of the packages that come with ipywidgets pass with their
text rewritten. Any other widget is replaced by words, since it is a program. Vega-Lite and Plotly
charts keep the data stored in them. Their maps, pictures, tooltips, and anything with an address
or an expression in it are left out.
*Not covered*: what a page does with plain text, such as turning addresses into links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dm_jupyter.core.inert.css import inert_value
from dm_jupyter.core.inert.markdown import inert_markdown
from dm_jupyter.core.inert.markup import inert_html, inert_svg

__all__ = ["inert_bundle", "inert_content", "inert_output", "is_heavy"]

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
_TEXTS = frozenset({"text/plain", "text/latex", "application/json"})
_REWRITTEN = {
    "text/html": inert_html,
    "text/markdown": inert_markdown,
    "image/svg+xml": inert_svg,
}
_WIDGET = "application/vnd.jupyter.widget-view+json"
_MODEL_ID = re.compile(r"[\w-]{1,80}")
_MEDIA_TYPE = re.compile(r"[a-z]+/[\w.+-]+", re.IGNORECASE)
_SHOWN = frozenset({"display_data", "execute_result"})
_MOST_HTML_CHARS = 8 * 2**20
_HEAVY_CHARS = 2**15
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
"""Keys that contain the data, whose columns may have any name."""
_LOADS = re.compile(r"//|\\\\|url\(|<|(?:https?|ftp|data|javascript):", re.IGNORECASE)
_MAPS = re.compile(r"geo|map|choropleth|image", re.IGNORECASE)
_PLOTLY_LEFT_OUT = frozenset({"images", "source", "geojson", "topojsonURL", "plotlyServerURL"})
_MOST_DEEP_CHART = 40


def inert_output(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return an nbformat output that loads nothing; text and errors are returned unchanged."""
    if output.get("output_type") not in _SHOWN:
        return dict(output)
    data, metadata = inert_bundle(output.get("data", {}), output.get("metadata", {}))
    return {**output, "data": data, "metadata": metadata}


def is_heavy(content: Any) -> bool:
    """Whether the content is too long to be sanitized on an event loop."""
    return _chars(content, 0) > _HEAVY_CHARS


def inert_bundle(
    data: Mapping[str, Any], metadata: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the forms of a rich output that load nothing, and their known metadata.

    Args:
        data: map from media type to content.
        metadata: the metadata of the output.
    """
    shown: dict[str, Any] = {}
    for media_type, content in data.items():
        kept = _inert_form(media_type, content)
        if kept is not None and kept != "":
            shown[media_type] = kept
    left_out = [name for name in data if name not in shown and data[name] != ""]
    if left_out and not shown:
        shown["text/plain"] = f"[not shown here: {', '.join(left_out)[:200]}]"
    return shown, {key: value for key, value in metadata.items() if _is_known(key, value, shown)}


def _is_known(key: str, value: Any, shown: Mapping[str, Any]) -> bool:
    """Whether metadata belong to a shown form and are only sizes and switches."""
    if isinstance(value, Mapping):
        return key in shown and all(_is_known("", inner, {}) for inner in value.values())
    return value is None or isinstance(value, bool | int | float)


def _inert_form(media_type: str, content: Any) -> Any:
    """Return the sanitized content of one media type; `None` if it is left out."""
    if media_type in _TEXTS:
        return content
    if rewritten := _REWRITTEN.get(media_type):
        text = _joined(content)
        return None if text is None or len(text) > _MOST_HTML_CHARS else rewritten(text)
    if media_type in _PICTURES:
        text = _joined(content)
        return text if text is not None and _BASE64.fullmatch(text) else None
    if media_type == _WIDGET:
        return _view(content)
    return _inert_chart(media_type, content)


def _joined(content: Any) -> str | None:
    """Return text that nbformat may store as a list of lines; `None` if it is not text."""
    if isinstance(content, list) and all(isinstance(line, str) for line in content):
        return "".join(content)
    return content if isinstance(content, str) else None


def _view(content: Any) -> dict[str, Any] | None:
    model = content.get("model_id") if isinstance(content, Mapping) else None
    if not isinstance(model, str) or not _MODEL_ID.fullmatch(model):
        return None
    return {"version_major": 2, "version_minor": 0, "model_id": model}


_PACKAGES = frozenset({
    "@jupyter-widgets/base", "@jupyter-widgets/controls", "@jupyter-widgets/output",
})  # fmt: skip
_MODULES = ("_model_module", "_view_module")
_PROGRAMS = frozenset({"_esm", "_css", "_anywidget_id"})
_MOST_DEEP = 60
_TOO_DEEP = "[left out]"
_TAG = re.compile(r"<[A-Za-z/!?]")
_WORDS = frozenset({
    "children", "code", "description", "name", "options", "outputs", "placeholder", "text", "title",
    "titles", "tooltip", "value",
})  # fmt: skip
"""Parts of a widget's state that are never read as a style."""


def inert_content(content: Mapping[str, Any], *, is_of_widget: bool) -> dict[str, Any]:
    """Return the content of a kernel's message with everything in it inert.

    Args:
        content: the content of a Jupyter protocol message, untrusted at every depth.
        is_of_widget: whether it is a comm message, any text of which may be shown as HTML.
    """
    made: dict[str, Any] = _inert(content, is_of_widget, "", 0)
    return made


def _inert(value: Any, is_of_widget: bool, key: str, depth: int) -> Any:
    if depth > _MOST_DEEP:
        return _TOO_DEEP
    if isinstance(value, str):
        return _inert_text(key, value) if is_of_widget else value
    if isinstance(value, list):
        return [_inert(item, is_of_widget, key, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    if _is_bundle(value):
        return inert_bundle(value, {})[0]
    if is_of_widget:
        value = _inert_state(value)
    made = {name: _inert(item, is_of_widget, name, depth + 1) for name, item in value.items()}
    if _is_bundle(value.get("data")):
        metadata = value.get("metadata")
        known = metadata if isinstance(metadata, Mapping) else {}
        made["data"], made["metadata"] = inert_bundle(value["data"], known)
    return made


def _is_bundle(value: Any) -> bool:
    return isinstance(value, Mapping) and any(_MEDIA_TYPE.fullmatch(str(key)) for key in value)


def _inert_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a widget's state, or a change of it, without programs and picture addresses."""
    kept = {key: value for key, value in state.items() if key not in _PROGRAMS}
    foreign = [kept[key] for key in _MODULES if key in kept and kept[key] not in _PACKAGES]
    if any(name is not None for name in foreign):
        named = str(foreign[0])[:80]
        return {
            "_model_module": "@jupyter-widgets/controls",
            "_model_module_version": "2.0.0",
            "_model_name": "LabelModel",
            "_view_module": "@jupyter-widgets/controls",
            "_view_module_version": "2.0.0",
            "_view_name": "LabelView",
            "value": f"[not shown here: a widget of {named}]",
        }
    if kept.get("format") == "url":
        kept["format"] = "png"
    return kept


def _inert_text(key: str, text: str) -> str:
    if _TAG.search(text):
        return inert_html(text)
    is_style = key not in _WORDS and not key.startswith("_") and ("(" in text or "\\" in text)
    return "" if is_style and inert_value(text) is None else text


def _chars(value: Any, depth: int) -> int:
    if isinstance(value, str):
        return len(value)
    if depth > _MOST_DEEP:
        return 0
    if isinstance(value, Mapping):
        return sum(_chars(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return sum(_chars(item, depth + 1) for item in value)
    return 0


def _inert_chart(media_type: str, content: Any) -> dict[str, Any] | None:
    """Return the chart without its page settings, or `None` if it could load something."""
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
    """Whether one key with its value is harmless: it neither loads nor names something to load."""
    key, value = item
    if isinstance(value, str) and _LOADS.search(value):
        return False
    if key is None:
        return True
    return key in known if known is not None else key not in _PLOTLY_LEFT_OUT


def _items(value: Any, depth: int, *, is_data: bool = False) -> Iterator[tuple[str | None, Any]]:
    """Yield each key (`None` for a list item or a column of data) with its value."""
    if depth > _MOST_DEEP_CHART:
        yield None, "//"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield (None if is_data else str(key)), inner
            yield from _items(inner, depth + 1, is_data=is_data or key in _ROWS)
    elif isinstance(value, list):
        for inner in value:
            yield None, inner
            yield from _items(inner, depth + 1, is_data=is_data)
