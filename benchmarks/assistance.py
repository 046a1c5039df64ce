"""Measure the worth of each assistance rule: `python -m benchmarks.assistance SUITE`.

The same model answers the same questions with the dialect's own assistance and without any. It also
answers them with each rule left out in turn. All runs use the same seeds. A rule's worth is the
loss without it, question by question.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.agents.command import Command, Way, arguments_of
from benchmarks.sandbox.table import Table
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS
from training.compare import comparison_of
from training.metrics.tables import percent_range
from training.records.records import EvalRecord
from training.suites.registry import SUITES, find_suite

__all__ = ["command", "main", "table_of"]

OWN, NONE = "default", "none"
_COLUMNS = (
    "help", "right", "%", "95 %", "lost", "95 %", "only default", "only it", "p", "tokens", "turns",
)  # fmt: skip
_NOTES = (
    "right by the benchmark's own rules; unanswered questions are wrong ones",
    "lost: points of the default's share less this one's (95 %: paired bootstrap over questions)",
    "only default, only it: questions that one of the two alone has right; p: McNemar, exact",
    "tokens sampled and turns: means of a question",
)


def command(words: Sequence[str] | None = None) -> Command:
    """Return the command of a command line; `None` means this process's."""
    parser = arguments_of("benchmarks.assistance", __doc__, Path("runs/assistance"))
    parser.add_argument("suite", help=f"{', '.join(sorted(SUITES))}, or package.module:ClassName")
    parser.add_argument(
        "--dialect", default="markdown", choices=DIALECTS, metavar="NAME",
        help=f"of {', '.join(DIALECTS)} (default: markdown)",
    )  # fmt: skip
    parser.add_argument(
        "--rules", nargs="+", choices=Assistance.names(), metavar="RULE",
        help="leave only these out (default: each that the dialect has)",
    )  # fmt: skip
    arguments = parser.parse_args(words)
    own = Assistance.for_dialect(arguments.dialect)
    rules = [name for name in arguments.rules or Assistance.names() if name in own.on()]
    given = {OWN: own, **{name: own.without(name) for name in rules}, NONE: Assistance.none()}
    ways = {name: Way(arguments.dialect, one) for name, one in given.items()}
    name = f"assistance-{arguments.suite.rpartition(':')[2]}"
    return Command(name, find_suite(arguments.suite), ways, table_of, arguments)


def table_of(records: Mapping[str, Sequence[EvalRecord]]) -> Table:
    """Return the table of runs by the rule left out; one run has all of the dialect's rules.

    Questions that a run lacks are left out of all runs.

    Raises:
        ValueError: the runs have no question in common, or the one with all rules is missing.
    """
    common = set.intersection(*({one.id for one in run} for run in records.values() or [[]]))
    if OWN not in records or not common:
        raise ValueError("there is nothing to compare: no question was answered in all runs")
    runs = {name: [one for one in run if one.id in common] for name, run in records.items()}
    rows = [_row(name, comparison_of(run, runs[OWN]), run) for name, run in runs.items()]
    return Table(f"{len(common)} questions", _COLUMNS, rows, _NOTES)


def _row(name: str, compared: Mapping[str, Any], run: Sequence[EvalRecord]) -> tuple[str, ...]:
    share, lost, test = compared["runs"]["a"], compared["difference"], compared["mcnemar"]
    against = ("",) * 5
    if name != OWN:
        interval = "{:+.1f} to {:+.1f}".format(*lost["interval"]) if lost["interval"] else ""
        points = f"{lost['points']:+.1f}"
        against = (points, interval, str(test["c"]), str(test["b"]), f"{test['p_exact']:.2g}")
    return (
        name if name in (OWN, NONE) else f"without {name}",
        f"{share['right']:g}",
        f"{100 * share['share']:.1f}",
        percent_range(share["interval"]),
        *against,
        f"{sum(one.tokens for one in run) / len(run):.0f}",
        f"{sum(one.turns for one in run) / len(run):.1f}",
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0, 1 after a fault, 130 when interrupted."""
    return command(words).run()


if __name__ == "__main__":
    sys.exit(main())
