"""Inference from all texts of one column: numbers of one format, codes, or neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from dm_jupyter.data.profile.cell_words import is_missing_word
from dm_jupyter.data.profile.numbers import (
    ARROWS,
    MAGNITUDES,
    PERCENT,
    SPACE,
    NumberText,
    SeparatorStyle,
    parse_number,
)

__all__ = ["NumberFormat", "NumberInference", "NumberKind"]

_REMEMBERED = 20
_ENOUGH, _ENOUGH_BESIDE_WORDS, _FEW_WORDS = 0.5, 0.05, 3
_LONG_DIGITS, _PHONE_DIGITS, _GROUPED_DIGITS = 15, 7, 9
_SAME_DIGITS = str.maketrans("23456789", "11111111")
"""Map from digits to the form of a number.
What a number means for its column depends only on the positions of its digits and zeros, so one
text of each form is parsed."""
_MOST_FORMS = 20_000
"""Most forms of a column; texts of further forms are parsed one by one."""
_SAME_MONEY = {"€": "EUR", "£": "GBP"}
_SIZES = {
    unit: (quantity, Decimal(size))
    for quantity, units in {
        "length": "mm 0.001, cm 0.01, dm 0.1, m 1, km 1000",
        "mass": "mg 0.001, g 1, kg 1000, t 1000000",
        "volume": "ml 0.001, cl 0.01, dl 0.1, l 1, L 1, hl 100",
        "time": "s 1, sec 1, min 60, mins 60, h 3600, hr 3600, hrs 3600",
        "power": "W 1, kW 1000, MW 1000000, GW 1000000000",
        "energy": "Wh 1, kWh 1000, MWh 1000000, GWh 1000000000",
    }.items()
    for unit, size in (pair.split() for pair in units.split(", "))
}
"""Units with one meaning: their quantity, and their size in its smallest whole unit.
Bytes are left out, because a kilobyte is 1,000 or 1,024 of them."""


class NumberKind(Enum):
    """Kind of a text column."""

    TEXT = "text"
    PLAIN = "numbers as code writes them"
    FORMATTED = "numbers in one format"
    CODE = "identifiers"
    AMBIGUOUS = "numbers with two readings"
    MIXED = "numbers that are not one quantity, or in several formats"
    PARTIAL = "numbers with other texts among them"


@dataclass(frozen=True)
class NumberFormat:
    """Notation of a column's numbers: enough to read each of them, and to generate the code."""

    decimal: str = ""
    """Decimal sign; empty if no text has one."""
    grouping: str = ""
    """Grouping sign; a blank means every kind of blank, `'` both apostrophes."""
    tokens: frozenset[str] = frozenset()
    """Currency, unit and dashes for cents, which must be removed."""
    places: frozenset[str] = frozenset()
    """Positions of the minus: `before`, `after`, `parentheses`."""
    minuses: frozenset[str] = frozenset()
    """Minus signs other than `-`."""
    spaces: frozenset[str] = frozenset()
    """Blanks and apostrophes inside the texts, as written."""
    markers: frozenset[str] = frozenset()
    """Markers before exponents."""
    is_wide: bool = False
    """Whether full-width characters occur."""
    zeros: frozenset[str] = frozenset()
    """The digit zero of each script other than ASCII."""
    currency: str = ""
    """The one currency; empty if there is none."""
    unit: str = ""
    """The one unit, possibly `%`; empty if there is none."""
    factors: tuple[tuple[str, Decimal], ...] = ()
    """Units with the factors that turn their numbers into the one unit; empty if it is alone."""

    @property
    def is_plain(self) -> bool:
        """Whether pandas reads it without any option."""
        return (
            self.decimal in {"", "."}
            and not (self.grouping or self.tokens or self.minuses or self.spaces or self.zeros)
            and self.places <= {"before"}
            and self.markers <= {"e", "E"}
            and not self.is_wide
        )

    def value(self, text: str) -> Decimal | None:
        """Return the number a text means; `None` for text that is not a number of this format."""
        number = parse_number(text.strip())
        if number is None:
            return None
        if not any(
            decimal in {"", self.decimal} and grouping in {"", self.grouping}
            for decimal, grouping in number.readings
        ):
            return None
        value = number.value(self.decimal, self.grouping)
        if not self.factors or not value:
            return value
        factor = dict(self.factors).get(number.unit)
        return None if factor is None else value * factor


