"""Numbers that follow from values: differences, ratios, percentages, sums, recomputed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dm_jupyter.assist.grounding import recomputed
from dm_jupyter.assist.grounding.blocks import TextBlock
from dm_jupyter.assist.grounding.pools import (
    KnownPools,
    NumberPool,
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
    r"profit|after|before|years|step|jump|worth|earns?|earned|adds?|balance|leaves|leaving|unspent|unused|"
    r"available)\b|=",
    re.IGNORECASE,
)
_LEFT = re.compile(r"\b(?:is|are|was|were|has|have)\s(?:still\s)?left\b|\bremain", re.I)
_MOVED = re.compile(
    r"\b(?:rose|risen|fell|fallen|grew|grown|climbed|increased|decreased|declined|cuts?)\b", re.I
)
_RATIO_BEFORE = re.compile(r"\b(?:ratio|factor|multiple|per|odds|relative)\b|=|/", re.I)
_PART_OF = re.compile(r"\bof\s(?:the\s|all\s|its\s|their\s)*\Z")
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
_FROM = re.compile(r"\bfrom\s[$€£]?\Z")
_TO = re.compile(r"\bto\s[$€£]?\Z")
_FROM_TO = re.compile(r"\bfrom\s[$€£]?[-−]?\d")


def derivation(
    statement: Statement,
    blocks: Sequence[TextBlock],
    stated: Sequence[KnownPools],
    sizes: Sequence[Window],
    *,
    is_contested: bool = False,
) -> Derivation | None:
    """Returns how a number follows from values that belong together; `None` where it does not.

    Args:
        statement: the number with its words.
        blocks: what the outputs hold.
        stated: the other numbers of the answer that stand in outputs, nearest first.
        sizes: the results that it may stand for.
        is_contested: whether it stands in an output for something else; then words must say how
            it follows.
    """
    context = f"{statement.since} {statement.before} \n {statement.after}"
    claims = [Claim(statement, context, fits) for fits in sizes]
    roles = _contested_roles(claims[0]) if is_contested else _roles(claims[0])
    for pool in [stated_pool(stated), *pools_of(statement, blocks)]:
        for role in roles:
            for claim in claims:
                if found := role(pool, claim):
                    return found
    for pool in kin_pools(statement, blocks):
        for claim in claims:
            if found := recomputed.difference(pool, claim):
                return found
    return None


_Role = Callable[[NumberPool, Claim], Derivation | None]


def _roles(claim: Claim) -> list[_Role]:
    """What the words around a number may mean by it."""
    statement, context = claim.statement, claim.context
    if statement.number.is_percentage:
        return _percentage_roles(claim)
    roles: list[_Role] = []
    is_each = _EACH.search(context) or _EACH.search(statement.sentence)
    if RATIO.search(statement.after) or _RATIO_BEFORE.search(statement.before) or is_each:
        roles.append(recomputed.ratio)
    if _SHARE_BEFORE.search(context) and abs(statement.number.value) <= 1:
        roles.append(recomputed.fraction)
    is_gap = POINTS.match(statement.after) or _DIFFERENCE.search(context)
    is_gap = is_gap or _LEFT.search(statement.sentence)
    if (is_gap or CHANGE.search(statement.sentence)) and not _is_level(statement):
        roles.append(recomputed.difference)
    is_sum = _SUM.search(context) or _SUM.search(statement.sentence)
    roles.append(recomputed.added if is_sum else recomputed.whole)
    if _PART_OF.search(statement.tight):
        roles.append(recomputed.two_parts)
    if _AND.search(statement.sentence):
        roles.append(recomputed.together)
    if _EXPLAINS.search(statement.sentence) and abs(statement.number.value) <= 1:
        roles.append(recomputed.square)
    if _MEAN.search(context):
        roles += [recomputed.mean, recomputed.per]
    return roles


def _percentage_roles(claim: Claim) -> list[_Role]:
    statement, context = claim.statement, claim.context
    roles: list[_Role] = []
    is_signed = statement.number.text[:1] in "+-−"
    if is_signed or CHANGE.search(context) or CHANGE.search(statement.sentence):
        roles.append(recomputed.change)
    if _MEAN.search(context):
        roles.append(recomputed.mean)
    if _SUM.search(statement.sentence):
        roles.append(recomputed.added)
    if _EXPLAINS.search(statement.sentence):
        roles.append(recomputed.square)
    is_moved = is_signed or _MOVED.search(context)
    if not is_moved and not CHANGE.search(statement.after[:25]):
        roles.append(recomputed.share)
    return roles


def _is_level(statement: Statement) -> bool:
    """Whether it is where something began or ended, as in `rose from 3 to 5`: no difference."""
    tight = statement.tight
    if CHANGE.search(statement.after[:25]):
        return False
    return bool(_FROM.search(tight) or (_TO.search(tight) and _FROM_TO.search(statement.before)))


def _contested_roles(claim: Claim) -> list[_Role]:
    """What the words say by which a number follows that is something else's."""
    statement, context = claim.statement, claim.context
    if statement.number.is_percentage:
        return _percentage_roles(claim)
    roles: list[_Role] = []
    if RATIO.search(statement.after):
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
