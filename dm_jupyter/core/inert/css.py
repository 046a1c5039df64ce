"""Sanitizer for style sheets and declarations, which removes everything that loads.

A sheet is parsed and written again from parts that are known to be inert, so nothing depends on
parsing it as a browser does.

*Covered*: `url()` and every other function that is not in the list (`image-set`, `image`, `src`,
`cross-fade`, `element`), `@import`, `@font-face`, `@namespace` and all other at-rules but a few,
`behavior` and `-moz-binding`, escapes (anything with a backslash is left out), comments, and
unclosed strings.
*Not covered*: styles that hide, cover or move things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["inert_declarations", "inert_sheet", "inert_value"]

_FUNCTIONS = frozenset({
    "", "blur", "brightness", "calc", "circle", "clamp", "color", "color-mix", "conic-gradient",
    "contrast", "counter", "counters", "cubic-bezier", "drop-shadow", "ellipse", "fit-content",
    "grayscale", "hsl", "hsla", "hue-rotate", "hwb", "inset", "invert", "lab", "lch", "light-dark",
    "linear-gradient", "matrix", "matrix3d", "max", "min", "minmax", "oklab", "oklch", "opacity",
    "perspective", "polygon", "radial-gradient", "repeat", "repeating-linear-gradient",
    "repeating-radial-gradient", "rgb", "rgba", "rotate", "rotate3d", "rotatex", "rotatey",
    "rotatez", "saturate", "scale", "scale3d", "scalex", "scaley", "sepia", "skew", "skewx",
    "skewy", "steps", "translate", "translate3d", "translatex", "translatey", "translatez", "var",
})  # fmt: skip
_BINDINGS = frozenset({"behavior", "-moz-binding"})
"""Properties by which old browsers ran code from an address."""
_NESTING = frozenset({"@media", "@supports", "@layer", "@keyframes", "@-webkit-keyframes"})
_MOST_NESTED = 4
_NAME = re.compile(r"-{0,2}[A-Za-z_][\w-]*")
_CALL = re.compile(r"([\w-]*)\(")
_STRING = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_OWN = re.compile(
    r"url\(\s*([\"']?)(?:\#[\w.:-]+|data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*)\1\s*\)",
    re.IGNORECASE,
)
_RISKY = re.compile(r"[\\<>{}@;\x00-\x08\x0e-\x1f\x7f\"']|//")
_RISKY_IN_STRING = re.compile(r"[\\<>\x00-\x1f\x7f]|//")
_PIECE = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[{}();]|[^{}();\"']+|[\"']")
_ADDRESS = re.compile(r"url\s*\(|//", re.IGNORECASE)
_UNREADABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\"']")


def inert_value(value: str) -> str | None:
    """Return the value of a property unchanged, or `None` if it could load something."""
    if any(_RISKY_IN_STRING.search(string) for string in _STRING.findall(value)):
        return None
    rest = _STRING.sub(" ", _OWN.sub(" ", value))
    if _RISKY.search(rest):
        return None
    return value if all(name.lower() in _FUNCTIONS for name in _CALL.findall(rest)) else None


def inert_declarations(css: str) -> str:
    """Return the declarations of a `style` attribute that load nothing."""
    kept = []
    for chunk, _ in _statements(_without_comments(css)):
        name, _, value = map(str.strip, chunk.partition(":"))
        is_inert = value and name.lower() not in _BINDINGS and inert_value(value) is not None
        if is_inert and _NAME.fullmatch(name):
            kept.append(f"{name}: {value}")
    return "; ".join(kept)


def inert_sheet(css: str) -> str:
    """Return the rules of a style sheet with the declarations that load nothing."""
    css = css.replace("<!--", " ").replace("-->", " ")
    css = css.replace("<![CDATA[", " ").replace("]]>", " ")
    return "\n".join(_rules(_without_comments(css), 0))


def _rules(css: str, depth: int) -> Iterator[str]:
    for chunk, block in _statements(css):
        prelude = chunk.strip()
        if block is None or not prelude or _ADDRESS.search(prelude):
            continue
        if "\\" in prelude or "<" in prelude or _UNREADABLE.search(_STRING.sub(" ", prelude)):
            continue
        if prelude.startswith("@"):
            if prelude.split(None, 1)[0].lower() in _NESTING and depth < _MOST_NESTED:
                yield f"{prelude} {{ {' '.join(_rules(block, depth + 1))} }}"
        elif "@" not in prelude and (kept := inert_declarations(block)):
            yield f"{prelude} {{ {kept} }}"


def _statements(css: str) -> Iterator[tuple[str, str | None]]:
    """Yield the text before each `;` or block, and the block, which is not parsed further."""
    chunk: list[str] = []
    block: list[str] = []
    braces = parens = 0
    for piece in _PIECE.findall(css):
        if braces:
            braces += (piece == "{") - (piece == "}")
            if braces:
                block.append(piece)
                continue
            yield "".join(chunk), "".join(block)
            chunk, block, parens = [], [], 0
        elif piece == "{":
            braces = 1
        elif piece == ";" and not parens:
            yield "".join(chunk), None
            chunk = []
        else:
            parens = max(0, parens + (piece == "(") - (piece == ")"))
            chunk.append(piece)
    if chunk or block:
        yield "".join(chunk), "".join(block) if braces else None


def _without_comments(css: str) -> str:
    kept, position = [], 0
    while (start := css.find("/*", position)) >= 0:
        kept.append(css[position:start])
        end = css.find("*/", start + 2)
        position = len(css) if end < 0 else end + 2
    return " ".join([*kept, css[position:]])
