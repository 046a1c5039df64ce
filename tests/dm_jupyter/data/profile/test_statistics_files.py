from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file
from dm_jupyter.data.profile import statistics_files as files
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said

SURVEY = pd.DataFrame(
    {
        "id": range(8),
        "sex": [1, 2] * 4,
        "income": [-9.0, 1200.5, 900.0, -9.0, 0.0, 10.0, 20.0, 30.0],
        "name": ["Zoë", "b", "c", "d", "e", "f", "g", "h"],
        "born": pd.date_range("1960-01-01", periods=8),
    }
)
CODES = {"sex": {1: "male", 2: "female"}, "income": {-9: "refused"}}
LABELS = {"income": "Household income\nper month"}


def assert_is_survey(path: Path, monkeypatch: Any) -> None:
    """Checks that a labelled file's load code gives every value right."""
    profile = assert_load_code_agrees(path, monkeypatch)
    frame = loaded(path.parent, profile.tables[0], monkeypatch)
    assert list(frame["sex"].astype(str)) == ["male", "female"] * 4
    assert list(frame["income"]) == list(SURVEY["income"])
    assert list(frame["name"]) == list(SURVEY["name"])
    assert list(frame["born"]) == list(SURVEY["born"])
    income = profile.tables[0].columns[2]
    assert (income.minimum, income.maximum) == (-9, 1200.5)
    assert "label 'Household income per month'; codes -9 = 'refused'" in str(income.note)
    assert "some codes have a label and the rest are numbers in 'income'" in said(profile)


@pytest.mark.parametrize("version", [117, 118, 119])
@pytest.mark.parametrize("name", ["x.dta", "x.csv"])
def test_stata(tmp_path, monkeypatch, version, name):
    path = tmp_path / name
    labels = {"income": LABELS["income"].replace("\n", " ")}
    SURVEY.to_stata(
        path, write_index=False, version=version, value_labels=CODES, variable_labels=labels
    )
    assert_is_survey(path, monkeypatch)
    assert ("the name says .csv" in said(profile_file(path))) == (name == "x.csv")


def test_old_stata_is_known_by_its_version_byte(tmp_path, monkeypatch):
    path = tmp_path / "x.bin"
    SURVEY[["id", "income"]].to_stata(path, write_index=False, version=114)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "stata"
    assert profile.tables[0].load_code == 'df = pd.read_stata("x.bin")'


def test_labels_that_two_codes_share_stay_codes(tmp_path, monkeypatch):
    path = tmp_path / "x.dta"
    shared = {"sex": {1: "other", 2: "other"}}
    SURVEY[["sex"]].to_stata(path, write_index=False, value_labels=shared)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["sex"].tolist() == [1, 2] * 4
    assert "codes have no labels" in said(profile)


def test_large_stata_is_read_in_pieces_and_counted(tmp_path, monkeypatch):
    path = tmp_path / "x.dta"
    pd.DataFrame({"n": range(130_000)}).to_stata(path, write_index=False)
    monkeypatch.setattr(files, "_WHOLE_BYTES", 0)
    monkeypatch.setattr("dm_jupyter.data.profile.table_pass._WHOLE_CELLS", 60_000)
    table = profile_file(path).tables[0]
    assert (table.row_count, table.sampled_rows) == (130_000, None)
    assert table.columns[0].maximum == 129_999


@pytest.mark.parametrize("content", [b"<stata_dta><header>", b"r\x02\x01\x00" + bytes(50)])
def test_damaged_stata_is_refused(tmp_path, content):
    path = tmp_path / "x.dta"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="Stata file can't be read"):
        profile_file(path)


@pytest.fixture
def pyreadstat() -> Any:
    return pytest.importorskip("pyreadstat", reason="skipped: no pyreadstat")


@pytest.mark.parametrize("is_compressed", [False, True])
def test_spss(tmp_path, monkeypatch, pyreadstat, is_compressed):
    path = tmp_path / ("x.zsav" if is_compressed else "x.sav")
    pyreadstat.write_sav(
        SURVEY,
        str(path),
        compress=is_compressed,
        variable_value_labels=CODES,
        column_labels=LABELS,
        file_label="A survey",
    )
    assert_is_survey(path, monkeypatch)
    assert "file label 'A survey'" in said(profile_file(path))