class NumberInference:
    """Inference from the texts of a column, piece by piece, in memory that does not grow."""

    def __init__(self) -> None:
        self.total = 0
        self.native = 0
        self.numbers = 0
        self.missing: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        """The first few texts that are not numbers."""
        self.other_count = 0
        self.readings: dict[frozenset[SeparatorStyle], str] = {}
        """Possible readings, with an example of each."""
        self.currencies: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self._unit_counts: Counter[str] = Counter()
        self.has_bare = False
        """Whether a number other than zero without currency and unit was seen."""
        self.example = ""
        self._parts: dict[str, set[str]] = {
            name: set() for name in ("tokens", "places", "minuses", "spaces", "markers", "zeros")
        }
        self.forms: dict[str, str] = {}
        """A text of each form, by the form."""
        self._is_wide = False
        self._codes: Counter[str] = Counter()
        self._grouped_widths: set[int] = set()

    def add(self, texts: Mapping[str, int], *, native: int = 0) -> None:
        """Learn from distinct texts.

        Args:
            texts: the texts, with their counts.
            native: values beside them that are numbers already, as in a sheet.
        """
        self.native += native
        self.total += native
        self.numbers += native
        self.has_bare = self.has_bare or native > 0
        for text, count in self._by_form(texts).items():
            bare = text.strip()
            if is_missing_word(bare):
                if len(self.missing) < _REMEMBERED or bare in self.missing:
                    self.missing[bare] += count
                continue
            self.total += count
            number = parse_number(bare)
            if number is None:
                self._add_other(bare, count)
            else:
                self.numbers += count
                self._add_number(bare, number, count)

    def _by_form(self, texts: Mapping[str, int]) -> Mapping[str, int]:
        """Return one text for all of a form, with their total count."""
        counts: dict[str, int] = {}
        known, most = self.forms, _MOST_FORMS
        for text, count in texts.items():
            form = text.translate(_SAME_DIGITS)
            shown = known.get(form) or text
            if shown is text and len(known) < most:
                known[form] = text
            counts[shown] = counts.get(shown, 0) + count
        return counts

    def _add_other(self, text: str, count: int) -> None:
        self.other_count += count
        if len(self.others) < _REMEMBERED or text in self.others:
            self.others[text] += count

    def _add_number(self, text: str, number: NumberText, count: int) -> None:
        if len(self.readings) < _REMEMBERED:
            self.readings.setdefault(number.readings, text)
        if len(number.body) + len(number.tokens) > len(self.example) or not self.example:
            self.example = text if len(text) > len(self.example) else self.example
        for sign, seen in ((number.currency, self.currencies), (number.unit, self.units)):
            if sign and len(seen) < _REMEMBERED:
                seen.setdefault(_SAME_MONEY.get(sign, sign), text)
        if number.unit in self.units:
            self._unit_counts[number.unit] += count
        is_zero = not number.body.strip("0.,")
        self.has_bare |= not (number.currency or number.unit or is_zero)
        parts = self._parts
        parts["tokens"] |= number.tokens
        parts["places"] |= {number.place} - {""}
        parts["minuses"] |= number.minuses
        parts["spaces"] |= number.spaces
        parts["markers"] |= {number.marker} - {""}
        parts["zeros"] |= number.zeros
        self._is_wide |= number.is_wide
        self._add_code(text, number, count)

    def _add_code(self, text: str, number: NumberText, count: int) -> None:
        if text.isdecimal():
            self._codes["digits"] += count
            self._codes["zero_led"] += count * (len(text) > 1 and text[0] == "0")
            self._codes["long"] += count * (len(text) > _LONG_DIGITS)
        elif text.isalnum() and number.marker in {"e", "E"}:
            self._codes["exponent"] += count
        elif number.has_plus and number.digits >= _PHONE_DIGITS:
            self._codes["phone"] += count
        elif text.replace(SPACE, "").isdecimal():
            self._codes["grouped"] += count
            self._grouped_widths.add(number.digits)

    def _code_reason(self) -> str:
        """Return why the numbers are names of things; empty if nothing suggests it."""
        codes = self._codes
        alike = codes["digits"] + codes["exponent"]
        if alike == self.numbers:
            if codes["zero_led"]:
                return "leading zeros"
            if codes["long"]:
                return f"more than {_LONG_DIGITS} digits"
            if codes["exponent"] and codes["digits"]:
                return "codes such as 1E5"
        if codes["phone"] and codes["phone"] + codes["digits"] == self.numbers:
            return "telephone numbers"
        widths = self._grouped_widths
        if codes["grouped"] >= 3 and codes["grouped"] == self.numbers and len(widths) == 1:
            return "numbers of one length in groups" if min(widths) >= _GROUPED_DIGITS else ""
        return ""

    def readings_left(self) -> list[SeparatorStyle]:
        """Return each pair of decimal and grouping sign with which every number can be read."""
        signs = {sign for texts in self.readings for pair in texts for sign in pair if sign}
        found = []
        for decimal in ["", *sorted(signs & set(".,٫"))]:
            for grouping in ["", *sorted(signs)]:
                used = {decimal, grouping} - {""}
                if used != signs or (decimal and decimal == grouping):
                    continue
                if all(
                    any(d in {"", decimal} and g in {"", grouping} for d, g in texts)
                    for texts in self.readings
                ):
                    found.append((decimal, grouping))
        return found

    def kind(self) -> tuple[NumberKind, str]:
        """Return the kind of the column, and for codes and mixtures the reason in words."""
        if not (self.readings or self.native) or (self.other_count and not self._is_partial()):
            return NumberKind.TEXT, ""
        if self.other_count:
            reason = self._code_reason()
            return (NumberKind.CODE if reason else NumberKind.PARTIAL), reason
        if not self.readings:
            return NumberKind.TEXT, ""
        if reason := self._code_reason():
            return NumberKind.CODE, reason
        if reason := self.mixture():
            return NumberKind.MIXED, reason
        return self._kind_of_signs()

    def _is_partial(self) -> bool:
        """Return whether numbers are the rule, or the other texts are only a few words.

        Words that repeat often, such as "not measured", take the place of a number.
        """
        words = self.others
        is_few = len(words) <= _FEW_WORDS and self.other_count > len(words)
        is_few = is_few and not any(character.isdecimal() for word in words for character in word)
        return self.numbers >= (_ENOUGH_BESIDE_WORDS if is_few else _ENOUGH) * max(1, self.total)

    def _kind_of_signs(self) -> tuple[NumberKind, str]:
        left = self.readings_left()
        if not left:
            return NumberKind.MIXED, "number formats"
        if len(left) > 1:
            return NumberKind.AMBIGUOUS, ""
        return (NumberKind.PLAIN if self.format(*left[0]).is_plain else NumberKind.FORMATTED), ""

    def bare_below_thousand(self) -> str:
        """Return a whole number of at most three digits, if all longer ones have a sign.

        Empty if there is none. If all other numbers have a sign before their last three digits,
        that sign separates thousands: a decimal sign would not be missing from this number.
        """
        bare = [text for form, text in self.forms.items() if form.isdecimal()]
        if not bare or len(self.forms) >= _MOST_FORMS or any(len(text) > 3 for text in bare):
            return ""
        return bare[0]

    def mixture(self) -> str:
        """Return what kinds of numbers are mixed, such as currencies; empty if none are."""
        if len(self.currencies) > 1:
            return "currencies"
        if self.units.keys() & ARROWS:
            return "arrows that can mean a minus, a rise or a fall,"
        is_percent = bool(self.units.keys() & PERCENT)
        if (len(self.units) > 1 and not self.factors()) or (self.units and self.currencies):
            return "units"
        if self.units and self.has_bare:
            return "percentages and plain numbers" if is_percent else "units and plain numbers"
        if self.units.keys() & MAGNITUDES:
            return "words for a factor"
        return ""

    def factors(self) -> tuple[tuple[str, Decimal], ...]:
        """Return each unit with the factor that turns it into the most frequent one.

        Empty if there is one unit, or the units are not known to measure the same quantity.
        """
        units = self._unit_counts
        if len(units) < 2 or len(self.units) >= _REMEMBERED or self.has_bare:
            return ()
        if not units.keys() <= _SIZES.keys() or len({_SIZES[unit][0] for unit in units}) > 1:
            return ()
        _, whole = _SIZES[units.most_common(1)[0][0]]
        return tuple((unit, _SIZES[unit][1] / whole) for unit in sorted(units))

    def format(self, decimal: str, grouping: str) -> NumberFormat:
        """Return the format for one of the remaining readings."""
        parts = {name: frozenset(values) for name, values in self._parts.items()}
        return NumberFormat(
            decimal,
            grouping,
            **parts,
            is_wide=self._is_wide,
            currency=next(iter(self.currencies), ""),
            unit=next((unit for unit, _ in self._unit_counts.most_common(1)), ""),
            factors=self.factors(),
        )

    def examples(self) -> list[str]:
        """Return one text of each currency, unit or kind of signs, the most telling first."""
        few = {*self.currencies.values(), *self.units.values()}
        several = len(few) > 1
        return sorted(few) if several else list(self.readings.values())
