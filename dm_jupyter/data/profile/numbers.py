"""Grammar of numbers written as text: one text, split into its parts.

A text such as `CHF 1’000.–` or `(1.234,50 €)` is a sign, a currency, digits with signs between
them, perhaps an exponent, and a unit. The entire column decides what the signs between the digits
mean (`number_inference.py`). Here each text only shows which readings it allows.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

__all__ = [
    "ARROWS",
    "MAGNITUDES",
    "PERCENT",
    "SPACE",
    "NumberText",
    "SeparatorStyle",
    "parse_number",
]

SeparatorStyle: TypeAlias = tuple[str, str]
"""The decimal sign and the grouping sign that a text uses; empty for one that it lacks."""
PERCENT = frozenset("%‰")
ARROWS = frozenset("△▲▽▼↑↓")
"""Signs before a number that mean a minus in Japan, and a rise or a fall elsewhere."""
_ARROWS = "".join(sorted(ARROWS))
SPACE, _APOSTROPHE = " ", "'"
_LONGEST_CHARS = 80
_SPACES = " \t\u00a0\u2007\u2009\u202f"
_SAME_SIGN = {**dict.fromkeys(_SPACES, SPACE), "’": _APOSTROPHE, "‘": _APOSTROPHE}
_DECIMAL_SIGNS = frozenset(".,٫")
_MINUSES = "−–‐‑‒﹣"
_FOLDED = {**dict.fromkeys(map(ord, _MINUSES), "-"), 0x66A: "%"}
_CODES = (
    "AED ARS AUD BDT BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY "
    "KES KRW LKR MXN MYR NGN NOK NZD PEN PHP PKR PLN RMB RON RUB SAR SEK SGD THB TRY TWD UAH USD "
    "VND ZAR AU$ A$ CA$ C$ HK$ NZ$ R$ S$ US$ kr. kr zł Kč Ft lei Rs. Rs SFr. Fr. руб. руб 円 元"
)
_CURRENCY = "|".join(
    [*map(re.escape, sorted(_CODES.split(), key=len, reverse=True)), r"[$¢£¤¥৳฿\u20a0-\u20c0﷼]"]
)
_BETWEEN = rf"\d.,'’‘_٫٬{_SPACES}"
_UNIT = r"(?:[^\W\d_]|°)(?:[^\W\d_]|[°/²³·.]){0,14}"
_NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[-+{_ARROWS}])?\s*(?P<before>{_CURRENCY})?"
    rf"\s*(?P<inner>[-+({_ARROWS}])?\s*"
    rf"(?P<body>\d(?:[{_BETWEEN}]*\d)?|[.,٫]\d+)"
    r"(?P<cents>[.,](?:--?|—)|[:/]-|\.(?=$))?"
    r"(?P<power>(?P<marker>[eE]|[ ]?[×x*·][ ]?10\^)(?P<exponent>[-+]?\d{1,3}))?"
    rf"(?P<trail>-)?(?P<early>\))?(?P<gap>\s*)(?P<after>[%‰]|{_CURRENCY}|{_UNIT})?"
    r"\s*(?P<end>-)?\s*(?P<close>\))?"
)
_INFINITE = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)
_GROUPS = re.compile(r"[1-9]\d{0,2}(G\d{3})+|[1-9]\d?(G\d{2})+G\d{3}")
"""Groups of three, and India's: three at the end and two before."""
MAGNITUDES = frozenset(
    [
        "k",
        "K",
        "M",
        "G",
        "T",
        "B",
        "bn",
        "Bn",
        "BN",
        "mn",
        "Mn",
        "m.",
        "Mio",
        "Mio.",
        "mio",
        "Mrd",
        "Mrd.",
        "mrd",
        "tsd",
        "Tsd.",
        "thousand",
        "million",
        "millions",
        "billion",
        "billions",
        "trillion",
        "lakh",
        "lakhs",
        "crore",
        "crores",
        "Cr",
        "cr",
        "mil",
        "mln",
        "mld",
    ]
)
"""Suffixes that mean a factor."""
_NO_UNITS = frozenset(
    [
        "am",
        "pm",
        "a.m.",
        "p.m.",
        "uhr",
        "st",
        "nd",
        "rd",
        "th",
        "er",
        "e",
        "ère",
        "º",
        "ª",
        "est",
        "est.",
        "ca",
        "ca.",
        "q",
        "w",
        "bis",
    ]
)
"""Suffixes that turn a number into a time of day, a rank or a remark."""
_ONE_LETTER = frozenset("mglshtkVW°")


