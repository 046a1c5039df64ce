"""Number columns of a csv file: read by pandas' own options if these fit, else converted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.number_code import first_difference
from dm_jupyter.data.profile.number_inference import NumberFormat, NumberKind
from dm_jupyter.data.profile.number_plan import READ_KINDS, NumberColumn, NumberPlan, number_plan
from dm_jupyter.data.profile.read_call import ReadCall

__all__ = ["csv_numbers", "with_text"]


def csv_numbers(path: Path, call: ReadCall, limit: dict[str, int]) -> tuple[ReadCall, NumberPlan]:
    """Return the call that reads every number column of a csv file correctly, and its plan.

    pandas' own `decimal`, `thousands` and `na_values` are used if they read every number correctly
    and change no other column. Otherwise the columns in question are read as text and converted.

    Args:
        path: path of the file.
        call: the call that reads the file.
        limit: `nrows` for a file of which only the start is read. The call then has no steps for
            numbers, and no thousands sign: pandas drops it from any number, also from one in
            another format further on.
    """
    texts = call.run(path, **limit, dtype=str)
    separator = str(dict(call.arguments).get("sep") or ",")
    plan = number_plan(texts, separator=separator, reads_plain=True)
    for native in _native_calls(call, plan):
        if limit and "thousands" in dict(native.arguments):
            continue
        if _is_right(native.run(path, **limit), texts, plan.columns):
            told = (c for c in plan.columns if c.reason or c.inference.missing)
            codes = (c for c in plan.columns if c.kind is NumberKind.CODE)
            reasons = {c.position for c in (*told, *codes)}
            notes = {at: note for at, note in plan.notes.items() if at in reasons}
            return native, replace(plan, steps=(), notes=notes, converted=[])
    call = call if limit else replace(call, steps=(*call.steps, *plan.steps))
    return with_text(call, plan.text_columns), plan


def with_text(call: ReadCall, labels: Iterable[Any]) -> ReadCall:
    """Return the call that also reads these columns as text."""
    known = dict(call.arguments).get("dtype") or {}
    return call.with_arguments(dtype={**known, **dict.fromkeys(labels, str)} or None)


def _native_calls(call: ReadCall, plan: NumberPlan) -> list[ReadCall]:
    """Return the call with pandas' own signs, if one pair of signs fits."""
    simple = [c for c in plan.columns if c.kind is NumberKind.FORMATTED and _is_simple(c, c.form)]
    decimals = {c.form.decimal for c in simple} - {""}
    groupings = {c.form.grouping for c in simple} - {""}
    missing = [c for c in plan.columns if c.kind is NumberKind.PLAIN and c.inference.missing]
    read = {c.label for c in [*simple, *missing]}
    others = [label for label in plan.text_columns if label not in read]
    formatted = [c for c in plan.columns if c.kind is NumberKind.FORMATTED]
    words = {column.label: list(column.inference.missing) for column in missing}
    known = dict(call.arguments).get("na_values") or {}
    is_mixed = len(simple) < len(formatted) or len(decimals) > 1 or len(groupings) > 1
    if not (simple or words) or is_mixed or not isinstance(known, dict):
        return []
    decimal, grouping = next(iter(decimals), "."), next(iter(groupings), None)
    if decimal == grouping:
        return []
    native = call.with_arguments(
        decimal=None if decimal == "." else decimal,
        thousands=grouping,
        na_values={**known, **words} or None,
    )
    return [with_text(native, others)]


def _is_simple(column: NumberColumn, form: NumberFormat) -> bool:
    is_ascii = form.grouping in {"", ",", ".", "'", " "} and form.spaces <= {form.grouping}
    bare = replace(form, decimal="", grouping="", spaces=frozenset())
    return (
        is_ascii
        and form.decimal in {"", ".", ","}
        and bare.is_plain
        and not column.inference.missing
    )


def _is_right(frame: pd.DataFrame, texts: pd.DataFrame, columns: list[NumberColumn]) -> bool:
    """Return whether each number is what its text means, and no other column became numbers."""
    if list(frame.columns) != list(texts.columns) or len(frame) != len(texts):
        return False
    for column in columns:
        values, before = frame.iloc[:, column.position], texts.iloc[:, column.position]
        if column.kind in READ_KINDS:
            is_changed = first_difference(before, values, column.form) is not None
        else:
            is_number = types.is_numeric_dtype(values.dtype)
            is_number = is_number and not types.is_bool_dtype(values.dtype)
            is_changed = bool(is_number and before.notna().any())
        if is_changed:
            return False
    return True
