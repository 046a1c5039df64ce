"""Codes that readers take for a missing value: "NA" is Namibia, and a gene."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.columns import column_name
from dm_jupyter.data.profile.read_call import ReadCall
from dm_jupyter.data.profile.suspicion import is_text

__all__ = ["with_na_codes"]

_NA = "NA"
_CODE = re.compile(r"(?=.*[A-Z])[A-Z0-9][A-Z0-9._/-]{0,11}")
_LEAST_CODES = 2
_MOST_COLUMNS, _LISTED = 1_000, 5
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
"""ISO 3166 codes of two letters but for Namibia's, and three that the EU writes."""
_OF_COUNTRIES = re.compile(
    r"countr|(^|[\W_])(cc|iso\w*|geo|laender\w*|länder\w*|land|nation\w*|pays|pa[ií]s|kraj|paese|ctry)"
    r"([\W_]|$)",
    re.IGNORECASE,
)
_MANY_CODES = 12
"""From so many on codes of countries are known without the column's name."""


def with_na_codes(
    call: ReadCall, frame: pd.DataFrame, read: Callable[[ReadCall], pd.DataFrame], *, keeps: bool
) -> tuple[ReadCall, list[str]]:
    """Returns the call that keeps "NA" as text where it is Namibia, and what to tell of it.

    That is sure where all other codes of a column are countries, no other word is read as missing
    in the file, and "NA" stands in no other column. Elsewhere it is only told.

    Args:
        call: so far.
        frame: what it gives.
        read: runs a call, all of whose columns then are text.
        keeps: whether the call may change; not where only the first rows are known.
    """
    places = [
        place
        for place in range(min(_MOST_COLUMNS, frame.shape[1]))
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
    # Where "NA" stands among figures or names, too, it is the file's own mark of a missing value.
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
    """Says whether a column holds codes in capitals, and gaps."""
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
    more = f" and {len(labels) - _LISTED:,} more columns" if len(labels) > _LISTED else ""
    return ", ".join(repr(column_name(label)) for label in labels[:_LISTED]) + more
