"""Signatures of kinds of files, what their names promise, and what is not a table."""

from __future__ import annotations

import re

from dm_jupyter.core.errors import DataFileError

__all__ = [
    "DATABASE_KINDS",
    "DATA_SUFFIXES",
    "DOCUMENT_SUFFIXES",
    "PROMISED",
    "READABLE",
    "binary_kind",
    "check_head",
    "document_error",
    "is_binary",
    "nul_count",
    "text_kind",
]

READABLE = (
    "Files that can be read: csv, tsv, json, jsonl, GeoJSON, parquet, feather, xlsx, xlsb, xls, "
    "ods, SQLite, DuckDB, Stata, SPSS, SAS, XML, tables in HTML, and those in a zip or tar archive."
)
DATABASE_KINDS = frozenset({"sqlite", "duckdb"})
DOCUMENT_SUFFIXES = frozenset({".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp"})
PROMISED = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".geojson": "geojson",
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".arrows": "arrow",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xlsb": "xlsb",
    ".xls": "xls",
    ".ods": "ods",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".db3": "sqlite",
    ".duckdb": "duckdb",
    ".dta": "stata",
    ".sav": "spss",
    ".zsav": "spss",
    ".sas7bdat": "sas7bdat",
    ".xpt": "xport",
    ".xml": "xml",
    ".html": "html",
    ".htm": "html",
    ".zip": "zip",
    ".tar": "tar",
}
"""The kind that a file name's ending promises."""
DATA_SUFFIXES = frozenset(PROMISED) - {".txt", ".xml", ".html", ".htm", ".zip", ".tar"}
"""Endings of data files; those left out are as often text, pages and settings."""
_MAGIC = (
    (0, b"SQLite format 3\x00", "sqlite"),
    (8, b"DUCK", "duckdb"),
    (0, b"PAR1", "parquet"),
    (0, b"ARROW1", "feather"),
    (0, b"FEA1", "feather"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole2"),
    # BIFF 2 to 4 workbooks have no container.
    (0, b"\x09\x04\x06\x00", "xls"),
    (0, b"\x09\x02\x06\x00", "xls"),
    (0, b"\x09\x00\x04\x00", "xls"),
    (0, b"<stata_dta>", "stata"),
    (0, b"$FL2", "spss"),
    (0, b"$FL3", "spss"),
    (0, bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\x00", "sas7bdat"),
    (0, b"HEADER RECORD*******LIB", "xport"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (257, b"ustar", "tar"),
)
_FOREIGN = (
    (b"%PDF", "a PDF document", "copy its tables into a spreadsheet or a csv file"),
    (b"\x89PNG", "an image", "type its numbers into a csv file"),
    (b"\xff\xd8\xff", "an image", "type its numbers into a csv file"),
    (b"GIF8", "an image", "type its numbers into a csv file"),
    (b"\x89HDF", "an HDF5 file", "convert it: pd.read_hdf(…).to_parquet(…)"),
    (b"ORC\n", "an ORC file", "convert it: pd.read_orc(…).to_parquet(…)"),
    (b"ORC\x08", "an ORC file", "convert it: pd.read_orc(…).to_parquet(…)"),
    (b"Obj\x01", "an Avro file", "convert it to parquet or csv"),
    (b"\x93NUMPY", "a NumPy array", "convert it: pd.DataFrame(np.load(…)).to_csv(…)"),
    (b"MATLAB 5.0 MAT", "a MATLAB file", "save its variables as csv in MATLAB"),
    (b"RDX", "an R data file", "save it as csv in R: write.csv"),
    (b"X\n\x00\x00\x00", "an R data file", "save it as csv in R: write.csv"),
    (b"\x00\x01\x00\x00Standard", "an Access database", "export its tables as csv in Access"),
    (b"**COMPRESSED**", "a SAS transport file of PROC CPORT", "write it with the XPORT engine"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "run: git lfs pull"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"Rar!", "a rar archive", "unpack it first"),
    (b"\x7fELF", "a program", "name a data file instead"),
    (b"MZ\x90\x00", "a program", "name a data file instead"),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05](\x95.{8}|[}\](c])", re.S)
_STATA_VERSIONS = range(102, 116)
_JSON = re.compile(rb'(\[\s*)?\{\s*"[^"]*"\s*:|\[\s*\]')
_GEOJSON = re.compile(rb'"type"\s*:\s*"FeatureCollection"')
_HTML = re.compile(
    rb"(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|table|meta)\b",
    re.I | re.S,
)
_XML = re.compile(rb"<\?xml\s|(<!--.*?-->\s*)*<[A-Za-z_][\w.:-]*[\s>/]", re.S)
_BLANK = b"\xef\xbb\xbf \t\r\n"


def check_head(name: str, head: bytes) -> None:
    """Reject a file whose first bytes or name's ending show that it is not a table.

    It looks only for fixed marks, so it is safe in any process. Other files that can't be read are
    found when they are read.

    Args:
        name: name of the file, as the person wrote it.
        head: its first bytes, 8 or more if it has as many.

    Raises:
        DataFileError: it is not a table; the message says what it is and which kinds can be read.
    """
    for magic, what, way_out in _FOREIGN:
        if head.startswith(magic):
            raise DataFileError(f"{name}: this is {what}, not a table: {way_out}. {READABLE}")
    if _PICKLE.match(head):
        raise DataFileError(
            f"{name}: this is a Python pickle, which can run any code when it is loaded. If you "
            "trust where it comes from, convert it yourself: pd.read_pickle(…).to_parquet(…)."
        )
    if _suffix(name) in DOCUMENT_SUFFIXES:
        raise document_error(name)


def document_error(name: str) -> DataFileError:
    """Return the error for a document that a word processor or slide program writes."""
    return DataFileError(
        f"{name}: this is a text or slide document, not a table: copy its tables into a workbook. "
        f"{READABLE}"
    )


def binary_kind(head: bytes) -> str | None:
    """Return the kind that the first bytes show; `None` for text and for unknown kinds.

    In addition to the kinds of a profile these are `ole2` and `zip`, containers to inspect.
    """
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset):
            return kind
    # Stata before version 13: version, byte order, file type 1 and a zero.
    if (
        len(head) > 3
        and head[0] in _STATA_VERSIONS
        and head[1] in {1, 2}
        and head[2:4] == b"\x01\0"
    ):
        return "stata"
    is_stream = head[:4] == b"\xff\xff\xff\xff" and len(head) > 8
    # An Arrow stream begins with the length of its schema, which no text encoding does.
    return "arrow" if is_stream and 0 < int.from_bytes(head[4:8], "little") < 1 << 24 else None


def text_kind(head: bytes, suffix: str) -> str:
    """Return the kind of a text: html, xml, geojson, json, jsonl, else csv.

    Args:
        head: the first bytes, unpacked.
        suffix: ending of the name, in lower case; it decides only between JSON and JSON lines, and
            whether a text without an XML declaration is XML.
    """
    start = _narrow(head).lstrip(_BLANK)
    if _HTML.match(start):
        return "html"
    if start.startswith(b"<?xml") or (suffix == ".xml" and _XML.match(start)):
        return "xml"
    looks_like_json = _JSON.match(start) is not None
    if looks_like_json and suffix not in {".jsonl", ".ndjson"} and _GEOJSON.search(start):
        return "geojson"
    if suffix in {".json", ".jsonl", ".ndjson"}:
        return PROMISED[suffix]
    return "json" if looks_like_json else "csv"


def is_binary(head: bytes) -> bool:
    """Return whether the bytes are not text: they have control characters that no text has."""
    text = _narrow(head)
    control = sum(1 for byte in text if byte < 9 or 13 < byte < 32)
    return control > len(text) / 20


def nul_count(head: bytes) -> int:
    """Return the number of zero bytes in what is not UTF-16 or UTF-32 text."""
    return _narrow(head).count(0)


def _narrow(head: bytes) -> bytes:
    """Return a text's bytes as UTF-8 if it is UTF-16 or UTF-32, with or without its mark."""
    for mark, codec in (
        (b"\xff\xfe\x00\x00", "utf-32"),
        (b"\x00\x00\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if head.startswith(mark):
            return head[: len(head) // 4 * 4].decode(codec, "replace").encode("utf-8", "replace")
    pairs = len(head) // 2
    if pairs < 4:
        return head
    zeros = head[0 : 2 * pairs : 2].count(0) / pairs, head[1 : 2 * pairs : 2].count(0) / pairs
    # The zero bytes of plain letters are all on one side.
    for side, codec in ((1, "utf-16-le"), (0, "utf-16-be")):
        if zeros[side] > 0.6 and zeros[1 - side] < 0.1:
            return head[: 2 * pairs].decode(codec, "replace").encode("utf-8", "replace")
    return head


def _suffix(name: str) -> str:
    dot = name.rfind(".")
    return name[dot:].lower() if dot > max(name.rfind("/"), 0) else ""
