"""Detection of a file's format by its first bytes, whatever its name says."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.faults import needs_package, reading
from dm_jupyter.data.profile.signatures import (
    DATABASE_KINDS,
    PROMISED,
    READABLE,
    binary_kind,
    check_head,
    document_error,
    is_binary,
    nul_count,
    text_kind,
)
from dm_jupyter.data.profile.source import Source, compression_of, has_module_for

__all__ = ["ARCHIVE_KINDS", "HEAD_BYTES", "Sniffed", "sniff"]

HEAD_BYTES = 8192
ARCHIVE_KINDS = frozenset({"zip", "tar", "packed"})
"""Kinds that are unpacked before they are read: several files, or one that is not text."""
_WORKBOOK_SUFFIXES = {".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"}
_WORKBOOKS = ("xlsx", "xlsb", "xls", "ods")
_WAYS_OUT = {
    "sqlite": "an SQLite database: it does not begin with 'SQLite format 3'",
    "duckdb": "a DuckDB database: it does not have DUCK behind its first eight bytes",
    "parquet": "a parquet file: it does not begin with PAR1",
    "feather": "an Arrow file: it does not begin with ARROW1",
    "stata": "a Stata file: it begins neither with <stata_dta> nor with an older version's number",
    "spss": "an SPSS file: it begins neither with $FL2 nor with $FL3",
    "sas7bdat": "a SAS data set: it does not begin as one",
    "xport": "a SAS transport file: it does not begin with HEADER RECORD",
}
"""What a file is not, by the kind that its name promises; never read as text instead."""


@dataclass(frozen=True)
class Sniffed:
    """What to read and how the bytes are packed."""

    kind: str
    """As in `FileProfile.kind`; `packed` for one compressed file that is not text."""
    source: Source
    warning: str | None = None
    """Set if name and content disagree."""


def sniff(path: Path, name: str) -> Sniffed:
    """Return the kind of a file that exists and can be opened.

    Raises:
        DataFileError: it is empty, encrypted, or not a format with tables.
    """
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    suffix = Path(name).suffix.lower()
    if not head:
        if PROMISED.get(suffix) == "sqlite":
            return Sniffed("sqlite", Source(path, name))
        raise DataFileError(f"{name}: the file is empty (0 bytes). Save or download it again.")
    kind = _opened_kind(path, name, head)
    if kind is not None:
        return _told(kind, Source(path, name), suffix)
    packed = _packed_source(path, name, head)
    if packed.compression is not None:
        head = _packed_head(packed)
        inner = binary_kind(head)
        if inner is not None:
            # Each member of a compressed tar is inspected, as for a zip.
            return Sniffed("tar" if inner == "tar" else "packed", packed)
        named = Path(name).stem if packed.compression != "gzip" or suffix == ".gz" else name
        suffix = Path(named).suffix.lower()
    kind = _text_kind(name, head, suffix)
    return _told(kind, packed, suffix)


def _opened_kind(path: Path, name: str, head: bytes) -> str | None:
    """Return the kind of a file that is not text; `None` for text, even if compressed."""
    magic = binary_kind(head)
    if magic == "ole2":
        return _ole2_kind(path, name)
    if magic == "zip":
        return _zip_kind(path, name)
    return magic


def _ole2_kind(path: Path, name: str) -> str:
    """Return `xls`.

    Raises:
        DataFileError: the container is an encrypted workbook, or contains none.
    """
    # Names in the container's directory are UTF-16; the directory may be at its end.
    content = path.read_bytes() if path.stat().st_size < (64 << 20) else b""
    if "EncryptedPackage".encode("utf-16-le") in content or b"EncryptedPackage" in content:
        raise DataFileError(
            f"{name}: the workbook is protected with a password. Open it in the spreadsheet "
            "program, remove the password and save it again."
        )
    if "WordDocument".encode("utf-16-le") in content:
        raise document_error(name)
    return "xls"


def _zip_kind(path: Path, name: str) -> str | None:
    """Return the workbook kind of a zip archive, else `zip`; `None` if it packs one text.

    Raises:
        DataFileError: the archive is damaged or contains no file.
    """
    what = "the workbook" if Path(name).suffix.lower() in _WORKBOOK_SUFFIXES else "the zip archive"
    way_out = "It is damaged or incomplete: download or save it again."
    with reading(name, what, way_out), zipfile.ZipFile(path) as archive:
        members = archive.namelist()
        if "xl/workbook.xml" in members or "xl/workbook.bin" in members:
            return "xlsx" if "xl/workbook.xml" in members else "xlsb"
        if "mimetype" in members and b"opendocument.spreadsheet" in archive.read("mimetype")[:200]:
            return "ods"
        if "content.xml" in members and "META-INF/manifest.xml" in members:
            return "ods"
        if "word/document.xml" in members or "ppt/presentation.xml" in members:
            raise document_error(name)
        if not members:
            raise DataFileError(f"{name}: the zip archive holds no file. Download it again.")
        if len(members) == 1 and not archive.infolist()[0].flag_bits & 1:
            with archive.open(members[0]) as stream:
                head = stream.read(HEAD_BYTES)
            # pandas itself reads an archive that contains one text.
            is_text = bool(head) and binary_kind(head) is None and compression_of(head) is None
            return None if is_text else "zip"
    return "zip"


def _packed_source(path: Path, name: str, head: bytes) -> Source:
    if head.startswith(b"PK"):
        return Source(path, name, "zip" if zipfile.is_zipfile(path) else None)
    return Source(path, name, compression_of(head))


def _packed_head(packed: Source) -> bytes:
    """Return the first unpacked bytes.

    Raises:
        DataFileError: the package that unpacks it is missing, or the file is damaged or empty.
    """
    if not has_module_for(packed.compression):
        raise needs_package(packed.name, "a file compressed with zstd", "zstandard")
    way_out = "Unpack it, or download it again."
    with reading(packed.name, f"the {packed.compression} file", way_out):
        head = packed.head(HEAD_BYTES)
    if not head:
        raise DataFileError(f"{packed.name}: the compressed file is empty. Download it again.")
    return head


def _text_kind(name: str, head: bytes, suffix: str) -> str:
    """Return the kind of a file that may be text.

    Raises:
        DataFileError: it is not text; the message says what it is and how to convert it.
    """
    check_head(name, head)
    promised = PROMISED.get(suffix, "")
    if is_binary(head.replace(b"\0", b"")) or nul_count(head):
        raise _no_text(name, head, promised)
    kind = text_kind(head, suffix)
    if promised in _WAYS_OUT and kind == "csv":
        raise DataFileError(
            f"{name}: not {_WAYS_OUT[promised]}. Check that it is the right file, or rename it "
            "if it is text."
        )
    return kind


def _no_text(name: str, head: bytes, promised: str) -> DataFileError:
    if promised in _WAYS_OUT:
        return DataFileError(f"{name}: not {_WAYS_OUT[promised]}. Download it again.")
    if promised in _WORKBOOKS:
        return DataFileError(
            f"{name}: not a workbook, or a damaged one: neither a zip archive nor an old Excel "
            "file. Download or save it again."
        )
    count = nul_count(head)
    if count and not is_binary(head.replace(b"\0", b"")):
        return DataFileError(
            f"{name}: the file looks like text but contains {count:,} NUL bytes, so it is damaged "
            "or not text. Save it again where it comes from, or drop them: "
            "tr -d '\\000' < FILE > NEW"
        )
    return DataFileError(
        f"{name}: this is neither text nor a supported data file. Check that it "
        f"is the right file, or download it again. {READABLE}"
    )


def _told(kind: str, source: Source, suffix: str) -> Sniffed:
    """Return the result, with a warning if the name promises something else."""
    promised = PROMISED.get(suffix)
    if suffix == ".db" and kind in DATABASE_KINDS:
        promised = kind
    alike = {promised, kind} in ({"json", "jsonl"}, {"json", "geojson"}, {"feather", "arrow"})
    if promised in {None, kind} or alike:
        return Sniffed(kind, source)
    what = "text" if kind == "csv" else kind
    text = f"the name says {suffix}, the content is {what}: it is read as {kind}"
    return Sniffed(kind, source, text)
