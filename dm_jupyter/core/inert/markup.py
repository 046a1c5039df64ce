"""Sanitizer for HTML and SVG, which removes everything that loads.

The markup is written again from allowed elements and attributes, escaped text, and style sheets of
inert parts. Words replace whatever would have been loaded from elsewhere. The lists below name the
elements and attributes that pass, and the addresses that a page may load.

*Covered*: scripts, handlers, frames, forms, objects, `base`, `meta`, `link`, animations and
everything else that is not in the list. Addresses of pictures, sounds and films in every notation.
CSS. All elements of a result are closed, with at most `_MOST_DEEP` nested in each other.
*Not covered*: links, which lead elsewhere once somebody clicks them, and words that pretend to be
the page's own.
"""

from __future__ import annotations

import re
from html import escape

from dm_jupyter.core.inert.css import inert_declarations, inert_sheet, inert_value
from dm_jupyter.core.inert.tokens import End, Sheet, Start, Text, tokens

__all__ = ["CLASS", "ENDED_BY", "host_of", "inert_html", "inert_svg", "is_inert", "visible_address"]

CLASS = "dm-remote"
"""CSS class of the words that replace what is not loaded."""
_MOST_DEEP = 200
_MOST_HOSTS = 8
_ADDRESSED = ("src", "href", "xlink:href", "data", "poster", "srcset", "code", "archive")
_FRAGMENT = re.compile(r"#[\w.:-]+")
_NUMBER = re.compile(r"-?[0-9.]{1,12}")
_CHOICES = frozenset({"checkbox", "radio"})
_ROOT = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
_HTML = """
a abbr address article aside audio b bdi bdo blockquote br caption center cite code col colgroup dd
del details dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img input
ins kbd label legend li main mark meter nav ol p picture pre progress q rp rt ruby s samp section
small source span strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul var
video wbr
"""
_SVG = """
circle clipPath defs desc ellipse feBlend feColorMatrix feComponentTransfer feComposite
feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA
feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight
feSpecularLighting feSpotLight feTile feTurbulence filter g image line linearGradient marker mask
path pattern polygon polyline radialGradient rect stop svg switch symbol text textPath tspan use
"""
_SHAPES = frozenset(name.lower() for name in _SVG.split())
"""Elements of SVG, which `/>` closes."""
_TAGS = {name.lower(): name for name in (_HTML + _SVG).split()}
"""Map from the lower-case name of an allowed element to its spelling."""
_EMPTY = frozenset({"br", "col", "hr", "img", "input", "source", "wbr"})
"""Elements of HTML without content."""
_PICTURES = {"img": "src", "source": "src", "audio": "src", "video": "src"}
"""Elements whose purpose is what they load, and the attribute that names it."""
_SPOKEN = {
    "applet": "an applet", "audio": "a sound", "embed": "an object", "frame": "a page",
    "iframe": "a page", "image": "a picture", "img": "a picture", "input": "a picture",
    "object": "an object", "video": "a film",
}  # fmt: skip
"""Words for what an element that is left out would have shown."""
_FRAGMENTS = frozenset({
    "filter", "lineargradient", "marker", "mask", "pattern", "radialgradient", "textpath", "use",
})  # fmt: skip
"""Elements whose `href` may name a part of the same document."""
_GLOBAL = """
align alt aria-describedby aria-expanded aria-hidden aria-label aria-labelledby bgcolor border
cellpadding cellspacing checked class color colspan controls datetime dir disabled face for frame
headers height hidden high id lang loop low max min muted nowrap open optimum reversed role rowspan
rules scope size span start summary tabindex title type valign value width
"""
_DRAWING = """
alignment-baseline amplitude azimuth baseFrequency baseline-shift bias clip-rule clipPathUnits
color-interpolation color-interpolation-filters cx cy d diffuseConstant direction divisor
dominant-baseline dx dy edgeMode elevation exponent fill-opacity fill-rule filterUnits flood-color
flood-opacity font-family font-size font-stretch font-style font-variant font-weight fr fx fy
gradientTransform gradientUnits image-rendering in in2 intercept k1 k2 k3 k4 kernelMatrix
kernelUnitLength lengthAdjust letter-spacing lighting-color limitingConeAngle markerHeight
markerUnits markerWidth maskContentUnits maskUnits mode numOctaves offset opacity operator order
orient overflow paint-order pathLength patternContentUnits patternTransform patternUnits points
pointsAtX pointsAtY pointsAtZ preserveAlpha preserveAspectRatio primitiveUnits r radius refX refY
result rotate rx ry scale seed shape-rendering slope specularConstant specularExponent spreadMethod
startOffset stdDeviation stitchTiles stop-color stop-opacity stroke-dasharray stroke-dashoffset
stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width surfaceScale
tableValues targetX targetY text-anchor text-decoration text-rendering textLength transform
transform-origin unicode-bidi values vector-effect version viewBox visibility word-spacing
writing-mode x x1 x2 xChannelSelector xml:space y y1 y2 yChannelSelector z
"""
_PLAIN = {name.lower(): name for name in (_GLOBAL + _DRAWING).split()}
"""Map from the lower-case name of an attribute that loads nothing to its spelling."""
_PAINTED = frozenset({
    "clip-path", "cursor", "fill", "filter", "marker", "marker-end", "marker-mid", "marker-start",
    "mask", "stroke",
})  # fmt: skip
"""Attributes whose value is that of a CSS property."""
_IGNORED = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028\u2029\u2060\ufeff]+")
"""Characters that browsers or human readers skip in an address."""
_MEDIA = re.compile(r"data:(?:image|audio|video)/[a-z0-9.+-]{1,40}[;,]", re.IGNORECASE)
_ATTACHED = re.compile(r"attachment:[\w][\w. -]*")
_BESIDE = re.compile(r"(?!.*(?:\.\.|//))[\w][\w./ -]*")
"""A file beside the notebook: no scheme, no host, no query, and nothing above its folder."""
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}([^/\\?#]*)", re.IGNORECASE)
_WRITTEN = re.compile(
    r"(?:^|(?<=[\s\"'(=,;]))(?:https?:|wss?:|ftp:)?//[^\s\"'()<>,;]+", re.IGNORECASE
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_LINKED = frozenset({"http", "https", "mailto"})
_MOST_CHARS = 1_000
_MOST_HOST_CHARS = 80
_CELLS = frozenset({"td", "th"})
_ROWS = _CELLS | {"tr"}
_GROUPS = _ROWS | {"tbody", "tfoot", "thead"}
ENDED_BY = {
    "dd": frozenset({"dd", "dt"}), "dt": frozenset({"dd", "dt"}), "li": frozenset({"li"}),
    "p": frozenset({"p"}), "tbody": _GROUPS, "td": _CELLS, "tfoot": _GROUPS, "th": _CELLS,
    "thead": _GROUPS, "tr": _ROWS,
}  # fmt: skip
"""Elements whose start closes other open elements, since those need no end tag."""


def inert_html(markup: str) -> str:
    """Return HTML that loads nothing, with words in place of what it would have loaded."""
    writer = _Writer(is_xml=False)
    return writer.written(markup)


def inert_svg(markup: str) -> str:
    """Return an SVG drawing, well-formed XML, that loads nothing; "" if it is not SVG."""
    start = markup.lower().find("<svg")
    return _Writer(is_xml=True).written(markup[start:]) if start >= 0 else ""


class _Writer:
    """A writer of markup from tokens."""

    def __init__(self, *, is_xml: bool) -> None:
        self._is_xml = is_xml
        self._parts: list[str] = []
        self._open: list[str] = []
        self._drawings = 0
        """How many of the open elements are `svg`."""
        self._hosts: dict[str, None] = {}
        """Hosts named at the end, since their elements were not visible."""

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
        if "desc" in self._open:  # text that is never drawn; a browser parses HTML in it
            return
        name = token.name
        given = dict(token.attributes)
        if name not in _TAGS or not self._may_stand(name, given):
            self._stand_in(name, given)
            return
        if name in _SHAPES and name != "svg" and not self._drawings:
            return
        while self._open and self._open[-1] in ENDED_BY.get(name, ()):
            self._close()
        if len(self._open) >= _MOST_DEEP and name not in _EMPTY:
            return
        attributes = "".join(self._attribute(name, key, value) for key, value in given.items())
        if name == "svg":
            attributes = f" {_ROOT}{attributes}"
        elif name == "a":
            attributes += ' rel="noopener noreferrer"'
        is_closed = name in _SHAPES and token.is_closed
        ending = "/" if is_closed or (self._is_xml and name in _EMPTY) else ""
        self._parts.append(f"<{_TAGS[name]}{attributes}{ending}>")
        if not is_closed and name not in _EMPTY:
            self._open.append(name)
            self._drawings += name == "svg"

    def _end(self, name: str) -> None:
        while name in self._open:
            if self._close() == name:
                return

    def _close(self) -> str:
        name = self._open.pop()
        self._drawings -= name == "svg"
        self._parts.append(f"</{_TAGS[name]}>")
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
        source = _PICTURES.get(name)
        if source is None:
            return True
        is_needed = name in {"img", "source"}
        return is_inert(given[source]) if source in given else not is_needed

    def _attribute(self, tag: str, name: str, value: str) -> str:
        """Return the attribute as it is written; "" if it is left out."""
        kept: str | None = None
        if name in _PLAIN:
            name, kept = _PLAIN[name], value
        elif name == "style":
            kept = inert_declarations(value)
        elif name in _PAINTED:
            kept = inert_value(value)
        elif name in {"href", "xlink:href"}:
            kept = self._reference(tag, value)
        elif name == _PICTURES.get(tag) or name == "poster":
            kept = value.strip() if is_inert(value) else None
        if kept != value and not name.startswith("xmlns"):
            self._hosts |= dict.fromkeys(_hosts_in(value))
        return f' {name}="{escape(kept)}"' if kept is not None else ""

    @staticmethod
    def _reference(tag: str, value: str) -> str | None:
        value = value.strip()
        if tag == "a":
            return value if _is_link(value) else None
        if tag == "image":
            return value if is_inert(value) else None
        return value if tag in _FRAGMENTS and _FRAGMENT.fullmatch(value) else None

    def _stand_in(self, name: str, given: dict[str, str]) -> None:
        """Name what an element would have loaded, in its position if that is visible."""
        found = [value for key in _ADDRESSED if (value := given.get(key)) and _is_remote(value)]
        if not found:
            self._text(given.get("alt", ""))
            found = [value for key, value in given.items() if not key.startswith("xmlns")]
            self._hosts |= dict.fromkeys(host for value in found for host in _hosts_in(value))
        elif name not in _SPOKEN:
            self._hosts |= dict.fromkeys(map(host_of, found))
        else:
            self._name(_SPOKEN[name], found[0].split()[0], given)

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
        address = f"<code>{escape(visible_address(url), quote=False)}</code>"
        self._parts.append(
            f'<span class="{CLASS}">[{escape(words, quote=False)}: {address}]{alt}</span>'
        )


def is_inert(url: str) -> bool:
    """Whether a picture at the address is in the document itself or beside the notebook."""
    url = url.strip(" \t\r\n\f")
    if _MEDIA.match(url):
        return True
    return len(url) <= _MOST_CHARS and bool(_ATTACHED.fullmatch(url) or _BESIDE.fullmatch(url))


def _is_link(url: str) -> bool:
    """Whether a link may lead there once somebody clicks it."""
    bare = _IGNORED.sub("", url)
    scheme = _SCHEME.match(bare)
    return scheme is None or scheme[1].lower() in _LINKED


def _is_remote(url: str) -> bool:
    """Whether the text looks like an address outside the document."""
    bare = _IGNORED.sub("", url)
    return bool(_HOST.search(bare) or _SCHEME.match(bare)) and not is_inert(url)


def host_of(url: str) -> str:
    """Return the host that an address names, without a user or password."""
    found = _HOST.search(_IGNORED.sub("", url))
    host = found[1].rpartition("@")[2] if found else ""
    return host[:_MOST_HOST_CHARS] or "another place"


def _hosts_in(text: str) -> list[str]:
    """Return the hosts of the addresses in a style or a list of addresses."""
    return [host_of(address) for address in _WRITTEN.findall(text)]


def visible_address(url: str) -> str:
    """Return the address as text of bounded length, without characters that can't be seen."""
    bare = _IGNORED.sub("", url)
    return bare if len(bare) <= _MOST_CHARS else f"{bare[:_MOST_CHARS]}…"
