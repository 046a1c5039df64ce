"""GeoJSON: one row a feature, its properties as columns, and what its shape is."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.encoding import detect_encoding
from dm_jupyter.data.profile.faults import reading
from dm_jupyter.data.profile.literals import quoted
from dm_jupyter.data.profile.model import FileProfile
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.table_pass import LookedAt, table_of

__all__ = ["profile_geojson"]

_MAX_BYTES = 100 << 20
_WAY_OUT = "Check that the file is whole, and that it is GeoJSON."
_OPENERS = {None: "open", "gzip": "gzip.open", "bz2": "bz2.open", "xz": "lzma.open"}


def profile_geojson(source: Source) -> FileProfile:
    """Returns the profile of a collection of features.

    Raises:
        DataFileError: it is no JSON, has no features, or is too large to be parsed whole.
        OSError: the file can't be read.
    """
    if source.compression not in _OPENERS:
        raise DataFileError(f"{source.name}: unpack it first: GeoJSON in a {source.compression}.")
    source.refuse_larger(_MAX_BYTES, "GeoJSON")
    with reading(source.name, "the GeoJSON", _WAY_OUT):
        codec = detect_encoding(source).codec
        with source.open() as stream:
            data = json.loads(stream.read().decode(codec))
        features = _features(data, source.name)
        is_points = all(_type(one) in {"Point", None} for one in features)
        frame = _frame(features, is_points=is_points)
        code = _code(source, codec, is_points=is_points)
        table = table_of(source.name, LookedAt(frame), code)
    warnings = (*_projection(data), *table.warnings)
    note = (
        "one row is one feature; coordinates are longitude, then latitude; "
        "data['features'][i]['geometry'] has the shapes"
    )
    size = source.path.stat().st_size
    table = replace(table, warnings=())
    return FileProfile(source.name, "geojson", size, (table,), warnings, (note,))


def _features(data: object, name: str) -> list[dict[str, object]]:
    """Returns the features.

    Raises:
        DataFileError: there are none.
    """
    found = data.get("features") if isinstance(data, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise DataFileError(f"{name}: the GeoJSON holds no features.")
    return found


def _geometry(feature: dict[str, object]) -> dict[str, object]:
    geometry = feature.get("geometry")
    return geometry if isinstance(geometry, dict) else {}


def _type(feature: dict[str, object]) -> object:
    return _geometry(feature).get("type")


def _frame(features: list[dict[str, object]], *, is_points: bool) -> pd.DataFrame:
    """Returns what the code makes."""
    frame = pd.json_normalize([one.get("properties") or {} for one in features])  # type: ignore[misc]
    shapes = [one.get("geometry") or {} for one in features]
    frame["geometry.type"] = [shape.get("type") for shape in shapes]  # type: ignore[attr-defined]
    if is_points:
        points = [shape.get("coordinates") or [None, None] for shape in shapes]  # type: ignore[attr-defined]
        frame["geometry.longitude"] = [point[0] for point in points]
        frame["geometry.latitude"] = [point[1] for point in points]
    return frame


def _code(source: Source, codec: str, *, is_points: bool) -> str:
    opener = _OPENERS[source.compression]
    module, mode = opener.partition(".")[0], '"rt", ' if "." in opener else ""
    lines = [
        "import json",
        *([f"import {module}"] if mode else []),
        f"with {opener}({quoted(source.name)}, {mode}encoding={quoted(codec)}) as file:",
        "    data = json.load(file)",
        'df = pd.json_normalize([one.get("properties") or {} for one in data["features"]])',
        'shapes = [one.get("geometry") or {} for one in data["features"]]',
        'df["geometry.type"] = [shape.get("type") for shape in shapes]',
    ]
    if is_points:
        lines += [
            'points = [shape.get("coordinates") or [None, None] for shape in shapes]',
            'df["geometry.longitude"] = [point[0] for point in points]',
            'df["geometry.latitude"] = [point[1] for point in points]',
        ]
    return "\n".join(lines)


def _projection(data: dict[str, object]) -> tuple[str, ...]:
    """Returns a warning where the file names a coordinate system of its own."""
    crs = data.get("crs")
    named = json.dumps(crs)[:120] if isinstance(crs, dict) else ""
    if not named or "CRS84" in named or "4326" in named:
        return ()
    return (f"coordinates are not degrees: the file's coordinate system is {named}",)
