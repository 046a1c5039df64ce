"""A tokenizer for HTML and SVG, whose time depends only on the length of the markup.

It need not parse as a browser does, since its tokens are written again from allow-lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape

__all__ = ["End", "MarkupToken", "Sheet", "Start", "Text", "tokens"]


@dataclass(frozen=True, slots=True)
class Text:
    """Text, with entities decoded."""

    text: str


@dataclass(frozen=True, slots=True)
class Start:
    """The start of an element."""

    name: str
    """The name in lower case."""
    attributes: tuple[tuple[str, str], ...]
    """Names in lower case and decoded values; of several with one name the first counts."""
    is_closed: bool
    """Whether it is written `<name/>`."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of an element."""

    name: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """The content of a `style` element."""

    css: str


MarkupToken = Text | Start | End | Sheet

_HIDDEN = frozenset({
    "iframe", "metadata", "noembed", "noframes", "noscript", "plaintext", "script", "style",
    "template", "textarea", "title", "xmp",
})  # fmt: skip
"""Elements whose content is not part of the page's text."""
_TAG_NAME = re.compile(r"[A-Za-z][^\s/>]*")
_ATTRIBUTE = re.compile(
    r"[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s>]*))?", re.DOTALL
)
_TAG_END = re.compile(r"[\s/]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def tokens(markup: str) -> Iterator[MarkupToken]:
    """Yield the tokens of the markup, without comments, declarations and scripts."""
    markup = _CONTROL.sub("", markup)
    position = 0
    while (start := markup.find("<", position)) >= 0:
        if start > position:
            yield Text(_decoded(markup[position:start]))
        name = _TAG_NAME.match(markup, start + 1)
        if name is not None:
            tag, position = _start(markup, name)
            yield tag
            if tag.name in _HIDDEN and not tag.is_closed:
                content, position = _content(markup, tag.name, position)
                if tag.name == "style":
                    yield Sheet(content)
        elif markup.startswith(("</", "<!", "<?"), start):
            ended = _TAG_NAME.match(markup, start + 2) if markup[start + 1] == "/" else None
            if ended is not None:
                yield End(ended[0].lower())
            position = _after(markup, start)
        else:
            yield Text("<")
            position = start + 1
    if position < len(markup):
        yield Text(_decoded(markup[position:]))


def _start(markup: str, name: re.Match[str]) -> tuple[Start, int]:
    position, found = name.end(), dict[str, str]()
    while not (end := _TAG_END.match(markup, position)):
        attribute = _ATTRIBUTE.match(markup, position)
        if attribute is None:  # the text ends inside the tag
            return Start(name[0].lower(), tuple(found.items()), False), len(markup)
        value = attribute[2] or ""
        if value[:1] in {'"', "'"} and value[-1:] == value[:1] and len(value) > 1:
            value = value[1:-1]
        found.setdefault(attribute[1].lower(), _decoded(value))
        position = attribute.end()
    is_closed = "/" in end[0]
    return Start(name[0].lower(), tuple(found.items()), is_closed), end.end()


def _after(markup: str, start: int) -> int:
    """Return where the comment, the declaration or the end tag at `start` ends."""
    for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<", ">")):
        if markup.startswith(opening, start):
            end = markup.find(closing, start + len(opening))
            return len(markup) if end < 0 else end + len(closing)
    return len(markup)


def _content(markup: str, name: str, position: int) -> tuple[str, int]:
    closing = _closing(name).search(markup, position)
    if closing is None:
        return markup[position:], len(markup)
    return markup[position : closing.start()], closing.start()


@cache
def _closing(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)


def _decoded(text: str) -> str:
    return _CONTROL.sub("", unescape(text)) if "&" in text else text
