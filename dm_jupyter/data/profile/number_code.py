"""Code that reads a number format, and the check that it reads every value correctly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pandas as pd

from dm_jupyter.data.profile.cell_words import is_missing_word
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import literal
from dm_jupyter.data.profile.number_inference import NumberFormat

__all__ = ["conversion_step", "first_difference"]

_PRECISION = 1e-12
"""pandas' own reader of decimals may differ from the nearest float by its last bit."""
_INVISIBLE = re.compile(r"[^\S ]|[\u200b-\u200f\u2028-\u202f]")


@dataclass(frozen=True)
class _Change:
    """One call of a `Series.str` method, as source code and as an operation."""

    method: str
    arguments: tuple[str, ...]
    is_regex: bool = False

    @property
    def source(self) -> str:
        if self.method == "translate":
            return f".str.translate(str.maketrans({', '.join(map(_visible, self.arguments))}))"
        words = [_visible(argument) for argument in self.arguments]
        words += ["regex=True"] if self.is_regex else []
        return f".str.{self.method}({', '.join(words)})"

    def apply(self, texts: pd.Series[Any]) -> pd.Series[Any]:
        if self.method == "translate":
            changed = texts.str.translate(str.maketrans(*self.arguments))
        elif self.method == "replace":
            old, new = self.arguments
            changed = texts.str.replace(old, new, regex=self.is_regex)
        else:
            changed = getattr(texts.str, self.method)(*self.arguments)
        result: pd.Series[Any] = changed
        return result


def _visible(text: str) -> str:
    """Return a literal in which blanks other than a space are written as escapes."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _changes(form: NumberFormat) -> list[_Change]:
    """Return the changes that turn texts of the format into Python's notation."""
    changes = []
    if form.is_wide:
        changes.append(_Change("normalize", ("NFKC",)))
    for zero in sorted(form.zeros):
        digits = "".join(chr(ord(zero) + step) for step in range(10))
        changes.append(_Change("translate", (digits, "0123456789")))
    if removed := _removed(form):
        changes.append(removed)
    changes += [_Change("replace", (minus, "-")) for minus in sorted(form.minuses)]
    if "parentheses" in form.places:
        changes += [_Change("replace", ("(", "-")), _Change("replace", (")", ""))]
    if "after" in form.places:
        changes.append(_Change("replace", ("(.+)-$", r"-\1"), is_regex=True))
    if form.decimal not in {"", "."}:
        changes.append(_Change("replace", (form.decimal, ".")))
    changes += [
        _Change("replace", (marker.replace(" ", ""), "e"))
        for marker in sorted(form.markers - {"e", "E"})
    ]
    return changes


def _removed(form: NumberFormat) -> _Change | None:
    """Return the change that drops currency, unit and grouping signs."""
    words = sorted((token for token in form.tokens if len(token) > 1), key=len, reverse=True)
    signs = {token for token in form.tokens if len(token) == 1} | form.spaces
    signs |= {form.grouping} - {""}
    if form.is_wide and form.spaces:
        signs.add(" ")
    if not words and len(signs) == 1:
        return _Change("replace", (signs.pop(), ""))
    inside = "".join(re.sub(r"([\]\\^-])", r"\\\1", sign) for sign in sorted(signs))
    parts = [*map(_escaped, words), *([f"[{inside}]"] if inside else [])]
    return _Change("replace", ("|".join(parts), ""), is_regex=True) if parts else None


def _escaped(word: str) -> str:
    return re.sub(r"([.$^*+?()\[\]{}|\\])", r"\\\1", word)


def conversion_step(
    names: Sequence[str | int], form: NumberFormat, *, remark: str, keeps: bool, coerces: bool
) -> FrameStep:
    """Return the step that converts text columns of one format to numbers.

    Args:
        names: names of the columns.
        form: their format.
        remark: comment above the code; one line.
        keeps: whether numbers among the texts, as in a sheet, are kept as they are.
        coerces: whether words for "missing" among the texts become NaN. Otherwise the code raises
            on a text that is not a number.
    """
    changes = _changes(form)
    errors: Literal["coerce", "raise"] = "coerce" if coerces else "raise"
    sizes = {unit: _plain(factor) for unit, factor in form.factors}
    pattern = rf"({'|'.join(map(_escaped, sorted(sizes, key=len, reverse=True)))})\W*$"

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        for name in names:
            texts = frame[name]
            for change in changes:
                texts = change.apply(texts)
            if keeps and changes:
                texts = texts.where(texts.notna(), frame[name])
            numbers = pd.to_numeric(texts, errors=errors)
            if sizes:
                numbers = numbers * frame[name].str.extract(pattern)[0].map(sizes)
            frame[name] = numbers
        return frame

    one = len(names) == 1
    column = f"df[{literal(names[0])}]" if one else "df[name]"
    indent = "" if one else "    "
    chain = column + "".join(change.source for change in changes)
    lines = [f"# {remark}"] if one else [f"# {remark}", f"for name in {literal(list(names))}:"]
    if keeps and changes:
        lines.append(f"{indent}texts = {chain}")
        chain = f"texts.where(texts.notna(), {column})"
    more = ', errors="coerce"' if coerces else ""
    if sizes:
        extracted = f'{column}.str.extract(r"{pattern}")[0].map({literal(sizes)})'
        lines.append(f"{indent}factors = {extracted}")
        more += ") * factors"
    else:
        more += ")"
    lines.append(f"{indent}{column} = pd.to_numeric({chain}{more}")
    return FrameStep("\n".join(lines), run)


def _plain(factor: Decimal) -> int | float:
    return int(factor) if factor == factor.to_integral() else float(factor)


def first_difference(
    before: pd.Series[Any], after: pd.Series[Any], form: NumberFormat
) -> str | None:
    """Return the first value that is not the number its text means; `None` if all are correct.

    Args:
        before: texts, numbers and missing values, in order.
        after: the values that the load code returned.
        form: the format the texts are in.
    """
    if len(before) != len(after) or not pd.api.types.is_numeric_dtype(after.dtype):
        return "the type"
    known: dict[Any, float | int | None] = {}
    for text, number in zip(before.tolist(), after.tolist(), strict=True):
        if text not in known:
            known[text] = _meaning(text, form)
        if not _is_same(known[text], number):
            return repr(text)
    return None


def _meaning(value: Any, form: NumberFormat) -> float | int | None:
    if not isinstance(value, str):
        return None if pd.isna(value) else value
    if is_missing_word(value):
        return None
    number = form.value(value)
    if number is None:
        return None
    return int(number) if number.is_finite() and number == number.to_integral() else float(number)


def _is_same(meant: float | int | None, number: Any) -> bool:
    if meant is None or pd.isna(number):
        return meant is None and bool(pd.isna(number))
    if isinstance(number, int):
        return bool(meant == number)
    return meant == number or math.isclose(meant, number, rel_tol=_PRECISION)
