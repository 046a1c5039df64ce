"""Ways to write something that a page loads from elsewhere, and a look for what is left of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import html5lib

__all__ = ["HOST", "SPELLINGS", "remote_references", "spellings"]

HOST = "remote.test"
"""The host that all spellings name, in one way or another."""
SPELLINGS: list[dict[str, str]] = json.loads(
    (Path(__file__).parent / "data" / "remote" / "spellings.json").read_text("utf-8")
)
_BASE = "http://notebook.example/folder/"
_LOADING = {
    "action", "archive", "background", "cite", "classid", "codebase", "data", "data-src", "dynsrc",
    "formaction", "href", "imagesrcset", "longdesc", "lowsrc", "manifest", "ping", "poster", "src",
    "srcdoc", "srcset", "xlink:href", "xml:base",
}  # fmt: skip
_ELEMENTS = {
    "animate", "animatemotion", "animatetransform", "applet", "base", "button", "embed", "feimage",
    "foreignobject", "form", "frame", "frameset", "iframe", "link", "math", "meta", "object",
    "param", "portal", "script", "set", "template",
}  # fmt: skip
_STYLES = {
    "clip-path", "cursor", "fill", "filter", "marker", "marker-end", "marker-mid", "marker-start",
    "mask", "stroke", "style",
}  # fmt: skip
_WORDS = {"alt", "title", "aria-label"}
_CSS_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?|\\(.)")
_CSS_LOADS = re.compile(
    r"@import|@font-face|@namespace|image-set\(|\bimage\(|\bsrc\(|expression\(|behavior|-moz-binding"
    r"|url\((?!\s*[\"']?(?:#|data:image/))",
    re.IGNORECASE,
)


def spellings(*kinds: str) -> list[str]:
    """Returns the spellings of some kinds."""
    return [spelling["text"] for spelling in SPELLINGS if spelling["kind"] in kinds]


def remote_references(markup: str, *, is_strict: bool = True) -> list[str]:
    """Returns what a browser that parses the markup by the standard could load from elsewhere.

    Args:
        markup: HTML or SVG.
        is_strict: whether an address in an attribute that loads nothing counts, such as a height.
    """
    parsed = html5lib.parseFragment(markup, treebuilder="etree", namespaceHTMLElements=False)
    return [found for element in parsed.iter() for found in _of_element(element, is_strict)]


def _of_element(element: Any, is_strict: bool) -> Iterator[str]:
    name = _local(element.tag)
    if name in _ELEMENTS:
        yield f"<{name}>"
    if name == "style" and _css_loads(element.text or ""):
        yield f"style: {element.text}"
    for key, value in element.attrib.items():
        attribute = _local(key) if "}" not in str(key) else f"xlink:{_local(key)}"
        if attribute.startswith("on"):
            yield f"<{name} {attribute}>"
        elif attribute in _LOADING or attribute == "xlink:base":
            if name != "a" and _is_elsewhere(value):
                yield f"<{name} {attribute}={value!r}>"
        elif attribute in _STYLES and _css_loads(value):
            yield f"<{name} style {attribute}={value!r}>"
        elif is_strict and attribute not in _WORDS and (f"//{HOST}" in value or _css_loads(value)):
            yield f"<{name} {attribute}={value!r}>"


def _local(name: Any) -> str:
    return str(name).rpartition("}")[2].lower()


def _css_loads(css: str) -> bool:
    plain = _CSS_ESCAPE.sub(lambda x: chr(int(x[1], 16) or 1) if x[1] else x[2], css)
    return bool(_CSS_LOADS.search(re.sub(r"/\*.*?\*/", "", plain, flags=re.DOTALL)))


def _is_elsewhere(value: str) -> bool:
    """Whether an address leaves the document, as a browser reads it."""
    cleaned = re.sub(r"[\t\n\r]", "", value).strip("".join(map(chr, range(33))))
    address = urlsplit(urljoin(_BASE, cleaned.replace("\\", "/")))
    if address.scheme in {"data", "attachment"}:
        return False
    return address.scheme not in {"http", "https"} or address.netloc != urlsplit(_BASE).netloc
