"""The pictures of a page, each stored once even if it was shown several times."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Picture", "Pictures"]

MAX_BYTES = 2 * 1024 * 1024
"""Size limit of one picture; the page notes that a larger one is omitted."""

_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as the page stores it."""

    name: str
    kind: str
    data: str
    """Content in base64, with nothing but its alphabet."""


class Pictures:
    """Collection of the pictures, filled while the notebooks of a page are written."""

    def __init__(self) -> None:
        self._kept: dict[str, Picture] = {}

    def __iter__(self) -> Iterator[Picture]:
        """Yield each picture once, in the order in which they were added."""
        return iter(self._kept.values())

    def add(self, kind: str, content: str) -> Picture | None:
        """Add a picture and return it as stored; `None` if it can't be shown.

        An SVG is embedded as a picture, too: a browser then runs no script in it and loads nothing.

        Args:
            kind: the media type.
            content: base64, or the text of an SVG.
        """
        if kind == "image/svg+xml":
            raw = content.encode("utf-8", "replace")
        elif kind in _KINDS:
            raw = _decoded(content)
        else:
            return None
        if not 0 < len(raw) <= MAX_BYTES:
            return None
        name = hashlib.sha256(kind.encode() + raw).hexdigest()[:16]
        if name not in self._kept:
            self._kept[name] = Picture(name, kind, base64.b64encode(raw).decode("ascii"))
        return self._kept[name]


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
