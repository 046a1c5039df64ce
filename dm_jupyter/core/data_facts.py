"""Data facts in words, worded alike for the model, the person and the trainer.

Facts contain no advice. A kernel reports them and can forge them: they are shown, never trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_sandbox.ledger.facts import Coverage, Fact

__all__ = ["coverage_words", "fact_words", "facts_block", "is_notable", "notable_words"]

_MOST_LINES, _LINE_CHARS = 6, 300


def fact_words(fact: Fact) -> str:
    """Return one line that states what happened, without advice."""
    words = _WORDS[fact.kind](fact)
    times = f" ({fact.times:,} times)" if fact.times > 1 else ""
    return f"{words[:_LINE_CHARS]}{times}"


def is_notable(fact: Fact) -> bool:
    """Whether a fact is more than a filter that kept rows, or a merge that kept all of them."""
    if fact.kind == "merged":
        return fact.after != fact.before or bool(fact.missed)
    return fact.is_absence or fact.kind in ("lost", "unknown") or fact.operation == "groupby"


def facts_block(facts: Sequence[Fact]) -> str:
    """Return the lines to add below a cell's output, or "" if nothing happened to the data.

    If there are too many facts, the notable ones are chosen first.

    Args:
        facts: the cell's facts, in order.
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
    """Return the lines of the facts that a person should see beside a cell.

    Args:
        facts: the cell's facts, in order.
    """
    return tuple(dict.fromkeys(map(fact_words, filter(is_notable, facts))))[:_MOST_LINES]


def _kept(fact: Fact) -> str:
    condition = fact.condition
    if fact.after == 0 and fact.before != 0:
        of = f" (of {fact.before:,})" if fact.before else ""
        head = f"no row has {condition}{of}" if condition else f"a selection kept no row{of}"
        if fact.operation.startswith("read_sql"):
            head = f"no row fits the conditions of the query: {condition}"
        held = dict.fromkeys(filter(None, map(coverage_words, fact.coverage)))
        return "; ".join([head, *held])
    rows = _rows(fact.after)
    of = f" of {_rows(fact.before)}" if fact.before is not None else ""
    verb = "the query gave" if fact.before is None else "kept"
    return f"{verb} {rows}{of} rows ({condition})" if condition else f"{verb} {rows}{of} rows"


def coverage_words(part: Coverage) -> str:
    """Return what the data contain instead of the value that was searched for; "" if unknown.

    Args:
        part: of a condition that no row meets.
    """
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


def _unknown(fact: Fact) -> str:
    there = "nearest" if fact.after else "there are"
    return f"not found: {fact.condition}; {there}: {fact.result}"


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
    "unknown": _unknown,
}
_UNTOLD = frozenset({"read", "filled", "saved"})
"""Kinds not shown to the model, whose own code says so. A person sees them after a cleaning."""


def _rows(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
