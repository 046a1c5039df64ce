"""The verdict on each number of an answer: where it comes from, or why it can't be believed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dm_jupyter.agent.grounding.claims import count_of, ranks, restates, superlative_fault
from dm_jupyter.agent.grounding.derived import derivation
from dm_jupyter.agent.grounding.outputs import Outputs, read
from dm_jupyter.agent.grounding.sizes import Held, Index, misfit, readings
from dm_jupyter.agent.grounding.statements import Statement, statements
from dm_jupyter.agent.grounding.tables import Block
from dm_jupyter.agent.grounding.words import Unit
from dm_jupyter.core.grounded import Grounded, Verdict

__all__ = ["ground", "unsupported_numbers"]

_SPECIFIC = 3
"""Digits from which on a number is hardly met by chance."""
_FALLING = re.compile(
    r"\b(?:fell|fall\w*|drop\w*|declin\w*|decreas\w*|loss\w*|lost|down|lower|less|negativ\w*|minus|"
    r"below|invers\w*|reduc\w*|shrank|deficit|cool\w*|cold\w*|behind|fewer|under|short\w*|"
    r"opposite|contract\w*|worse|lag\w*|trail\w*|slower|net outflow|outflow)\b|[-−]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A value that fits in size, and how well it fits in what it is about."""

    held: Held
    score: int
    """Labels that the clause names; -1 where labels or units say otherwise."""
    why: str = ""
    by_label: bool = False


def unsupported_numbers(
    answer: str, outputs: Sequence[str], question: str = ""
) -> tuple[str, ...]:
    """Returns the numbers of `answer` that the outputs don't bear out, each once, as written.

    Args:
        answer: what the model states.
        outputs: what each cell has shown, as plain text.
        question: what was asked; its numbers may be repeated, but are no results.
    """
    found = ground(answer, outputs, question)
    return tuple(dict.fromkeys(one.text for one in found if one.is_doubtful))


def ground(answer: str, outputs: Sequence[str], question: str = "") -> tuple[Grounded, ...]:
    """Returns the verdict on each number that an answer states, in order.

    A number is borne out by a value that it is, rounded or in another unit, when their labels and
    units don't say otherwise; or by a difference, ratio, percentage, sum or count recomputed from
    values that belong together. What numbers a list, an ordinal (`1st`) and a usual level (`at the
    95 % level`) claim nothing.

    Args:
        answer: what the model states.
        outputs: what each cell has shown, as plain text.
        question: what was asked.
    """
    binder = _Binder(read(outputs), question)
    said = statements(answer, binder.outputs.vocabulary)
    first = [binder.direct(one) for one in said]
    found = []
    for at, (statement, (verdict, fit)) in enumerate(zip(said, first, strict=True)):
        if verdict is None or verdict.verdict is Verdict.MISMATCHED:
            verdict = binder.indirect(statement, _others(said, first, at), verdict)
        found.append(verdict)
    return tuple(found)


def _others(
    said: list[Statement], first: list[tuple[Grounded | None, Held | None]], at: int
) -> list[tuple[Held, Statement]]:
    """The other numbers that stand in outputs, those of the same sentence first."""
    found = [(held, said[place]) for place, (_, held) in enumerate(first) if held and place != at]
    same = [one for one in found if one[1].sentence == said[at].sentence]
    near = sorted(
        (one for one in found if one[1].sentence != said[at].sentence),
        key=lambda one: abs(one[1].number.start - said[at].number.start),
    )
    return same + near[: max(0, 6 - len(same))]


class _Binder:
    """Looks for what bears a number out."""

    def __init__(self, outputs: Outputs, question: str) -> None:
        self.outputs, self._question = outputs, question
        self._index = Index(outputs)
        self._units: frozenset[Unit] = frozenset(
            unit
            for block in outputs.blocks
            for cell in block.cells[:200]
            if (unit := block.unit(cell))
        )

    def direct(self, statement: Statement) -> tuple[Grounded | None, Held | None]:
        """The verdict where a value itself decides; `None` where none fits in size."""
        if statement.is_label:
            return self._label(statement), None
        if statement.number.value == 0 and self.outputs.empty is not None:
            return _verdict(statement, Verdict.SUPPORTED, self.outputs.empty), None
        fits = self._fits(statement)
        good = [fit for fit in fits if fit.score >= 0]
        bad = [fit for fit in fits if fit.score < 0]
        best = max(good, key=lambda fit: (fit.score, fit.held.source), default=None)
        if best and not (best.score == 0 and _outweighs(bad, statement)):
            return self._supported(statement, best), best.held
        if bad:
            worst = bad[-1]
            return _verdict(statement, Verdict.MISMATCHED, worst.held.source, worst.why), None
        return None, None

    def _supported(self, statement: Statement, fit: _Fit) -> Grounded:
        held = fit.held
        sign = _sign_fault(held, statement)
        fault = sign or (superlative_fault(held, statement, self.outputs.blocks))
        if fault:
            return _verdict(statement, Verdict.MISMATCHED, held.source, fault)
        if held.reading.way in ("unit", "percent"):
            return _verdict(statement, Verdict.DERIVED, held.source, f"from {held.cell.text}")
        return _verdict(statement, Verdict.SUPPORTED, held.source)

    def _fits(self, statement: Statement) -> list[_Fit]:
        found = []
        for reading in readings(statement, self._units):
            for held in self._index.fitting(reading):
                why = misfit(held, statement)
                if why is None:
                    continue
                if why:
                    found.append(_Fit(held, -1, why))
                    continue
                block = held.block
                other = _contradiction(held, statement) if block else ""
                if other:
                    found.append(_Fit(held, -1, other, by_label=True))
                else:
                    found.append(_Fit(held, _agreement(held, statement)))
        return found

    def _label(self, statement: Statement) -> Grounded:
        """A year or another name: it must occur in an output, or in the question."""
        text = statement.number.text
        for source, output in reversed(list(enumerate(self.outputs.texts))):
            if re.search(rf"(?<!\d){re.escape(text)}(?!\d)", output):
                return _verdict(statement, Verdict.SUPPORTED, source)
        if re.search(rf"(?<!\d){re.escape(text)}(?!\d)", self._question):
            return _verdict(statement, Verdict.RESTATED)
        return _verdict(statement, Verdict.UNSUPPORTED)

    def indirect(
        self,
        statement: Statement,
        others: list[tuple[Held, Statement]],
        verdict: Grounded | None,
    ) -> Grounded:
        """The verdict where no value fits: counts, what follows from values, the question."""
        blocks = self.outputs.blocks
        counted = count_of(statement, blocks)
        if counted:
            return _verdict(statement, Verdict.DERIVED, counted[0], counted[1])
        if verdict is None or not verdict.why.endswith("there"):
            if ranks(statement, blocks):
                return _verdict(statement, Verdict.RESTATED)
            if found := derivation(statement, blocks, others):
                return _verdict(statement, Verdict.DERIVED, found.source, found.formula)
        if restates(statement, self._question):
            return _verdict(statement, Verdict.RESTATED)
        if verdict is not None:
            return verdict
        if (key := self._key(statement)) is not None:
            return _verdict(statement, Verdict.SUPPORTED, key)
        return _verdict(statement, Verdict.UNSUPPORTED)

    def _key(self, statement: Statement) -> int | None:
        """The output with a row of that number: `the most common class is 3`."""
        text = statement.number.text
        if not statement.number.is_whole or statement.unit:
            return None
        for block in self.outputs.blocks:
            if text in block.keys and (
                statement.number.is_year or _names_keys(statement, block)
            ):
                return block.source
        return None


