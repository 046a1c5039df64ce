"""Web pages and XML: their tables, and what they must not make the reader do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


def written(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def table(*rows: str, cell: str = "td") -> str:
    """Returns a table; the cells of a row are parted by a bar, those of the first are headers."""
    made = ""
    for number, row in enumerate(rows):
        tag = "th" if not number and cell == "th" else "td"
        made += "<tr>" + "".join(f"<{tag}>{one}</{tag}>" for one in row.split("|")) + "</tr>"
    return f"<table>{made}</table>"


@pytest.fixture
def lxml() -> None:
    pytest.importorskip("lxml", reason="skipped: no lxml")


PAGES = [
    # German marks and codes; a second, narrower table would break converters by position.
    (["Ort|Wert|PLZ", "Köln|1.234,50|01067", "Bonn|999,00|50667"], [1234.5, 999.0]),
    (["Ort|Wert|PLZ", "Köln|1,234.50|01067", "Bonn|999.00|50667"], [1234.5, 999.0]),
    (["Ort|Wert|PLZ", "Köln|1,234,567|01067", "Bonn|2|50667"], [1234567, 2]),
    (["Ort|Wert|PLZ", "Köln|12,50|01067", "Bonn|7,25|50667"], [12.5, 7.25]),
]


@pytest.mark.parametrize(("rows", "values"), PAGES)
@pytest.mark.parametrize("name", ["x.html", "x.xls"])
def test_tables_of_a_page(tmp_path, monkeypatch, lxml, rows, values, name):
    page = f"<html><body>{table(*rows, cell='th')}<p>{table('a|b', '1|2')}</p></body></html>"
    path = written(tmp_path, page, name)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert (profile.kind, len(profile.tables)) == ("html", 2)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["Wert"].tolist() == values
    assert frame["PLZ"].tolist() == ["01067", "50667"]
    assert frame["Ort"][0] == "Köln"  # without a declaration, a browser's guess is latin-1
    assert ("the name says .xls" in said(profile)) == (name == "x.xls")


def test_marks_that_do_not_agree_stay_text(tmp_path, monkeypatch, lxml):
    page = table("a|b", "1.234,50|x", "1,234.50|y", cell="th")
    profile = assert_load_code_agrees(written(tmp_path, page, "x.html"), monkeypatch)
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["a"][0] == "1.234,50"


def test_a_header_of_cells_and_one_of_two_rows(tmp_path, monkeypatch, lxml):
    two = (
        "<table><thead><tr><th rowspan=2>Year</th><th colspan=2>Sales</th></tr>"
        "<tr><th>North</th><th>South</th></tr></thead><tr><td>2020</td><td>1</td><td>2</td></tr>"
        "<tr><td>2021</td><td>3</td><td>4</td></tr></table>"
    )
    page = f"<!DOCTYPE html>{table('name|n', 'a|1', 'b|2')}{two}"
    profile = assert_load_code_agrees(written(tmp_path, page, "x.html"), monkeypatch)
    first, second = profile.tables
    assert [column.name for column in first.columns] == ["name", "n"]
    assert [column.name for column in second.columns] == ["Year", "Sales | North", "Sales | South"]


def test_a_compressed_page(tmp_path, monkeypatch, lxml):
    path = tmp_path / "x.html.gz"
    path.write_bytes(gzip.compress(f"<html>{table('a|b', '1|2', cell='th')}".encode()))
    assert assert_load_code_agrees(path, monkeypatch).tables[0].row_count == 1


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<html><body><p>no table</p></body></html>", "without a table"),
        (f"<html><table><tr><td colspan='{10**9}'>x</td></tr></table>", "spans more"),
        ('<html><script src="https://x.invalid/a.js"></script><table></table>', "without a table"),
    ],
)
def test_pages_without_a_table_that_can_be_read(tmp_path, lxml, page, words):
    with pytest.raises(DataFileError, match=words):
        profile_file(written(tmp_path, page, "x.html"))


def test_a_page_loads_nothing(tmp_path, monkeypatch, lxml):
    secret = written(tmp_path, "TOP SECRET", "secret.txt")
    page = (
        f'<!DOCTYPE html SYSTEM "file://{secret}"><html><iframe src="file://{secret}"></iframe>'
        f'<object data="file://{secret}"></object>{table("a|b", "1|2", cell="th")}</html>'
    )
    profile = assert_load_code_agrees(written(tmp_path, page, "x.html"), monkeypatch)
    assert "SECRET" not in str(profile)


ROWS = "".join(f"<row id='{n}'><zip>0{n}067</zip><v>{n / 2}</v></row>" for n in range(3))


@pytest.mark.parametrize(
    "text",
    [
        f"<?xml version='1.0'?><data>{ROWS}</data>",
        f"<?xml version='1.0'?><data><head><n>1</n></head><rows>{ROWS}</rows></data>",
        f"<?xml version='1.0'?><data xmlns='urn:x'><rows>{ROWS}</rows></data>",
        f"<data>{ROWS}</data>",
    ],
)
def test_xml(tmp_path, monkeypatch, text):
    path = written(tmp_path, text, "x.xml")
    profile = assert_load_code_agrees(path, monkeypatch)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert profile.kind == "xml"
    assert frame["zip"].tolist() == ["00067", "01067", "02067"]
    assert frame["v"].tolist() == [0, 0.5, 1]
    assert "one row is one <row> element (3 of them)" in said(profile)


def test_xml_says_what_is_not_in_its_table(tmp_path, monkeypatch):
    row = "<r><a>1</a><b><c>2</c></b><d>3</d><d>4</d></r>"
    path = written(tmp_path, f"<?xml version='1.0'?><t>{row * 2}</t>", "x.csv")
    text = said(assert_load_code_agrees(path, monkeypatch))
    assert "inside <b> of a row is not in the table" in text
    assert "rows have <d> several times" in text
    assert "the name says .csv" in text


def test_compressed_xml(tmp_path, monkeypatch):
    path = tmp_path / "x.xml.gz"
    path.write_bytes(gzip.compress(f"<?xml version='1.0'?><data>{ROWS}</data>".encode()))
    assert assert_load_code_agrees(path, monkeypatch).tables[0].row_count == 3


BOMB = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    ("doctype", "words"),
    [
        (f'<!DOCTYPE d [<!ENTITY l0 "lol">{BOMB}]>', "declares entities"),
        ('<!DOCTYPE d [<!ENTITY s SYSTEM "file:///etc/passwd">]>', "declares entities"),
        ('<!DOCTYPE d [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>', "declares entities"),
    ],
)
def test_entities_are_refused(tmp_path, doctype, words):
    text = f"<?xml version='1.0'?>{doctype}<d><r><a>&l9;</a></r><r><a>&s;</a></r></d>"
    with pytest.raises(DataFileError, match=words):
        profile_file(written(tmp_path, text, "x.xml"))


def test_a_doctype_elsewhere_is_not_followed(tmp_path, monkeypatch):
    secret = written(tmp_path, "<!ENTITY s 'SECRET'>", "secret.dtd")
    text = f'<?xml version="1.0"?><!DOCTYPE d SYSTEM "file://{secret}"><d>{ROWS}</d>'
    profile = assert_load_code_agrees(written(tmp_path, text, "x.xml"), monkeypatch)
    assert profile.tables[0].row_count == 3


@pytest.mark.parametrize(
    "text",
    ["<?xml version='1.0'?><a><b>1</b></a>", "<?xml version='1.0'?><a>", "<?xml version='1.0'?>"],
)
def test_xml_without_rows_is_refused(tmp_path, text):
    with pytest.raises(DataFileError, match=r"x\.xml: .*XML"):
        profile_file(written(tmp_path, text, "x.xml"))


def test_text_that_begins_with_a_bracket_is_text(tmp_path, monkeypatch):
    path = written(tmp_path, "<x>,b\n1,2\n", "x.csv")
    profile = assert_load_code_agrees(path, monkeypatch)
    assert (profile.kind, profile.tables[0].row_count) == ("csv", 1)
    assert isinstance(loaded(tmp_path, profile.tables[0], monkeypatch), pd.DataFrame)