@dataclass(frozen=True)
class NumberText:
    """A text that is a number, split into its parts."""

    body: str
    """ASCII digits and the signs between them; signs that mean the same are one."""
    readings: frozenset[SeparatorStyle]
    """Possible meanings of the signs in the body; two if one text can't decide."""
    is_negative: bool = False
    place: str = ""
    """Position of the minus: `before`, `after`, `parentheses`; empty without one."""
    has_plus: bool = False
    exponent: int | None = None
    currency: str = ""
    unit: str = ""
    """Per cent, per mille, a word after the number, or the arrow before it."""
    tokens: frozenset[str] = frozenset()
    """Parts to remove before the text is a number: currency, unit, `.–` or `:-` for no cents."""
    marker: str = ""
    """Marker before the exponent."""
    minuses: frozenset[str] = frozenset()
    """Minus signs other than `-`."""
    spaces: frozenset[str] = frozenset()
    """Blanks and apostrophes inside the text, as written."""
    is_wide: bool = False
    """Whether it has full-width characters, which Unicode's NFKC makes narrow."""
    zeros: frozenset[str] = frozenset()
    """The digit zero of each other script in it."""
    is_infinite: bool = False

    def value(self, decimal: str, grouping: str) -> Decimal:
        """Return the number that the text means with these signs; per cent stays in per cent.

        Raises:
            decimal.InvalidOperation: the body contains another sign.
        """
        if self.is_infinite:
            return Decimal("-inf") if self.is_negative else Decimal("inf")
        digits = self.body.replace(grouping, "") if grouping else self.body
        digits = digits.replace(decimal, ".") if decimal else digits
        number = Decimal(digits).scaleb(self.exponent or 0)
        return -number if self.is_negative else number

    @property
    def digits(self) -> int:
        """How many digits the body has."""
        return sum(character.isdecimal() for character in self.body)


@lru_cache(maxsize=4096)
def parse_number(text: str) -> NumberText | None:  # noqa: PLR0911
    """Return the parts of a text; `None` if it is not a number.

    Args:
        text: the text, without blanks around it.
    """
    if len(text) > _LONGEST_CHARS or not text:
        return None
    if _INFINITE.fullmatch(text):
        return NumberText("inf", frozenset({("", "")}), text[0] == "-", is_infinite=True)
    if not any(character.isdecimal() for character in text):
        return None
    narrow = text if text.isascii() else "".join(map(_narrow, text))
    folded = narrow if narrow.isascii() else _ascii_digits(narrow.translate(_FOLDED))
    match = _NUMBER.fullmatch(folded)
    if match is None:
        return None
    place = _place_of_minus(match)
    after = match["after"] or ""
    is_currency = bool(re.fullmatch(_CURRENCY, after)) if after else False
    unit = "" if is_currency else after
    if place is None or (unit and not _is_unit(unit, match["gap"])):
        return None
    if match["early"] and unit not in {"", *PERCENT}:  # "(1) see below" is not a number
        return None
    unit = next(iter({match["sign"], match["inner"]} & ARROWS), unit)
    body, readings = _readings(match["body"], match["cents"])
    if not readings or (is_currency and match["before"] and after != match["before"]):
        return None
    cents = match["cents"] if match["cents"] not in {None, "."} else ""
    return NumberText(
        body,
        readings,
        bool(place),
        place,
        "+" in {match["sign"], match["inner"]},
        int(match["exponent"]) if match["power"] else None,
        (match["before"] or "") + (after if is_currency and not match["before"] else ""),
        unit,
        frozenset(filter(None, [match["before"], after, _as_written(narrow, cents)])),
        match["marker"] or "",
        frozenset(narrow) & frozenset(_MINUSES),
        frozenset(narrow) & frozenset(_SAME_SIGN),
        narrow != text,
        frozenset(_zero_of(character) for character in narrow if _is_foreign(character)),
    )


