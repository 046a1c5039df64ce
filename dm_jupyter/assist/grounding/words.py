"""Words of answers and of labels in a comparable form, and the units they name."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = [
    "DAYS",
    "HIGHEST",
    "LOWEST",
    "MONTH_NAMES",
    "Unit",
    "content_words",
    "scale_of_label",
    "scales_named",
    "smaller_units",
    "unit_after",
    "unit_of_label",
]

_WORD = re.compile(
    r"#\d+|@\d\d-\d\d|\d{4}-\d{2}(?:-\d{2})?|\d+(?:[.,–-]\d+)*\+?%?|[^\W\d_]+\d*(?:['’][a-z]+)?"
)
_HUMP = re.compile(r"(?<=[a-z][a-z])(?=[A-Z])")
_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "by",
        "for",
        "from",
        "to",
        "with",
        "and",
        "or",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "their",
        "there",
        "as",
        "than",
        "then",
        "which",
        "who",
        "whose",
        "per",
        "each",
        "all",
        "any",
        "about",
        "around",
        "roughly",
        "approximately",
        "nearly",
        "almost",
        "over",
        "under",
        "more",
        "less",
        "between",
        "into",
        "out",
        "up",
        "down",
        "we",
        "you",
        "so",
        "also",
        "only",
        "just",
        "both",
        "while",
        "whereas",
        "but",
        "however",
        "e",
        "g",
        "i",
        "ie",
        "eg",
        "np",
        "float",
        "int",
        "value",
        "data",
        "dtype",
        "name",
        "object",
        "respectively",
    ]
)
_SAME = {
    "conversion": "convert", "admission": "admit", "death": "die", "died": "die",
    "birth": "born", "non": "not", "whole": "sum", "entire": "sum",
    "average": "mean", "avg": "mean", "averaged": "mean", "medians": "median",
    "maximum": "max", "minimum": "min", "standard": "std", "deviation": "std", "sd": "std",
    "stdev": "std", "variance": "var", "number": "count", "counts": "count", "n": "count",
    "row": "count", "record": "count", "observation": "count", "entries": "count",
    "entry": "count", "len": "count", "size": "count", "nunique": "count",
    "percentage": "pct", "percent": "pct", "proportion": "share", "fraction": "share",
    "correlation": "corr", "coefficient": "corr", "pearson": "corr", "50%": "median",
    "total": "sum", "amount": "sum", "f": "female", "women": "female", "woman": "female",
    "men": "male", "man": "male", "female": "female", "male": "male",
    "quantity": "qty", "rmse": "rmse", "revenue": "revenue", "weight": "mass", "weigh": "mass",
    "null": "missing", "nan": "missing", "isna": "missing", "slope": "slope", "intercept": "const",
}  # fmt: skip
HIGHEST = re.compile(
    r"\b(?:heaviest|highest|largest|biggest|greatest|longest|oldest|tallest|hottest|warmest|widest|"
    r"maximum|strongest|richest|busiest|priciest|wettest|peak(?:s|ed)?|"
    r"the most(?!\s\w*(?:al|ic|ive|ful|ous|able|ible|ate|ant|ent)\b)|"
    r"most (?:expensive|populous|popular|frequent|common)|leads (?:with|the)|top-selling|"
    r"best-selling)\b",
    re.IGNORECASE,
)
LOWEST = re.compile(
    r"\b(?:lightest|lowest|smallest|fewest|shortest|youngest|coldest|coolest|narrowest|minimum|"
    r"weakest|poorest|cheapest|driest|least (?:expensive|populous|popular|frequent|common)|"
    r"the least)\b",
    re.IGNORECASE,
)
_KEPT = frozenset((*_SAME.values(), "june"))
MONTH_NAMES = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH_OF = {month[:3]: month for month in MONTH_NAMES} | {"sept": "september"}
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_DAY_OF = {day[:3]: day for day in DAYS} | {
    "tues": "tuesday", "thur": "thursday", "thurs": "thursday"
}  # fmt: skip
_MONTH_NAME = "|".join([*MONTH_NAMES, *(f"{month[:3]}" for month in MONTH_NAMES), "sept"])
_NO_DAYS = frozenset(("sat", "sun", "wed"))
"""Short names of days that are words, as of the weather, if they begin with a small letter."""
_DAY_OF_MONTH = re.compile(
    rf"\b(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\.?(?: of)? (?P<month>{_MONTH_NAME})\b"
    rf"|\b(?P<month2>{_MONTH_NAME})\.? (?P<day2>[0-3]?\d)(?:st|nd|rd|th)?\b(?![.,]?\d)"
    r"|\b\d{4}-(?P<month3>0[1-9]|1[0-2])-(?P<day3>[0-3]\d)\b",
    re.IGNORECASE,
)
_PERCENTILE = re.compile(
    r"(?<![^\W_])(?:(\d{1,2})(?:st|nd|rd|th)[ -](?:percentile|quantile)|p(\d{2}))(?![^\W_])",
    re.IGNORECASE,
)
_BOTTOM = re.compile(r"\b(?:bottom|poorest|lower|lowest) (\d{1,2})\s?%", re.IGNORECASE)
_TOP = re.compile(r"\b(?:top|richest|upper|highest) (\d{1,2})\s?%", re.IGNORECASE)
_QUARTILES = (
    (re.compile(r"\b(?:first|lower|1st|bottom) quartile\b", re.IGNORECASE), "25%"),
    (re.compile(r"\b(?:third|upper|3rd|top) quartile\b", re.IGNORECASE), "75%"),
)
_QUANTILE_LABEL = re.compile(r"0\.(\d{1,2})0*")


def content_words(text: str, *, is_label: bool = False) -> tuple[str, ...]:
    """Return the distinguishing words of a text: lower case, singular, synonyms unified.

    A date also yields its parts, so that `March 2014` matches `2014-03-31`.

    Args:
        text: of an answer, or a label.
        is_label: whether to keep single letters, which name something in a label.
    """
    return _content_words(text[:400], is_label)


@lru_cache(maxsize=8_192)
def _content_words(text: str, is_label: bool) -> tuple[str, ...]:
    found: list[str] = []
    text = unicodedata.normalize("NFC", text)  # `ö` may be `o` with a mark, which ends a word
    if is_label and text.strip().lower() == "m":
        return ("male",)
    text = _with_days(_with_quantiles(_HUMP.sub(" ", text), is_label=is_label))
    for match in _WORD.finditer(text.replace("_", " ")):
        written = match.group(0)
        word = written.lower()
        if word[0] in "#@":
            found.append(word)
            continue
        if word[0].isdecimal():
            found += _of_digits(word)
            continue
        word = re.sub(r"['’](?:s|t|re)?$", "", word)
        is_glued = "_" in text[max(0, match.start() - 1) : match.end() + 1]
        is_letter = (is_label or is_glued) and len(word) == 1
        if word in _STOP and not is_letter and not written.isupper():
            continue
        may_be_day = written[0].isupper() or (is_label and word not in _NO_DAYS)
        day = _DAY_OF.get(word, "") if may_be_day else ""
        if day[:3] in _NO_DAYS and not is_label:
            found.append(day[:3])  # the label may be either
        found.append(_SAME.get(word) or day or _month(word) or _singular(word))
    return tuple(found)


def _with_days(text: str) -> str:
    """Return the text with each day of a month followed by a uniform form: `5 March @03-05`."""
    if not _DAY_OF_MONTH.search(text):
        return text
    return _DAY_OF_MONTH.sub(lambda match: f"{match[0]} {_day(match)}", text)


def _day(match: re.Match[str]) -> str:
    day = int(match["day"] or match["day2"] or match["day3"])
    if match["month3"]:
        return f"@{match['month3']}-{day:02d}"
    month = MONTH_NAMES.index(_MONTH_OF[(match["month"] or match["month2"])[:3].lower()]) + 1
    return f"@{month:02d}-{day:02d}"


def _with_quantiles(text: str, *, is_label: bool) -> str:
    """Return the text with uniform quantiles: `95%` for `95th percentile`, `p95` and `0.95`."""
    if is_label and (match := _QUANTILE_LABEL.fullmatch(text)):
        return f"{match[1]:0<2}%"
    if "p" not in text and "q" not in text and "%" not in text:
        return text
    text = _BOTTOM.sub(r"\1%", text)
    text = _TOP.sub(lambda match: f"{100 - int(match[1])}%", text)
    text = _PERCENTILE.sub(lambda match: f"{match[1] or match[2]}%", text)
    for pattern, name in _QUARTILES:
        text = pattern.sub(name, text)
    return text


def _of_digits(word: str) -> tuple[str, ...]:
    word = word.replace("–", "-")
    year, dash, rest = word.partition("-")
    if dash and len(year) == 4 and rest[:2].isdecimal() and 1 <= int(rest[:2]) <= 12:
        return (word, year, MONTH_NAMES[int(rest[:2]) - 1])
    if dash and year.isdecimal() and rest.isdecimal():
        return (word, year, rest)
    return (word, word[:-1]) if word[-1] == "+" else (_SAME.get(word, word),)


def _month(word: str) -> str:
    return _MONTH_OF.get(word, "") if len(word) <= 4 and word != "may" else ""


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith(("ies", "ie")):  # `Adelies` and `Adelie`
        word = word[: word.rindex("ie")] + "y"
    elif len(word) > 4 and word.endswith("es"):
        word = _SAME.get(word[:-1], word[:-2])
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if len(word) > 5 and word.endswith("ed"):
        word = word[:-2]
    elif len(word) > 6 and word.endswith("ing"):
        word = word[:-3]
    word = _SAME.get(word, word)
    return word[:-1] if len(word) > 3 and word.endswith("e") and word not in _KEPT else word


Unit = tuple[str, float]
"""The measured quantity, and the size in the smallest unit of that quantity."""

_UNITS: dict[str, Unit] = {}
_KINDS: dict[str, dict[str, float]] = {
    "mass": {"mg": 1e-3, "g": 1, "gram": 1, "kg": 1e3, "kilogram": 1e3, "kilo": 1e3, "tonne": 1e6,
             "t": 1e6, "lb": 453.59237, "pound": 453.59237},
    "length": {"mm": 1, "millimeter": 1, "millimetre": 1, "cm": 10, "centimeter": 10,
               "centimetre": 10, "metre": 1e3, "meter": 1e3, "km": 1e6, "kilometer": 1e6,
               "kilometre": 1e6, "mile": 1609344, "inch": 25.4, "ft": 304.8, "feet": 304.8},
    "time": {"ms": 1e-3, "millisecond": 1e-3, "s": 1, "sec": 1, "second": 1, "minute": 60,
             "mins": 60, "h": 3600, "hr": 3600, "hour": 3600, "day": 86400, "week": 604800},
    "span": {"month": 1, "year": 12},
    "celsius": {"°c": 1, "celsius": 1}, "fahrenheit": {"°f": 1, "fahrenheit": 1},
    "cent": {"cent": 1, "pence": 1, "penny": 1}, "dollar": {"$": 1, "usd": 1, "dollar": 1},
    "euro": {"€": 1, "eur": 1, "euro": 1}, "sterling": {"£": 1, "gbp": 1},
    "energy": {"wh": 1, "kwh": 1e3, "mwh": 1e6, "gwh": 1e9},
    "power": {"kw": 1e3, "mw": 1e6, "gw": 1e9}, "volume": {"ml": 1, "l": 1e3, "litre": 1e3,
                                                            "liter": 1e3},
    "bytes": {"byte": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4},
    "percent": {"%": 1, "pct": 1, "percent": 1, "percentage": 1},
}  # fmt: skip
for _kind, _names in _KINDS.items():
    _UNITS |= {name: (_kind, float(size)) for name, size in _names.items()}
_AFTER = re.compile(r"[\s*_`]{0,4}(?P<unit>°[CF]\b|[A-Za-z€£$%]+)")
_SHORT = frozenset(["g", "h", "s", "l"])
"""Letters that are units if they are alone; in labels, only after `_` or in brackets."""
_LONG = frozenset(("length", "height", "depth", "distance", "width", "altitude", "elevation"))
_ALONE = frozenset(("kg", "km", "mm", "cm", "mg", "usd", "eur", "gbp"))
"""Units that can be a complete label, as the plurals of words can."""
_SCALED = re.compile(
    r"[\s(\[](?:[$€£]\s?)?(?P<short>m|k)(?:$|[)\]\s])"
    r"|(?:^|[\s(\[$€£])(?P<word>mn|mio|mln|millions?|bn|billions?|thousands?|tsd)\b"
    r"|(?:^|[\s(\[])(?P<money>[mbk])(?:usd|eur|gbp|chf|[$€£])(?:$|[)\]\s])",
    re.IGNORECASE,
)
"""Parts of a label that name the factor of its values."""
_SCALES = {"m": 1e6, "mn": 1e6, "mi": 1e6, "ml": 1e6, "bn": 1e9, "bi": 1e9, "b": 1e9, "k": 1e3,
           "th": 1e3, "ts": 1e3}  # fmt: skip
_SCALE_NAMED = re.compile(
    r"(?<![^\W\d_])(?:(?P<e3>k(?:usd|eur|gbp|chf)|thousands?|tsd|tausend|(?<![\d.,])000s?)"
    r"|(?P<e6>m(?:usd|eur|gbp|chf)|mn|mil|mln|mio|million(?:s|en|es)?)"
    r"|(?P<e9>bn|b(?:usd|eur|gbp|chf)|billions?|mrd|milliarden?)|(?P<e12>trn|trillions?))(?![^\W_])"
    r"|(?:(?<=_)|[$€£]\s?)(?P<letter>[kmb])(?![^\W_])|\s\((?P<alone>[kmb])\)"
    r"|(?<![\w.])(?:1e|10\s?\*\*\s?)(?P<power>3|6|9|12)(?!\d)"
    r"|(?:[/*=x×]\s?|div\(\s?|\bin\s)1(?P<zeros>(?:[_,]?000)+)s?(?![\d_])",
    re.IGNORECASE,
)
"""Words, parts of names, and divisors by which a text names a scale."""
_STEPS = frozenset((24, 60, 1000, 1024, 3600))
_COMPOUND = 2
_LASTING = frozenset(
    ["mean", "avg", "average", "median", "total", "delay", "time", "duration", "wait", "length"]
)
_BRACKETED = re.compile(r"[(\[]\s*([^()\[\]\s][^()\[\]]{0,11})\s*[)\]]")


def unit_after(text: str, start: int, end: int) -> Unit | None:
    """Return the unit of the number at `start` to `end` of a text.

    Args:
        text: an answer or an output.
        start: where the number begins; a currency sign may precede it.
        end: where it ends, including `%` and the like.
    """
    before = text[max(0, start - 2) : start].strip()[-1:]
    if before and before in "$€£":
        return _UNITS[before]
    if text[start:end].rstrip().endswith(("%", "cent")):
        return _UNITS["%"]
    match = _AFTER.match(text, end)
    if match and match["unit"] == "m" and text[end : end + 1].isspace():
        return _UNITS["metre"]
    return _named(match["unit"]) if match else None


@lru_cache(maxsize=2_048)
def unit_of_label(label: str) -> Unit | None:
    """Return the unit that a label of a column or of a line ends with or has in brackets."""
    for inside in _BRACKETED.findall(label):
        if unit := _named(inside):
            return unit
    words = re.split(r"[_\s.]+", label.strip().rstrip(":="))
    is_alone = len(words) == 1 and (words[0].lower() in _ALONE or words[0].endswith("s"))
    last = words[-1] if len(words) > 1 or (is_alone and len(words[0]) > 1) else ""
    if len(words) > _COMPOUND and _named(words[-2]) and _named(last):  # `price_eur_t`
        return _named(words[-2])
    if "per" in words[1:]:  # `kg_per_head`
        last = words[words.index("per", 1) - 1]
    lower = {word.lower() for word in words}
    if last == "min":  # the least of something, or minutes
        return _UNITS["minute"] if _LASTING & lower else None
    if last in ("c", "f") and any(word.startswith("temp") for word in lower):
        last = f"°{last}"
    elif last == "m" and _LONG & lower:
        last = "metre"
    elif "%" in label or {"pct", "percent", "percentage"} & lower:
        last = "%"
    return _named(last) if "_" in label or last not in _SHORT else None


@lru_cache(maxsize=2_048)
def scale_of_label(label: str) -> float:
    """Return the factor of a label's values: 1e6 for `revenue_musd`, 1 if it names none."""
    match = _SCALED.search(label.replace("_", " "))
    if not match or (match["short"] and _LONG & set(re.split(r"[_\s]+", label.lower()))):
        return 1.0
    return _SCALES[next(word for word in match.groups() if word).lower()[:2].rstrip()]


def scales_named(text: str) -> frozenset[int]:
    """Return the powers of ten that a text names as the scale of some values.

    Args:
        text: an output, a question, a cell, or the description of a file.
    """
    found = set[int]()
    for match in _SCALE_NAMED.finditer(text):
        name = match.lastgroup or ""
        if name in ("letter", "alone"):
            found.add({"k": 3, "m": 6, "b": 9}[match[name].lower()])
        elif name == "zeros":
            found.add(match[name].count("0"))
        else:
            found.add(int(match[name] if name == "power" else name[1:]))
    return frozenset(found)


def smaller_units(unit: Unit) -> tuple[float, ...]:
    """Return a unit's size in each usual smaller unit: 1000 for kg, 60 for minutes."""
    if unit[0] == "cent":
        return (0.01,)
    sizes = [size for name, size in _KINDS.get(unit[0], {}).items() if name != "mg"]
    return tuple({ratio for size in sizes if (ratio := round(unit[1] / size)) in _STEPS})


def _named(word: str) -> Unit | None:
    lower = word.lower()
    return _UNITS.get(lower) or (_UNITS.get(lower[:-1]) if len(lower) > 3 else None)
