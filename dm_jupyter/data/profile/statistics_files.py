"""Files of statistics programs: Stata, SPSS and SAS, with their labels.

A code such as -9 may have a label, "refused", in a column of amounts. Such a column keeps its
numbers, because they could not be computed with beside labels. A column gets labels if each of its
codes has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.faults import needs_package, reading
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import literal, text_literal
from dm_jupyter.data.profile.model import FileProfile
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.table_pass import Deadline, LookedAt, in_pieces, label_note, table_of

__all__ = ["profile_sas", "profile_spss", "profile_stata"]

_PIECE_ROWS = 50_000
_WHOLE_BYTES = 150 << 20
"""Size above which files are read in pieces, without labels: they would differ by piece."""
_ZERO = 16.0**-65
"""pandas' reading of a zero in a transport file, whose bytes are all zeros."""
_DATE = re.compile(
    r"DATE|DAY|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|JULIAN|JULDAY|MONYY|MONNAME|MONTH|QTR|YEAR|YYMM|YYQ"
    r"|MMYY|WEEKDATE|WEEKDATX|WORDDATE|WORDDATX|(E8601|B8601|IS8601)DA"
)
_MOMENT = re.compile(r"DATETIME|DATEAMPM|(E8601|B8601|IS8601)DT")
_TIME = re.compile(r"TIME|TIMEAMPM|HHMM|HOUR|MMSS|TOD|(E8601|B8601|IS8601)TM")
"""SAS's own formats, as full names: a format that a user defined may be called DAYS."""
_SHOWN_CODES = 6
_KEPT_COLUMNS = 40
_WAY_OUT = "It is damaged, incomplete, or of a version that the reader does not know."


@dataclass(frozen=True)
class _Labelled:
    """A frame with labels in place of codes, where every code has one."""

    looked_at: LookedAt
    code: str
    warnings: tuple[str, ...] = ()
    codes: tuple[tuple[str, str], ...] = ()
    """Meanings of a column's codes, by its name."""


def profile_stata(source: Source) -> FileProfile:
    """Return the profile of a Stata file, of any version that pandas reads.

    Raises:
        DataFileError: the file is damaged or of an unknown version.
        OSError: the file can't be read.
    """
    with reading(source.name, "the Stata file", _WAY_OUT):
        with pd.read_stata(source.path, iterator=True) as reader:
            labels = reader.variable_labels()
            sets = reader.value_labels()
            title = reader.data_label
        labelled = _labelled(source, "read_stata", has_labels=bool(sets))
    return _profile(source, "stata", labelled, labels, _named("data label", title))


def profile_spss(source: Source) -> FileProfile:
    """Return the profile of an SPSS file, compressed or not.

    Raises:
        DataFileError: the file is damaged.
        OSError: the file can't be read.
    """
    import pyreadstat  # noqa: PLC0415 - optional

    with reading(source.name, "the SPSS file", _WAY_OUT):
        _, about = pyreadstat.read_sav(str(source.path), metadataonly=True, user_missing=True)
        labelled = _labelled(source, "read_spss", has_labels=bool(about.variable_value_labels))
    notes = _named("file label", about.file_label)
    if ranged := list(about.missing_ranges):
        shown = ", ".join(map(repr, ranged[:8]))
        notes += (f"values that the file declares as missing are read as missing: {shown}",)
    return _profile(source, "spss", labelled, about.column_names_to_labels, notes)


def profile_sas(source: Source, kind: str) -> FileProfile:
    """Return the profile of a SAS data set or transport file.

    Args:
        source: the file.
        kind: sas7bdat or xport, as `pandas.read_sas` calls them.

    Raises:
        DataFileError: the file is damaged, or the reader for transport files of version 8 is
            missing.
        OSError: the file can't be read.
    """
    head = source.head(80)
    with reading(source.name, "the SAS file", _WAY_OUT):
        if kind == "xport" and b"LIBV8" in head:
            return _newer_transport(source)
        encoding = "infer" if kind == "sas7bdat" else _transport_encoding(source)
        options = {"format": kind, "encoding": encoding}
        pieces: dict[str, Any] = {**options, "chunksize": _PIECE_ROWS}
        with pd.read_sas(source.path, **pieces) as reader:
            labels = _sas_texts(reader, "label")
            formats = _sas_texts(reader, "format", "nform")
        told = {name: unit for name, one in formats.items() if (unit := _unit_of(one))}
        steps = _transport_steps(told) if kind == "xport" else []
        try:
            looked_at = _sas_rows(source, pieces, steps)
        except (ValueError, OverflowError):  # years outside the range of pandas' times
            steps = steps[:1]
            looked_at = _sas_rows(source, pieces, steps)
    words = "".join(f", {key}={literal(value)}" for key, value in options.items())
    code = f"df = pd.read_sas({text_literal(source.name)}{words})"
    code = "\n".join([code, *(step.source for step in steps)])
    times = tuple((name, "seconds since midnight") for name, unit in told.items() if unit == "time")
    return _profile(source, kind, _Labelled(looked_at, code, codes=times), labels)


