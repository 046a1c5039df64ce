"""Files inside archives: each described with code that reads it, and none trusted."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import archive as archives
from dm_jupyter.data.profile import profile_file, render
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said

FRAME = pd.DataFrame({"n": [1, 2, 3], "city": ["Köln", "Bonn", "Ulm"]})
CSV = FRAME.to_csv(index=False).encode()
GEOJSON = {
    "type": "FeatureCollection",
    "features": [{"properties": {"n": 1}, "geometry": {"type": "Point", "coordinates": [7, 51.5]}}],
}


def zipped(folder: Path, members: dict[str, bytes], name: str = "x.zip") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return path


def as_stata(**labels: Any) -> bytes:
    buffer = io.BytesIO()
    FRAME.to_stata(buffer, write_index=False, version=118, **labels)
    return buffer.getvalue()


def as_workbook() -> bytes:
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer) as book:
        FRAME.to_excel(book, sheet_name="one", index=False)
        FRAME.to_excel(book, sheet_name="two", index=False)
    return buffer.getvalue()


def test_each_member_has_its_load_code(tmp_path, monkeypatch):
    path = zipped(
        tmp_path,
        {
            "a/sales.csv": FRAME.to_csv(index=False, sep=";").encode("utf-16"),
            'it\'s "b".csv': CSV,
            "packed.csv.gz": gzip.compress(CSV),
            "records.json": json.dumps([{"n": n, "in": {"x": 1}} for n in range(3)]).encode(),
            "lines.jsonl": b'{"n": 1}\n{"n": 2}\n{"n": 3}\n',
            "points.geojson": json.dumps(GEOJSON).encode(),
            "survey.dta": as_stata(value_labels={"n": {1: "one"}}),
            "book.xlsx": as_workbook(),
            "readme.txt": b"hello",
            "__MACOSX/._sales.csv": b"\x00\x05\x16\x07",
            ".DS_Store": bytes(8),
        },
    )
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "zip"
    assert [table.name for table in profile.tables] == [
        "a/sales.csv",
        'it\'s "b".csv',
        "packed.csv.gz",
        "records.json",
        "lines.jsonl",
        "points.geojson",
        "survey.dta",
        "book.xlsx: one",
        "book.xlsx: two",
    ]
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["city"][0] == "Köln"
    assert loaded(tmp_path, profile.tables[6], monkeypatch)["n"].tolist() == [1, 2, 3]
    assert "also inside: 'readme.txt'" in said(profile)
    assert "File 'x.zip' (zip" in render(profile)
    assert sorted(tmp_path.iterdir()) == [path]


def test_one_text_in_a_zip_is_read_by_pandas_itself(tmp_path, monkeypatch):
    profile = assert_load_code_agrees(zipped(tmp_path, {"a.csv": CSV}), monkeypatch)
    assert profile.kind == "csv"
    assert profile.tables[0].load_code == 'df = pd.read_csv("x.zip")'


def test_one_workbook_in_a_zip(tmp_path, monkeypatch):
    profile = assert_load_code_agrees(zipped(tmp_path, {"b.xlsx": as_workbook()}), monkeypatch)
    assert [table.row_count for table in profile.tables] == [3, 3]


@pytest.mark.parametrize(
    ("ending", "module"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma), ("", gzip)]
)
def test_one_file_that_is_compressed(tmp_path, monkeypatch, ending, module):
    path = tmp_path / f"x.dta{ending}"
    path.write_bytes(module.compress(as_stata()))
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "stata"
    assert "compressed with" in said(profile)
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["city"].tolist() == [
        "Köln",
        "Bonn",
        "Ulm",
    ]


@pytest.mark.parametrize("content", [CSV, as_stata()])
def test_zstd(tmp_path, monkeypatch, content):
    zstandard = pytest.importorskip("zstandard", reason="skipped: no zstandard")
    path = tmp_path / ("x.csv.zst" if content is CSV else "x.dta.zst")
    path.write_bytes(zstandard.compress(content))
    assert assert_load_code_agrees(path, monkeypatch).tables[0].row_count == 3


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_tar(tmp_path, monkeypatch, mode):
    path = tmp_path / "x.tar.any"
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in (("d/a.csv", CSV), ("b.dta", as_stata())):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
        link = tarfile.TarInfo("passwords.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert [table.name for table in profile.tables] == ["d/a.csv", "b.dta"]
    assert "root:" not in str(profile)


@pytest.mark.parametrize(
    "name", ["../../evil.csv", "/tmp/evil.csv", "a\\..\\evil.csv", "C:evil.csv"]
)
def test_a_member_named_like_a_path_is_read_and_never_written(tmp_path, monkeypatch, name):
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    path = zipped(folder, {name: CSV, "b.csv": CSV})
    profile = assert_load_code_agrees(path, monkeypatch)
    assert len(profile.tables) == 2
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == ["x.zip"]


def test_members_that_can_not_be_read_are_named_with_the_reason(tmp_path, monkeypatch):
    database = tmp_path / "x.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE t (a)")
    inner = zipped(tmp_path, {"a.csv": CSV, "b.csv": CSV}, "inner.zip").read_bytes()
    path = zipped(
        tmp_path,
        {
            "good.csv": CSV,
            "empty.csv": b"",
            "really.csv": inner,
            "some.db": database.read_bytes(),
            "page.csv": b"%PDF-1.4",
            "bad.dta": b"<stata_dta>nothing",
        },
    )
    profile = profile_file(path)
    assert [table.name for table in profile.tables] == ["good.csv"]
    text = said(profile)
    assert "'empty.csv' inside is not described: the file is empty" in text
    assert "'really.csv' inside is not described: an archive inside an archive" in text
    assert "'some.db' inside is not described: it is a database" in text
    assert "'page.csv' inside is not described: this is a PDF document" in text
    assert "'bad.dta' inside is not described: the Stata file can't be read" in text


def test_what_unpacks_to_more_than_the_limit_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_MOST_BYTES", 1000)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small.csv", CSV)
        archive.writestr("big.csv", b"a,b\n" + b"1,2\n" * 100_000)
    profile = profile_file(path)
    assert [table.name for table in profile.tables] == ["small.csv"]
    assert "'big.csv' inside is not described: it unpacks to 0 MB or more" in said(profile)


def test_an_archive_that_lies_about_a_size_is_refused_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_MOST_BYTES", 1000)
    path = tmp_path / "x.dta.gz"
    path.write_bytes(gzip.compress(as_stata() + bytes(100_000)))
    with pytest.raises(DataFileError, match="only 0 MiB are looked at"):
        profile_file(path)


def test_many_members_are_not_all_described(tmp_path):
    path = zipped(tmp_path, {f"m{number}.csv": CSV for number in range(30)})
    profile = profile_file(path)
    assert len(profile.tables) == 20
    assert "10 more files inside are not described" in said(profile)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "holds no file"),
        ({"a.pdf": b"%PDF", "b.exe": b"MZ\x90\x00"}, "without a readable table"),
    ],
)
def test_archives_without_a_table(tmp_path, members, words):
    with pytest.raises(DataFileError, match=words):
        profile_file(zipped(tmp_path, members))


def test_a_password_is_named(tmp_path):
    path = zipped(tmp_path, {"a.csv": CSV, "b.csv": CSV})
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := content.find(mark, at + 1)) >= 0:
            content[at + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="protected with a password"):
        profile_file(path)
