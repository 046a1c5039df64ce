"""The header of a GGUF file: its plain fields, and the shapes of its tensors.

*Covered*: a file that is truncated, that claims more than it contains, or that is not a GGUF file
raises `GgufError`. *Not covered*: the tensors' numbers, which only the engine reads.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little
endian.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["GgufError", "GgufHeader", "read_header"]

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_SCALARS: Final = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?",
    10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
"""The number of each value type, and its `struct` format."""
_TEXT: Final = 8
_ARRAY: Final = 9
_MOST_DIMENSIONS: Final = 4


class GgufError(Exception):
    """The file has no readable header; the text is the reason. Never leaves this package."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The metadata of a GGUF file."""

    fields: Mapping[str, str | int | float | bool]
    """Texts and numbers by their keys, without lists such as a vocabulary."""
    shapes: Mapping[str, tuple[int, ...]]
    """Lengths of each tensor's dimensions, the contiguous one first."""


def read_header(path: Path) -> GgufHeader:
    """Return the header of a file; an unchanged file is not read again.

    Raises:
        GgufError: It is not a GGUF file, or its header is damaged.
        OSError: It can't be read.
    """
    found = path.stat()
    return _read(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=16)
def _read(path: Path, size_bytes: int, _modified_ns: int) -> GgufHeader:
    if size_bytes == 0:  # nothing to map
        raise GgufError("it is empty")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[:4] != _MAGIC:
            raise GgufError("it is no GGUF file")
        return _Reader(content).header()


class _Reader:
    """A position in a file's bytes."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._at = len(_MAGIC)

    def header(self) -> GgufHeader:
        """Read the entire header.

        Raises:
            GgufError: It is damaged.
        """
        version = self._number("<I")
        if version not in _VERSIONS:
            raise GgufError(f"it is of GGUF version {version}")
        tensors, pairs = self._number("<Q"), self._number("<Q")
        fields = {}
        for _ in range(pairs):
            key = self._text()
            value = self._value(self._number("<I"))
            if value is not None:
                fields[key] = value
        return GgufHeader(fields, dict(self._shape() for _ in range(tensors)))

    def _shape(self) -> tuple[str, tuple[int, ...]]:
        name, count = self._text(), self._number("<I")
        if count > _MOST_DIMENSIONS:
            raise GgufError(f"its tensor {name[:80]!r} has {count} dimensions")
        shape = tuple(self._number("<Q") for _ in range(count))
        self._skip(struct.calcsize("<IQ"))  # the type of its numbers, and their offset
        return name, shape

    def _value(self, kind: int) -> str | int | float | bool | None:
        """Return the next value; `None` for a list, which is skipped."""
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY:
            return self._unpacked(_layout(kind))
        kind, count = self._number("<I"), self._number("<Q")
        if kind == _TEXT:
            for _ in range(count):
                self._skip(self._number("<Q"))
        else:
            self._skip(count * struct.calcsize(_layout(kind)))
        return None

    def _number(self, layout: str) -> int:
        return int(self._unpacked(layout))

    def _text(self) -> str:
        length = self._number("<Q")
        start = self._at
        self._skip(length)
        return self._content[start : self._at].decode("utf-8", errors="replace")

    def _unpacked(self, layout: str) -> int | float | bool:
        start = self._at
        self._skip(struct.calcsize(layout))
        value: int | float | bool = struct.unpack_from(layout, self._content, start)[0]
        return value

    def _skip(self, length: int) -> None:
        self._at += length
        if self._at > len(self._content):
            raise GgufError("it is cut short")


def _layout(kind: int) -> str:
    try:
        return _SCALARS[kind]
    except KeyError:
        raise GgufError(f"it has a value of the unknown kind {kind}") from None
