"""Detection of answers that rest on absent data, such as a selection without rows.

The facts come from a kernel, which can forge them: they are shown, never trusted. Only English
answers are recognized.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from dm_jupyter.core.data_facts import coverage_words, fact_words
from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.types import CellResult, Display

__all__ = [
    "absent_data",
    "covered_words",
    "names_absent",
    "rests_words",
    "says_absent",
]

_MOST_ABSENT = 3
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,\u202f\u00a0]*(?:\.\d+)?")
_NO_VALUE = re.compile(r"(?i)\b(?:nan|none|null|nat|n/a)\b|<NA>")
_DATA = r"(?:rows?|records?|data|entries|entry|observations?|values?|matches|results?)"
_SAID = re.compile(
    rf"""(?ix)
    \b(?:no|zero|0|without|any|lacks?)\s+(?:[\w'-]+\s+){{0,3}}?{_DATA}\b
    | \b(?:no|none\s+of\s+the)\s+[\w'-]+\s+(?:has|have|had|is|are|matche[sd]|matched)\b
    | (?:\b(?:not|never)|n['’]t)\s+(?:[\w'-]+\s+){{0,2}}?
      (?:exist|cover|contain|include|present|available|appear|occur|found|match|in\s+the\s+data|any)
    | \b(?:missing|absent|empty|unavailable|outside|beyond|not\s+in)\b
    | \bnone\s+(?:has|have|is|are|was|were)\b
    | \bno\s+(?:[\w'-]+\s+){{0,3}}?(?:(?:was|were|is|are)\s+)?
      (?:recorded|measured|observed|listed|found|reported|available|issued|called|named)\b
    | \bonly\s+(?:contains?|covers?|has|have|holds?|includes?|lists?)\b
    | \b(?:data|dataset|table|file)\s+(?:(?:contains?|holds?|includes?|lists?)\s+(?:no|none)
      | (?:has|have)\s+none)\b
    | \b(?:data|dataset|table|file|records?|rows?|years|dates)\s+(?:only\s+)?
      (?:covers?|runs?|starts?|begins?|ends?|spans?|ranges?)\b
    """
)
"""Ways in which an answer says that what was asked for is not in the data."""
_DENIES = re.compile(r"(?i)(?:^|[.!?:]\s+)(?:none|nobody|no)\b")
_NOTHING = re.compile(r"(?i)\b(?:no|none|never|nothing|nobody)\b")
_COUNTS = re.compile(
    r"""(?ix)\b(?:how\s+(?:many|often)|number\s+of|counts?|(?:is|are)\s+there|there\s+(?:is|are)|any
    |whether|verify|validate|check\s+(?:if|that|for))\b
    |(?:^|[.,:;?!]\s+|\band\s+)(?:is|are|do|does|has|have)\s+(?:all|every|each)\b"""
)
"""Ways in which a question asks for a count or a check, which may well come to 0."""
_SHARES = re.compile(r"(?i)\b(?:percent(?:age)?|share|proportion|fraction)\b|%")
_OF_ROWS = ("mean", "value_counts")
"""Operations that give the share of the rows that meet a condition."""
_FORESEES = re.compile(r"(?i)\b(?:forecast|predict|expect|project|estimat|extrapolat)\w*|\bwill\b")
"""Ways in which a question asks for what no data can have yet."""
_NAMELESS = "a mask"
"""What a figure or a table of no rows says of a selection whose condition is unknown."""
_MASK_OF_MISSING = re.compile(r"\bmissing$")
_EXACT = re.compile(r"==| in \[| within ")
_TRUTH = re.compile(r" == (?:True|False)$")
_LIMIT = re.compile(r"[<>]|\bbetween\b", re.IGNORECASE)
_PLAIN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_DIGITS = re.compile(r"\d+")
_YEARS = range(1_500, 2_101)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_YEAR_OF_DATE = re.compile(r"\A(\d{4})-\d{2}")
_VOID_WORD = r"(?:nan|none|null|nat|<na>|0(?:\.0+)?|\[\]|\{\}|\(\)|set\(\))"
_VOID_TABLE = re.compile(
    r"(?m)^(?:Empty DataFrame\n\s*Columns: \[.*\]\n\s*Index: \[.*\]"
    r"|Series\(\[\], .*\)|\d+ rows x \d+ columns.*, saved as \S+)$"
)
"""What pandas prints for a table without rows, and the line above the rows of a query."""
_VOID_LINE = re.compile(rf"(?i)(?:[^\d:=]*[:=]\s*)?{_VOID_WORD}[.%]?")


def absent_data(
    answer: str,
    question: str,
    results: Sequence[CellResult],
    years_missed: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the absent data that an answer rests on, in words.

    The result is empty if the answer itself says that the data are absent, or rests on something
    else. An answer rests on a figure of nothing if it states that figure and a cell printed it; a 0
    need not be the count of an empty selection that the question does not ask for. An answer
    without numbers of its own rests on one if the last cell came to nothing and printed no other
    number. An answer also rests on a selection without rows if that selects the very value that the
    question names, in the last cell, or before cells that no longer use its column. A count or a
    share of 0 is not a figure of nothing if the data contain what was counted. An answer of nothing
    about a year that the data miss rests on that, whatever the cells selected, and so does any
    answer if no cell uses that year.

    Args:
        answer: the answer that the model states.
        question: the question, whose numbers are not the answer's own.
        results: the results of the run's cells, in order.
        years_missed: the question's years that the data miss, in words that begin with the year.
        sources: the code of the cells, in the same order.
    """
    if not results or says_absent(answer, question):
        return ()
    worked = [result for result in results if result.ok]
    given = _numbers(question)
    own = _numbers(answer) - given
    stated = [*_stated(worked, answer, own)] if own else [*_came_to_nothing(worked, given)]
    if own and not _NO_VALUE.search(answer):
        stated = [x for x in stated if not _is_aside(x, worked, question)]
    named = _named((worked or results)[-1].facts, question)
    found = [*stated, *named, *_dropped(results, sources, question)]
    absent = [_behind(fact, results) for fact in found]
    if _may_be_zero(answer, question, worked):
        absent = [x for x in absent if not _is_true_zero(x, results, question)]
    words = tuple(dict.fromkeys(map(fact_words, absent)))[:_MOST_ABSENT]
    if words:
        return words
    is_nothing = _NO_VALUE.search(answer) or (not own and _NOTHING.search(answer)) or 0.0 in own
    unused = [one for one in years_missed if _is_unused(one.split()[0], results, sources, question)]
    return tuple(years_missed if is_nothing else unused)[:_MOST_ABSENT]


def _is_unused(
    year: str, results: Sequence[CellResult], sources: Sequence[str], question: str
) -> bool:
    """Whether a question asks for one year, and no cell that worked has it in its code."""
    code = [source for result, source in zip(results, sources, strict=False) if result.ok]
    beside = rf"(?i)\b(?:before|after|until|till|by|since|from|to)\s+(?:\w+\s+){{0,2}}{year}\b"
    is_asked = not (_FORESEES.search(question) or re.search(beside, question))
    return bool(code) and is_asked and not any(year in source for source in code)


def covered_words(
    answer: str, question: str, results: Iterable[CellResult], years_missed: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return what the data have instead, as lines below an answer that says only what they lack.

    Args:
        answer: the answer that the model states.
        question: the question.
        results: the results of the run's cells.
        years_missed: the question's years that the data miss, in words that begin with the year.
    """
    if not says_absent(answer, question):
        return ()
    parts = [
        part
        for result in results
        for fact in _named(result.facts, question)
        for part in fact.coverage
        if not part.rows and not part.near
    ]
    unsaid = [x for x in parts if not (x.low and x.low in answer and x.high in answer)]
    words = filter(None, map(coverage_words, unsaid)) if parts else years_missed
    return tuple(dict.fromkeys(f"{one}." for one in words))[:_MOST_ABSENT]


def says_absent(answer: str, question: str) -> bool:
    """Return whether an answer says that data are absent, in other words than the question's.

    Args:
        answer: that the model states.
        question: the question.
    """
    asked = _plain(question)
    return any(_plain(found[0]) not in asked for found in _SAID.finditer(answer))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _stated(worked: Sequence[CellResult], answer: str, own: set[float]) -> Iterator[Fact]:
    """Yield the absences whose figure an answer states."""
    for result in worked:
        for fact in result.facts:
            if fact.is_absence and _states(fact, result, answer, own):
                yield fact


def _states(fact: Fact, result: CellResult, answer: str, own: set[float]) -> bool:
    """Whether the answer states the figure of nothing that the cell printed."""
    shown = _put_out(result)
    if fact.kind == "nothing" and _NO_VALUE.search(fact.result):
        return bool(_NO_VALUE.search(answer))
    if 0.0 in own and 0.0 in _numbers(shown):
        return True
    is_selection = fact.kind not in ("nothing", "shown")
    return is_selection and bool(_NO_VALUE.search(answer) and _NO_VALUE.search(shown))


def _is_aside(fact: Fact, results: Sequence[CellResult], question: str) -> bool:
    """Whether an answer's 0 need not be that of an empty selection, as of a check for outliers.

    Such a selection searches for no text, and the data explain why it is empty. No figure comes
    from it, and the question names no limit.
    """
    one = _behind(fact, results)
    is_query = one.operation.startswith("read_sql")
    if fact.kind == "nothing" or one.kind != "kept" or is_query or _QUOTED.search(one.condition):
        return False
    has_limit = any(number not in _YEARS for number in _numbers(question))
    return not has_limit and _is_true_zero(one, results, question)


def _may_be_zero(answer: str, question: str, results: Sequence[CellResult]) -> bool:
    """Whether an answer of 0 may be true: to a count or a check, or as a share of some rows."""
    if _COUNTS.search(question) or _DENIES.search(answer):
        return True
    if _NO_VALUE.search(answer) or not _SHARES.search(question):
        return False
    facts = (fact for result in results for fact in result.facts if fact.before == 0)
    return not any(fact.kind == "kept" or fact.operation in _OF_ROWS for fact in facts)


def _came_to_nothing(worked: Sequence[CellResult], given: set[float]) -> Iterator[Fact]:
    """Yield the absences behind a last cell that printed no number but those of the question."""
    if not worked:
        return
    last = worked[-1]
    shown = _VOID_TABLE.sub("", _put_out(last))
    if _numbers(shown) - given <= {0.0}:
        yield from filter(_is_figure, last.facts)
    if _shows_nothing(last):
        behind = ([x for x in result.facts if x.is_absence] for result in reversed(worked))
        yield from next(filter(None, behind), ())


def _is_figure(fact: Fact) -> bool:
    return fact.is_absence and fact.kind in ("nothing", "shown")


def _shows_nothing(result: CellResult) -> bool:
    """Whether all that a cell printed is tables without rows and undefined values."""
    shown = _put_out(result)
    lines = list(filter(str.strip, _VOID_TABLE.sub("", shown).splitlines()))
    return bool(shown.strip()) and all(_VOID_LINE.fullmatch(line.strip()) for line in lines)


def _named(facts: Sequence[Fact], question: str) -> Iterator[Fact]:
    """Yield the absences of a value that the question names, whether or not the answer does.

    A value that a later selection of the same column found under another name is not absent.
    """
    for place, fact in enumerate(facts):
        if not fact.is_absence and fact.operation != "reindex":
            continue
        asked = [one for one in _values(fact) if _holds(question.casefold(), one.casefold())]
        if asked and not any(_replaces(x, fact, question) for x in facts[place + 1 :]):
            yield fact


def _dropped(
    results: Sequence[CellResult], sources: Sequence[str], question: str
) -> Iterator[Fact]:
    """Yield the absences of a value that the question names, in a column no later cell uses.

    A value by which a later cell has found rows is not absent.
    """
    for place, result in enumerate(results[: len(sources)]):
        pairs = zip(results[place + 1 :], sources[place + 1 :], strict=False)
        later = [(other.facts, source) for other, source in pairs if other.ok]
        code = " ".join(source for _, source in later)
        chosen = [x for facts, _ in later for x in facts if x.kind == "kept" and x.after]
        values = {value.casefold() for x in chosen for value in _values(x)}
        for fact in _named(result.facts, question) if later else ():
            columns = [part.column for part in fact.coverage if part.column and not part.rows]
            is_used = any(re.search(rf"(?i)(?<!\w){re.escape(x)}(?!\w)", code) for x in columns)
            is_found = not values.isdisjoint(map(str.casefold, _values(fact)))
            if columns and not is_used and not is_found:
                yield fact


def names_absent(facts: Sequence[Fact], question: str) -> bool:
    """Return whether a cell selected no row for a value that the question names.

    A value that resembles another one, or that has the wrong type, may be the cell's mistake.
    Values that differ in their digits alone, such as `S-09` and `S-05`, do not.

    Args:
        facts: of the cell.
        question: the question.
    """
    return any(
        fact.kind == "kept" and not any(map(partial(_may_be_meant, fact), fact.coverage))
        for fact in _named(facts, question)
    )


def _may_be_meant(fact: Fact, part: Coverage) -> bool:
    """Return whether the cell may have spelt a value of the data wrongly."""
    missed = {_DIGITS.sub("0", value) for value in _values(fact)}
    near = (_DIGITS.sub("0", value.strip("'\"")) for value, _ in part.near)
    return bool(part.dtype) or any(value not in missed for value in near)


def _values(fact: Fact) -> list[str]:
    """Return the values that a condition compares with, or the labels that no row has."""
    text = fact.result if fact.operation == "reindex" else fact.condition
    quoted = [one or other for one, other in _QUOTED.findall(text)]
    years = [found[1] for one in quoted if (found := _YEAR_OF_DATE.match(one))]
    bare = _QUOTED.sub(" ", text)
    return [*filter(None, quoted), *years, *(found[0] for found in _NUMBER.finditer(bare))]


def _holds(text: str, value: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w)", text) is not None


def _replaces(later: Fact, fact: Fact, question: str) -> bool:
    """Whether a later selection found rows of the column by a value the question does not name."""
    if later.kind != "kept" or not later.after:
        return False
    columns = {part.column for part in fact.coverage if part.column and not part.rows}
    if not any(_holds(later.condition, column) for column in columns):
        return False
    missed = {value.casefold() for value in _values(fact)}
    own = [value for value in _values(later) if not _holds(question, value)]
    return bool(own) or any(
        value.casefold() in missed for value in _values(later) if value not in _values(fact)
    )


def _is_true_zero(fact: Fact, results: Sequence[CellResult], question: str) -> bool:
    """Whether the data contain what was counted, so that a count of 0 is a real result.

    It is one if each part of a condition has rows by itself, if a limit is beyond the numbers of a
    column, if no row passes a test, or if a label is missing among the rows that the question asks
    for. It is not one if a value does not occur, or a period is not covered.
    """
    if fact.kind == "merged":
        return True
    if fact.kind != "kept":
        return False
    if not fact.coverage:
        is_known = fact.operation.startswith("read_sql") or not _EXACT.search(fact.condition)
        return is_known or bool(_MASK_OF_MISSING.search(fact.condition))
    is_among = any(_is_among_asked(fact, result.facts, question) for result in results)
    return all(
        part.rows
        or _is_limit(part)
        or (_TRUTH.search(part.part) and not part.dtype)
        or (is_among and part.frequent)
        for part in fact.coverage
    )


def _is_among_asked(fact: Fact, facts: Sequence[Fact], question: str) -> bool:
    """Whether a selection is from rows that its cell chose before, by a value of the question.

    Equal numbers of rows tell which rows it is from.
    """
    before = facts[: facts.index(fact)] if fact in facts else ()
    return any(
        one.kind == "kept"
        and one.after == fact.before
        and any(_holds(question.casefold(), value.casefold()) for value in _values(one))
        for one in before
    )


def _is_limit(part: Coverage) -> bool:
    """Whether a part compares numbers that are not years with a limit."""
    ends = (part.low, part.high)
    if not _LIMIT.search(part.part) or not all(map(_PLAIN_NUMBER.fullmatch, ends)):
        return False
    return not all(float(end) in _YEARS for end in ends)


def _behind(fact: Fact, results: Sequence[CellResult]) -> Fact:
    """Return the selection behind a figure or a table of no rows; the fact itself if unknown."""
    selections = [
        one
        for result in results
        for one in result.facts
        if one.kind in ("kept", "merged")
        and one.is_absence
        and (one.condition or _NAMELESS) == fact.condition
    ]
    return selections[-1] if selections else _selection_beside(fact, results) or fact


def _selection_beside(fact: Fact, results: Sequence[CellResult]) -> Fact | None:
    """Return the last query, or nameless table's selection, of the cell that showed a table.

    The result is `None` if that one has rows.
    """
    shows = [result.facts for result in results if fact.kind == "shown" and fact in result.facts]
    before = shows[-1][: shows[-1].index(fact)] if shows else ()
    is_nameless = fact.before == 0 and not fact.condition
    beside = [
        one
        for one in before
        if one.operation.startswith("read_sql")
        or (is_nameless and one.kind == "kept" and one.is_absence)
    ]
    return beside[-1] if beside and beside[-1].is_absence else None


def _put_out(result: CellResult) -> str:
    shown = [x.data.get("text/plain", "") for x in result.outputs if isinstance(x, Display)]
    return "\n".join([result.stdout, *(x for x in shown if isinstance(x, str))])


def _numbers(text: str) -> set[float]:
    found = (re.sub("[,\u202f\u00a0]", "", match[0]) for match in _NUMBER.finditer(text))
    return {abs(float(number)) for number in found}


def rests_words(absent: Sequence[str]) -> str:
    """Return the sentence below an answer that rests on absent data; "" if it does not.

    Args:
        absent: the result of `absent_data`.
    """
    if not absent:
        return ""
    return f"This answer rests on a selection without rows or values: {'. '.join(absent)}."