def _unit_of(form: str) -> str | None:
    """Return the unit of a column by its SAS format: D or s since 1960, or time."""
    if _MOMENT.fullmatch(form):
        return "s"
    if _TIME.fullmatch(form):
        return "time"
    return "D" if _DATE.fullmatch(form) else None


def _transport_steps(units: dict[str, str]) -> list[FrameStep]:
    """Return the steps for a frame that pandas read from a transport file."""

    def dated(name: str, unit: str) -> FrameStep:
        def run(frame: pd.DataFrame) -> pd.DataFrame:
            made = pd.to_datetime(frame[name], unit=unit, origin="1960-01-01")  # type: ignore[call-overload]
            return frame.assign(**{name: made})

        column = f"df[{text_literal(name)}]"
        made = f'pd.to_datetime({column}, unit="{unit}", origin="1960-01-01")'
        return FrameStep(f"{column} = {made}", run)

    zeros = FrameStep("df = df.replace(16.0**-65, 0.0)", lambda frame: frame.replace(_ZERO, 0.0))
    return [zeros, *(dated(name, unit) for name, unit in units.items() if unit != "time")]


def _sas_rows(source: Source, options: dict[str, Any], steps: list[FrameStep]) -> LookedAt:
    def stepped(frame: pd.DataFrame) -> pd.DataFrame:
        for step in steps:
            frame = step.run(frame)
        return frame

    with pd.read_sas(source.path, **options) as reader:
        return in_pieces(map(stepped, reader), Deadline.of(source.effort))


def _newer_transport(source: Source) -> FileProfile:
    """Return the profile of a transport file of version 8, which pandas does not read.

    Raises:
        DataFileError: the package that reads it is missing.
    """
    if find_spec("pyreadstat") is None:
        raise needs_package(source.name, "a SAS transport file of version 8", "pyreadstat")
    import pyreadstat  # noqa: PLC0415 - optional

    frame, about = pyreadstat.read_xport(str(source.path))
    code = f"import pyreadstat\ndf = pyreadstat.read_xport({text_literal(source.name)})[0]"
    looked_at = LookedAt(frame)
    return _profile(source, "xport", _Labelled(looked_at, code), about.column_names_to_labels)


def _labelled(source: Source, function: str, *, has_labels: bool) -> _Labelled:
    """Return the frame with its labels, read twice: with codes and with labels."""
    read = getattr(pd, function)
    plain_code = f"df = pd.{function}({text_literal(source.name)}, convert_categoricals=False)"
    if source.path.stat().st_size > _WHOLE_BYTES:
        told = ("codes are not replaced by their labels in a file of this size",)
        looked_at = in_pieces(_pieces(source, function), Deadline.of(source.effort))
        return _Labelled(looked_at, plain_code, told if has_labels else ())
    codes = read(source.path, convert_categoricals=False)
    whole = LookedAt(codes)
    code = f"df = pd.{function}({text_literal(source.name)})"
    if not has_labels:
        return _with_dates(_Labelled(whole, code))
    try:
        frame = read(source.path)
    except ValueError as error:  # pandas: two codes of a column have one label
        reason = " ".join(str(error).split())[:120]
        return _with_dates(_Labelled(whole, plain_code, (f"codes have no labels: {reason}",)))
    return _with_dates(_without_partial(frame, codes, code, plain_code))


def _without_partial(
    frame: pd.DataFrame, codes: pd.DataFrame, code: str, plain_code: str
) -> _Labelled:
    """Return the labelled frame with numbers if only some of a column's codes have a label."""
    changed = [name for name in frame.columns if _is_labelled(frame[name], codes[name])]
    partial = [name for name in changed if _is_partial(frame[name], codes[name])]
    told = {name: _meanings(frame[name], codes[name]) for name in changed}
    if not partial:
        return _Labelled(LookedAt(frame), code, codes=tuple(told.items()))
    shown = ", ".join(repr(str(name)) for name in partial[:6])
    warning = (
        f"some codes have a label and the rest are numbers in {shown}: the numbers are kept, and "
        "codes such as 'refused' have to be left out before computing"
    )
    kept = {name: told[name] for name in partial}
    if len(partial) > _KEPT_COLUMNS:
        looked_at = LookedAt(codes)
        return _Labelled(looked_at, plain_code, (warning,), tuple(told.items()))
    frame[partial] = codes[partial]
    names = literal(partial)
    made = f"{code}\ncodes = {plain_code.removeprefix('df = ')}\ndf[{names}] = codes[{names}]"
    return _Labelled(LookedAt(frame), made, (warning,), tuple(kept.items()))


