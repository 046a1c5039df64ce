"""Conditions: what the masks of a cell stand for, from the comparison that made each.

Like `notes`, imported only when pandas is loaded, and run while the book is quiet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from kernel_sandbox.ledger.book import CONDITION_CHARS, Book, CallNote, Condition, TableCall
from kernel_sandbox.ledger.coverage import code_text, coverage_of, label
from kernel_sandbox.ledger.facts import Coverage
from kernel_sandbox.ledger.origins import COMPUTED, is_computed

__all__ = ["combined", "compared", "condition_of", "count_true", "inverted", "is_mask"]

_ENDS = {"both": ("[", "]"), "left": ("[", ")"), "right": ("(", "]"), "neither": ("(", ")")}
"""How the ends of a range are written, by `inclusive`."""


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
        is_other, is_own = is_computed(book, wanted), not is_computed(book, column)
        value = COMPUTED if is_other else code_text(wanted)
        if sign == "between":
            opens, closes = _ENDS[call.argument(3, "inclusive", "both")]
            value = f"{opens}{value[1:-1]}{closes}"
        text = form.format(column=label(column) if is_own else COMPUTED, sign=sign, value=value)
        text = text[:CONDITION_CHARS]
        condition = Condition(
            text,
            rows=count_true(call.result),
            digest=_digest(call.result),
            is_of_missing=sign in ("missing", "not missing"),
            is_computed=is_other or not is_own,
        )
        is_plain = not (condition.rows or condition.is_of_missing or condition.is_computed)
        if is_plain and isinstance(column, pd.Series):
            with book.explaining() as may:
                coverage = (coverage_of(column, wanted, text),) if may else ()
            condition = replace(condition, coverage=coverage)
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
        is_absent = any(side and not (side.rows or side.is_computed) for side in known)
        condition = Condition(
            f" {word} ".join(texts)[:CONDITION_CHARS],
            coverage,
            rows,
            _digest(call.result),
            word,
            is_computed=not is_absent and any(side.is_computed for side in sides),
        )
        book.remember(call.result, condition)

    return note


def inverted(book: Book, call: TableCall) -> None:
    """Record `~`."""
    inner = condition_of(book, call.table)
    if inner is not None:
        condition = Condition(
            f"not ({inner.text})"[:CONDITION_CHARS],
            rows=count_true(call.result),
            digest=_digest(call.result),
            is_computed=inner.is_computed,
        )
        book.remember(call.result, condition)


def condition_of(book: Book, mask: Any) -> Condition | None:
    """Return the condition that a mask stands for; `None` if unknown, or if it was changed since.

    Args:
        book: the book of the kernel.
        mask: any object.
    """
    known = book.condition_of(mask)
    return known if known is not None and known.digest == _digest(mask) else None


def _digest(mask: Any) -> int:
    """Return a number that is another one, in all likelihood, for a mask of other truths."""
    return hash(np.packbits(_truths(mask)).tobytes())


def count_true(mask: Any) -> int:
    """Return the number of true values of a mask; a missing one is not true."""
    return int(np.count_nonzero(_truths(mask)))


def _truths(mask: Any) -> Any:
    values = getattr(mask, "_values", mask)
    if not isinstance(values, np.ndarray):
        return values.to_numpy(bool, na_value=False)
    return values == np.True_ if values.dtype == object else values


def is_mask(key: Any) -> bool:
    """Whether a key selects rows by true and false."""
    if isinstance(key, pd.Series | np.ndarray):
        return key.ndim == 1 and pd.api.types.is_bool_dtype(key.dtype)
    return isinstance(key, list) and bool(key) and isinstance(key[0], bool | np.bool_)
