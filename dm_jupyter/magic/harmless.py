"""Outputs of a restricted kernel or a model, made safe for a page that trusts its outputs.

The output of a cell that a person ran is trusted. JupyterLab runs scripts in it, in a page with all
the rights of the person. The output of a restricted kernel could escape that way.

Covered: scripts, event handlers, links that run code, and pictures fetched from elsewhere, which
could exfiltrate data. Not covered: the content of a text; it can lie to a person.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dm_jupyter.core.inert import bare_html
from dm_jupyter.core.plain_text import harmless_text

__all__ = ["fenced", "harmless_bundle", "harmless_markdown"]

_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(:\[])")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_TABLE = {"table": 'border="1" class="dataframe"'}
"""Attributes by which Jupyter styles the tables of pandas."""
_IMAGES = ("image/png", "image/jpeg", "image/gif")
_DOLLAR = "<span>\\$</span>"
"""A literal dollar sign: the backslash stops the markdown renderer, the element the formulas."""
_BREAK = "\u200b"
"""A zero-width space: invisible, and enough to make a tag or a link plain text."""


def harmless_markdown(text: str) -> str:
    """Return markdown whose HTML, links and pictures are shown as they are written.

    Amounts of money stay text; in notebooks a pair of dollar signs would start a formula.
    """
    inert = _LINK.sub(f"]{_BREAK}", _TAG_START.sub(f"<{_BREAK}", harmless_text(text)))
    if inert.count("$") < 2:
        return inert
    parts = _CODE.split(inert)
    parts[::2] = [part.replace("$", _DOLLAR) for part in parts[::2]]
    return "".join(parts)


def fenced(source: str, language: str) -> str:
    """Return code as a fenced markdown block that the code can't close."""
    longest = max((len(run) for run in re.findall(r"`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{source}\n{fence}"


def harmless_bundle(
    data: Mapping[str, Any], metadata: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts of a rich output that may be shown, and the size of its pictures.

    Tables and plain formatting of HTML are kept. Media types that are not known to be inert are
    left out, and named if nothing else is left.
    """
    shown: dict[str, Any] = {}
    sizes: dict[str, Any] = {}
    for media_type in _IMAGES:
        picture = data.get(media_type)
        if isinstance(picture, str) and _BASE64.fullmatch(picture):
            shown[media_type] = picture
            sizes |= _size(media_type, metadata.get(media_type))
    if isinstance(markup := data.get("text/html"), str) and (
        rebuilt := bare_html(markup, added=_TABLE)
    ):
        shown["text/html"] = rebuilt
    if isinstance(markdown := data.get("text/markdown"), str):
        shown["text/markdown"] = harmless_markdown(markdown)
    plain = data.get("text/plain")
    named = f"[shown as {', '.join(data)}]"
    shown["text/plain"] = harmless_text(plain if isinstance(plain, str) else named)
    return shown, sizes


def _size(media_type: str, metadata: Any) -> dict[str, Any]:
    given = metadata if isinstance(metadata, Mapping) else {}
    size = {name: given[name] for name in ("width", "height") if isinstance(given.get(name), int)}
    return {media_type: size} if size else {}
