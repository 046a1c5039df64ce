"""What a cell left, as the page shows it: pictures, tables, words and errors.

Tables and words that a cell showed as HTML are cleaned. Nothing of the HTML is handed on: the
result is made anew, of the tags in a short list and of text that is escaped, so that it is safe
whatever a browser would have read in the original.

*Covered*: scripts, handlers, styles, links, pictures, forms and frames are not in the list; what
held scripts or styles is dropped with its content; every tag is closed within the result, and none
lies deep; nothing is read twice, so that no HTML takes long.
*Not covered*: words in it that pretend to be the page's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from markupsafe import Markup, escape

from kernel_sandbox.types import CellError, CellResult, Display, Output, Stream
from training.report.pictures import Picture, Pictures
from training.report.words import markdown, plain

__all__ = ["Shown", "clean_html", "shown_outputs"]

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
MAX_CHARS = 100_000
"""Longer HTML is not shown: what it is in plain text is."""
MAX_DEPTH = 40
"""Tags open at once; deeper ones are left out, their text stays."""
_TAGS = frozenset({
    "b", "blockquote", "caption", "code", "dd", "div", "dl", "dt", "em", "h4", "h5", "h6", "i",
    "li", "ol", "p", "pre", "s", "small", "span", "strong", "sub", "sup", "table", "tbody", "td",
    "tfoot", "th", "thead", "tr", "u", "ul",
})  # fmt: skip
_ALIKE = {"h1": "h4", "h2": "h5", "h3": "h6"}
_EMPTY = frozenset({"br", "hr"})
_SPANNING = frozenset({"td", "th"})
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)\b([^<>]*)>")
_SPAN = re.compile(r"\b(colspan|rowspan)\s*=\s*[\"']?(\d{1,3})\b", re.IGNORECASE)
_HIDDEN = re.compile(
    r"<(?:(script|style|template|noscript|iframe|title|textarea|svg|math)\b|!--)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Shown:
    """One output."""

    kind: str
    """`text`, `stderr`, `error`, `rich`, `picture` or `note`."""
    text: str = ""
    rich: Markup | None = None
    picture: Picture | None = None


def shown_outputs(result: CellResult, pictures: Pictures) -> list[Shown]:
    """Returns the outputs of a cell in order, and below them what became of it.

    Args:
        result: what became of the cell.
        pictures: takes the pictures among them.
    """
    shown = [_shown(output, pictures) for output in result.outputs]
    if result.cut_bytes:
        shown.append(Shown("note", f"{result.cut_bytes:,} more bytes of output were not kept."))
    if result.message:
        shown.append(Shown("note", plain(result.message)))
    if result.state_lost:
        shown.append(Shown("note", "The kernel lost its variables here."))
    return [one for one in shown if one.text or one.rich or one.picture]


def _shown(output: Output, pictures: Pictures) -> Shown:
    if isinstance(output, Stream):
        return Shown("text" if output.name == "stdout" else "stderr", plain(output.text))
    if isinstance(output, CellError):
        return Shown("error", _traceback(output))
    return _display(output, pictures)


def _display(output: Display, pictures: Pictures) -> Shown:
    """The richest of its forms that is safe: a picture, a table, markdown, else plain text."""
    words = plain(_content(output.data, "text/plain"))
    for kind in _PICTURES:
        if content := _content(output.data, kind):
            if picture := pictures.add(kind, content):
                return Shown("picture", words, picture=picture)
            return Shown("note", f"A picture ({kind}) of {len(content):,} characters, not shown.")
    if (html := _content(output.data, "text/html")) and (cleaned := clean_html(html)):
        return Shown("rich", rich=cleaned)
    if text := _content(output.data, "text/markdown"):
        return Shown("rich", rich=markdown(text))
    return Shown("text", words or f"[shown as {', '.join(output.data)}]")


def _content(data: Mapping[str, Any], kind: str) -> str:
    """Content of a media type; nbformat allows a list of lines as well."""
    content = data.get(kind, "")
    if isinstance(content, list):
        return "".join(str(line) for line in content)
    return content if isinstance(content, str) else ""


def _traceback(error: CellError) -> str:
    last = f"{error.name}: {error.message}"
    lines = plain("\n".join(error.traceback))
    return lines if error.name in lines else plain(f"{lines}\n{last}")


def clean_html(html: str) -> Markup | None:
    """Returns HTML that may stand in the page; `None` where it is too long or says nothing."""
    if len(html) > MAX_CHARS:
        return None
    cleaned = Markup("").join(_rebuilt(_without_hidden(html)))
    return cleaned if cleaned.striptags() else None


def _rebuilt(html: str) -> Iterator[Markup]:
    opened: list[str] = []
    position = 0
    for found in _TAG.finditer(html):
        yield escape(unescape(html[position : found.start()]))
        position = found.end()
        tag = _ALIKE.get(found[2].lower(), found[2].lower())
        if found[1]:
            yield from _closed(opened, tag)
        elif tag in _EMPTY:
            yield Markup("<{}>").format(tag)
        elif tag in _TAGS and len(opened) < MAX_DEPTH:
            opened.append(tag)
            yield Markup("<{}{}>").format(tag, _spans(found[3]) if tag in _SPANNING else "")
    yield escape(unescape(html[position:]))
    while opened:
        yield Markup("</{}>").format(opened.pop())


def _closed(opened: list[str], tag: str) -> Iterator[Markup]:
    """Closes a tag and what was opened in it; one that is not open closes nothing."""
    while tag in opened:
        last = opened.pop()
        yield Markup("</{}>").format(last)
        if last == tag:
            return


def _spans(attributes: str) -> Markup:
    """How many cells of a table one cell spans."""
    spans = {name.lower(): int(number) for name, number in _SPAN.findall(attributes)}
    return Markup("").join(Markup(' {}="{}"').format(name, span) for name, span in spans.items())


def _without_hidden(html: str) -> str:
    """Drops comments and what holds no words, with its content; one that never ends, to the end."""
    kept, position = [], 0
    while opening := _HIDDEN.search(html, position):
        kept.append(html[position : opening.start()])
        end = rf"</{opening[1]}\s*>" if opening[1] else "-->"
        closing = re.compile(end, re.IGNORECASE).search(html, opening.end())
        if closing is None:
            return "".join(kept)
        position = closing.end()
    return "".join([*kept, html[position:]])
