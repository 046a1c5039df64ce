"""Whatever the bytes, a file gives a profile or a `DataFileError`, and the text keeps its bound."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import (
    ColumnProfile,
    FileProfile,
    TableProfile,
    profile_file,
    profile_to_json,
    render,
)
from tests.examples import examples

SUFFIXES = [
    "csv",
    "tsv",
    "txt",
    "json",
    "jsonl",
    "xlsx",
    "xls",
    "ods",
    "parquet",
    "sqlite",
    "csv.gz",
]
MAGIC = [
    b"",
    b"PK\x03\x04",
    b"PAR1",
    b"SQLite format 3\x00",
    b"\x1f\x8b\x08",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"\x09\x04\x06\x00",
    b'{"a":',
    b'[{"a": 1},',
    b"a,b\n",
]
texts = st.text(st.characters(codec="utf-8"), max_size=60)


def check(content: bytes, suffix: str, max_chars: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{suffix}"
        path.write_bytes(content)
        with contextlib.suppress(DataFileError):
            profile = profile_file(path)
            assert len(render(profile, max_chars=max_chars)) <= max_chars
            json.dumps(profile_to_json(profile), allow_nan=False)


@examples(120, list(HealthCheck))
@given(
    magic=st.sampled_from(MAGIC),
    rest=st.binary(max_size=300),
    suffix=st.sampled_from(SUFFIXES),
    max_chars=st.integers(0, 2500),
)
def test_arbitrary_bytes(magic, rest, suffix, max_chars):
    check(magic + rest, suffix, max_chars)


@examples(120, list(HealthCheck))
@given(
    rows=st.lists(st.lists(texts, max_size=5), max_size=8),
    separator=st.sampled_from(",;\t|"),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    codec=st.sampled_from(["utf-8", "utf-16", "latin-1", "cp1252"]),
)
def test_arbitrary_tables_of_text(rows, separator, newline, codec):
    content = newline.join(separator.join(row) for row in rows)
    check(content.encode(codec, "replace"), "csv", 2200)


@examples(60)
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    )
)
def test_arbitrary_json(data):
    check(json.dumps(data).encode(), "json", 2200)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
columns = st.builds(
    ColumnProfile,
    texts,
    st.sampled_from(["int64", "float64", "str"]),
    st.none() | st.integers(0, 10**9),
    st.none() | st.integers(0, 10**9),
    scalars,
    scalars,
    st.lists(scalars, max_size=6).map(tuple),
    st.none() | texts,
)
tables = st.builds(
    TableProfile,
    texts,
    st.none() | st.integers(0, 10**9),
    st.lists(columns, max_size=40).map(tuple),
    st.lists(st.lists(scalars, max_size=40).map(tuple), max_size=4).map(tuple),
    st.none() | texts,
    is_view=st.booleans(),
    warnings=st.lists(texts, max_size=3).map(tuple),
)


@examples(100, list(HealthCheck))
@given(
    kind=st.sampled_from(["csv", "xlsx", "sqlite"]),
    found=st.lists(tables, max_size=5).map(tuple),
    warnings=st.lists(texts, max_size=5).map(tuple),
    max_chars=st.integers(0, 3000),
)
def test_render_keeps_its_bound(kind, found, warnings, max_chars):
    profile = FileProfile("x", kind, 1, found, warnings, ("a note",))
    assert len(render(profile, max_chars=max_chars)) <= max_chars


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_prefix_of_a_workbook(tmp_path, suffix):
    import openpyxl

    path = tmp_path / "whole.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.save(path)
    content = path.read_bytes()
    for length in range(0, len(content), 701):
        check(content[:length], suffix, 2200)
