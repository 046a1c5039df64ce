"""Profile of the repeated element of an XML file, one row each.

Covered: entities, which can unfold to gigabytes or name a local file, and which a data file does
not need. A file that declares one is rejected before any parser expands it. Not covered: the memory
that the tree takes, which the worker that runs this limits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from xml.parsers import expat

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.faults import reading
from dm_jupyter.data.profile.model import FileProfile
from dm_jupyter.data.profile.read_call import ReadCall
from dm_jupyter.data.profile.source import Source, inferred_compression
from dm_jupyter.data.profile.table_pass import LookedAt, table_of

__all__ = ["profile_xml"]

_MAX_BYTES = 60 << 20
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_WAY_OUT = "Check that the file is whole, or open it in a spreadsheet program."


@dataclass
class _Scan:
    """Findings of one pass over an XML file, without building a tree."""

    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """How often each path of elements occurs."""
    filled: set[tuple[str, ...]] = field(default_factory=set)
    """Paths whose elements have children or attributes, as a row has."""
    codes: set[str] = field(default_factory=set)
    """Names whose values have leading zeros."""
    path: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    root: str = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Record the start of an element."""
        local = name.rpartition("}")[2]
        if self.path:
            self.filled.add(tuple(self.path))
        else:
            self.root = name
        self.path.append(local)
        self.counts[tuple(self.path)] += 1
        if attributes:
            self.filled.add(tuple(self.path))
        for key, value in attributes.items():
            self.see(key.rpartition("}")[2], value)
        self.text = []

    def end(self, name: str) -> None:  # noqa: ARG002 - expat's signature
        """Record the end of an element."""
        self.see(self.path[-1], "".join(self.text))
        self.path.pop()
        self.text = []

    def characters(self, text: str) -> None:
        """Record text within an element."""
        if len(self.text) < 50:
            self.text.append(text)

    def see(self, name: str, value: str) -> None:
        """Check a value for digits that are a name."""
        digits = value.strip()
        if digits.isdecimal() and ((len(digits) > 1 and digits[0] == "0") or len(digits) > 15):
            self.codes.add(name)


def profile_xml(source: Source) -> FileProfile:
    """Return the profile of the element that an XML file repeats, one row each.

    Raises:
        DataFileError: it declares entities, repeats nothing, is damaged, or too large.
        OSError: the file can't be read.
    """
    source.refuse_larger(_MAX_BYTES, "XML")
    with reading(source.name, "the XML", _WAY_OUT):
        scan = _scanned(source)
        row = _row_of(scan)
        if "office:spreadsheet" in scan.root or row is None:
            raise DataFileError(
                f"{source.name}: this is XML without rows that repeat below one element, so there "
                "is no table to read. Open it in a spreadsheet program and save it as .xlsx or "
                ".csv, or pick the part that you need with pd.read_xml."
            )
        call = _xml_call(source, scan, row)
        frame = call.run(source.path)
        table = table_of(source.name, LookedAt(frame), call.source(source.name))
    inner = _nested(scan, row)
    warnings = (*inner, *table.warnings)
    note = f"one row is one <{row[-1]}> element ({scan.counts[row]:,} of them)"
    size = source.path.stat().st_size
    table = replace(table, warnings=())
    return FileProfile(source.name, "xml", size, (table,), warnings, (note,))


def _scanned(source: Source) -> _Scan:
    """Return the elements of the file.

    Raises:
        DataFileError: it declares entities.
        xml.parsers.expat.ExpatError: it is not XML.
    """

    def refused(*_: object) -> None:
        # Raised at the declaration, so before anything is expanded.
        raise DataFileError(
            f"{source.name}: this XML declares entities, which can name other files or unfold "
            "without end; it is not read. If you trust it, save it again without its <!DOCTYPE>."
        )

    scan = _Scan()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler = scan.start
    parser.EndElementHandler = scan.end
    parser.CharacterDataHandler = scan.characters
    parser.EntityDeclHandler = refused
    for block in source.chunks():
        parser.Parse(block)
    parser.Parse(b"", True)
    return scan


def _row_of(scan: _Scan) -> tuple[str, ...] | None:
    """Return the path of the element that is a row: the outermost that repeats and has values.

    Of several at one depth, it is the most frequent.
    """
    rows = [path for path in scan.filled if len(path) > 1 and scan.counts[path] > 1]
    if rows:
        # An element of which most are inside one other row is a part of that row.
        depth = min(len(path) for path in rows)
        return max((p for p in rows if len(p) == depth), key=lambda path: scan.counts[path])
    alone = [path for path in scan.filled if len(path) == 2]
    return alone[0] if len(alone) == 1 else None


def _xml_call(source: Source, scan: _Scan, row: Sequence[str]) -> ReadCall:
    # The parser of the standard library opens nothing that a file names.
    wild = "{*}" if "}" in scan.root or not all(map(_PLAIN_NAME.fullmatch, row)) else ""
    steps = "/".join(f"{wild}{name}" for name in row[1:])
    arguments: dict[str, Any] = {"xpath": f"./{steps}", "parser": "etree"}
    if source.compression != inferred_compression(source.name):
        arguments["compression"] = source.compression
    call = ReadCall("read_xml", tuple(arguments.items()))
    if not scan.codes:
        return call
    columns = set(map(str, call.run(source.path, dtype=str).columns))
    coded = dict.fromkeys(sorted(scan.codes & columns), "str")
    return call.with_arguments(dtype=coded) if coded else call


def _nested(scan: _Scan, row: tuple[str, ...]) -> tuple[str, ...]:
    """Return a warning for elements inside a row that have elements of their own, or repeat."""
    below = len(row) + 1
    inside = [path for path in scan.counts if len(path) == below and path[:-1] == row]
    deep = [
        path[-1]
        for path in inside
        if any(p[:below] == path and len(p) > below for p in scan.counts)
    ]
    often = [path[-1] for path in inside if scan.counts[path] > scan.counts[row]]
    warnings = []
    if deep:
        shown = ", ".join(f"<{name}>" for name in deep[:5])
        warnings.append(
            f"what is inside {shown} of a row is not in the table: pd.read_xml it alone"
        )
    if often:
        shown = ", ".join(f"<{name}>" for name in often[:5])
        warnings.append(f"rows have {shown} several times; the table has only the last of each")
    return tuple(warnings)
