"""Values that belong to another row, column or year than the one a clause names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dm_jupyter.assist.grounding.blocks import TextBlock
from dm_jupyter.assist.grounding.outputs import Outputs
from dm_jupyter.assist.grounding.sizes import FittingValue
from dm_jupyter.assist.grounding.statements import Statement
from dm_jupyter.assist.grounding.words import HIGHEST, content_words

__all__ = ["contradiction", "shown_label", "wider_row", "year_fault"]

_MOST_AS_FRACTION = 1.5
"""Limit above which a value is hardly a fraction."""
_LABEL_CHARS = 60
_WITHIN = re.compile(r"\s?(?:%|points?|marks?)?\s?(?:in|for)\s([^.,;]{1,30})")
"""Text after a number that names what it is the figure of."""
_PERCENT = frozenset(("pct", "share", "rate"))
"""Words of columns that a percentage already implies."""
_YEAR_DIGITS = 4
_OWNER = re.compile(
    r"\b(?!number|amount|count|mean|median|average|total|sum|deviation|share|rate|value|maximum|"
    r"minimum|range|variance|percentage)[^\W\d]+\sof\s(?:the\s|all\s|its\s)?([^\W\d]+)"
)
"""Owner after `of`, as opposed to a figure."""
_ALIKE = re.compile(
    r"\b(?:and|while|but)\s(?:[\w ]{1,40}['’]s?|that of [\w ]{1,40}?)\s(?:is\s|was\s)?\Z"
)
"""Text before a number of the same measure as the last one: `the median of A is 3, and B's 4`."""
_STATED = re.compile(r"(?:\b(?:of|is|was)|[:=])\s[$€£]?\**\Z")
"""Text before a number of the measure that it names, where the clause may end: `a price of 3`."""
_NOTHING: frozenset[str] = frozenset()


def contradiction(held: FittingValue, statement: Statement) -> tuple[str, frozenset[str]]:
    """Return whose figure a value is, if the clause names another row or column of the same table.

    Also return the words by which the clause names that other one.
    """
    block, cell = held.block, held.cell
    if block is None or not statement.near:
        return "", _NOTHING
    for row in block.rows_met(statement.near):
        other = block.at(row, cell.column)
        if other is None or row == cell.row or held.reading.window.holds(other.value):
            continue
        if held.reading.way == "fraction" and abs(other.value) > _MOST_AS_FRACTION:
            continue
        if _is_meant(block.row_words(row), block.row_words(cell.row), statement, block, row):
            mine, theirs = shown_label(block.rows[cell.row]), shown_label(block.rows[row])
            return f"{held.cell.text} is for {mine}, not {theirs}", (
                block.words(other) & statement.near)  # fmt: skip
    return _other_column(held, block, statement) if block.is_table else ("", _NOTHING)


def _is_meant(
    theirs: frozenset[str], mine: frozenset[str], statement: Statement, block: TextBlock, row: int
) -> bool:
    """Whether the clause names one row, and no word that only the value's own row has."""
    more, less = theirs - mine, mine - theirs
    noun = set(content_words(statement.after[:30])[:1])
    if "count" in mine and statement.number.is_whole and noun and not noun & theirs:
        return False  # the counted noun follows
    if more and not less:  # the clause says `Very good`, the value is for `Good`
        is_listed = block.is_table or bool(block.parts)
        return more <= statement.near and (theirs <= statement.near or not is_listed)
    if not more and less and not less & statement.wide:  # `Good`, the value is for `Very good`
        return block.is_table and theirs <= statement.near
    if not more or not less or less & statement.near:
        return False
    is_counted = not block.is_table and noun & more and not less & statement.wide
    is_meant = more <= statement.near or bool(is_counted)
    return is_meant or any(
        part and part <= statement.near and part - mine for part in block.named_parts(row)
    )


def _noun_behind(statement: Statement) -> frozenset[str]:
    """Return what a number counts, if the next word says it."""
    match = re.match(r"[\s*]*([^\W\d]+)", statement.after)
    return frozenset(content_words(match[1])) if match else frozenset()


