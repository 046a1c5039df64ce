"""Reading of a data file with pandas, as a careful analyst would: the first of two readers."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from typing import Any

import pandas as pd

from training.suites.generated.programs.steps import Reading
from training.suites.generated.tables.dirt import Form
from training.suites.generated.tables.files import DataFile

__all__ = ["FrameReader"]


class FrameReader:
    """Tables of one file as frames with the domain's column names; each is read once."""

    def __init__(self, file: DataFile) -> None:
        """Read the raw cells of the file."""
        self._file = file
        self._main, self._lookup = _cells(file)
        self._read: dict[tuple[bool, bool], pd.DataFrame] = {}

    def main(self, reading: Reading) -> pd.DataFrame:
        """Return the rows: numbers as floats, dates as timestamps, labels in one spelling."""
        key = (reading.keeps_repeats, reading.raw_labels)
        if key not in self._read:
            cells = self._main if reading.keeps_repeats else self._main.drop_duplicates()
            self._read[key] = self._clean(cells, raw_labels=reading.raw_labels)
        return self._read[key]

    def lookup(self) -> pd.DataFrame:
        """Return the lookup table; empty if the file has none."""
        return self._lookup

    def _clean(self, cells: pd.DataFrame, *, raw_labels: bool) -> pd.DataFrame:
        dirty = self._file.dirty
        made: dict[str, Any] = {}
        for column in dirty.table.columns:
            form = dirty.forms[column.name]
            raw = cells[form.header]
            match column.kind:
                case "number":
                    made[column.name] = _numbers(raw, form)
                case "date":
                    made[column.name] = _dates(raw)
                case "flag":
                    made[column.name] = raw.astype(str).map(
                        {form.flags[0]: "yes", form.flags[1]: "no"}
                    )
                case "label":
                    made[column.name] = _labels(raw, form, raw_labels=raw_labels)
                case _:
                    made[column.name] = raw.astype(str)
        return pd.DataFrame(made).reset_index(drop=True)


def _cells(file: DataFile) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the raw cells of both tables; the lookup table gets the domain's column names."""
    names = list(file.dirty.table.lookup)
    content = io.BytesIO(file.content)
    if file.dirty.format == "csv":
        options: Any = {"sep": file.separator, "dtype": str, "keep_default_na": False}
        return pd.read_csv(content, **options), pd.DataFrame(columns=names)
    if file.dirty.format == "xlsx":
        wanted = [*file.sheets, file.lookup_name]
        sheets = pd.read_excel(
            content, sheet_name=wanted, header=None, dtype=object, engine="openpyxl",
            keep_default_na=False, na_values=[""],
        )  # fmt: skip
        parts = []
        for name in file.sheets:
            sheet = sheets[name].iloc[file.skipped :]
            parts.append(sheet.iloc[1:].set_axis(sheet.iloc[0], axis=1))
        lookup = sheets[file.lookup_name].iloc[1:].set_axis(names, axis=1)
        return pd.concat(parts, ignore_index=True), lookup.infer_objects()
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(file.content)
        domain = file.dirty.table.domain
        main = pd.read_sql_query(f'SELECT * FROM "{domain.table}"', database)
        lookup = pd.read_sql_query(f'SELECT * FROM "{file.lookup_name}"', database)
    return main, lookup.set_axis(names, axis=1)


def _numbers(raw: pd.Series[Any], form: Form) -> pd.Series[Any]:
    """Return the numbers; other text and the sentinel are missing values."""
    text = raw.astype(str).str.strip()
    factor: Any = 1.0
    if form.sign:
        is_other = text.str.endswith(f" {form.other_sign}") if form.other_sign else text == ""
        factor = is_other.map({True: float(form.other_factor), False: 1.0})
        text = text.str.replace(r" \S+$", "", regex=True)
    if form.is_comma:
        text = text.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    elif form.is_grouped:
        text = text.str.replace(",", "", regex=False)
    numbers: Any = pd.to_numeric(text, errors="coerce") * factor
    if form.sentinel is not None:
        numbers = numbers.mask(numbers == form.sentinel)
    made: pd.Series[Any] = numbers.round(6) if form.other_sign else numbers.astype(float)
    return made


def _dates(raw: pd.Series[Any]) -> pd.Series[Any]:
    """Return the days, each written in any of the three forms."""
    text = raw.astype(str)
    found = pd.to_datetime(text.str.slice(0, 10), format="%Y-%m-%d", errors="coerce")
    for form in ("%d.%m.%Y", "%d %B %Y"):
        found = found.fillna(pd.to_datetime(text, format=form, errors="coerce"))
    return found


def _labels(raw: pd.Series[Any], form: Form, *, raw_labels: bool) -> pd.Series[Any]:
    """Return the labels; variants in case and spaces become the most frequent spelling."""
    labels = raw.astype(object).where(raw.notna() & ~raw.isin([*form.marks, ""]), None)
    if raw_labels or not form.is_varied:
        return labels
    folded = labels.str.strip().str.lower()
    common = {name: spellings.value_counts().index[0] for name, spellings in labels.groupby(folded)}
    return folded.map(common).astype(object).where(folded.notna(), None)
