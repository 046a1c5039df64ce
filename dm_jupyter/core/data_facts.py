"""What happened to the data, in words: the same for the model, the person and the trainer.

Facts, no advice. They come from a kernel, which can forge them: they are shown, never trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.types import CellResult, Display

__all__ = ["absent_data", "fact_words", "facts_block", "is_notable", "notable_words", "rests_words"]

_MOST_LINES, _LINE_CHARS = 6, 300
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
    | \b(?:data|dataset|table|file|records?)\s+(?:only\s+)?
      (?:covers?|runs?|starts?|begins?|ends?|spans?|ranges?)\b
    """
)
"""How an answer says that what was asked for is not in the data."""


def fact_words(fact: Fact) -> str:
    """Returns one line that says what happened, without advice."""
    words = _WORDS[fact.kind](fact)
    times = f" ({fact.times:,} times)" if fact.times > 1 else ""
    return f"{words[:_LINE_CHARS]}{times}"


def is_notable(fact: Fact) -> bool:
    """Whether a fact is more than a filter that kept rows, or a merge that kept all of them."""
    if fact.kind == "merged":
        return fact.after != fact.before or bool(fact.missed)
    return fact.is_absence or fact.kind == "lost" or fact.operation == "groupby"


def facts_block(facts: Sequence[Fact]) -> str:
    """Returns the lines below the output of a cell; empty where nothing happened to the data.

    Where there are too many, those that are notable come first.

    Args:
        facts: of the cell, in order.
    """
    facts = [fact for fact in facts if fact.kind not in _UNTOLD]
    ranked = sorted(range(len(facts)), key=lambda place: not is_notable(facts[place]))
    shown = sorted(ranked[:_MOST_LINES])
    lines = list(dict.fromkeys(fact_words(facts[place]) for place in shown))
    more = len(facts) - len(shown)
    if more > 0:
        lines.append(f"and {more} more")
    return "\n".join(["What happened to the data:", *(f"- {x}" for x in lines)]) if lines else ""


