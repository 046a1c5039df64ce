"""Numbers that follow from values: differences, ratios, percentages, sums, recomputed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dm_jupyter.assist.grounding import recomputed
from dm_jupyter.assist.grounding.blocks import TextBlock
from dm_jupyter.assist.grounding.numbers import numbers_in
from dm_jupyter.assist.grounding.pools import (
    KnownPools,
    NumberPool,
    OutputValue,
    kin_pools,
    pools_of,
    stated_pool,
)
from dm_jupyter.assist.grounding.recomputed import (
    CHANGE,
    DOWN,
    POINTS,
    RATIO,
    UP,
    Claim,
    Derivation,
)
from dm_jupyter.assist.grounding.sizes import Window
from dm_jupyter.assist.grounding.statements import Statement

__all__ = ["Derivation", "derivation"]

_DIFFERENCE = re.compile(
    rf"\b(?:{UP}|{DOWN}|difference|differ|gap|by|margin|spread|range|apart|chang(?:e|ed)|net|"
    r"surplus|deficit|between|span|\w+er than|remaining|remains?|rest|others?|without|non|not|"
    r"kept|profit|after|before|years|step|jump|worth|earns?|earned|adds?|balance|leaves|leaving|unspent|unused|"
    r"available)\b|=",
    re.IGNORECASE,
)
_LEFT = re.compile(r"\b(?:is|are|was|were|has|have)\s(?:still\s)?left\b|\bremain", re.I)
_MOVED = re.compile(
    r"\b(?:rose|risen|fell|fallen|grew|grown|climbed|increased|decreased|declined|cuts?)\b", re.I
)
_RATIO_BEFORE = re.compile(r"\b(?:ratio|factor|multiple|per|odds|relative)\b|=|/", re.I)
_PART_OF = re.compile(r"\bof\s(?:the\s|all\s|its\s|their\s)*\Z")
_OF = re.compile(r"\s?of\b")
_GAP = re.compile(r"\b(?:gap|difference|spread|lead|margin|distance|advantage)\b", re.I)
_OF_TOTAL = re.compile(r"[\s\w]{0,20}?\b(?:out\s)?of\s(?:the\s|its\s|their\s|all\s)?\s?\Z")
_PER = re.compile(r"\b(?:per|each|apiece)\b", re.I)
_EACH = re.compile(r"\b(?:per|for each|for every|to each|apiece|each|costs?|rate)\b", re.I)
_SHARE_BEFORE = re.compile(
    r"\b(?:share|proportion|fraction|rate|probability|chance|part|portion)\b", re.I
)
_SUM = re.compile(
    r"\b(?:total(?:s|l?ing)?|sum|combined|together|in all|altogether|overall|both|jointly|"
    r"add(?:s|ed)? up|plus|accounts?)\b|=|\+",
    re.IGNORECASE,
)
_MEAN = re.compile(r"\b(?:mean|averag(?:e|es|ed|ing)|midpoint|typical(?:ly)?)\b", re.I)
_AND = re.compile(r"\b(?:and|plus|with)\b|[+&]", re.I)
_EXPLAINS = re.compile(r"\b(?:varian\w+|variation|variability|squared|R2)\b|[²]|\^2", re.I)
_TIMES = re.compile(
    r"[×*·]|\b(?:each|per|every|costs?|worth|annual\w*|yearly|monthly|weekly|daily|i\.?e\.?|"
    r"at this (?:rate|pace)|a (?:year|month|week|day)|means|extra|more|expect\w*|would|earns?|"
    r"about|around|roughly|approximately)\b|=",
    re.IGNORECASE,
)
_TIMES_A = {
    re.compile(r"\b(?:year|annual\w*|yearly)\b", re.I): (12.0, 52.0, 365.0, 4.0),
    re.compile(r"\b(?:month|monthly)\b", re.I): (30.0, 4.0),
    re.compile(r"\b(?:week|weekly)\b", re.I): (7.0,),
    re.compile(r"\b(?:day|daily)\b", re.I): (24.0,),
}
"""Number of shorter periods in a longer one."""
_MOST_FACTORS = 4
_ONE_IN = re.compile(r"\b(?:1|one) (?:in|out of) (?:every )?\Z", re.I)
_FROM = re.compile(r"\bfrom\s[$€£]?\Z")
_TO = re.compile(r"\bto\s[$€£]?\Z")
_FROM_TO = re.compile(r"\bfrom\s[$€£]?[-−]?\d")


def derivation(
    statement: Statement,
    blocks: Sequence[TextBlock],
    stated: Sequence[KnownPools],
    sizes: Sequence[Window],
    totals: tuple[OutputValue, ...],
    *,
    is_contested: bool = False,
) -> Derivation | None:
    """Return how a number follows from values that belong together; `None` if it does not.

    Args:
        statement: the number with its words.
        blocks: the contents of the outputs.
        stated: the other numbers of the answer that appear in outputs, nearest first.
        sizes: the results that it may represent.
        totals: the total counts.
        is_contested: whether an output shows it for something else; then words must say how it
            follows.
    """
    context = f"{statement.since} {statement.before} \n {statement.after}"
    factors = _factors(statement)
    claims = [Claim(statement, context, fits, factors) for fits in sizes]
    roles = _contested_roles(claims[0]) if is_contested else _roles(claims[0])
    for pool in [stated_pool(stated), *pools_of(statement, blocks, totals)]:
        for role in roles:
            for claim in claims:
                if found := role(pool, claim):
                    return found
    for pool in kin_pools(statement, blocks):
        for claim in claims:
            if found := recomputed.difference(pool, claim):
                return found
    return None


def _factors(statement: Statement) -> tuple[tuple[float, str], ...]:
    """Return possible factors of a value: numbers of the sentence, and months of a year."""
    found = [
        (one.value / 100.0 if one.is_percentage else one.value, one.text)
        for one in numbers_in(statement.sentence)
        if one.digits != statement.number.digits and not one.is_year
    ][:_MOST_FACTORS]
    for pattern, sizes in _TIMES_A.items():
        if pattern.search(statement.sentence):
            found += [(size, f"{size:g}") for size in sizes]
    return tuple(found)


_Role = Callable[[NumberPool, Claim], Derivation | None]


def _roles(claim: Claim) -> list[_Role]:
    """Return the derivations that the words around a number may mean."""
    statement, context = claim.statement, claim.context
    if statement.number.is_percentage:
        return _percentage_roles(claim)
    sentence, size = statement.sentence, abs(statement.number.value)
    before = f"{statement.since} {statement.before}"
    is_each = _EACH.search(context) or _EACH.search(sentence)
    is_gap = POINTS.match(statement.after) or _DIFFERENCE.search(context) or _LEFT.search(sentence)
    is_sum = _SUM.search(context) or _SUM.search(sentence)
    is_total = _PART_OF.search(statement.tight)
    is_mean = _MEAN.search(context)
    told = (
        (
            RATIO.search(statement.after) or _RATIO_BEFORE.search(before) or is_each,
            recomputed.ratio,
        ),
        (_SHARE_BEFORE.search(context) and size <= 1, recomputed.fraction),
        ((is_gap or CHANGE.search(sentence)) and not _is_level(statement), recomputed.difference),
        (is_sum, recomputed.added),
        (not is_sum, recomputed.whole),
        (is_total, recomputed.two_parts),
        (is_total or _AND.search(sentence), recomputed.together),
        (_TIMES.search(sentence) or statement.hedge == "about", recomputed.product),
        (_OF_TOTAL.match(statement.behind), recomputed.complement),
        (_ONE_IN.search(statement.tight), recomputed.inverse),
        (_EXPLAINS.search(sentence) and size <= 1, recomputed.square),
        (is_mean, recomputed.mean),
        (is_mean, recomputed.per),
    )
    return [role for is_so, role in told if is_so]


def _percentage_roles(claim: Claim) -> list[_Role]:
    statement, context = claim.statement, claim.context
    sentence, after = statement.sentence, statement.after
    is_signed, is_level = statement.number.text[:1] in "+-−", _is_level(statement)
    is_change = (CHANGE.search(context) or CHANGE.search(sentence)) and not is_level
    is_moved = is_signed or _MOVED.search(context) or CHANGE.search(after[:25])
    told = (
        (is_signed or is_change, recomputed.change),
        (_MEAN.search(context), recomputed.mean),
        (_SUM.search(sentence), recomputed.added),
        (_EXPLAINS.search(sentence), recomputed.square),
        (is_level or _OF.match(after) or not is_moved, recomputed.share),
    )
    return [role for is_so, role in told if is_so]


def _is_level(statement: Statement) -> bool:
    """Whether it is a start or end level, as in `rose from 3 to 5`, and not a difference."""
    tight = statement.tight
    if CHANGE.search(statement.after[:25]) or _GAP.search(statement.sentence):
        return False
    return bool(_FROM.search(tight) or (_TO.search(tight) and _FROM_TO.search(statement.before)))


def _contested_roles(claim: Claim) -> list[_Role]:
    """Return the derivations that the words name, for a number that is shown for something else."""
    statement, context = claim.statement, claim.context
    if statement.number.is_percentage:
        return _percentage_roles(claim)
    roles: list[_Role] = []
    if RATIO.search(statement.after) or _PER.search(statement.sentence):
        roles.append(recomputed.ratio)
    if _PART_OF.search(statement.tight):
        roles.append(recomputed.whole)
    if _MEAN.search(context):
        roles.append(recomputed.per)
    if _DIFFERENCE.search(context) and not _is_level(statement):
        roles.append(recomputed.difference)
    if _SUM.search(context):
        roles.append(recomputed.added)
    return roles
