"""Answers in free words to a question that asks for known values.

Nobody who asks in a notebook states the form of the answer, so these rules read a short text. It is
correct if it states every value, and is short enough not to be a list of guesses:

- A number is stated if a number of the text equals it, both rounded to the fewer decimals of the
  two, as long as three digits or all of the value's remain: 17.3 states 17.29, and 17 does not. A
  whole value is stated by itself alone. A negative one may lose its sign to a word ("lower").
- A date or month may be written in any usual notation ("November 2021" states 2021-11).
- Any other value is stated by its words in a row.
- The text has at most `MAX_WORDS` words, and at most `MAX_OTHERS` numbers that are neither values
  nor in the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

from dm_jupyter.assist.grounding.numbers import StatedNumber, claimed, numbers_in, stated_numbers
from training.scoring.reader import read_written
from training.scoring.short_answer import is_stated

__all__ = ["MAX_OTHERS", "MAX_WORDS", "numbers_agree", "states_values"]

MAX_WORDS = 150
MAX_OTHERS = 3
_SHOWN_DIGITS = 3
_WIDE = Context(prec=1_000)
"""Decimal context with enough digits for any number of a text."""
_LESS = re.compile(
    r"\b(?:less|lower|below|under|down|fewer|smaller|shorter|cheaper|minus|negative\w*"
    r"|(?:decreas|declin|reduc|drop|fall|fell|sank|shrank|shrink)\w*)\b",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?")


def states_values(
    values: Sequence[str], answer: str, question: str, others: int = MAX_OTHERS
) -> bool:
    """Return whether an answer states every value by the rules above.

    Args:
        values: as the label writes them; without any, no answer is correct.
        answer: in free words.
        question: the question; its numbers may be repeated.
        others: the most numbers that are neither values nor in the question.
    """
    if not values or len(answer.split()) > MAX_WORDS:
        return False
    if not all(_is_stated(value, answer) for value in values):
        return False
    asked = stated_numbers(question)
    found = {
        number.digits
        for number in claimed(answer)
        if _scaled(number) not in asked
        and not any(_equals(number, value, answer) for value in values)
    }
    return len(found) <= others


def numbers_agree(one: str, other: str) -> bool:
    """Return whether two answers claim the same numbers, at least one, rounding aside.

    Texts of more than `MAX_WORDS` words don't agree.
    """
    if max(len(one.split()), len(other.split())) > MAX_WORDS:
        return False
    ours, theirs = list(claimed(one)), list(claimed(other))
    return bool(ours) and all(
        any(_equals(number, second.digits) or _equals(second, number.digits) for second in given)
        for numbers, given in ((ours, theirs), (theirs, ours))
        for number in numbers
    )


def _is_stated(value: str, answer: str) -> bool:
    if read_written(value) is not None:
        return any(_equals(number, value, answer) for number in numbers_in(answer))
    return any(is_stated(spelling, answer) for spelling in (value, *_dates(value)))


def _equals(number: StatedNumber, value: str, answer: str = "") -> bool:
    """Return whether a number of an answer is the value, perhaps rounded or with more digits."""
    written = read_written(value)
    if written is None:
        return False
    wanted, said = written.value, _scaled(number)
    if wanted < 0 < said and _LESS.search(answer):
        wanted = -wanted
    if said == wanted or not _places(wanted):
        return said == wanted
    places = min(number.decimals, _places(wanted))
    unit = Decimal(1).scaleb(-places)
    shown = len(wanted.quantize(unit, context=_WIDE).as_tuple().digits)
    roundings = (ROUND_HALF_EVEN, ROUND_HALF_UP)
    return (places == _places(wanted) or shown >= _SHOWN_DIGITS) and any(
        said.quantize(unit, how, _WIDE) == wanted.quantize(unit, how, _WIDE) for how in roundings
    )


def _scaled(number: StatedNumber) -> Decimal:
    """Return the number as a label writes it: a percentage as it is, thousands multiplied."""
    return Decimal(number.digits).scaleb(max(0, number.exponent), _WIDE)


def _places(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _dates(value: str) -> Iterator[str]:
    """Yield other notations of a day or month such as 2021-11."""
    found = _DATE.fullmatch(value)
    if found is None:
        return
    try:
        day = date(int(found["year"]), int(found["month"]), int(found["day"] or 1))
    except ValueError:  # there is no such day
        return
    for month in ("%B", "%b"):
        if found["day"] is None:
            yield day.strftime(f"{month} %Y")
        else:
            yield f"{day.day} {day.strftime(f'{month} %Y')}"
            yield day.strftime(f"{month} {day.day} %Y")
