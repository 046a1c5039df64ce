"""The pictures of a page, each kept once however often it was shown."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Picture", "Pictures"]

MAX_BYTES = 2 * 1024 * 1024
"""Of one picture; a larger one is left out, and the page says so."""

_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as the page keeps it."""

    name: str
    kind: str
    data: str
    """In base64, with nothing but its alphabet."""


class Pictures:
    """Collects pictures while the notebooks of a page are written."""

    def __init__(self) -> None:
        self._kept: dict[str, Picture] = {}

    def __iter__(self) -> Iterator[Picture]:
        """Yields each picture once, in the order in which they came."""
        return iter(self._kept.values())

    def add(self, kind: str, content: str) -> Picture | None:
        """Returns the picture as it is kept; `None` where it can't be shown.

        An SVG goes in as a picture as well: a browser runs no script in one and loads nothing.

        Args:
            kind: its media type.
            content: base64, or for an SVG its text.
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
