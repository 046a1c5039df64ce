"""Text that a model or a cell wrote, made safe for the page.

*Covered*: markup in it appears as text. Links and pictures in it are neither followed nor loaded.
Terminal codes are removed. Text over the page's limit is cut, with a note that says so.
*Not covered*: letters that look like others, and text that reverses the direction of what follows.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

from dm_jupyter.agent.observe import shorten

__all__ = ["MAX_TEXT_CHARS", "markdown", "plain"]

MAX_TEXT_CHARS = 20_000
"""Characters shown of one text, from its head and its tail."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # terminal titles and links
    r"|[ -~])?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DEEPEST = 6
_SHIFT = 2
"""Levels by which a notebook's headings rank below those of the page."""

_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable("table")
    .disable(["autolink", "image", "link", "reference"])
)


def plain(text: str, limit_chars: int = MAX_TEXT_CHARS) -> str:
    """Return a text without terminal codes; an overwritten line appears in its last state."""
    without = _ESCAPES.sub("", text).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in without.split("\n"))
    return shorten(_CONTROLS.sub("", "\n".join(lines)).rstrip("\n"), limit_chars)


def markdown(text: str) -> Markup:
    """Return markdown as markup; HTML in it remains text."""
    tokens = _PARSER.parse(plain(text))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            level = min(int(token.tag[1:]) + _SHIFT, _DEEPEST)
            token.tag = f"h{level}"
    rendered = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return Markup(rendered)  # noqa: S704  (the parser escapes)