def _other_column(
    held: FittingValue, block: TextBlock, statement: Statement
) -> tuple[str, frozenset[str]]:
    """Return which column a value is from, if the clause names another one, and their words."""
    cell, near = held.cell, statement.near
    wide = near if block.is_square else statement.wide
    if _ALIKE.search(statement.before) and not content_words(statement.after[:30]):
        near = wide
    own, is_decimal = block.words(cell), "." in cell.text
    is_stated = _STATED.search(statement.before) and not content_words(statement.after[:30])
    noun = _noun_behind(statement)
    years = {word for word in statement.wide if word.isdecimal() and len(word) == _YEAR_DIGITS}
    owners = {
        word for match in _OWNER.finditer(statement.before) for word in content_words(match[1])
    }
    within = _WITHIN.match(statement.after)
    behind = frozenset(content_words(within[1])) if within else frozenset()
    for column in block.value_columns():
        other = block.at(cell.row, column)
        if column == cell.column or other is None or held.reading.window.holds(other.value):
            continue
        is_alike = is_decimal == ("." in other.text)
        if other.text in years or not (is_alike or (is_stated and not is_decimal)):
            continue
        theirs = block.column_words(column) - own
        if not theirs and block.column_words(column) < block.column_words(cell.column):
            theirs = block.column_words(column)  # `smoker`, the value is for `non-smoker`
        mine = block.column_words(cell.column) - block.column_words(column)
        mine -= _PERCENT if statement.number.is_percentage else _NOTHING
        mine -= block.row_words(cell.row) if block.is_square else _NOTHING
        is_part = theirs <= noun and abs(cell.value) < abs(other.value)
        is_told = bool(mine or (block.column_words(cell.column) and not theirs <= own))
        said = near if theirs and theirs <= behind else wide
        is_owner = theirs <= owners  # `the top quartile of customers`
        if theirs and is_told and theirs <= near and not (mine & said or is_part or is_owner):
            why = f"{cell.text} is {block.columns[cell.column]}, not {block.columns[column]}"
            return why, block.words(other) & statement.near
    return "", _NOTHING


def wider_row(held: FittingValue, statement: Statement, blocks: Sequence[TextBlock]) -> str:
    """Return the value of everything that a clause names, if this value is of a part; else "".

    Args:
        held: the value that the number is.
        statement: the number with its words.
        blocks: the contents of the outputs.
    """
    block, cell = held.block, held.cell
    if block is None or block.levels < 2 or HIGHEST.search(statement.sentence):
        return ""
    parts = block.part_words(cell.row)
    named = frozenset().union(*(part for part in parts if part and part <= statement.near))
    if not named or all(part & statement.wide for part in parts):
        return ""
    column = block.column_words(cell.column)
    for other in blocks:
        if other is block or not other.is_table:
            continue
        for row in other.rows_named(named):
            for at in other.value_columns():
                whole = other.at(row, at)
                is_akin = other.row_words(row) <= named and column & other.column_words(at)
                if whole and is_akin and not held.reading.window.holds(whole.value):
                    label = shown_label(block.rows[cell.row])
                    return f"{cell.text} is for {label}; in all {whole.text}"
    return ""


def year_fault(statement: Statement, outputs: Outputs, question: str) -> str:
    """Return whose year it is, if the sentence names another row of its table; else "".

    Args:
        statement: the year with the words of its sentence.
        outputs: the outputs of the cells.
        question: the question.
    """
    year = statement.number.text
    if not statement.number.is_year or year in question:
        return ""
    seen = sum(text.count(year) for text in outputs.texts)
    for block in outputs.blocks:
        if not block.is_table or year not in block.keys:
            continue
        owners = [row for row, parts in enumerate(block.parts) if year in parts]
        others = [
            row
            for row, parts in enumerate(block.parts)
            for part, words in zip(parts, block.part_words(row), strict=True)
            if words and not part.isdecimal() and words <= statement.wide
        ]
        if len(owners) == seen and others and not set(owners) & set(others):
            return f"{year} is for {shown_label(block.rows[owners[0]])}"
    return ""


def shown_label(label: str) -> str:
    """Return the label of a row as it is shown to a person."""
    return label.replace("#", "").strip(" :=@[-'\">")[:_LABEL_CHARS] or "another row"
