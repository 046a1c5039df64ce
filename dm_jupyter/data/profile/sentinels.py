"""Numbers and words that mean a missing value, such as -999 among temperatures.

Also the reverse, codes that readers take for a missing value: "NA" is Namibia, and a gene.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.cell_words import is_missing_word
from dm_jupyter.data.profile.columns import column_name
from dm_jupyter.data.profile.frame_steps import FrameStep, blank_numbers
from dm_jupyter.data.profile.lexicon import name_words
from dm_jupyter.data.profile.model import ColumnProfile
from dm_jupyter.data.profile.numbers import parse_number
from dm_jupyter.data.profile.read_call import ReadCall
from dm_jupyter.data.profile.suspicion import is_text

__all__ = ["Sentinel", "Sentinels", "shared_marks", "with_na_codes", "with_sentinels"]

_SIGNS = (99, 999, 9999, 99999, 999999, 99.9, 999.9, 9999.9, 888, 8888)
_NUMBERS = frozenset([*_SIGNS, *(-sign for sign in _SIGNS), -99.99, -999.99])
_LEAST_REST, _LEAST_BELOW = 2, 3
"""Fewest other values in a column: more if the sentinel is a positive number."""
_MOST_SHARE = 0.7
_FAR = 5
"""Least distance of a sentinel from the other values, in multiples of their spread."""
_MOST_COLUMNS = 1_000
_LISTED = 8
_MARK = re.compile(r"[^\W\d_]{1,4}|[^\w\s]{1,3}")
_TRACES = frozenset(["t", "tr", "k", "m", "g", "b"])
"""Letters among figures that mean something: a trace, a factor."""
_SAMPLE = 20_000
_CODES_OR_AMOUNTS = re.compile(
    r"(?:[^\W_]{4,})?(id|zip|plz|nr|no|qty|tel)|[^\W_]*?"
    r"(postal[^\W_]*|leitzahl|codes?|number|nummer|phone|account|konto|year|jahr"
    r"|prices?|preise?|costs?|kosten|amounts?|betrag|umsatz|revenue|sales|salary|lohn|balance|saldo"
    r"|total|summe|quantity|stock|menge|bestand|units|anzahl|counts?|population|visits)"
)
"""Words of columns in which nines are codes, prices or counts, alone or at the end of a compound.
A short one ends a compound only after four letters: not in "acid" and "hotel"."""
_COUNTS = frozenset(["number", "anzahl", "count", "counts", "population", "visits", "units"])
"""Those of what is never negative; a balance or a stock may be."""
_NA = "NA"
_CODE = re.compile(r"(?=.*[A-Z])[A-Z0-9][A-Z0-9._/-]{0,11}")
_LEAST_CODES = 2
_MOST_CODE_COLUMNS, _LISTED_CODES = 1_000, 5
_COUNTRIES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS
BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE
EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM
HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC
LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NC
NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA
SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR
TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW EU UK EL
"""
"""ISO 3166 codes of two letters except Namibia's, and three that the EU writes."""
_OF_COUNTRIES = re.compile(
    r"countr|(^|[\W_])(cc|iso\w*|geo|laender\w*|länder\w*|land|nation\w*|pays|pa[ií]s|kraj|paese|ctry)"
    r"([\W_]|$)",
    re.IGNORECASE,
)
_MANY_CODES = 12
"""Number of codes from which countries are recognised without the column's name."""


@dataclass(frozen=True)
class Sentinel:
    """A value that may mean missing in one column."""

    label: Any
    value: float
    count: int
    is_far: bool
    is_alone_negative: bool
    """Whether it is -999 or less, and no other value is negative."""

    @property
    def is_typical(self) -> bool:
        """Whether it is as far from the other values as no value of such a column is."""
        possible = _COUNTS if self.is_alone_negative else frozenset()
        return self.is_far and _codes_or_amounts(self.label) <= possible


