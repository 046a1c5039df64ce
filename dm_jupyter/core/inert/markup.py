"""HTML and SVG that load nothing.

The markup is written anew: elements and attributes of a list, escaped text, and style sheets of
what is known to be inert. What would have been loaded from elsewhere is named in its place.

*Covered*: scripts, handlers, frames, forms, objects, `base`, `meta`, `link`, animations and all
else that is not in the list; addresses of pictures, sounds and films, however they are written;
CSS. Each result has its elements closed, and at most `_MOST_DEEP` lie in each other.
*Not covered*: links, which lead elsewhere once somebody clicks them, and words that pretend to be
the page's own.
"""

from __future__ import annotations

import re
from html import escape

from dm_jupyter.core.inert.css import inert_declarations, inert_sheet, inert_value
from dm_jupyter.core.inert.tags import (
    EMPTY,
    FRAGMENTS,
    PAINTED,
    PICTURES,
    PLAIN,
    SHAPES,
    SPOKEN,
    TAGS,
)
from dm_jupyter.core.inert.tokens import End, Sheet, Start, Text, tokens
from dm_jupyter.core.inert.urls import (
    host_of,
    hosts_in,
    is_inert,
    is_link,
    is_remote,
    shown_address,
)

__all__ = ["CLASS", "inert_html", "inert_svg"]

CLASS = "dm-remote"
"""Class of the words that stand in for what is not loaded."""
_MOST_DEEP = 200
_MOST_HOSTS = 8
_ADDRESSED = ("src", "href", "xlink:href", "data", "poster", "srcset", "code", "archive")
_FRAGMENT = re.compile(r"#[\w.:-]+")
_NUMBER = re.compile(r"-?[0-9.]{1,12}")
_CHOICES = frozenset({"checkbox", "radio"})
_ROOT = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def inert_html(markup: str) -> str:
    """Returns HTML that loads nothing, with words in the place of what it would have loaded."""
    writer = _Writer(is_xml=False)
    return writer.written(markup)


def inert_svg(markup: str) -> str:
    """Returns an SVG drawing, well-formed XML, that loads nothing; empty where it is none."""
    start = markup.lower().find("<svg")
    return _Writer(is_xml=True).written(markup[start:]) if start >= 0 else ""


class _Writer:
    """Writes markup from tokens."""

    def __init__(self, *, is_xml: bool) -> None:
        self._is_xml = is_xml
        self._parts: list[str] = []
        self._open: list[str] = []
        self._drawings = 0
        """How many of the open elements are `svg`."""
        self._hosts: dict[str, None] = {}
        """Named below the rest, since nothing was visible in their place."""

    def written(self, markup: str) -> str:
        for token in tokens(markup):
            match token:
                case Text(text):
                    self._text(text)
                case Start():
                    self._start(token)
                case End(name):
                    self._end(name)
                case Sheet(css):
                    self._sheet(css)
            if self._is_xml and not self._open:  # the drawing is over
                break
        while self._open:
            self._close()
        if self._hosts and not self._is_xml:
            hosts = ", ".join(list(self._hosts)[:_MOST_HOSTS])
            self._parts.append(f'<p class="{CLASS}">[not loaded from {escape(hosts)}]</p>')
        return "".join(self._parts)

    def _text(self, text: str) -> None:
        self._parts.append(escape(text, quote=False))

    def _start(self, token: Start) -> None:
        name = token.name
        given = dict(token.attributes)
        if name not in TAGS or not self._may_stand(name, given):
            self._stand_in(name, given)
            return
        if name in SHAPES and name != "svg" and not self._drawings:
            return
        if len(self._open) >= _MOST_DEEP and name not in EMPTY:
            return
        attributes = "".join(self._attribute(name, key, value) for key, value in given.items())
        if name == "svg":
            attributes = f" {_ROOT}{attributes}"
        elif name == "a":
            attributes += ' rel="noopener noreferrer"'
        is_closed = name in SHAPES and token.is_closed
        ending = "/" if is_closed or (self._is_xml and name in EMPTY) else ""
        self._parts.append(f"<{TAGS[name]}{attributes}{ending}>")
        if not is_closed and name not in EMPTY:
            self._open.append(name)
            self._drawings += name == "svg"

    def _end(self, name: str) -> None:
        while name in self._open:
            if self._close() == name:
                return

    def _close(self) -> str:
        name = self._open.pop()
        self._drawings -= name == "svg"
        self._parts.append(f"</{TAGS[name]}>")
        return name

    def _sheet(self, css: str) -> None:
        if sheet := inert_sheet(css):
            text = escape(sheet, quote=False) if self._is_xml else sheet
            self._parts.append(f"<style>{text}</style>")

    def _may_stand(self, name: str, given: dict[str, str]) -> bool:
        if name == "input":
            return given.get("type", "").strip().lower() in _CHOICES
        if name == "image":
            return is_inert(given.get("href") or given.get("xlink:href") or "http://")
        source = PICTURES.get(name)
        if source is None:
            return True
        is_needed = name in {"img", "source"}
        return is_inert(given[source]) if source in given else not is_needed

    def _attribute(self, tag: str, name: str, value: str) -> str:
        """The attribute as it is written; empty where it is left out."""
        kept: str | None = None
        if name in PLAIN:
            name, kept = PLAIN[name], value
        elif name == "style":
            kept = inert_declarations(value)
        elif name in PAINTED:
            kept = inert_value(value)
        elif name in {"href", "xlink:href"}:
            kept = self._reference(tag, value)
        elif name == PICTURES.get(tag) or name == "poster":
            kept = value.strip() if is_inert(value) else None
        if kept != value and not name.startswith("xmlns"):
            self._hosts |= dict.fromkeys(hosts_in(value))
        return f' {name}="{escape(kept)}"' if kept is not None else ""

    @staticmethod
    def _reference(tag: str, value: str) -> str | None:
        value = value.strip()
        if tag == "a":
            return value if is_link(value) else None
        if tag == "image":
            return value if is_inert(value) else None
        return value if tag in FRAGMENTS and _FRAGMENT.fullmatch(value) else None

    def _stand_in(self, name: str, given: dict[str, str]) -> None:
        """Names what an element would have loaded, in its place where that can be seen."""
        found = [value for key in _ADDRESSED if (value := given.get(key)) and is_remote(value)]
        if not found:
            self._text(given.get("alt", ""))
            found = [value for key, value in given.items() if not key.startswith("xmlns")]
            self._hosts |= dict.fromkeys(host for value in found for host in hosts_in(value))
        elif name not in SPOKEN:
            self._hosts |= dict.fromkeys(map(host_of, found))
        else:
            self._name(SPOKEN[name], found[0].split()[0], given)

    def _name(self, what: str, url: str, given: dict[str, str]) -> None:
        words = f"{what} from {host_of(url)}, not loaded"
        if self._drawings:
            place = "".join(
                f' {axis}="{given[axis]}"'
                for axis in ("x", "y")
                if _NUMBER.fullmatch(given.get(axis, ""))
            )
            self._parts.append(f"<text{place}>[{escape(words)}]</text>")
            return
        alt = f" {escape(given['alt'], quote=False)}" if given.get("alt") else ""
        address = f"<code>{escape(shown_address(url), quote=False)}</code>"
        self._parts.append(
            f'<span class="{CLASS}">[{escape(words, quote=False)}: {address}]{alt}</span>'
        )