def test_spss_dates_become_times_and_declared_gaps_are_told(tmp_path, monkeypatch, pyreadstat):
    path = tmp_path / "x.sav"
    frame = SURVEY.assign(born=SURVEY["born"].dt.date)
    pyreadstat.write_sav(frame, str(path), missing_ranges={"income": [-9]})
    profile = assert_load_code_agrees(path, monkeypatch)
    born, income = profile.tables[0].columns[4], profile.tables[0].columns[2]
    assert born.dtype.startswith("datetime64")
    assert (born.minimum, income.missing) == ("1960-01-01", 2)
    assert "declares as missing are read as missing: 'income'" in said(profile)


def test_spss_in_pieces(tmp_path, monkeypatch, pyreadstat):
    path = tmp_path / "x.sav"
    pyreadstat.write_sav(SURVEY, str(path), variable_value_labels=CODES)
    monkeypatch.setattr(files, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(files, "_PIECE_ROWS", 3)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.tables[0].row_count == 8
    assert "codes are not replaced by their labels" in said(profile)


@pytest.mark.parametrize("version", [5, 8])
def test_sas_transport(tmp_path, monkeypatch, pyreadstat, version):
    path = tmp_path / "x.xpt"
    frame = SURVEY.drop(columns=["born"])
    labels = {"income": "Household income"}
    pyreadstat.write_xport(frame, str(path), file_format_version=version, column_labels=labels)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "xport"
    assert "label 'Household income'" in str(profile.tables[0].columns[2].note)
    made = loaded(tmp_path, profile.tables[0], monkeypatch)
    # pandas alone makes 5.4e-79 of each zero of version 5.
    assert made["income"].tolist() == SURVEY["income"].tolist()
    assert made["id"].tolist() == list(range(8))
    assert made["name"].tolist() == SURVEY["name"].tolist()


def test_sas_dates_of_a_transport_file_become_times(tmp_path, monkeypatch, pyreadstat):
    path = tmp_path / "x.xpt"
    stamp = pd.Timestamp("1960-01-01 06:07:08")
    frame = pd.DataFrame({"d": [0.0, 21310.0], "s": [22028.0, None], "t": [0.0, 83410.0]})
    formats = {"d": "DATE9.", "s": "DATETIME.", "t": "TIME8."}
    pyreadstat.write_xport(frame, str(path), file_format_version=5, variable_format=formats)
    profile = assert_load_code_agrees(path, monkeypatch)
    made = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert made["d"].tolist() == [pd.Timestamp("1960-01-01"), pd.Timestamp("2018-05-06")]
    assert made["s"][0] == stamp
    assert pd.isna(made["s"][1])
    assert made["t"].tolist() == [0, 83410]
    assert "seconds since midnight" in str(profile.tables[0].columns[2].note)


def test_sas_transport_in_a_code_page(tmp_path, monkeypatch, pyreadstat):
    path = tmp_path / "x.xpt"
    pyreadstat.write_xport(SURVEY[["name"]], str(path), file_format_version=5)
    path.write_bytes(path.read_bytes().replace("Zoë".encode(), "Zo\xeb ".encode("cp1252")))
    profile = assert_load_code_agrees(path, monkeypatch)
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["name"][0] == "Zoë"


def test_sas_transport_of_version_8_names_its_package(tmp_path, monkeypatch):
    path = tmp_path / "x.xpt"
    path.write_bytes(b"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!" + b" " * 200)
    monkeypatch.setattr(files, "find_spec", lambda _: None)
    with pytest.raises(DataFileError, match="version 8 needs the package pyreadstat"):
        profile_file(path)


def test_sas_data_set_is_known_and_a_damaged_one_refused(tmp_path):
    path = tmp_path / "x.sas7bdat"
    magic = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
    path.write_bytes(magic + bytes(300))
    with pytest.raises(DataFileError, match="SAS file can't be read"):
        profile_file(path)


@pytest.mark.parametrize("name", ["x.dta", "x.sav", "x.sas7bdat", "x.xpt", "x.duckdb", "x.feather"])
@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\x00\x01\x02" * 50])
def test_what_is_none_is_never_read_as_csv(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=rf"{name}: not an? "):
        profile_file(path)
