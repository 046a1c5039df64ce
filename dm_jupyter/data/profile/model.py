"""The profile of a data file as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dm_jupyter.core.codec import decode_value, encode_value

__all__ = [
    "ColumnProfile",
    "FileProfile",
    "ForeignKey",
    "Scalar",
    "TableProfile",
    "profile_from_json",
    "profile_to_json",
]

Scalar: TypeAlias = str | int | float | bool | None
"""A cell as JSON can represent it; long text is already cut, times are ISO text."""


@dataclass(frozen=True)
class ColumnProfile:
    """One column of the frame that `load_code` creates, or as the database declares it."""

    name: str
    """Exactly as the code must spell it."""
    dtype: str
    """pandas' name for it, or the declared SQL type."""
    missing: int | None = None
    """Count of missing values; `None` if not counted."""
    unique: int | None = None
    """Count of distinct values; `None` if not counted or not countable (lists)."""
    minimum: Scalar = None
    """Smallest number or earliest time, also of ISO dates kept as text; `None` for other text."""
    maximum: Scalar = None
    """Largest number or latest time, as `minimum`."""
    examples: tuple[Scalar, ...] = ()
    """All distinct values when there are at most six, else three."""
    note: str | None = None
    """What the type alone does not show, such as "dates kept as text"."""
    frequent: tuple[tuple[Scalar, int], ...] = ()
    """The most frequent values with their counts, most frequent first, at most six."""
    is_unique_estimated: bool = False
    """Whether `unique` is an estimate, as of a column too large to be counted exactly."""
    values: tuple[tuple[str, int], ...] = ()
    """Short texts with their counts, which link questions to cells (see `values`); not shown."""


@dataclass(frozen=True)
class ForeignKey:
    """Columns of one table that reference columns of another."""

    columns: tuple[str, ...]
    """Columns of this table."""
    table: str
    """The referenced table."""
    targets: tuple[str, ...]
    """The referenced columns; empty if the schema implies the primary key."""


@dataclass(frozen=True)
class TableProfile:
    """One sheet or several that continue one another, a table or view, or an entire csv file."""

    name: str
    """Sheet, table or archive member; the file's name for a format with one table."""
    row_count: int | None
    """Rows of data, without headers; `None` if counting would have taken too long."""
    columns: tuple[ColumnProfile, ...] = ()
    """In the file's order."""
    sample_rows: tuple[tuple[Scalar, ...], ...] = ()
    """All rows of a small table; else the first two, some from between, and the last."""
    load_code: str | None = None
    """Code that creates `df`; `None` if the table is queried with SQL or is empty."""
    sampled_rows: int | None = None
    """Number of first rows that the statistics come from; `None` if from all rows."""
    is_hidden: bool = False
    """Whether a person does not see the sheet when opening the workbook."""
    is_view: bool = False
    """Whether it is a database view."""
    primary_key: tuple[str, ...] = ()
    """Column names; empty when none is declared."""
    foreign_keys: tuple[ForeignKey, ...] = ()
    """Declared references to other tables."""
    warnings: tuple[str, ...] = ()
    """What would make an analysis of this table wrong."""
    key: tuple[str, ...] = ()
    """Columns whose values together are unique in every row and never missing; empty if unsure."""
    sheets: tuple[str, ...] = ()
    """Names of the sheets that it joins, one below the other; empty for a table of its own."""


@dataclass(frozen=True)
class FileProfile:
    """A data file."""

    name: str
    """How code refers to the file."""
    kind: str
    """Its format, whatever its name says.
    One of csv, json, jsonl, geojson, parquet, feather, arrow, xlsx, xlsb, xls, ods, sqlite, duckdb,
    stata, spss, sas7bdat, xport, xml, html, zip or tar."""
    size_bytes: int
    """Size on disk."""
    tables: tuple[TableProfile, ...] = ()
    """Its tables; never empty, except for a database or workbook without any table."""
    warnings: tuple[str, ...] = ()
    """What would make an analysis of the entire file wrong."""
    notes: tuple[str, ...] = ()
    """Facts that are good to know and harmless."""


def profile_to_json(profile: FileProfile) -> dict[str, object]:
    """Return the profile as dictionaries, lists and scalars that `json.dumps` accepts."""
    plain: dict[str, object] = encode_value(profile)
    return plain


def profile_from_json(raw: object) -> FileProfile:
    """Return the profile that `profile_to_json` encoded.

    Raises:
        ValueError: a field is missing or of the wrong kind; the message says which.
    """
    return decode_value(FileProfile, raw, "profile")
