"""The verdict on each number of an answer: its source, or why it is doubtful."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dm_jupyter.assist.grounding.blocks import TextBlock
from dm_jupyter.assist.grounding.claims import (
    count_of,
    is_condition,
    quantile_share,
    ranks,
    restates,
    turned_around,
)
from dm_jupyter.assist.grounding.derived import derivation
from dm_jupyter.assist.grounding.faults import (
    NO_EXTREME,
    UnshownValues,
    is_other_count,
    points_fault,
    sign_fault,
    superlative_fault,
    unshown_fault,
)
from dm_jupyter.assist.grounding.numbers import with_points
from dm_jupyter.assist.grounding.outputs import Outputs, read_outputs
from dm_jupyter.assist.grounding.pools import KnownPools, is_average, totals_of
from dm_jupyter.assist.grounding.rivals import contradiction, shown_label, wider_row, year_fault
from dm_jupyter.assist.grounding.sizes import (
    FittingValue,
    Index,
    derived_windows,
    misfit,
    stated_readings,
)
from dm_jupyter.assist.grounding.statements import Statement, statements
from dm_jupyter.assist.grounding.words import Unit, content_words, scales_named
from dm_jupyter.core.grounded import Grounded, Verdict

__all__ = ["ground", "unsupported_numbers"]

_SPECIFIC = 3
"""Digits from which a number hardly matches by chance."""
_EXISTS = re.compile(r"\bthere (?:are|were|is|was)\s(?:only\s|just\s)?\Z", re.IGNORECASE)
_MOST_SEARCHES = 100
"""Most numbers of an answer for which a derivation is searched."""
_SCALE_CHARS = 100_000
"""Characters of a text that are searched for the names of scales."""
_MOST_LINES = 20
"""Blocks of lines that are compared with each other."""


_NOTHING: frozenset[str] = frozenset()
_BOUND = re.compile(
    r"\b(?:CI|confidence interval)\b\D{0,12}(?:\d[\d.,]*\s?(?:to|[-–,])\s?)?\Z", re.I
)
"""Text before a bound of an interval, which no label names."""
_FIGURES = frozenset(("mean", "median", "max", "min", "std", "sum"))


@dataclass(frozen=True, slots=True)
class _Fit:
    """A value that fits in size, and how well its labels fit."""

    held: FittingValue
    score: int
    """Score of the labels that the clause names; -1 if labels or units contradict it."""
    why: str = ""
    by_label: bool = False
    rival: frozenset[str] = frozenset()
    """Words of the clause that name the contradicting value."""


def unsupported_numbers(answer: str, outputs: Sequence[str], question: str = "") -> tuple[str, ...]:
    """Return the numbers of `answer` that the outputs don't support, each once, as written.

    Args:
        answer: the answer of the model.
        outputs: the output of each cell, as plain text.
        question: the question; its numbers may be repeated, but are not results.
    """
    found = ground(answer, outputs, question)
    return tuple(dict.fromkeys(one.text for one in found if one.is_doubtful))


def ground(
    answer: str,
    outputs: Sequence[str],
    question: str = "",
    unshown: UnshownValues | None = None,
    told: Sequence[str] = (),
) -> tuple[Grounded, ...]:
    """Return the verdict on each number that an answer states, in order.

    A number is supported by an equal value, rounded or in another unit, unless labels or units
    contradict it. It is also supported by a difference, ratio, percentage, sum or count recomputed
    from values that belong together. List numbers, ordinals (`1st`) and usual levels (`at the
    95 % level`) claim nothing.

    Args:
        answer: the answer of the model.
        outputs: the output of each cell, as plain text.
        question: the question.
        unshown: names of the data that no cell has shown, from `unshown_values`; their numbers are
            not supported.
        told: other texts that may name the scale of values: the cells, the description of the data.
    """
    binder = _Binder(read_outputs(outputs), question, unshown or {}, told)
    found = binder.verdicts(with_points(answer))
    return tuple(replace(one, text=answer[one.start : one.end].strip()) for one in found)


def _others(known: list[KnownPools], statement: Statement) -> list[KnownPools]:
    """Return the other numbers that outputs support, those of the same sentence first."""
    same = [one for one in known if one.statement.sentence == statement.sentence]
    near = sorted(
        (one for one in known if one.statement.sentence != statement.sentence),
        key=lambda one: abs(one.statement.number.start - statement.number.start),
    )
    return same + near[: max(0, 6 - len(same))]


class _Binder:
    """The search for the support of each number of an answer."""

    def __init__(
        self, outputs: Outputs, question: str, unshown: UnshownValues, told: Sequence[str]
    ) -> None:
        self.outputs, self._question, self._unshown, self._told = outputs, question, unshown, told
        self._index = Index(outputs)
        self._lines = [block for block in outputs.blocks if not block.is_table][:_MOST_LINES]
        self._totals = totals_of(outputs.blocks)
        cells = [(block, cell) for block in outputs.blocks for cell in block.cells[:200]]
        self._units: frozenset[Unit] = frozenset(
            unit for block, cell in cells if (unit := block.unit(cell))
        )
        self._scales = frozenset(block.scale(cell) for block, cell in cells) - {1.0}
        self._has_fraction = not all(cell.value.is_integer() for _, cell in cells)

    @cached_property
    def _named_scales(self) -> frozenset[int]:
        """The powers of ten that anything names as a scale; only few answers need them."""
        texts = (self._question, *self._told, *self.outputs.texts)
        return frozenset().union(*(scales_named(text[:_SCALE_CHARS]) for text in texts))

    def _is_scale_named(self, statement: Statement) -> bool:
        exponent = statement.number.exponent
        return exponent > 0 and exponent in self._named_scales

    def verdicts(self, answer: str) -> list[Grounded]:
        """Return the verdict on each number of an answer, in order."""
        said = statements(answer, self.outputs.vocabulary)
        first = [self.direct(one) for one in said]
        known = self._known(said, first)
        turned = turned_around(answer, said)
        searches = _MOST_SEARCHES
        found: list[Grounded] = []
        for statement, (verdict, _) in zip(said, first, strict=True):
            if statement.number.start in turned:
                cell = verdict.cell if verdict else None
                found.append(_verdict(statement, Verdict.MISMATCHED, cell, "the other way round"))
            elif verdict is not None and (
                verdict.verdict is not Verdict.MISMATCHED or verdict.why.startswith(NO_EXTREME)
            ):
                found.append(verdict)
            elif searches <= 0:
                found.append(verdict or _verdict(statement, Verdict.UNSUPPORTED))
            else:
                searches -= 1
                found.append(self.indirect(statement, _others(known, statement), verdict))
                if found[-1].verdict is Verdict.DERIVED and found[-1].cell is not None:
                    known.append(_known_as_stated(statement, found[-1].cell))
        return _with_assumed(list(map(self._of_what_is_shown, said, found)))

    def _of_what_is_shown(self, statement: Statement, found: Grounded) -> Grounded:
        """Return the verdict; a supported number of a name that no cell shows is a mismatch."""
        if found.is_doubtful or found.verdict is Verdict.RESTATED:
            return found
        why = unshown_fault(statement, self._unshown)
        return _verdict(statement, Verdict.MISMATCHED, found.cell, why) if why else found

    def _known(
        self, said: list[Statement], first: list[tuple[Grounded | None, FittingValue | None]]
    ) -> list[KnownPools]:
        """Return the numbers that appear in outputs, and those that repeat the question's."""
        found = []
        for statement, (verdict, held) in zip(said, first, strict=True):
            is_open = verdict is None or verdict.verdict is Verdict.MISMATCHED
            if held:
                cell = held.cell
                is_mean = held.block is not None and is_average(held.block, cell)
                found.append(KnownPools(cell.value, cell.text, held.source, statement, is_mean))
            elif is_open and restates(statement, self._question):
                found.append(_known_as_stated(statement, 0))
        return found

    def direct(self, statement: Statement) -> tuple[Grounded | None, FittingValue | None]:
        """Return the verdict if a value itself decides; `None` if none fits in size."""
        if statement.is_label:
            return self._label(statement), None
        if statement.number.value == 0 and self.outputs.empty is not None:
            return _verdict(statement, Verdict.SUPPORTED, self.outputs.empty), None
        fits = self._fits(statement)
        good = [fit for fit in fits if fit.score >= 0 and not self._is_any(fit, statement)]
        bad = [fit for fit in fits if fit.score < 0 and fit.held.reading.way != "assumed"]
        best = max(good, key=lambda fit: (fit.score, fit.held.source), default=None)
        is_outweighed = best and (best.score == 0 and _outweighs(bad, statement))
        if best and not is_outweighed and not _is_surpassed(best, bad, statement):
            return self._supported(statement, best), best.held
        if bad:
            worst = bad[-1]
            return _verdict(statement, Verdict.MISMATCHED, worst.held.source, worst.why), None
        return None, None

    def _supported(self, statement: Statement, fit: _Fit) -> Grounded:
        held = fit.held
        sign = sign_fault(held, statement)
        fault = sign or points_fault(held, statement)
        fault = fault or superlative_fault(held, statement, self.outputs.blocks)
        if fault:
            return _verdict(statement, Verdict.MISMATCHED, held.source, fault)
        if held.reading.way in ("unit", "percent", "assumed", "scaled"):
            return _verdict(statement, Verdict.DERIVED, held.source, f"from {held.cell.text}")
        return _verdict(statement, Verdict.SUPPORTED, held.source)

    def _fits(self, statement: Statement) -> list[_Fit]:
        found = []
        is_named = self._is_scale_named(statement)
        readings = stated_readings(statement, self._units, self._scales, is_scale_named=is_named)
        for reading in readings:
            for held in self._index.fitting(reading):
                why = misfit(held, statement)
                if why is None:
                    continue
                if why:
                    found.append(_Fit(held, -1, why))
                    continue
                block = held.block
                is_bound = _is_bound(statement) and block and not block.is_table
                other, rival = (
                    contradiction(held, statement) if block and not is_bound else ("", _NOTHING)
                )
                other = other or ("" if is_bound else self._other_line(held, statement))
                other = other or wider_row(held, statement, self.outputs.blocks)
                if other:
                    found.append(_Fit(held, -1, other, by_label=True, rival=rival))
                else:
                    found.append(_Fit(held, _agreement(held, statement)))
        return found

    def _is_any(self, fit: _Fit, statement: Statement) -> bool:
        """Whether a value matches only by an assumed unit, or by an unspecific count."""
        if fit.held.reading.way == "assumed" and fit.score == 0:
            return True
        if is_other_count(fit.held, statement, self.outputs.blocks):
            return True
        block = fit.held.block
        if block is None or block.row_words(fit.held.cell.row) & {"count", "sum"}:
            return False
        is_one_of_many = block.is_table and len(block.rows) > 1
        return bool(is_one_of_many and fit.score == 0 and _EXISTS.search(statement.tight))

    def _other_line(self, held: FittingValue, statement: Statement) -> str:
        """Return whose figure a value of a line is, if another line has the named one; else ""."""
        block = held.block
        if block is None or block.is_table:
            return ""
        own = block.row_words(held.cell.row)
        for other in self._lines:
            if other is block:
                continue
            for row in range(min(len(other.rows), _MOST_LINES)):
                words = other.row_words(row)
                cell = other.at(row, 0)
                if cell is None or held.reading.window.holds(cell.value):
                    continue
                more, less = words - own, own - words
                is_figure = not own and (words & _FIGURES or len(more) > 1)
                is_akin = own & words or is_figure or (block.is_single and other.is_single)
                if not (is_akin and more):
                    continue
                if more <= statement.near and not less & statement.wide:
                    mine, theirs = (
                        shown_label(block.rows[held.cell.row]),
                        shown_label(other.rows[row]),
                    )
                    return f"{held.cell.text} is for {mine}, not {theirs}"
        return ""

    def _label(self, statement: Statement) -> Grounded:
        """Return the verdict on a year or another label: it must appear in output or question."""
        number = statement.number
        text = number.digits if number.is_percentage else number.text
        sources = [
            source
            for source, output in enumerate(self.outputs.texts)
            if re.search(rf"(?<!\d){re.escape(text)}(?!\d)", output)
        ]
        if sources and (fault := year_fault(statement, self.outputs, self._question)):
            return _verdict(statement, Verdict.MISMATCHED, sources[-1], fault)
        if sources:
            return _verdict(statement, Verdict.SUPPORTED, sources[-1])
        if re.search(rf"(?<!\d){re.escape(text)}(?!\d)", self._question):
            return _verdict(statement, Verdict.RESTATED)
        return _verdict(statement, Verdict.UNSUPPORTED)

    def indirect(
        self,
        statement: Statement,
        others: list[KnownPools],
        verdict: Grounded | None,
    ) -> Grounded:
        """Return the verdict if no value fits: from counts, derivations or the question."""
        blocks = self.outputs.blocks
        is_contested = verdict is not None
        if counted := count_of(statement, blocks) or quantile_share(statement, blocks):
            return _verdict(statement, Verdict.DERIVED, counted[0], counted[1])
        if ranks(statement, blocks):
            return _verdict(statement, Verdict.RESTATED)
        may_be_unscaled = self._has_fraction or self._is_scale_named(statement)
        sizes = derived_windows(
            statement, self._units, self._scales, may_be_unscaled=may_be_unscaled
        )
        if found := derivation(
            statement, blocks, others, sizes, self._totals, is_contested=is_contested
        ):
            return _verdict(statement, Verdict.DERIVED, found.source, found.formula)
        if restates(statement, self._question):
            return _verdict(statement, Verdict.RESTATED)
        if verdict is None and is_condition(statement, others):
            return _verdict(statement, Verdict.RESTATED)
        return verdict or self._named(statement)

    def _named(self, statement: Statement) -> Grounded:
        """Return the verdict on a number that may be a label: the year of a date, a row number."""
        number = statement.number
        source = self._dated(number.text) if number.is_year else None
        source = self._key(statement) if source is None else source
        verdict = Verdict.UNSUPPORTED if source is None else Verdict.SUPPORTED
        return _verdict(statement, verdict, source)

    def _dated(self, year: str) -> int | None:
        """Return the output that contains a date of that year."""
        for source, output in enumerate(self.outputs.texts):
            if re.search(rf"(?<!\d){year}(?:-\d\d|-?Q\d)", output):
                return source
        return None

    def _key(self, statement: Statement) -> int | None:
        """Return the output with a row of that number: `the most common class is 3`."""
        text = statement.number.text
        if not statement.number.is_whole or statement.unit:
            return None
        for block in self.outputs.blocks:
            if text in block.keys and (statement.number.is_year or _names_keys(statement, block)):
                return block.source
        return None