def notable_words(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Returns the lines of the facts that a person should see beside a cell.

    Args:
        facts: of the cell, in order.
    """
    return tuple(dict.fromkeys(map(fact_words, filter(is_notable, facts))))[:_MOST_LINES]


def _kept(fact: Fact) -> str:
    condition = fact.condition
    if fact.after == 0 and fact.before != 0:
        of = f" (of {fact.before:,})" if fact.before else ""
        head = f"no row has {condition}{of}" if condition else f"a selection kept no row{of}"
        if fact.operation.startswith("read_sql"):
            head = f"the query gave no row: {condition}"
        held = dict.fromkeys(filter(None, map(_coverage, fact.coverage)))
        return "; ".join([head, *held])
    rows = _rows(fact.after)
    of = f" of {_rows(fact.before)}" if fact.before is not None else ""
    verb = "the query gave" if fact.before is None else "kept"
    return f"{verb} {rows}{of} rows ({condition})" if condition else f"{verb} {rows}{of} rows"


def _coverage(part: Coverage) -> str:
    """What the data hold in place of what was looked for."""
    if part.rows:
        return f"{part.part} alone has {part.rows:,}"
    if part.near:
        return ", ".join(f"{value} has {rows:,}" for value, rows in part.near)
    dtype = f", of type {part.dtype}" if part.dtype else ""
    if part.low:
        return f"{part.column} runs from {part.low} to {part.high}{dtype}"
    if part.frequent:
        values = ", ".join(f"{value} ({rows:,})" for value, rows in part.frequent)
        return f"{part.column} has values such as {values}{dtype}"
    return ""


def _dropped(fact: Fact) -> str:
    of = f" ({fact.condition})" if fact.condition else ""
    if fact.operation == "groupby":
        lost = (fact.before or 0) - (fact.after or 0)
        return f"groupby{of}: {lost:,} of {_rows(fact.before)} rows have no key and are in no group"
    return f"{fact.operation}{of} kept {_rows(fact.after)} of {_rows(fact.before)} rows"


def _merged(fact: Fact) -> str:
    after = _rows(fact.after)
    if fact.operation == "concat":
        return f"concat of {fact.condition} rows side by side gave {after}"
    on = f" on {fact.condition}" if fact.condition else ""
    sides = f"{_rows(fact.before)} and {_rows(fact.other)} rows gave {after}"
    missed = f", {fact.missed:,} without a partner" if fact.missed else ""
    return f"{fact.operation}{on}: {sides}{missed}"


def _lost(fact: Fact) -> str:
    lost = (fact.before or 0) - (fact.after or 0)
    examples = f": {fact.result}" if fact.result else ""
    if fact.operation == "reindex":
        return f"reindex: {lost:,} of {_rows(fact.before)} labels have no row{examples}"
    name = f" of {fact.condition}" if fact.condition else ""
    head = f"{fact.operation}: {lost:,} of {_rows(fact.before)} values{name} became NaN"
    return f"{head}{examples}"


def _nothing(fact: Fact) -> str:
    gave = f" gave {fact.result}" if fact.result else ""
    of = f" ({fact.condition})" if fact.condition else ""
    if fact.before:
        return f"{fact.operation} of {fact.before:,} values that are all missing{of}{gave}"
    return f"{fact.operation} of 0 rows{of}{gave}"


def _shown(fact: Fact) -> str:
    what = "the table shown" if fact.operation == "display" else f"what {fact.operation} saved"
    of = f" ({fact.condition})" if fact.condition else ""
    return f"{what} has {'no value' if fact.before else '0 rows'}{of}"


def _read(fact: Fact) -> str:
    return f"{fact.operation} of {fact.condition} gave {_rows(fact.after)} rows"


def _filled(fact: Fact) -> str:
    filled = (fact.before or 0) - (fact.after or 0)
    left = f", {_rows(fact.after)} stay" if fact.after else ""
    return f"{fact.operation} of {fact.condition}: {filled:,} missing values filled{left}"


def _saved(fact: Fact) -> str:
    return f"{fact.operation} saved {_rows(fact.after)} rows in {fact.condition}"


_WORDS = {
    "kept": _kept,
    "dropped": _dropped,
    "merged": _merged,
    "lost": _lost,
    "nothing": _nothing,
    "shown": _shown,
    "read": _read,
    "filled": _filled,
    "saved": _saved,
}
_UNTOLD = frozenset({"read", "filled", "saved"})
"""Kinds that the model is not told of: its own code says so. A person reads them of a cleaning."""


def _rows(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def absent_data(answer: str, question: str, results: Sequence[CellResult]) -> tuple[str, ...]:
    """Returns what an answer rests on that the data do not have, in words.

    Empty where the answer says itself that it is not there, or rests on something else. An answer
    rests on a figure of nothing if it states that figure, and that cell put it out; an answer
    without numbers of its own, if the last cell came to nothing and put out no other number.

    Args:
        answer: what the model states.
        question: whose numbers are not the answer's own.
        results: of the run's cells, in order.
    """
    worked = [result for result in results if result.ok]
    if not worked or _SAID.search(answer):
        return ()
    given = _numbers(question)
    own = _numbers(answer) - given
    if own:
        found = [
            fact
            for result in worked
            for fact in result.facts
            if fact.is_absence and _states(fact, result, answer, own)
        ]
    else:
        came_to_nothing = _numbers(_put_out(worked[-1])) - given <= {0.0}
        found = [fact for fact in worked[-1].facts if came_to_nothing and _is_figure(fact)]
    return tuple(dict.fromkeys(map(fact_words, _explained(found, worked))))[:_MOST_ABSENT]


def _is_figure(fact: Fact) -> bool:
    return fact.is_absence and fact.kind in ("nothing", "shown")


def _states(fact: Fact, result: CellResult, answer: str, own: set[float]) -> bool:
    """Whether the answer states the figure of nothing that the cell put out."""
    if fact.kind == "nothing" and _NO_VALUE.search(fact.result):
        return bool(_NO_VALUE.search(answer))
    return 0.0 in own and 0.0 in _numbers(_put_out(result))


def _explained(found: Iterable[Fact], results: Sequence[CellResult]) -> Iterable[Fact]:
    """The facts; in place of a figure of no rows, the selection that had none, where known."""
    selections = {
        fact.condition: fact
        for result in results
        for fact in result.facts
        if fact.kind == "kept" and fact.is_absence and fact.condition
    }
    for fact in found:
        yield selections.get(fact.condition, fact)


def _put_out(result: CellResult) -> str:
    shown = [x.data.get("text/plain", "") for x in result.outputs if isinstance(x, Display)]
    return "\n".join([result.stdout, *(x for x in shown if isinstance(x, str))])


def _numbers(text: str) -> set[float]:
    found = (re.sub("[,\u202f\u00a0]", "", match[0]) for match in _NUMBER.finditer(text))
    return {abs(float(number)) for number in found}


def rests_words(absent: Sequence[str]) -> str:
    """Returns the sentence below an answer that rests on data that are not there; or nothing.

    Args:
        absent: as `absent_data` gives it.
    """
    if not absent:
        return ""
    return f"This answer rests on a selection without rows or values: {'. '.join(absent)}."
