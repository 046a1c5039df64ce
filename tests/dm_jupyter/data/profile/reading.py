"""Runs a profile's load code as a notebook beside the file would."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from dm_jupyter.data.profile import FileProfile, TableProfile, profile_file
from dm_jupyter.data.profile.source import Effort


def loaded(folder: Path, table: TableProfile, monkeypatch: Any) -> pd.DataFrame:
    """Returns `df` after the load code ran in plain pandas, in the file's folder."""
    assert table.load_code is not None
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"pd": pd}
    with warnings.catch_warnings():
        # on_bad_lines="warn" is meant to speak up in the notebook.
        warnings.simplefilter("ignore")
        exec(table.load_code, names)
    frame: pd.DataFrame = names["df"]
    return frame


def assert_load_code_agrees(path: Path, monkeypatch: Any) -> FileProfile:
    """Profiles a file and checks that each load line gives the profile's columns and rows."""
    profile = profile_file(path, effort=Effort(300.0))
    for table in profile.tables:
        if table.load_code is None:
            continue
        frame = loaded(path.parent, table, monkeypatch)
        assert [str(label) for label in frame.columns] == [c.name for c in table.columns]
        assert len(frame) == table.row_count
    return profile


def said(profile: FileProfile) -> str:
    """Returns everything a profile warns of, as one text."""
    texts = [*profile.warnings, *profile.notes]
    return "\n".join(texts + [warning for table in profile.tables for warning in table.warnings])