def _with_assumed(found: list[Grounded]) -> list[Grounded]:
    """Return the verdicts; an unsupported factor of a derived number is assumed: `70 m²`."""
    used = {one.why.rpartition("× ")[2] for one in found if one.verdict is Verdict.DERIVED}
    return [
        replace(one, verdict=Verdict.DERIVED, why="assumed")
        if one.verdict is Verdict.UNSUPPORTED and one.text in used
        else one
        for one in found
    ]


def _is_bound(statement: Statement) -> bool:
    at = statement.sentence.find(statement.number.text)
    return bool(_BOUND.search(statement.sentence[: max(at, 0)]))


def _names_keys(statement: Statement, block: TextBlock) -> bool:
    return any(
        word == part or (len(word) > 3 and part.endswith(word))
        for name in block.key_names
        for part in content_words(name)
        for word in statement.wide
    )


def _outweighs(bad: list[_Fit], statement: Statement) -> bool:
    """Whether a value with other labels counts more than a value without known labels."""
    digits = statement.number.digits.strip("-+").replace(".", "").strip("0")
    return len(digits) >= _SPECIFIC and any(fit.by_label for fit in bad)


def _is_surpassed(best: _Fit, bad: list[_Fit], statement: Statement) -> bool:
    """Whether the clause names another value by all labels of this one, and by more."""
    block = best.held.block
    named = block.words(best.held.cell) & statement.near if block else _NOTHING
    return any(named < fit.rival for fit in bad)


def _agreement(held: FittingValue, statement: Statement) -> int:
    """Return a score of a value's labels that its clause names; rows count more than columns."""
    block, cell = held.block, held.cell
    if block is None:
        return 0
    row = (block.row_words(cell.row) - block.common_words()) & statement.wide
    near = (block.row_words(cell.row) - block.common_words()) & statement.near
    column = block.column_words(cell.column) & statement.wide
    return 4 * min(len(near), 3) + 2 * min(len(row), 3) + min(len(column), 2)


def _known_as_stated(statement: Statement, source: int) -> KnownPools:
    number = statement.number
    size = number.value * 10.0 ** max(0, number.exponent)
    return KnownPools(size, number.text, source, statement)


def _verdict(
    statement: Statement, verdict: Verdict, cell: int | None = None, why: str = ""
) -> Grounded:
    number = statement.number
    return Grounded(number.text, number.start, number.end, verdict, cell, why)
