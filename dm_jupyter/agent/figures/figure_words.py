"""Descriptions in words of the figures in a cell's outputs, whichever library drew them.

The kernel adds words to a picture of matplotlib. A figure of plotly, Altair, Vega-Lite or Vega is
described in the same words from its JSON. Covered: bundles with any content and of any size. Not
covered: figures with neither words nor JSON, and whether the words are true.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from dm_jupyter.agent.figures.plotly_figures import plotly_words
from dm_jupyter.agent.figures.vega_figures import vega_lite_words, vega_words
from kernel_sandbox.messages import MESSAGE_BYTES, decode, has_too_many_parts

__all__ = ["figure_mark", "figure_of_text", "figure_words", "is_figure"]

_log = logging.getLogger(__name__)
_FIGURE_CHARS = 1_200
_KINDS: tuple[tuple[re.Pattern[str], Callable[[object], str]], ...] = (
    (re.compile(r"application/vnd\.plotly\.v\d+\+json"), plotly_words),
    (re.compile(r"application/vnd\.vegalite\.v\d+(?:\.\d+)*\+json"), vega_lite_words),
    (re.compile(r"application/vnd\.vega\.v\d+(?:\.\d+)*\+json"), vega_words),
)
_VEGA_CALL, _PLOTLY_CALL = "})({", "Plotly.newPlot("
"""Text before the figure in a page that Altair, or plotly, has written."""
_GAP = re.compile(r"[\s,]*")
_FAULTS = (
    ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError, RecursionError,
)  # fmt: skip
"""Exceptions that reading an invalid figure may raise."""


def is_figure(data: Mapping[str, object]) -> bool:
    """Whether an output is a picture, or a figure as JSON.

    Args:
        data: map from media types to contents.
    """
    return any(str(kind).startswith("image/") or _teller(kind) is not None for kind in data)


def figure_words(data: Mapping[str, object]) -> str:
    """Return what a figure shows, on one line; "" without a figure or without words.

    Args:
        data: as for `is_figure`; created by a kernel.
    """
    try:
        words = _of_json(data) or _of_picture(data) or _of_page(data)
    except _FAULTS as error:  # whatever a kernel has put there
        _log.debug("a figure can't be put in words: %s", type(error).__name__)
        return ""
    return " ".join(words.split())[:_FIGURE_CHARS]


def figure_of_text(text: str) -> str:
    """Return the words for a figure in a cell's output.

    Args:
        text: its bundle as JSON; empty if it was too large to be sent.
    """
    if not text:
        return "[a figure, too large to be put in words]"
    try:
        data = decode(text.encode("utf-8", "replace"))
    except ValueError:
        data = None
    return figure_mark(figure_words(data) if isinstance(data, dict) else "")


def figure_mark(words: str) -> str:
    """Return the mark that represents a figure among a cell's outputs.

    Args:
        words: what it shows; empty if unknown.
    """
    return f"[a figure. {words}]" if words else "[a figure]"


def _teller(kind: object) -> Callable[[object], str] | None:
    found = (tell for pattern, tell in _KINDS if pattern.fullmatch(str(kind)[:60]))
    return next(found, None)


def _of_json(data: Mapping[str, object]) -> str:
    for kind, content in data.items():
        tell = _teller(kind)
        if tell is not None:
            return tell(decode(content.encode()) if isinstance(content, str) else content)
    return ""


def _of_picture(data: Mapping[str, object]) -> str:
    """Return the kernel's words for a picture; "" for a class name, as of most libraries."""
    if not any(str(kind).startswith("image/") for kind in data):
        return ""
    words = _joined(data.get("text/plain"))
    return "" if words.lstrip().startswith("<") else words


def _of_page(data: Mapping[str, object]) -> str:
    """Return the words of the figure in a page's script, which is Altair's default output."""
    page = _joined(data.get("text/html"))
    if "vega-embed" in page and (at := page.rfind(_VEGA_CALL)) >= 0:
        figure, mode = _values(page, at + len(_VEGA_CALL) - 1, 2)
        is_lite = not isinstance(mode, dict) or mode.get("mode") != "vega"
        return vega_lite_words(figure) if is_lite else vega_words(figure)
    if (at := page.rfind(_PLOTLY_CALL)) >= 0:
        _, traces, layout = _values(page, at + len(_PLOTLY_CALL), 3)
        return plotly_words({"data": traces, "layout": layout})
    return ""


def _values(page: str, at: int, count: int) -> list[Any]:
    """Return the first arguments of a call in a script, which are JSON.

    Raises:
        ValueError: they are not JSON, or too long.
    """
    body = page[at : at + MESSAGE_BYTES + 1]
    if len(body) > MESSAGE_BYTES or has_too_many_parts(body.encode("utf-8", "replace")):
        raise ValueError("the figure is too large")
    decoder, found, place = json.JSONDecoder(), [], 0
    for _ in range(count):
        gap = _GAP.match(body, place)
        value, place = decoder.raw_decode(body, gap.end() if gap else place)
        found.append(value)
    return found


def _joined(text: object) -> str:
    """Return a text that a notebook file may store as a list of lines."""
    if isinstance(text, list):
        return "".join(piece for piece in text if isinstance(piece, str))
    return text if isinstance(text, str) else ""
