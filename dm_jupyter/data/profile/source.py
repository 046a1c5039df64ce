"""The bytes of a file, unpacked where it is compressed, read as a bounded stream."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, cast

from dm_jupyter.core.errors import DataFileError

__all__ = [
    "CHUNK_BYTES",
    "Effort",
    "Source",
    "compression_of",
    "has_module_for",
    "inferred_compression",
]

CHUNK_BYTES = 1 << 20
MAX_UNPACKED_BYTES = 4 << 30
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip", ".zst": "zstd"}


def compression_of(head: bytes) -> str | None:
    """Return pandas' name for the compression that the first bytes show; zip is not checked."""
    return next((word for magic, word in _MAGIC.items() if head.startswith(magic)), None)


def has_module_for(compression: str | None) -> bool:
    """Return whether its decompressor is installed; only zstd needs a package, as in pandas."""
    return compression != "zstd" or find_spec("zstandard") is not None


def inferred_compression(name: str) -> str | None:
    """Return the compression that pandas assumes from the name alone."""
    return _SUFFIXES.get(Path(name).suffix.lower())


@dataclass(frozen=True)
class Effort:
    """Time limit for reading a large file, and a callback for its progress."""

    seconds: float = 13.0
    """Seconds for all passes over the file together; the profile says what was not seen by then.
    The default leaves a third of the 20 s that the agent gives a file to everything else."""
    tell: Callable[[float], None] | None = None
    """Callback for the share of the file read so far, 0 to 1, at each piece of a pass."""


@dataclass(frozen=True)
class Source:
    """A file and how it is packed."""

    path: Path
    """Path of the bytes."""
    name: str
    """Its name in messages and code."""
    compression: str | None = None
    """pandas' name for it; `None` for plain bytes."""
    effort: Effort = Effort()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes.

        Yields:
            A binary stream.

        Raises:
            OSError: the file can't be opened.
            zipfile.BadZipFile: the archive is damaged.
        """
        if self.compression == "gzip":
            with gzip.open(self.path, "rb") as unzipped:
                yield cast("IO[bytes]", unzipped)
        elif self.compression == "bz2":
            with bz2.open(self.path, "rb") as stream:
                yield stream
        elif self.compression == "xz":
            with lzma.open(self.path, "rb") as stream:
                yield stream
        elif self.compression == "zstd":
            import zstandard  # noqa: PLC0415 - optional

            with zstandard.open(self.path, "rb") as stream:
                yield cast("IO[bytes]", stream)
        elif self.compression == "zip":
            with (
                zipfile.ZipFile(self.path) as archive,
                archive.open(archive.namelist()[0]) as inner,
            ):
                yield inner
        else:
            with self.path.open("rb") as stream:
                yield stream

    def head(self, size: int) -> bytes:
        """Return up to `size` unpacked bytes from the start."""
        with self.open() as stream:
            return stream.read(size)

    def unpacked_bytes(self) -> int:
        """Return the unpacked size; a compressed file is unpacked once to measure it.

        Raises:
            OSError: the file can't be read.
            DataFileError: a compressed file unpacks to more than the limit.
        """
        if self.compression is None:
            return self.path.stat().st_size
        return sum(len(block) for block in self.chunks())

    def refuse_larger(self, limit: int, what: str) -> None:
        """Reject a file above a limit, if reading takes many times its size in memory.

        Args:
            limit: most unpacked bytes.
            what: its format, for the message.

        Raises:
            DataFileError: it is larger; the message gives its size.
        """
        size = self.unpacked_bytes()
        if size > limit:
            raise DataFileError(
                f"{self.name}: {size / 1e6:,.0f} MB of {what} need many times that memory. Read a "
                "part of it, or convert it to csv or parquet first."
            )

    def chunks(self) -> Iterator[bytes]:
        """Yield the unpacked bytes.

        Yields:
            Blocks of `CHUNK_BYTES` and a last, shorter one.

        Raises:
            DataFileError: a compressed file unpacks to more than the limit.
        """
        total = 0
        with self.open() as stream:
            while block := stream.read(CHUNK_BYTES):
                total += len(block)
                if self.compression and total > MAX_UNPACKED_BYTES:
                    raise DataFileError(
                        f"{self.name}: unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB. "
                        "Unpack it and split it, or convert it to parquet."
                    )
                yield block
