"""The figures of a summary as tables for a terminal.

A name from the data is a `Text`, because Rich would read a plain string as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = [
    "COSTS",
    "SUB_ANSWERS",
    "cost_amount",
    "number_table",
    "percent_range",
    "tables_of",
    "wide_console",
]

_RULES = ("strict", "ours")
_COLUMNS = 100
"""Width of a file or a pipe, which have none of their own."""

SUB_ANSWERS = {
    "abq": "questions with all sub-answers right (ABQ)",
    "pasq": "sub-answers, every question alike (PASQ)",
    "uasq": "sub-answers, all alike (UASQ)",
}
COSTS = {
    "turns": "turns",
    "cells": "cells",
    "sampled_cells": "cells of all candidates",
    "prompt_tokens": "tokens read",
    "tokens": "tokens sampled",
    "seconds": "seconds",
    "dollars": "dollars",
}


def wide_console() -> Console:
    """Return a console as wide as the terminal, or wide enough for a file or a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_COLUMNS)


def tables_of(summary: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the tables of a summary (`summary_of`), without empty ones."""
    if not summary["all"]["runs"]:
        yield "There are no runs to sum up."
        return
    tables = (_shares, _figures, _parts, _grades, _failures, _costs)
    yield from (table for table in (make(summary) for make in tables) if table.row_count)
    mended = summary["self_debugging"]
    if mended:
        yield (
            f"self-debugging: {mended['right']} of {mended['runs']} runs in which a cell raised "
            f"ended with one that ran\n(mean over questions {mended['share']:.1%}, 95 % "
            f"{percent_range(mended['interval'])})\n"
        )


def number_table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Return an empty table: columns of words, then columns of numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE)
    for name in words:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def percent_range(interval: Sequence[float]) -> str:
    """Return an interval of shares in percent, such as `40-69`."""
    low, high = interval
    return f"{100 * low:.0f}-{100 * high:.0f}"


def _shares(summary: Mapping[str, Any]) -> Table:
    every = summary["all"]
    title = f"{every['questions']} questions, {every['runs']} runs, {every['answered']} answered"
    numbers = ("questions", "strict", "%", "95 %", "ours", "%", "95 %")
    table = number_table(title, ("", ""), numbers)
    table.add_row("all", "", *_share_cells(every), end_section=True)
    for name, values in summary["groups"].items():
        if len(values) == 1:
            continue  # it would repeat the first row
        for place, (value, figures) in enumerate(values.items(), 1):
            label = name if place == 1 else ""
            names, is_last = (Text(label), Text(value)), place == len(values)
            table.add_row(*names, *_share_cells(figures), end_section=is_last)
    return table


def _share_cells(figures: Mapping[str, Any]) -> list[str]:
    cells = [str(figures["questions"])]
    for rules in _RULES:
        one = figures[rules]
        cells += [str(one["right"]), f"{one['share']:.1%}", percent_range(one["interval"])]
    return cells


def _figures(summary: Mapping[str, Any]) -> Table:
    table = number_table("of several tries, and of sub-answers", ("",), ("strict", "ours"))
    passes, union, parts = summary["pass_at"], summary["any_try"], summary["sub_answers"]
    for k in passes.get("strict", ()):
        table.add_row(f"pass@{k}", *(_with_range(passes[rules][k]) for rules in _RULES))
    if union:
        table.add_row("any of the tries", *(_with_range(union[rules]) for rules in _RULES))
    for name, words in SUB_ANSWERS.items() if parts else ():
        table.add_row(words, *(f"{parts[rules][name]:.1%}" for rules in _RULES))
    return table


def _with_range(figures: Mapping[str, Any]) -> str:
    return f"{figures['share']:.1%} ({percent_range(figures['interval'])})"


def _parts(summary: Mapping[str, Any]) -> Table:
    table = number_table("right in each part of the verdict", ("",), ("runs", "%", "95 %"))
    for name, share in summary["parts"].items():
        range_ = percent_range(share["interval"])
        table.add_row(Text(name), f"{share['right']:g}", f"{share['share']:.1%}", range_)
    return table


def _grades(summary: Mapping[str, Any]) -> Table:
    table = number_table("grades", ("",), ("mean", "95 %", "questions", "runs without"))
    for name, grade in summary["grades"].items():
        interval = "-".join(f"{end:.2f}" for end in grade["interval"] or ())
        counts = (str(grade["questions"]), str(grade["ungraded"]))
        table.add_row(Text(name), f"{grade['mean']:.2f}", interval, *counts)
    return table


def _failures(summary: Mapping[str, Any]) -> Table:
    table = number_table("not right by the strict rules", ("",), ("runs", "of all runs"))
    for kind, count in summary["failures"].items():
        table.add_row(Text(kind), str(count), f"{count / summary['all']['runs']:.1%}")
    return table


def _costs(summary: Mapping[str, Any]) -> Table:
    table = number_table("what a run took", ("",), ("mean", "median", "all runs"))
    costs = summary["costs"]
    for name, words in COSTS.items():
        is_repeated = name == "sampled_cells" and costs[name] == costs["cells"]
        if name in costs and not is_repeated:
            spread = costs[name]
            numbers = (spread["mean"], spread["median"], spread["total"])
            table.add_row(words, *(cost_amount(number, name) for number in numbers))
    return table


def cost_amount(number: float, name: str) -> str:
    """Return an amount of one of the `COSTS` as text, with the digits that it needs."""
    digits = 4 if name == "dollars" else 1 if abs(number) < 100 else 0
    return f"{number:,.{digits}f}"
