"""How the world writes numbers: locales, and columns drawn from them with what they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from hypothesis import strategies as st

__all__ = ["LOCALES", "Column", "Locale", "columns"]


@dataclass(frozen=True)
class Locale:
    """The forms that one country's or program's numbers take."""

    decimal: str
    groupings: tuple[str, ...]
    """Signs between the thousands; one column uses one or none."""
    money: tuple[str, ...] = ()
    """Forms of an amount, `{}` for the number; one column uses one."""
    round_money: tuple[str, ...] = ()
    """The same for amounts without cents, with dashes in their place."""
    percents: tuple[str, ...] = ("{}%", "{} %")
    minuses: tuple[str, ...] = ("-{}",)
    separators: tuple[str, ...] = (",", ";", "\t")
    """Between the fields of its csv files."""
    is_indian: bool = False
    """Groups of two after the first three digits."""
    is_scientific: bool = False


_CONTINENTAL = Locale(",", (".",), separators=(";", "\t", ","))
_SPACED = Locale(",", ("\u202f", "\u00a0", " "), separators=(";", "\t", ","))
_ENGLISH = Locale(".", (",",))
LOCALES: dict[str, Locale] = {
    "de": replace(
        _CONTINENTAL,
        money=("{} €", "{}\u00a0€", "EUR {}", "{} EUR"),
        round_money=("{},– €", "{},-- €"),
        percents=("{} %", "{}\u00a0%", "{}%"),
        minuses=("-{}", "−{}"),
    ),
    "at": replace(_CONTINENTAL, money=("€ {}", "€\u00a0{}"), round_money=("€ {},–", "€ {},-")),
    "es": replace(_CONTINENTAL, money=("{} €", "{}€"), percents=("{} %", "{}%")),
    "br": replace(_CONTINENTAL, money=("R$ {}", "R${}", "R$\u00a0{}")),
    "sap": replace(_CONTINENTAL, minuses=("{}-",), separators=("|", "\t"), money=("{} EUR",)),
    "fr": replace(
        _SPACED, money=("{} €", "{}\u00a0€", "{}\u202f€"), percents=("{} %", "{}\u202f%")
    ),
    "se": replace(
        _SPACED, money=("{} kr", "{} SEK"), round_money=("{}:-",), minuses=("−{}", "-{}")
    ),
    "no": replace(_SPACED, money=("kr {}", "NOK {}"), round_money=("kr {},-",)),
    "pl": replace(_SPACED, money=("{} zł", "{} PLN")),
    "cz": replace(_SPACED, money=("{} Kč", "{} CZK"), round_money=("{},- Kč",)),
    "ch": Locale(
        ".", ("'", "’"), ("CHF {}", "{} CHF", "Fr. {}"), ("CHF {}.–", "Fr. {}.-", "{}.--")
    ),
    "in": replace(
        _ENGLISH,
        money=("₹{}", "₹ {}", "Rs. {}", "INR {}"),
        round_money=("Rs. {}/-",),
        is_indian=True,
    ),
    "us": replace(
        _ENGLISH, money=("${}", "$ {}", "USD {}", "{} USD", "US$ {}"), minuses=("-{}", "({})")
    ),
    "uk": replace(_ENGLISH, money=("£{}", "£ {}", "GBP {}")),
    "jp": replace(_ENGLISH, money=("¥{}", "￥{}", "{}円", "JPY {}"), minuses=("-{}", "△{}", "▲{}")),
    "accounting": replace(_ENGLISH, money=("${}", "$ {}", " {} "), minuses=("({})",)),
    "scientific": Locale(".", ("",), is_scientific=True),
    "scientific-comma": Locale(",", ("",), is_scientific=True, separators=(";", "\t")),
    "underscore": Locale(".", ("_",)),
    "arabic": Locale("٫", ("٬",), percents=("{}٪",)),
}
MISSING = ("", "", "n/a", "NA", "-", "–", "k. A.", "N/D", "..", "#N/A", "n.d.", "null")
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


@dataclass(frozen=True)
class Column:
    """The texts of a column, and the numbers that they are."""

    texts: list[str]
    numbers: list[Decimal | None]


def _grouped(digits: str, sign: str, *, is_indian: bool) -> str:
    parts, size = [], 3
    while len(digits) > size:
        parts.insert(0, digits[-size:])
        digits = digits[:-size]
        size = 2 if is_indian else 3
    return sign.join([digits, *parts])


@dataclass(frozen=True)
class _Form:
    """What all numbers of one column share."""

    locale: Locale
    places: int
    grouping: str
    frame: str
    minus: str
    is_minus_outside: bool
    """The minus stands outside of the currency: `-$5`, not `$-5`."""
    power: str
    """What parts digits and exponent of a scientific number."""

    def text(self, number: Decimal) -> str:
        body, minus = self._body(abs(number)), self.minus if number < 0 else "{}"
        first, second = (self.frame, minus) if self.is_minus_outside else (minus, self.frame)
        text = second.format(first.format(body))
        return text.translate(_ARABIC) if self.locale.decimal == "٫" else text

    def _body(self, number: Decimal) -> str:
        if self.locale.is_scientific:
            digits, _, exponent = f"{number:.9e}".partition("e")
            return f"{digits.replace('.', self.locale.decimal)}{self.power}{int(exponent):+03d}"
        whole, _, fraction = f"{number:.{self.places}f}".partition(".")
        grouped = _grouped(whole, self.grouping, is_indian=self.locale.is_indian)
        return grouped + (self.locale.decimal + fraction if self.places else "")


@st.composite
def _forms(draw: st.DrawFn, locale: Locale) -> _Form:
    places = draw(st.integers(0, 3))
    frames = ["{}", *locale.money, *locale.percents]
    if locale.round_money and draw(st.booleans()):
        places, frames = 0, list(locale.round_money)
    return _Form(
        locale,
        places,
        draw(st.sampled_from(["", *locale.groupings, *locale.groupings])),
        "{}" if locale.is_scientific else draw(st.sampled_from(frames)),
        draw(st.sampled_from(locale.minuses)),
        draw(st.booleans()),
        draw(st.sampled_from(["E", "e"])),
    )


def _is_no_sign(number: int) -> bool:
    return abs(number) < 99 or len(set(str(abs(number)))) > 1


@st.composite
def columns(draw: st.DrawFn, locale: Locale, rows: int) -> Column:
    """Draws a column in one form of a locale, with values missing here and there."""
    form = draw(_forms(locale))
    most = 10 ** draw(st.sampled_from([2, 4, 6, 9]))
    # 999 and its like stand for missing in many files: what they mean is a matter of other tests.
    figures = st.integers(-most, most).filter(_is_no_sign)
    integers = draw(st.lists(figures, min_size=rows, max_size=rows))
    numbers = [Decimal(integer).scaleb(-form.places) for integer in integers]
    texts = [form.text(number) for number in numbers]
    mark = draw(st.sampled_from(MISSING))
    gone = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    if draw(st.booleans()) or all(gone):
        gone = [False] * rows
    return Column(
        [mark if is_gone else text for text, is_gone in zip(texts, gone, strict=True)],
        [None if is_gone else number for number, is_gone in zip(numbers, gone, strict=True)],
    )
