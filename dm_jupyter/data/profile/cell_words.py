"""Words in cells that are not data: units of measure, and marks of missing values."""

from __future__ import annotations

import re

__all__ = [
    "ERROR_CELLS",
    "MISSING_WORDS",
    "is_missing_word",
    "is_type_word",
    "is_unit",
    "is_unit_mark",
]

ERROR_CELLS = frozenset(
    ["#div/0!", "#n/a", "#name?", "#null!", "#num!", "#ref!", "#value!", "#spill!", "#calc!",
     "#getting_data", "#wert!", "#bezug!", "#zahl!", "#nv", "err:502", "err:508"]
)  # fmt: skip
"""What spreadsheet programs show instead of a result, in lower case."""
MISSING_WORDS = frozenset(
    [
        "",
        "-",
        "--",
        "—",
        "–",
        "?",
        ".",
        "..",
        "...",
        "*",
        "x",
        "missing",
        "n/a",
        "na",
        "n.a.",
        "none",
        "null",
        "nan",
        "nd",
        "n.d.",
        "unknown",
        "k.a.",
        "k. a.",
        "no data",
        "not available",
        *ERROR_CELLS,
    ]
)
"""What people write where a value is missing, in lower case."""
_ATOMS = """
mm cm dm m km in inch inches ft feet yd mi mile miles nm µm μm um pm au ly
mg g kg t kt mt lb lbs oz µg μg ug ng tonne tonnes tons ton gram grams
ms s sec secs second seconds min mins minute minutes h hr hrs hour hours d day days wk week
weeks mo month months yr yrs year years dy mn
°c °f k kelvin °k celsius fahrenheit degc degf degt deg ° degree degrees rad
% ‰ pct percent ppm ppb ppt pp
eur usd gbp chf jpy cny sek nok dkk pln czk huf aud cad nzd inr brl zar € $ £ ¥ ct cent cents
euro euros dollar dollars us$
kwh mwh gwh twh wh kw mw gw w v kv mv ma ah j kj mj gj cal kcal n kn nm hp hz khz mhz ghz
pa hpa kpa mpa bar mbar atm psi mmhg torr
l ml cl dl hl µl μl gal gallon gallons bbl liter liters litre litres
m2 m3 m² m³ km2 km² cm2 cm3 cm² cm³ mm2 mm² ha acre acres ft2 ft² ft3 ft³ sqm sqft
m/s km/h kmh mph knots kn kph rpm mol mmol µmol nmol
kb mb gb tb bit bits byte bytes kib mib gib bps kbps mbps gbps px dpi
# pcs pc
thousand thousands tsd tsd. million millions mio mio. mn bn mrd mrd. billion billions stk stück
db lux lx lm cd bq sv gy ph psu ntu w/m2 w/m² µs/cm
"""
_ATOM = "|".join(map(re.escape, sorted(_ATOMS.split(), key=len, reverse=True)))
_UNIT = re.compile(
    rf"(?:in\s+)?(?:1[.,' ]?000(?:[.,' ]?000)?\s*)?(?:{_ATOM})(?:\s*\^?-?[0-9²³])?"
    rf"(?:\s*(?:/|per|\*|·|-|\s)\s*(?:1[.,]?000\s*)?(?:{_ATOM})(?:\s*\^?-?[0-9²³])?){{0,3}}"
    r"|1[.,' ]?000(?:[.,' ]?000)?|x\s?1[.,]?0{2,6}|10\^-?\d+|[a-z]{3}\s?(?:m|k|bn|mn|mio\.?)"
)
_NO_UNIT = frozenset(
    ["", "-", "–", "—", "1", "none", "n/a", "dimensionless", "a", "a.u.", "number", "no.", "no",
     "n", "count", "counts", "index", "ratio", "score", "units", "unit", "items", "persons",
     "people", "pieces", "text", "string", "str", "int", "float", "date", "name", "id",
     "category", "code",
     "yyyy-mm-dd", "dd.mm.yyyy", "yyyy", "hh:mm", "hh:mm:ss", "einheit", "einheiten", "unité"]
)  # fmt: skip
"""What appears among units for a column that has none, or that counts."""
_TYPES = frozenset(
    ["text", "string", "str", "char", "varchar", "int", "integer", "bigint", "float", "double",
     "real", "decimal", "numeric", "number", "date", "datetime", "timestamp", "time", "bool",
     "boolean", "object", "category", "factor", "type", "int64", "float64"]
)  # fmt: skip
_BRACKETS = re.compile(r"\s*(?:\[(.*)\]|\((.*)\)|<(.*)>)\s*")


def is_missing_word(text: str) -> bool:
    """Return whether a text is a word people write for "missing"."""
    return text.strip().casefold() in MISSING_WORDS


def is_unit(text: str) -> bool:
    """Return whether a text is a unit of measure, in brackets or not."""
    return _UNIT.fullmatch(_bare(text)) is not None


def is_unit_mark(text: str) -> bool:
    """Return whether a text appears among units for a column without a unit, or that counts."""
    return _bare(text) in _NO_UNIT


def is_type_word(text: str) -> bool:
    """Return whether a text names a type, as some programs write below a header."""
    return _bare(text) in _TYPES


def _bare(text: str) -> str:
    bracketed = _BRACKETS.fullmatch(text)
    inner = next(filter(None, bracketed.groups()), "") if bracketed else text
    return inner.strip().lstrip("#").casefold()
