"""Conditions: what the masks of a cell stand for, from the comparison that made each.

Like `notes`, imported only when pandas is loaded, and run while the book is quiet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kernel_sandbox.ledger.book import CONDITION_CHARS, Book, CallNote, Condition, TableCall
from kernel_sandbox.ledger.coverage import code_text, coverage_of, label
from kernel_sandbox.ledger.facts import Coverage

__all__ = ["combined", "compared", "condition_of", "count_true", "inverted", "is_mask"]


def compared(sign: str, form: str = "{column} {sign} {value}") -> CallNote:
    """Return the note of an operation that creates a mask; only selecting makes it a fact.

    Args:
        sign: how the condition is written.
        form: the template of the condition in words.
    """

    def note(book: Book, call: TableCall) -> None:
        column = call.args[0]
        column = getattr(column, "_orig", column)  # of a `.str`
        wanted = call.args[1] if len(call.args) > 1 else next(iter(call.kwargs.values()), None)
        if sign == "between":
            wanted = [wanted, call.argument(2, "right")]
        text = form.format(column=label(column), sign=sign, value=code_text(wanted))
        text = text[:CONDITION_CHARS]
        rows = count_true(call.result)
        coverage: tuple[Coverage, ...] = ()
        is_of_missing = sign in ("missing", "not missing")
        if not rows and isinstance(column, pd.Series) and not is_of_missing:
            with book.explaining() as may:
                coverage = (coverage_of(column, wanted, text),) if may else ()
        condition = Condition(text, coverage, rows, is_of_missing=is_of_missing)
        book.remember(call.result, condition)

    return note


def combined(word: str) -> CallNote:
    """Return the note of `&`, `|` or `^` on masks, also in place.

    Args:
        word: the word for the operator.
    """

    def note(book: Book, call: TableCall) -> None:
        known = call.earlier, condition_of(book, call.args[1])
        sides = [side or Condition("…") for side in known]
        texts = [x.text if x.joined_by in ("", word) else f"({x.text})" for x in sides]
        rows = count_true(call.result)
        coverage: tuple[Coverage, ...] = ()
        if not rows:
            for side in filter(None, known):
                coverage += side.coverage or (Coverage(side.text, side.rows),)
        text = f" {word} ".join(texts)[:CONDITION_CHARS]
        book.remember(call.result, Condition(text, coverage, rows, word))

    return note


def inverted(book: Book, call: TableCall) -> None:
    """Record `~`."""
    inner = condition_of(book, call.table)
    if inner is not None:
        text = f"not ({inner.text})"[:CONDITION_CHARS]
        book.remember(call.result, Condition(text, rows=count_true(call.result)))


def condition_of(book: Book, mask: Any) -> Condition | None:
    """Return the condition that a mask stands for; `None` if unknown, or if it was changed since.

    Args:
        book: the book of the kernel.
        mask: any object.
    """
    known = book.condition_of(mask)
    return known if known is not None and known.rows == count_true(mask) else None


def count_true(mask: Any) -> int:
    """Return the number of true values of a mask; a missing one is not true."""
    values = getattr(mask, "_values", mask)
    if not isinstance(values, np.ndarray):
        return int(mask.sum())
    return int(np.count_nonzero(values == np.True_ if values.dtype == object else values))


def is_mask(key: Any) -> bool:
    """Whether a key selects rows by true and false."""
    if isinstance(key, pd.Series | np.ndarray):
        return key.ndim == 1 and pd.api.types.is_bool_dtype(key.dtype)
    return isinstance(key, list) and bool(key) and isinstance(key[0], bool | np.bool_)
