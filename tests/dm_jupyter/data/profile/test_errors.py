from __future__ import annotations

import os
import random
import subprocess
import sys
from importlib import util as import_util

import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import check_head, profile_file

OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def test_missing_file(tmp_path):
    with pytest.raises(DataFileError, match=r"gone\.csv: there is no such file"):
        profile_file(tmp_path / "gone.csv")


def test_folder(tmp_path):
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(DataFileError, match=r"x\.csv: this is a folder"):
        profile_file(tmp_path / "x.csv")


def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(DataFileError, match="no ordinary file"):
        profile_file(tmp_path / "x.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_forbidden_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(DataFileError, match="no permission"):
        profile_file(path)


def test_forbidden_file_by_the_systems_answer(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DataFileError, match="chmod"):
        profile_file(path)


def test_name_that_is_no_path(tmp_path):
    with pytest.raises(DataFileError):
        profile_file(tmp_path / "a\x00b.csv")
    with pytest.raises(DataFileError):
        profile_file(tmp_path / ("x" * 5000))


@pytest.mark.parametrize("name", ["x.csv", "x.xlsx", "x.parquet", "x.json"])
def test_empty_file(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(DataFileError, match="is empty"):
        profile_file(tmp_path / name)


def test_password(tmp_path):
    path = tmp_path / "x.xlsx"
    path.write_bytes(OLE2 + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(500))
    with pytest.raises(DataFileError, match="protected with a password"):
        profile_file(path)


@pytest.mark.parametrize("name", ["x.xls", "x.xlsx", "x.csv"])
@pytest.mark.parametrize(
    "content", ["<html><body><table></table>", "\ufeff\n<!DOCTYPE html>\n", "<table><tr>"]
)
def test_web_page_without_a_table_in_disguise(tmp_path, name, content):
    pytest.importorskip("lxml", reason="skipped: no lxml")
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataFileError, match="web page"):
        profile_file(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%PDF-1.4", "PDF"),
        (b"\x89PNG\r\n", "image"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 20, "zstd"),
        (b"\x80\x04\x95" + bytes(8), "pickle.*can run any code"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (b"\x00\x01\x00\x00Standard Jet DB", "Access"),
        (b"<?xml version='1.0'?><Workbook/>", "XML"),
        (OLE2 + bytes(100), "damaged or incomplete"),
        (b"\x1f\x8b\x08\x00garbage", "gzip"),
    ],
)
def test_foreign_content(tmp_path, content, words):
    path = tmp_path / "x.xls"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=words):
        profile_file(path)


def test_noise_is_no_table(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(random.Random(3).randbytes(5000))
    with pytest.raises(DataFileError, match="neither text nor a supported data file"):
        profile_file(path)


SAV = b"$FL2@(#) SPSS DATA FILE" + bytes(100)
DUCK = bytes(8) + b"DUCK" + bytes(100)


@pytest.mark.parametrize(
    ("name", "content", "package"),
    [
        ("x.parquet", b"PAR1....", "pyarrow"),
        ("x.feather", b"ARROW1\0\0", "pyarrow"),
        ("x.xls", OLE2 + bytes(100), "xlrd"),
        ("x.sav", SAV, "pyreadstat"),
        ("x.duckdb", DUCK, "duckdb"),
        ("x.html", b"<html><body><table></table>", "lxml"),
        ("x.csv.zst", b"\x28\xb5\x2f\xfd" + bytes(20), "zstandard"),
    ],
)
def test_missing_reader_names_its_package(tmp_path, monkeypatch, name, content, package):
    (tmp_path / name).write_bytes(content)
    found = import_util.find_spec
    for where in ("entry", "source"):
        monkeypatch.setattr(
            f"dm_jupyter.data.profile.{where}.find_spec",
            lambda module: None if module == package else found(module),
        )
    with pytest.raises(DataFileError, match=f"pip install {package}"):
        profile_file(tmp_path / name)


def test_import_loads_no_pandas():
    code = (
        "import sys, dm_jupyter.data.profile as p; "
        "sys.exit(any(m in sys.modules for m in ('pandas', 'numpy', 'openpyxl', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("report.pdf", b"%PDF-1.4", "report.pdf: this is a PDF document"),
        ("sales.csv", b"%PDF-1.4", "sales.csv: this is a PDF document"),
        ("chart.png", b"\x89PNG\r\n", "chart.png: this is an image"),
        ("letter.docx", b"PK\x03\x04", "letter.docx: this is a text or slide document"),
        ("old.doc", OLE2, "old.doc: this is a text or slide document"),
    ],
)
def test_what_is_plainly_no_table_is_refused_by_its_head(name, content, words):
    with pytest.raises(DataFileError, match=words) as refused:
        check_head(name, content)
    assert "Files that can be read: csv, tsv, json" in str(refused.value)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"", b"PAR1", b"PK\x03\x04", OLE2])
def test_what_may_be_a_table_is_not_refused_by_its_head(content):
    assert check_head("sales.csv", content) is None
    assert check_head("sales.xlsx", content) is None
