"""What a file is by its first bytes, whatever its name says."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.agent.profile.faults import reading
from dm_jupyter.agent.profile.source import Source, compression_of
from dm_jupyter.core.errors import DataFileError

__all__ = ["HEAD_BYTES", "Sniffed", "check_head", "sniff"]

HEAD_BYTES = 8192
_OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_DATABASE_SUFFIXES = {".sqlite", ".sqlite3", ".db", ".db3"}
_WORKBOOK_SUFFIXES = {".xlsx", ".xlsm", ".xls", ".ods"}
_TEXT_KINDS = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_FOREIGN = (
    (b"%PDF", "a PDF document", "copy its tables into a spreadsheet or a csv file"),
    (b"\x89PNG", "an image", "type its numbers into a csv file"),
    (b"\xff\xd8\xff", "an image", "type its numbers into a csv file"),
    (b"GIF8", "an image", "type its numbers into a csv file"),
    (b"ARROW1", "an Arrow (feather) file", "convert it: pd.read_feather(…).to_parquet(…)"),
    (b"\x89HDF", "an HDF5 file", "convert it: pd.read_hdf(…).to_parquet(…)"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with: unzstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"Rar!", "a rar archive", "unpack it first"),
    (b"\x7fELF", "a program", "name a data file instead"),
)
_DOCUMENT_SUFFIXES = {".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp"}
_READABLE = "Files that can be read: csv, tsv, json, jsonl, parquet, xlsx, xls, ods, SQLite."
_HTML = re.compile(rb"(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|table|meta)\b", re.I | re.S)
_TABLE_MEMBERS = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson"}


@dataclass(frozen=True)
class Sniffed:
    """What to read and how the bytes are packed."""

    kind: str
    """csv, json, jsonl, parquet, xlsx, xls, ods or sqlite."""
    source: Source
    warning: str | None = None
    """Said when name and content disagree."""


def check_head(name: str, head: bytes) -> None:
    """Refuses what its first bytes or its name's ending show to be no table.

    It looks for fixed marks alone, so it is safe in any process; what else can't be read is found
    when the file is.

    Args:
        name: of the file, as the person wrote it.
        head: its first bytes, 8 or more where it has so many.

    Raises:
        DataFileError: with what it is, and which kinds can be read.
    """
    for magic, what, way_out in _FOREIGN:
        if head.startswith(magic):
            raise DataFileError(f"{name}: this is {what}, not a table: {way_out}. {_READABLE}")
    if Path(name).suffix.lower() in _DOCUMENT_SUFFIXES:
        raise _document(name)


def _document(name: str) -> DataFileError:
    return DataFileError(
        f"{name}: this is a text or slide document, not a table: copy its tables into a workbook. "
        f"{_READABLE}"
    )


def sniff(path: Path, name: str) -> Sniffed:
    """Returns the kind of a file that exists and can be opened.

    Raises:
        DataFileError: it is empty, encrypted, or nothing that holds a table.
    """
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    suffix = Path(name).suffix.lower()
    if not head:
        if suffix in _DATABASE_SUFFIXES:
            return Sniffed("sqlite", Source(path, name))
        raise DataFileError(f"{name}: the file is empty (0 bytes). Save or download it again.")
    kind = _binary_kind(path, name, head)
    if kind is not None:
        return _told(kind, Source(path, name), suffix)
    packed = _packed_source(path, name, head)
    if packed.compression is not None:
        with reading(name, f"the {packed.compression} file", "Unpack it, or download it again."):
            head = packed.head(HEAD_BYTES)
        if not head:
            raise DataFileError(f"{name}: the compressed file holds nothing.")
        if _binary_magic(head) is not None:
            raise DataFileError(f"{name}: unpack it first; inside is no text but a data file.")
        inner = Path(name).stem if packed.compression != "gzip" or suffix == ".gz" else name
        suffix = Path(inner).suffix.lower()
    _refuse_foreign(name, head, suffix)
    return _told(_text_kind(head, suffix), packed, suffix)


def _binary_kind(path: Path, name: str, head: bytes) -> str | None:
    magic = _binary_magic(head)
    if magic == "ole2":
        return _ole2_kind(path, name)
    if magic == "zip":
        return _zip_kind(path, name)
    return magic


def _binary_magic(head: bytes) -> str | None:
    if head.startswith(b"SQLite format 3\x00"):
        return "sqlite"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(_OLE2):
        return "ole2"
    # BIFF 2 to 4 workbooks have no container.
    if head[:4] in {b"\x09\x04\x06\x00", b"\x09\x02\x06\x00", b"\x09\x00\x04\x00"}:
        return "xls"
    return "zip" if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) else None


def _ole2_kind(path: Path, name: str) -> str:
    """Returns `xls`.

    Raises:
        DataFileError: the container is an encrypted workbook, or holds none.
    """
    # Names in the container's directory are UTF-16; the directory may stand at its end.
    content = path.read_bytes() if path.stat().st_size < (64 << 20) else b""
    if "EncryptedPackage".encode("utf-16-le") in content or b"EncryptedPackage" in content:
        raise DataFileError(
            f"{name}: the workbook is protected with a password. Open it in the spreadsheet "
            "program, remove the password and save it again."
        )
    if "WordDocument".encode("utf-16-le") in content:
        raise _document(name)
    return "xls"


def _zip_kind(path: Path, name: str) -> str | None:
    """Returns the workbook kind of a zip archive; None for one that packs a text file.

    Raises:
        DataFileError: the archive is damaged, or holds no table or several.
    """
    what = "the workbook" if Path(name).suffix.lower() in _WORKBOOK_SUFFIXES else "the zip archive"
    way_out = "It is damaged or incomplete: download or save it again."
    with reading(name, what, way_out), zipfile.ZipFile(path) as archive:
        members = archive.namelist()
        if "xl/workbook.xml" in members or "xl/workbook.bin" in members:
            return "xlsx"
        if "mimetype" in members and b"opendocument.spreadsheet" in archive.read("mimetype")[:200]:
            return "ods"
        if "content.xml" in members and "META-INF/manifest.xml" in members:
            return "ods"
        if "word/document.xml" in members or "ppt/presentation.xml" in members:
            raise _document(name)
        if len(members) == 1 and Path(members[0]).suffix.lower() in _TABLE_MEMBERS:
            return None
    raise DataFileError(
        f"{name}: a zip archive of {len(members)} files, not one table "
        f"({', '.join(map(repr, members[:5]))} …). Unpack it and name one of its files. "
        f"{_READABLE}"
    )


def _packed_source(path: Path, name: str, head: bytes) -> Source:
    if head.startswith(b"PK"):
        return Source(path, name, "zip" if zipfile.is_zipfile(path) else None)
    return Source(path, name, compression_of(head))


def _refuse_foreign(name: str, head: bytes, suffix: str) -> None:
    """Refuses what is no table.

    Raises:
        DataFileError: with what it is and how to convert it.
    """
    check_head(name, head)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if _HTML.match(start):
        raise DataFileError(
            f"{name}: this is a web page (HTML), not a {suffix or 'data'} file. Open it in a "
            "spreadsheet program and save it as .xlsx or .csv, or read its tables with "
            "pd.read_html (needs lxml)."
        )
    if start.startswith(b"<?xml"):
        raise DataFileError(
            f"{name}: this is XML, not a {suffix or 'data'} file. Open it in a spreadsheet program "
            "and save it as .xlsx or .csv, or try pd.read_xml."
        )
    if suffix in _DATABASE_SUFFIXES:
        raise DataFileError(
            f"{name}: not an SQLite database: it does not begin with 'SQLite format 3'. "
            "Check that it is the right file, or rename it if it is text."
        )
    if suffix == ".parquet":
        raise DataFileError(
            f"{name}: not a parquet file: it does not begin with PAR1. Download it again."
        )
    if suffix in _WORKBOOK_SUFFIXES and _is_binary(head):
        raise DataFileError(
            f"{name}: not a workbook, or a damaged one: neither a zip archive nor an old Excel "
            "file. Download or save it again."
        )
    if _is_binary(head.replace(b"\0", b"")):  # zeros alone are UTF-16 without its mark, or damage
        raise DataFileError(
            f"{name}: this is no text, and no kind of data file that can be read. Check that it "
            f"is the right file, or download it again. {_READABLE}"
        )


def _is_binary(head: bytes) -> bool:
    """Says whether the bytes are no text: control characters, and not the zeros of UTF-16."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    control = sum(1 for byte in head if byte < 9 or 13 < byte < 32)
    return control > len(head) / 20


def _text_kind(head: bytes, suffix: str) -> str:
    if suffix in _TEXT_KINDS:
        return _TEXT_KINDS[suffix]
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    looks_like_json = re.match(rb'(\[\s*)?\{\s*"[^"]*"\s*:|\[\s*\]', start) is not None
    return "json" if looks_like_json else "csv"


def _told(kind: str, source: Source, suffix: str) -> Sniffed:
    """Returns the result, with a warning where the name promises something else."""
    named = {".xlsm": "xlsx", ".ndjson": "jsonl", ".sqlite3": "sqlite", ".db": "sqlite"}
    promised = named.get(suffix, suffix[1:])
    known = {"xlsx", "xls", "ods", "parquet", "json", "jsonl", "sqlite", "csv", "tsv"}
    is_same = promised == kind or (kind == "csv" and promised in {"tsv", "txt"})
    if promised not in known or is_same:
        return Sniffed(kind, source)
    what = "text" if kind == "csv" else kind
    read_as = "csv" if kind == "csv" else kind
    text = f"the name says {suffix}, the content is {what}: it is read as {read_as}"
    return Sniffed(kind, source, text)
