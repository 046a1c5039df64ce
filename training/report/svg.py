"""Drawings: SVG elements that escape their contents."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

__all__ = ["add", "cut", "drawing", "to_markup"]

Value = str | float


def drawing(title: str, width: float, height: float) -> Element:
    """Return an empty drawing of a fixed size in pixels, which shrinks on a narrow page.

    Args:
        title: the label for screen readers.
        width: in pixels.
        height: in pixels.
    """
    svg = Element("svg", {"class": "plot", "role": "img", "aria-label": title})
    svg.set("viewBox", f"0 0 {_number(width)} {_number(height)}")
    svg.set("width", _number(width))
    svg.set("height", _number(height))
    return svg


def add(parent: Element, tag: str, text: str = "", /, **attributes: Value) -> Element:
    """Return a new mark.

    Args:
        parent: the element that gets the mark.
        tag: the name of the element, such as `line`.
        text: the text of the element.
        attributes: the attributes; `_` in a name means `-`, and `css` means `class`.
    """
    named = {
        "class" if name == "css" else name.replace("_", "-"): _value(value)
        for name, value in attributes.items()
    }
    mark = SubElement(parent, tag, named)
    mark.text = text or None
    return mark


def to_markup(svg: Element) -> Markup:
    """Return the drawing as markup for a page."""
    return Markup(tostring(svg, encoding="unicode"))  # noqa: S704  (tostring escapes)


def cut(text: str, limit: int) -> str:
    """Return a text on one line, shortened to `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _value(value: Value) -> str:
    return value if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
