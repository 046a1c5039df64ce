from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said

FRAME = pd.DataFrame({"n": range(1000), "g": pd.Categorical(["a", "b"] * 500)})


@pytest.fixture
def pa() -> Any:
    return pytest.importorskip("pyarrow", reason="skipped: no pyarrow")


@pytest.mark.parametrize("name", ["x.feather", "x.arrow", "x.csv"])
def test_feather(tmp_path, monkeypatch, pa, name):
    path = tmp_path / name
    FRAME.to_feather(path)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "feather"
    assert [column.dtype for column in profile.tables[0].columns] == ["int64", "category"]
    assert loaded(tmp_path, profile.tables[0], monkeypatch).equals(FRAME)
    assert ("the name says .csv" in said(profile)) == (name == "x.csv")


@pytest.mark.filterwarnings("ignore:Feather V1")
def test_the_first_version_of_feather(tmp_path, monkeypatch, pa):
    from pyarrow import feather

    path = tmp_path / "x.feather"
    try:
        feather.write_feather(FRAME, path, version=1)
    except (TypeError, ValueError, NotImplementedError):
        pytest.skip("skipped: this pyarrow writes no first version")
    assert assert_load_code_agrees(path, monkeypatch).tables[0].row_count == 1000


@pytest.mark.parametrize("frame", [FRAME, FRAME.head(0)])
def test_stream(tmp_path, monkeypatch, pa, frame):
    path = tmp_path / "x.arrow"
    table = pa.Table.from_pandas(frame)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert (profile.kind, profile.tables[0].row_count) == ("arrow", len(frame))


def test_a_large_file_is_counted_and_looked_at_throughout(tmp_path, monkeypatch, pa):
    path = tmp_path / "x.feather"
    pd.DataFrame({"n": range(300_000)}).to_feather(path)
    monkeypatch.setattr("dm_jupyter.data.profile.table_pass._WHOLE_CELLS", 100_000)
    table = profile_file(path).tables[0]
    assert (table.row_count, table.sampled_rows) == (300_000, None)
    column = table.columns[0]
    assert (column.minimum, column.maximum, column.unique) == (0, 299_999, 300_000)


@pytest.mark.parametrize("content", [b"ARROW1\0\0" + bytes(50), b"FEA1" + bytes(50)])
def test_damaged_arrow_is_refused(tmp_path, pa, content):
    path = tmp_path / "x.feather"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="Arrow file can't be read"):
        profile_file(path)


def features(*geometries: object, **members: object) -> dict[str, object]:
    made = [
        {"type": "Feature", "properties": {"name": f"f{number}"}, "geometry": geometry}
        for number, geometry in enumerate(geometries)
    ]
    return {"type": "FeatureCollection", **members, "features": made}


POINT = {"type": "Point", "coordinates": [7.1, 51.5, 30]}
AREA = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}


def dumped(folder: Path, data: object, name: str) -> Path:
    path = folder / name
    content = json.dumps(data, indent=2).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("name", ["x.geojson", "x.json", "x.csv", "x.geojson.gz"])
def test_points(tmp_path, monkeypatch, name):
    profile = assert_load_code_agrees(dumped(tmp_path, features(POINT, None), name), monkeypatch)
    assert profile.kind == "geojson"
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["geometry.longitude"][0] == 7.1
    assert frame["geometry.latitude"][0] == 51.5
    assert pd.isna(frame["geometry.latitude"][1])
    assert "longitude, then latitude" in said(profile)


def test_areas_and_a_projection_of_its_own(tmp_path, monkeypatch):
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}
    path = dumped(tmp_path, features(AREA, POINT, crs=crs), "x.geojson")
    profile = assert_load_code_agrees(path, monkeypatch)
    assert [column.name for column in profile.tables[0].columns] == ["name", "geometry.type"]
    assert "EPSG::25832" in said(profile)


@pytest.mark.parametrize("data", [features(), {"type": "FeatureCollection", "features": 3}])
def test_geojson_without_features_is_refused(tmp_path, data):
    with pytest.raises(DataFileError, match="no features"):
        profile_file(dumped(tmp_path, data, "x.geojson"))


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_with_and_without_a_mark_stays_readable(tmp_path, monkeypatch, codec):
    path = tmp_path / "x.csv"
    path.write_bytes("name,count\nalpha,1\nbeta,2\n".encode(codec))
    assert assert_load_code_agrees(path, monkeypatch).tables[0].row_count == 2


@pytest.mark.parametrize(
    "content", [b"a,b\n" + bytes(1) + b"1,2\n", b"\x03\x18\x01\x01" + bytes(60), bytes(range(256))]
)
@pytest.mark.parametrize("name", ["x.csv", "x.dat", "x"])
def test_an_unknown_signature_is_never_read_as_csv(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"NUL bytes|neither text nor"):
        profile_file(path)