def _names_keys(statement: Statement, block: Block) -> bool:
    words = statement.wide
    return any(
        word == part or (len(word) > 3 and part.endswith(word))
        for name in block.key_names
        for part in name.lower().replace("_", " ").split()
        for word in words
    )


def _outweighs(bad: list[_Fit], statement: Statement) -> bool:
    """Whether a value that other labels claim counts more than one that nothing is known of."""
    digits = statement.number.digits.strip("-+").replace(".", "").strip("0")
    return len(digits) >= _SPECIFIC and any(fit.by_label for fit in bad)


def _agreement(held: Held, statement: Statement) -> int:
    """How much of a value's labels its clause names: rows count more than columns."""
    block, cell = held.block, held.cell
    if block is None:
        return 0
    row = (block.row_words(cell.row) - block.common_words()) & statement.wide
    near = (block.row_words(cell.row) - block.common_words()) & statement.near
    column = block.column_words(cell.column) & statement.wide
    return 4 * min(len(near), 3) + 2 * min(len(row), 3) + min(len(column), 2)


def _contradiction(held: Held, statement: Statement) -> str:
    """Whose figure a value is, where the clause names another row or column of the same table."""
    block, cell = held.block, held.cell
    if block is None:
        return ""
    near, wide = statement.near, statement.wide
    own_row = block.row_words(cell.row)
    own = own_row | block.column_words(cell.column)
    window = held.reading.window
    for row in block.rows_named(near):
        other = block.at(row, cell.column)
        if other is None or other is cell or window.holds(other.value):
            continue
        if not block.is_table and _is_whole(cell.value) != _is_whole(other.value):
            continue
        if not _is_named(block.row_words(row) - own, near) or (own_row - block.row_words(row)) & near:
            continue
        if any(named == cell.row for named in block.rows_named(near)):
            continue
        mine, theirs = _shown(block.rows[cell.row]), _shown(block.rows[row])
        return f"{held.cell.text} is for {mine}, not {theirs}"
    if not block.is_table:
        return ""
    for column in block.value_columns():
        other = block.at(cell.row, column)
        if column == cell.column or other is None or window.holds(other.value):
            continue
        theirs_only = block.column_words(column) - own
        mine_only = block.column_words(cell.column) - block.column_words(column)
        if theirs_only and mine_only and theirs_only <= near and not mine_only & wide:
            return f"{held.cell.text} is {block.columns[cell.column]}, not {block.columns[column]}"
    return ""


def _is_named(different: frozenset[str], near: frozenset[str]) -> bool:
    return bool(different & near)


def _is_whole(value: float) -> bool:
    return value == round(value, 0) if abs(value) < 1e300 else True


def _shown(label: str) -> str:
    return label.replace("#", "").strip(" :=@[-") or "another row"


def _sign_fault(held: Held, statement: Statement) -> str:
    """Why a number is of the other sign than its value, where no word says so."""
    stated, value = statement.number, held.cell.value
    is_minus = stated.digits.startswith("-")
    if is_minus == (value < 0) or value == 0 or held.reading.way != "plain":
        return ""
    if is_minus or _FALLING.search(statement.sentence):
        return "" if _FALLING.search(statement.sentence.replace(stated.text, "")) else (
            f"it is {held.cell.text} there")  # fmt: skip
    return f"it is {held.cell.text} there"


def _verdict(
    statement: Statement, verdict: Verdict, cell: int | None = None, why: str = ""
) -> Grounded:
    number = statement.number
    return Grounded(number.text, number.start, number.end, verdict, cell, why)
