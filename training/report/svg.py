"""Drawings: SVG elements that escape what they hold."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

__all__ = ["add", "cut", "drawing", "grouped", "to_markup"]

Value = str | float


def drawing(title: str, width: float, height: float) -> Element:
    """Returns an empty drawing of its own size in pixels, which shrinks with a narrow page.

    Args:
        title: what a screen reader says of it.
        width: in pixels.
        height: in pixels.
    """
    svg = Element("svg", {"class": "plot", "role": "img", "aria-label": title})
    svg.set("viewBox", f"0 0 {_number(width)} {_number(height)}")
    svg.set("width", _number(width))
    svg.set("height", _number(height))
    return svg


def grouped(parent: Element, css: str) -> Element:
    """Returns a new group of marks that share a class."""
    return SubElement(parent, "g", {"class": css})


def add(parent: Element, tag: str, text: str = "", /, **attributes: Value) -> Element:
    """Returns a new mark.

    Args:
        parent: where it is drawn.
        tag: what it is, such as `line`.
        text: what stands in it.
        attributes: its own; `_` stands for `-`, and `css` for `class`.
    """
    named = {
        "class" if name == "css" else name.replace("_", "-"): _value(value)
        for name, value in attributes.items()
    }
    mark = SubElement(parent, tag, named)
    mark.text = text or None
    return mark


def to_markup(svg: Element) -> Markup:
    """Returns the drawing as it stands in a page."""
    return Markup(tostring(svg, encoding="unicode"))  # noqa: S704  (tostring escapes)


def cut(text: str, limit: int) -> str:
    """Returns a text of one line, shortened to so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _value(value: Value) -> str:
    return value if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
