"""The figures of runs as tables, with one or more columns for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from training.metrics.accuracy import Rules
from training.metrics.tables import COSTS, SUB_ANSWERS, cost_amount
from training.report.figures import Figures, ShownShare

__all__ = ["FigureTable", "TableRow", "costs", "failures", "groups", "merged_groups", "overall"]

NOTHING = "–"
_RULES: tuple[Rules, ...] = get_args(Rules)
_BY = {"strict": "by the benchmark's rules", "ours": "by our rules"}


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its labels, then its figures, run by run."""

    labels: tuple[str, ...]
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table in which each run has the same columns."""

    caption: str
    labels: tuple[str, ...]
    """Headers of the label columns."""
    runs: tuple[str, ...]
    columns: tuple[str, ...]
    """Headers below each run."""
    rows: tuple[TableRow, ...]


def overall(runs: Sequence[Figures]) -> FigureTable:
    """Return the figures of entire runs, with 95 % intervals over questions."""
    names = _merged([_measures(run) for run in runs])
    measured = [_measures(run) for run in runs]
    rows = tuple(
        TableRow((name,), tuple(one.get(name, NOTHING) for one in measured)) for name in names
    )
    return _table("All questions, with 95 % intervals", ("",), runs, ("",), rows)


def groups(runs: Sequence[Figures]) -> FigureTable:
    """Return the shares of correct answers by group."""
    rows = []
    for name, values in merged_groups(runs).items():
        for place, value in enumerate(values):
            cells = [cell for run in runs for cell in _group_cells(run, name, value)]
            rows.append(TableRow((name if place == 0 else "", value), tuple(cells)))
    columns = ("questions", "strict", "ours")
    return _table(
        "Right answers by group, strictly by the benchmark's rules and by ours",
        ("group", "value"),
        runs,
        columns,
        tuple(rows),
    )


def failures(runs: Sequence[Figures]) -> FigureTable:
    """Return the number and share of attempts by kind of failure."""
    rows = tuple(
        TableRow((kind,), tuple(cell for run in runs for cell in _failure_cells(run, kind)))
        for kind in _merged([run.failures for run in runs])
    )
    caption = "Tries that are not right by the benchmark's rules"
    return _table(caption, ("kind",), runs, ("tries", "of all"), rows)


def costs(runs: Sequence[Figures]) -> FigureTable:
    """Return the costs of an attempt."""
    rows = []
    for name, words in COSTS.items():
        spreads = [run.costs.get(name) for run in runs]
        if any(spreads):
            cells = [cell for spread in spreads for cell in _cost_cells(spread, name)]
            rows.append(TableRow((words,), tuple(cells)))
    columns = ("mean", "median", "all tries")
    return _table("What a try took", ("",), runs, columns, tuple(rows))


def _merged(sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of several mappings, each once, in order of appearance."""
    return list(dict.fromkeys(name for source in sources for name in source))


def merged_groups(runs: Sequence[Figures]) -> dict[str, list[str]]:
    """Return the values of each group over all runs."""
    found = [run.group_values() for run in runs]
    return {
        name: list(dict.fromkeys(value for one in found for value in one.get(name, ())))
        for name in _merged(found)
    }


def _table(
    caption: str,
    labels: tuple[str, ...],
    runs: Sequence[Figures],
    columns: tuple[str, ...],
    rows: tuple[TableRow, ...],
) -> FigureTable:
    return FigureTable(caption, labels, tuple(run.name for run in runs), columns, rows)


def _measures(run: Figures) -> dict[str, str]:
    """Return the figures of an entire run by their labels."""
    said = {
        "questions": str(run.questions),
        "tries": str(run.tries),
        "answered": f"{run.answered} ({run.answered / run.tries:.1%})",
    }
    said |= {f"right {_BY[rules]}": _right(run.right(rules)) for rules in _RULES}
    said |= dict(_by_both(lambda rules: _pass_words(run, rules)))
    said |= dict(_by_both(lambda rules: _part_words(run, rules)))
    said |= {f"right in part: {name}": _right(share) for name, share in run.parts.items()}
    for name, grade in run.grades.items():
        interval = " to ".join(f"{end:.2f}" for end in grade["interval"] or ())
        said[f"grade: {name}"] = f"{grade['mean']:.2f}" + (f" ({interval})" if interval else "")
    if run.self_debugging:
        said["runs with an error that were mended"] = _right(run.self_debugging)
    return said


def _by_both(figures: Callable[[Rules], Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield figures by both sets of rules, the two of a name next to each other."""
    by_rules = {rules: figures(rules) for rules in _RULES}
    for name in _merged(list(by_rules.values())):
        for rules in _RULES:
            yield f"{name}, {_BY[rules]}", by_rules[rules].get(name, NOTHING)


def _pass_words(run: Figures, rules: Rules) -> dict[str, str]:
    words = {f"pass@{k}": _right(share) for k, share in run.passes(rules).items()}
    union = run.any_try(rules)
    return words | ({"any of the tries": _right(union)} if union else {})


def _part_words(run: Figures, rules: Rules) -> dict[str, str]:
    parts = run.sub_answers(rules)
    return {
        words: f"{parts[name]:.1%}" + _ends(parts.get(f"{name}_interval"))
        for name, words in SUB_ANSWERS.items()
        if name in parts
    }


def _right(share: ShownShare) -> str:
    return f"{share.share:.1%}{_ends((share.low, share.high))}"


def _ends(interval: Sequence[float] | None) -> str:
    return f" ({100 * interval[0]:.0f}–{100 * interval[1]:.0f})" if interval else ""


def _group_cells(run: Figures, name: str, value: str) -> Iterator[str]:
    size = run.group_size(name, value)
    yield str(size) if size else NOTHING
    for rules in _RULES:
        share = run.group_right(name, value, rules)
        yield _right(share) if share else NOTHING


def _failure_cells(run: Figures, kind: str) -> tuple[str, str]:
    count = run.failures.get(kind, 0)
    return str(count), f"{count / run.tries:.1%}"


def _cost_cells(spread: Mapping[str, float] | None, name: str) -> list[str]:
    if spread is None:
        return [NOTHING] * 3
    numbers = (spread["mean"], spread["median"], spread["total"])
    return [cost_amount(number, name) for number in numbers]
