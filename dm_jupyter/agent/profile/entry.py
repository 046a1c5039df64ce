"""From a path to a profile: what can be known without opening, then the reader for the content."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from dm_jupyter.agent.profile.faults import needs_package
from dm_jupyter.agent.profile.model import FileProfile
from dm_jupyter.agent.profile.sniff import Sniffed, sniff
from dm_jupyter.core.errors import DataFileError

__all__ = ["check_file", "profile_file"]

_NEEDED = {
    "parquet": ("pyarrow", "pyarrow"),
    "xls": ("xlrd", "xlrd"),
    "ods": ("odf", "odfpy"),
    "xlsx": ("openpyxl", "openpyxl"),
}


def profile_file(path: Path, *, name: str | None = None) -> FileProfile:
    """Returns what a model needs to know of a data file to write code that reads it.

    Args:
        path: the file, as this process reaches it.
        name: how the code will call it; None for the file's own name, as a notebook in the same
            folder does.

    Raises:
        DataFileError: there is no such file, it can't be read, or it is no table; the message says
            which and what to do.
    """
    path = Path(path)
    shown = path.name if name is None else name
    check_file(path, shown)
    try:
        sniffed = sniff(path, shown)
        with warnings.catch_warnings():
            # Readers warn of styles and mixed columns; the profile says in words what matters.
            warnings.simplefilter("ignore")
            profile = _read(sniffed)
    except OSError as error:
        raise DataFileError(f"{shown}: it can't be read ({error.strerror or error}).") from error
    told = (sniffed.warning,) if sniffed.warning else ()
    return replace(profile, warnings=(*told, *profile.warnings))


def check_file(path: Path, name: str) -> None:
    """Refuses what is no readable file.

    Args:
        path: of the file.
        name: how messages call it.

    Raises:
        DataFileError: with the reason.
    """
    try:
        if not path.exists():
            raise DataFileError(f"{name}: there is no such file. Check the name and the folder.")
        if path.is_dir():
            raise DataFileError(
                f"{name}: this is a folder, not a file. Name one of the files inside it."
            )
        if not path.is_file():
            raise DataFileError(f"{name}: this is no ordinary file. Copy the data into a file.")
        if not os.access(path, os.R_OK):
            raise DataFileError(f"{name}: no permission to read it. Change that with: chmod u+r")
    except (OSError, ValueError) as error:
        raise DataFileError(f"{name}: the path can't be used ({error}).") from error


def _read(sniffed: Sniffed) -> FileProfile:
    """Returns the profile by the reader for the kind, which is loaded only now.

    Raises:
        DataFileError: the file can't be read, or its reader is not installed.
    """
    # ruff: noqa: PLC0415 - pandas takes a third of a second to load, so only when it is needed.
    module, package = _NEEDED.get(sniffed.kind, ("", ""))
    if module and find_spec(module) is None:
        raise needs_package(sniffed.source.name, f"a .{sniffed.kind} file", package)
    if sniffed.kind == "sqlite":
        from dm_jupyter.agent.profile.sqlite_file import profile_sqlite

        return profile_sqlite(sniffed.source)
    if sniffed.kind == "parquet":
        from dm_jupyter.agent.profile.parquet_file import profile_parquet

        return profile_parquet(sniffed.source)
    if sniffed.kind in {"json", "jsonl"}:
        from dm_jupyter.agent.profile.json_file import profile_json

        return profile_json(sniffed.source, is_lines=sniffed.kind == "jsonl")
    if sniffed.kind in {"xlsx", "xls", "ods"}:
        from dm_jupyter.agent.profile.workbook import profile_workbook

        return profile_workbook(sniffed.source, sniffed.kind)
    from dm_jupyter.agent.profile.csv_file import profile_csv

    return profile_csv(sniffed.source)