def _is_labelled(shown: pd.Series[Any], codes: pd.Series[Any]) -> bool:
    is_category = isinstance(shown.dtype, pd.CategoricalDtype)
    return is_category and not isinstance(codes.dtype, pd.CategoricalDtype)


def _is_partial(shown: pd.Series[Any], codes: pd.Series[Any]) -> bool:
    """Return whether there are numbers without a label among the labels."""
    if not types.is_numeric_dtype(codes.dtype):
        return False
    return any(not isinstance(value, str) for value in shown.cat.categories)


def _meanings(shown: pd.Series[Any], codes: pd.Series[Any]) -> str:
    """Return the meanings of a column's codes, such as `-9 = 'refused'`."""
    pairs = pd.DataFrame({"code": codes, "label": shown.astype(object)}).drop_duplicates()
    pairs = pairs[[isinstance(label, str) for label in pairs["label"]]]
    texts = [
        f"{code:g} = {label[:40]!r}" if isinstance(code, (int, float)) else f"{code!r} = {label!r}"
        for code, label in zip(pairs["code"], pairs["label"], strict=True)
    ]
    more = f", … {len(texts) - _SHOWN_CODES} more" if len(texts) > _SHOWN_CODES else ""
    return f"codes {', '.join(texts[:_SHOWN_CODES])}{more}" if texts else ""


def _with_dates(labelled: _Labelled) -> _Labelled:
    """Return the same with date columns, which SPSS's reader returns as objects, as times."""
    frame = labelled.looked_at.frame
    names = [name for name in frame.columns if _holds_dates(frame[name])]
    if not names:
        return labelled
    try:
        frame[names] = frame[names].apply(pd.to_datetime)
    except (ValueError, OverflowError):  # years outside the range of pandas' times
        return labelled
    words = literal([str(name) for name in names])
    code = f"{labelled.code}\ndf[{words}] = df[{words}].apply(pd.to_datetime)"
    return _Labelled(labelled.looked_at, code, labelled.warnings, labelled.codes)


def _holds_dates(values: pd.Series[Any]) -> bool:
    if not types.is_object_dtype(values.dtype):
        return False
    return pd.api.types.infer_dtype(values, skipna=True) == "date"


def _pieces(source: Source, function: str) -> Iterator[pd.DataFrame]:
    """Yield a large file in pieces, codes without their labels.

    Yields:
        Frames.
    """
    if function == "read_stata":
        options: dict[str, Any] = {"convert_categoricals": False, "chunksize": _PIECE_ROWS}
        with pd.read_stata(source.path, **options) as reader:
            yield from reader
        return
    import pyreadstat  # noqa: PLC0415 - optional

    start = 0
    while True:
        frame, _ = pyreadstat.read_sav(
            str(source.path), row_offset=start, row_limit=_PIECE_ROWS, apply_value_formats=False
        )
        yield frame
        start += _PIECE_ROWS
        if len(frame) < _PIECE_ROWS:
            return


def _transport_encoding(source: Source) -> str:
    """Return the encoding of the texts in a transport file, which does not declare it."""
    pieces: dict[str, Any] = {"format": "xport", "encoding": None, "chunksize": _PIECE_ROWS}
    with pd.read_sas(source.path, **pieces) as reader:
        piece = next(iter(reader), pd.DataFrame())
    cells = (value for name in piece.columns for value in piece[name] if isinstance(value, bytes))
    return "utf-8" if all(map(_is_utf8, cells)) else "cp1252"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _sas_texts(reader: Any, *names: str) -> dict[str, str]:
    """Return a text of each column; pandas keeps them, but documents no access to them.

    Args:
        reader: reader of either kind of file.
        names: names of the text, in either kind.
    """
    found: dict[str, str] = {}
    for column in getattr(reader, "fields", None) or ():
        found[_text(column.get("name"))] = _text(next(map(column.get, reversed(names))) or "")
    for column in () if found else getattr(reader, "columns", ()):
        found[_text(getattr(column, "name", column))] = _text(getattr(column, names[0], ""))
    return found


def _text(value: object) -> str:
    return value.decode("latin-1").strip() if isinstance(value, bytes) else str(value).strip()


def _named(what: str, text: object) -> tuple[str, ...]:
    note = label_note(text)
    return (note.replace("label", what, 1),) if note else ()


def _profile(
    source: Source,
    kind: str,
    labelled: _Labelled,
    labels: dict[str, Any],
    notes: tuple[str, ...] = (),
) -> FileProfile:
    said = {str(name): label_note(label) for name, label in labels.items()}
    for name, codes in labelled.codes:
        said[str(name)] = "; ".join(filter(None, (said.get(str(name)), codes)))
    table = table_of(
        source.name,
        labelled.looked_at,
        labelled.code,
        {name: note for name, note in said.items() if note},
    )
    size = source.path.stat().st_size
    warnings = (*labelled.warnings, *table.warnings)
    return FileProfile(source.name, kind, size, (replace(table, warnings=()),), warnings, notes)
