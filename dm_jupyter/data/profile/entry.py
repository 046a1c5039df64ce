"""Path to profile: checks without opening the file, then the reader for its content."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.faults import needs_package
from dm_jupyter.data.profile.model import FileProfile
from dm_jupyter.data.profile.sniff import ARCHIVE_KINDS, Sniffed, sniff
from dm_jupyter.data.profile.source import Effort
from dm_jupyter.data.profile.values import with_bounded_values

# ruff: noqa: PLC0415 - pandas takes a third of a second to load, so only when it is needed.

__all__ = ["check_file", "profile_file"]

_NEEDED = {
    "parquet": ("pyarrow", "pyarrow", "a .parquet file"),
    "feather": ("pyarrow", "pyarrow", "an Arrow (feather) file"),
    "arrow": ("pyarrow", "pyarrow", "an Arrow stream"),
    "xls": ("xlrd", "xlrd", "a .xls file"),
    "xlsb": ("python_calamine", "python-calamine", "a .xlsb file"),
    "ods": ("odf", "odfpy", "an .ods file"),
    "xlsx": ("openpyxl", "openpyxl", "a .xlsx file"),
    "spss": ("pyreadstat", "pyreadstat", "an SPSS (.sav) file"),
    "duckdb": ("duckdb", "duckdb", "a DuckDB database"),
    "html": ("lxml", "lxml", "tables of a web page (HTML)"),
}
"""By kind: the module that reads it, the package that provides it, and its name in messages."""


def profile_file(
    path: Path, *, name: str | None = None, effort: Effort | None = None
) -> FileProfile:
    """Return what a model needs to know of a data file to write code that reads it.

    Args:
        path: the file, as this process reaches it.
        name: the file's name in generated code; `None` for its own name, as in a notebook in the
            same folder.
        effort: time limit for a large file, and a callback for its progress.

    Raises:
        DataFileError: there is no such file, it can't be read, or it is not a table; the message
            says which and what to do.
    """
    path = Path(path)
    shown = path.name if name is None else name
    check_file(path, shown)
    try:
        sniffed = sniff(path, shown)
        with warnings.catch_warnings():
            # Readers warn of styles and mixed columns; the profile says in words what matters.
            warnings.simplefilter("ignore")
            profile = with_bounded_values(_read(_with_effort(sniffed, effort or Effort())))
    except OSError as error:
        raise DataFileError(f"{shown}: it can't be read ({error.strerror or error}).") from error
    told = (sniffed.warning,) if sniffed.warning else ()
    return replace(profile, warnings=(*told, *profile.warnings))


def _with_effort(sniffed: Sniffed, effort: Effort) -> Sniffed:
    return replace(sniffed, source=replace(sniffed.source, effort=effort))


def check_file(path: Path, name: str) -> None:
    """Reject a path that is not a readable file.

    Args:
        path: path of the file.
        name: the file's name in messages.

    Raises:
        DataFileError: it is not a readable file; the message says why.
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
    """Return the profile from the reader for the kind, which is imported only now.

    Raises:
        DataFileError: the file can't be read, or its reader is not installed.
    """
    module, package, words = _NEEDED.get(sniffed.kind, ("", "", ""))
    if module and find_spec(module) is None:
        raise needs_package(sniffed.source.name, words, package)
    if sniffed.kind in ARCHIVE_KINDS:
        from dm_jupyter.data.profile.archive import profile_archive

        ends = time.monotonic() + sniffed.source.effort.seconds

        def one(path: Path, name: str) -> FileProfile:
            return _profile_member(path, name, Effort(max(0.0, ends - time.monotonic())))

        return profile_archive(sniffed.source, sniffed.kind, one)
    return _READERS.get(sniffed.kind, _csv)(sniffed)


def _profile_member(path: Path, name: str, effort: Effort) -> FileProfile:
    """Return the profile of a file from an archive, unpacked at `path`.

    Raises:
        DataFileError: it is an archive itself, or can't be read, as with any file.
    """
    sniffed = sniff(path, name)
    if sniffed.kind in ARCHIVE_KINDS:
        raise DataFileError(f"{name}: an archive inside an archive: unpack the outer one.")
    profile = _read(_with_effort(sniffed, effort))
    told = (sniffed.warning,) if sniffed.warning else ()
    return replace(profile, warnings=(*told, *profile.warnings))


def _csv(sniffed: Sniffed) -> FileProfile:
    from dm_jupyter.data.profile.csv_file import profile_csv

    return profile_csv(sniffed.source)


def _database(sniffed: Sniffed) -> FileProfile:
    if sniffed.kind == "duckdb":
        from dm_jupyter.data.profile.duckdb_file import profile_duckdb

        return profile_duckdb(sniffed.source)
    from dm_jupyter.data.profile.sqlite_file import profile_sqlite

    return profile_sqlite(sniffed.source)


def _columnar(sniffed: Sniffed) -> FileProfile:
    if sniffed.kind != "parquet":
        from dm_jupyter.data.profile.parquet_file import profile_arrow

        return profile_arrow(sniffed.source, sniffed.kind)
    from dm_jupyter.data.profile.parquet_file import profile_parquet

    return profile_parquet(sniffed.source)


def _json(sniffed: Sniffed) -> FileProfile:
    if sniffed.kind == "geojson":
        from dm_jupyter.data.profile.json_file import profile_geojson

        return profile_geojson(sniffed.source)
    from dm_jupyter.data.profile.json_file import profile_json

    return profile_json(sniffed.source, is_lines=sniffed.kind == "jsonl")


def _workbook(sniffed: Sniffed) -> FileProfile:
    from dm_jupyter.data.profile.workbook import profile_workbook

    return profile_workbook(sniffed.source, sniffed.kind)


def _statistics(sniffed: Sniffed) -> FileProfile:
    from dm_jupyter.data.profile import statistics_files as files

    if sniffed.kind == "stata":
        return files.profile_stata(sniffed.source)
    if sniffed.kind == "spss":
        return files.profile_spss(sniffed.source)
    return files.profile_sas(sniffed.source, sniffed.kind)


def _markup(sniffed: Sniffed) -> FileProfile:
    if sniffed.kind == "html":
        from dm_jupyter.data.profile.html_file import profile_html

        return profile_html(sniffed.source)
    from dm_jupyter.data.profile.xml_file import profile_xml

    return profile_xml(sniffed.source)


_READERS: dict[str, Callable[[Sniffed], FileProfile]] = {
    **dict.fromkeys(("sqlite", "duckdb"), _database),
    **dict.fromkeys(("parquet", "feather", "arrow"), _columnar),
    **dict.fromkeys(("json", "jsonl", "geojson"), _json),
    **dict.fromkeys(("xlsx", "xlsb", "xls", "ods"), _workbook),
    **dict.fromkeys(("stata", "spss", "sas7bdat", "xport"), _statistics),
    **dict.fromkeys(("xml", "html"), _markup),
}
