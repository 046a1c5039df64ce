"""Sanitizer that keeps only tables and plain formatting, for a page that trusts its input.

`inert_html` keeps styles, links and drawings, for a page that treats outputs as untrusted. This
module parses markup in the same way but writes less: elements of a short list, and text.

*Covered*: whatever could run, load something, lead elsewhere, cover the page or take its styles.
No attribute passes except the spans of cells. Each element is closed, and nesting is limited.
*Not covered*: words that pretend to be the page's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from dm_jupyter.core.inert.markup import ENDED_BY
from dm_jupyter.core.inert.tokens import End, Start, Text, tokens
from dm_jupyter.core.plain_text import harmless_text

__all__ = ["MOST_DEEP", "bare_html"]

MOST_DEEP = 40
"""Deepest nesting of elements. Tags of deeper ones are left out, their text stays."""
_KEPT = frozenset({
    "b", "blockquote", "caption", "code", "dd", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4",
    "h5", "h6", "i", "li", "ol", "p", "pre", "s", "small", "span", "strong", "sub", "sup", "table",
    "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul",
})  # fmt: skip
_EMPTY = frozenset({"br", "hr"})
_WORDLESS = frozenset({"math", "object", "select", "svg"})
"""Elements whose text is meaningless without them."""
_SPANS = ("colspan", "rowspan")
_SPANNING = frozenset({"td", "th"})
_NUMBER = re.compile(r"[0-9]{1,3}")


def bare_html(
    markup: str,
    *,
    renamed: Mapping[str, str] | None = None,
    added: Mapping[str, str] | None = None,
) -> str:
    """Return the tables and plain formatting of some HTML; "" if it contains no words.

    Args:
        markup: HTML from anywhere.
        renamed: Map from an element to the one written instead.
        added: Map from an element to attributes that it gets, as HTML.
    """
    writer = _BareWriter(renamed or {}, added or {})
    for token in tokens(harmless_text(markup)):
        match token:
            case Text(text):
                writer.text(text)
            case Start():
                writer.start(token)
            case End(name):
                writer.end(name)
    return writer.written()


class _BareWriter:
    """A writer of the allowed elements that closes each of them."""

    def __init__(self, renamed: Mapping[str, str], added: Mapping[str, str]) -> None:
        self._renamed = renamed
        self._added = added
        self._parts: list[str] = []
        self._open: list[str] = []
        self._left_out: list[str] = []
        """The open elements from the first that is left out with its text."""
        self._has_words = False

    def text(self, text: str) -> None:
        if not self._left_out:
            self._has_words = self._has_words or not text.isspace()
            self._parts.append(escape(text, quote=False))

    def start(self, token: Start) -> None:
        name = token.name
        if name in _WORDLESS and not token.is_closed and self._left_out[:1] in ([], [name]):
            self._left_out.append(name)
        elif self._left_out:
            return
        elif name in _EMPTY:
            self._parts.append(f"<{name}>")
        elif name in _KEPT:
            ended = ENDED_BY.get(name, frozenset())
            while self._open and self._open[-1] in ended:
                self._close()
            if len(self._open) < MOST_DEEP:
                self._open.append(name)
                self._parts.append(f"<{self._renamed.get(name, name)}{self._attributes(token)}>")

    def _attributes(self, token: Start) -> str:
        given = dict(token.attributes) if token.name in _SPANNING else {}
        spans = [
            f' {name}="{given[name]}"' for name in _SPANS if _NUMBER.fullmatch(given.get(name, ""))
        ]
        own = [f" {self._added[token.name]}"] if token.name in self._added else []
        return "".join([*own, *spans])

    def end(self, name: str) -> None:
        if self._left_out:
            if name == self._left_out[0]:
                self._left_out.pop()
            return
        while name in self._open:
            if self._close() == name:
                return

    def _close(self) -> str:
        name = self._open.pop()
        self._parts.append(f"</{self._renamed.get(name, name)}>")
        return name

    def written(self) -> str:
        while self._open:
            self._close()
        return "".join(self._parts) if self._has_words else ""