def _narrow(character: str) -> str:
    """Return a full-width character in its usual width."""
    is_wide = "\uff01" <= character <= "\uff5e" or character in "\u3000￠￡￥￦"
    return unicodedata.normalize("NFKC", character) if is_wide else character


def _is_foreign(character: str) -> bool:
    return character.isdecimal() and not character.isascii()


def _zero_of(character: str) -> str:
    return chr(ord(character) - unicodedata.decimal(character))


def _ascii_digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(c)) if _is_foreign(c) else c for c in text)


def _as_written(narrow: str, cents: str | None) -> str:
    """Return the dashes in place of cents with the minus sign that the text has."""
    if not cents:
        return ""
    dashes = rf"[.,:/][-—{_MINUSES}]{{{len(cents) - 1}}}"
    found = re.search(dashes, narrow)
    return found[0] if found else cents


def _place_of_minus(match: re.Match[str]) -> str | None:
    """Return the position of the minus, empty without one; `None` if signs contradict."""
    opens = [match["open"] == "(", match["inner"] == "("]
    signs = [match["sign"] or "", (match["inner"] or "").strip("(")]
    trails = [sign for sign in (match["trail"], match["end"]) if sign]
    closes = [match["early"], match["close"]]
    if sum(opens) != sum(close is not None for close in closes):
        return None
    if any(opens):
        return "parentheses" if not any(signs) and not trails else None
    given = [sign for sign in (*signs, *trails) if sign and sign not in ARROWS]
    if len(given) > 1:
        return None
    if trails:
        return "after"
    return "before" if given == ["-"] else ""


def _is_unit(unit: str, gap: str) -> bool:
    """Return whether a word after a number can be its unit, not a part of a code or a remark."""
    if unit in PERCENT:
        return True
    if unit.casefold() in _NO_UNITS or not (unit[0].isalpha() or unit[0] == "°"):
        return False
    if gap:
        return True
    # "12A" and "747MAX" are names of things; "5kg" and "10m" are measures.
    if len(unit) == 1:
        return unit in _ONE_LETTER or unit in MAGNITUDES
    return any(character.islower() or character == "°" for character in unit) or unit in _UPPER


_UPPER = frozenset(["KB", "MB", "GB", "TB", "MW", "GW", "TW", "HP", "PS", "BN"])


def _readings(body: str, cents: str | None) -> tuple[str, frozenset[SeparatorStyle]]:
    """Return the body with one sign for each meaning, and what its signs can mean."""
    body = "".join(_SAME_SIGN.get(character, character) for character in body)
    signs = [character for character in body if not character.isdecimal()]
    if cents == ".":
        signs.append(".")
        body += "."
    kinds = set(signs)
    found: set[SeparatorStyle] = set()
    for decimal in ["", *(kinds & _DECIMAL_SIGNS)]:
        if decimal and (signs.count(decimal) != 1 or signs[-1] != decimal or _is_dashes(cents)):
            continue
        rest = kinds - {decimal}
        whole = body.split(decimal)[0] if decimal else body
        if not rest:
            found.add((decimal, ""))
        elif len(rest) == 1:
            (grouping,) = rest
            if _GROUPS.fullmatch(whole.replace(grouping, "G")):
                found.add((decimal, grouping))
    return body, frozenset(found)


def _is_dashes(cents: str | None) -> bool:
    return cents is not None and cents != "."