@dataclass(frozen=True)
class Sentinels:
    """Values that mean missing in a frame's columns of numbers."""

    sure: tuple[Sentinel, ...] = ()
    """Those that the steps make missing."""
    named: tuple[Sentinel, ...] = ()
    """Those that may mean missing and stay."""

    @property
    def labels(self) -> list[Any]:
        """Labels of the columns that the steps change."""
        return list(dict.fromkeys(one.label for one in self.sure))

    @property
    def steps(self) -> tuple[FrameStep, ...]:
        """The steps that make sentinels missing."""
        groups: dict[tuple[float, ...], list[Any]] = {}
        for label in self.labels:
            values = tuple(sorted(one.value for one in self.sure if one.label == label))
            groups.setdefault(values, []).append(label)
        return tuple(blank_numbers(labels, values) for values, labels in groups.items())

    @property
    def warnings(self) -> list[str]:
        """The warnings about both."""
        told = {
            "read as missing": self.sure,
            "may stand for missing, left as numbers": self.named,
        }
        return [f"{what}: {_listed(found)}" for what, found in told.items() if found]

    def without_steps(self) -> Sentinels:
        """Return the same findings, without making anything missing."""
        return Sentinels(named=(*self.sure, *self.named))

    def finish(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame after all steps."""
        for step in self.steps:
            frame = step.run(frame)
        return frame

    def counts(self, frame: pd.DataFrame) -> Counter[Sentinel]:
        """Return the number of rows of a frame with each value that the steps make missing."""
        return Counter({one: int((frame[one.label] == one.value).sum()) for one in self.sure})

    def checked(
        self, columns: Mapping[Any, ColumnProfile], rows: int, counts: Mapping[Sentinel, int]
    ) -> Sentinels:
        """Return the same findings, without steps for columns in which one is like other values.

        Args:
            columns: profiles of the columns after all steps, by label.
            rows: rows of the table.
            counts: number of rows with each value.
        """
        again = {one: _again(one, columns[one.label], rows, counts) for one in self.sure}
        refuted = {one.label for one, found in again.items() if not (found and found.is_typical)}
        kept = tuple(found for one, found in again.items() if found and one.label not in refuted)
        return Sentinels(kept, (*self.named, *(one for one in self.sure if one.label in refuted)))


def with_sentinels(frame: pd.DataFrame, positions: Sequence[int] | None = None) -> Sentinels:
    """Return the steps that make sentinels missing; unsure values are named and kept.

    A known sentinel is sure if it appears twice or more in the table, and is far outside of each
    column's other values.

    Args:
        frame: the frame as loaded.
        positions: positions of the columns to check; `None` for all.
    """
    found: list[Sentinel] = []
    places = range(min(_MOST_COLUMNS, frame.shape[1])) if positions is None else positions
    for place in places:
        found += _in_column(frame.columns[place], frame.iloc[:, place])
    times = Counter[float]()
    for one in found:
        times[abs(one.value)] += one.count if one.is_far else 0
    sure = [one for one in found if one.is_typical and times[abs(one.value)] > 1]
    unique = tuple(one for one in sure if _is_one(frame, one.label))
    named = [one for one in found if one not in sure and (one.is_far or one.value < 0)]
    return Sentinels(unique, (*named, *(one for one in sure if one not in unique)))


def _codes_or_amounts(label: Any) -> set[str]:
    words = name_words(column_name(label)).split()
    found = filter(None, map(_CODES_OR_AMOUNTS.fullmatch, words))
    return {match[1] or match[2] for match in found}


def _is_one(frame: pd.DataFrame, label: Any) -> bool:
    return isinstance(label, (str, int)) and int((frame.columns == label).sum()) == 1


def _listed(found: Sequence[Sentinel]) -> str:
    shown = [
        f"{one.value:g} in {column_name(one.label)!r} ({one.count:,})" for one in found[:_LISTED]
    ]
    more = len(found) - _LISTED
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _in_column(label: Any, values: pd.Series[Any]) -> list[Sentinel]:
    """Return the candidates of a column: at most one of each sign."""
    if not types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return []
    present = values.dropna()
    is_known = present.isin(list(_NUMBERS))
    if not bool(is_known.any()):
        return []
    counts = present[is_known].value_counts()
    found: list[Sentinel] = []
    for value, count in sorted(counts.items(), key=lambda pair: -abs(float(str(pair[0])))):
        number = float(str(value))
        others = [float(str(known)) for known in counts.index if abs(float(str(known))) >= 99]
        rest = present[~present.isin([number, *(o for o in others if abs(o) == abs(number))])]
        rest = rest[~rest.isin([one.value for one in found])]
        least = _LEAST_REST if number < 0 else _LEAST_BELOW
        if len(rest) < least or int(count) > _MOST_SHARE * len(present):
            continue
        one = _among(label, number, int(count), float(rest.min()), float(rest.max()))
        if one.is_far or (number <= -99 and float(rest.min()) >= 0):
            found.append(one)
    return found


def _among(label: Any, value: float, count: int, low: float, high: float) -> Sentinel:
    """Return a candidate in a column whose other values are in a range."""
    is_far = _is_far(value, low, high)
    return Sentinel(label, value, count, is_far, value <= -999 and low >= 0)


def _again(
    one: Sentinel, column: ColumnProfile, rows: int, counts: Mapping[Sentinel, int]
) -> Sentinel | None:
    """Return a sentinel among all values of its column; `None` if these are no figures or few."""
    low, high = column.minimum, column.maximum
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return None
    blanked = sum(counts[other] for other in counts if other.label == one.label)
    if counts[one] > _MOST_SHARE * (rows - (column.missing or 0) + blanked):
        return None
    return _among(one.label, one.value, counts[one], float(low), float(high))


def _is_far(value: float, low: float, high: float) -> bool:
    """Return whether a value is far outside of a range, as no measured value is."""
    if low <= value <= high or not math.isfinite(high - low):
        return False
    gap = low - value if value < low else value - high
    spread = max(high - low, abs(high) / 10, abs(low) / 10)
    if value < 0:
        # Among values that are never negative, or hardly, it need not be as far.
        return gap > _FAR * spread or (low >= 0 and value <= -999 and high < 10 * abs(value))
    return gap > _FAR * spread


def shared_marks(frame: pd.DataFrame) -> Mapping[Any, list[str]]:
    """Return a word that appears among the numbers of two or more columns, by column.

    If only the same short word replaces numbers in several columns, it is the file's own mark of
    a missing value.
    """
    words: dict[Any, str] = {}
    for place in range(min(_MOST_COLUMNS, frame.shape[1])):
        values = frame.iloc[:, place]
        if not is_text(values):
            continue
        texts = Counter(v.strip() for v in values.dropna().head(_SAMPLE) if isinstance(v, str))
        odd = list(islice((text for text in texts if parse_number(text) is None), 2))
        if len(odd) == 1 and len(texts) > 1 and _is_mark(odd[0]):
            words[frame.columns[place]] = odd[0]
    times = Counter(words.values())
    return {label: [word] for label, word in words.items() if times[word] > 1}


def _is_mark(text: str) -> bool:
    is_known = is_missing_word(text) or text.casefold() in _TRACES
    return _MARK.fullmatch(text) is not None and not is_known


def with_na_codes(
    call: ReadCall, frame: pd.DataFrame, read: Callable[[ReadCall], pd.DataFrame], *, keeps: bool
) -> tuple[ReadCall, list[str]]:
    """Return the call that keeps "NA" as text if it is Namibia, and warnings about it.

    That is sure if all other codes of a column are countries, and "NA" is in no other column.
    Nor may the file have another word that is read as missing. Otherwise it is only reported.

    Args:
        call: the call so far.
        frame: the frame that it returns.
        read: runs a call and returns all of its columns as text.
        keeps: whether the call may change; false if only the first rows are known.
    """
    places = [
        place
        for place in range(min(_MOST_CODE_COLUMNS, frame.shape[1]))
        if _has_codes(frame.iloc[:, place])
    ]
    if not places:
        return call, []
    plain = replace(call, steps=())
    written = read(plain.with_arguments(keep_default_na=False, na_values=None))
    missing = read(plain).isna()
    if written.shape != missing.shape:
        return call, []
    marked = [at for at in range(written.shape[1]) if bool((written.iloc[:, at] == _NA).any())]
    # If "NA" is also among figures or names, it is the file's own mark of a missing value.
    if not marked or set(marked) - set(places):
        return call, []
    labels = [frame.columns[at] for at in marked]
    words = set(written.to_numpy(dtype=object)[missing.to_numpy()].tolist())
    is_sure = keeps and all(_are_countries(frame.iloc[:, at], frame.columns[at]) for at in marked)
    if is_sure and words <= {_NA, ""} and "na_values" not in dict(call.arguments):
        kept = call.with_arguments(keep_default_na=False, na_values=[""])
        return kept, [f"'NA' in {_named(labels)} is kept as text: all others are countries' codes"]
    return call, [
        f"'NA' stands among codes in {_named(labels)}, and is read as missing: if it is a code "
        'there (Namibia, a gene), read the file with keep_default_na=False, na_values=[""]'
    ]


def _has_codes(values: pd.Series[Any]) -> bool:
    """Return whether a column contains codes in capitals, and gaps."""
    if not is_text(values) or not values.isna().any():
        return False
    codes = values.dropna().unique().tolist()
    return len(codes) >= _LEAST_CODES and all(
        isinstance(code, str) and _CODE.fullmatch(code.strip()) for code in codes
    )


def _are_countries(values: pd.Series[Any], label: Any) -> bool:
    codes = values.dropna().unique().tolist()
    is_named = _OF_COUNTRIES.search(column_name(label)) is not None
    return (is_named or len(codes) >= _MANY_CODES) and set(codes) <= set(_COUNTRIES.split())


def _named(labels: list[Any]) -> str:
    more = (
        f" and {len(labels) - _LISTED_CODES:,} more columns" if len(labels) > _LISTED_CODES else ""
    )
    return ", ".join(repr(column_name(label)) for label in labels[:_LISTED_CODES]) + more
