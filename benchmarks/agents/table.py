"""Table of all shapes, with the first compared with each of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.sandbox.table import Table
from training.metrics.accuracy import Share, is_right, share_of
from training.metrics.paired import difference_of, match, mcnemar_of
from training.metrics.runs import costs_of, failure_counts
from training.metrics.tables import percent_range
from training.records.records import EvalRecord

__all__ = ["table_of"]

_COLUMNS = (
    "prompt", "right", "%", "95 %", "ours : it", "points", "95 %", "only ours", "only it", "p",
    "tokens", "read", "turns", "seconds", "failures",
)  # fmt: skip
_NOTES = (
    "right by the benchmark's own rules; unanswered questions are wrong ones",
    "ours : it, points: our share of right answers by its share, and less its share "
    "(95 %: paired bootstrap over questions)",
    "only ours, only it: questions that one of the two alone has right; p: McNemar, exact",
    "tokens sampled, tokens read, turns and seconds: means of a question",
)


def table_of(records: Mapping[str, Sequence[EvalRecord]], first: str) -> Table:
    """Return the table of runs by the names of their shapes.

    Questions that a run lacks are left out of all runs.

    Args:
        records: of each shape.
        first: the shape to compare with the others.

    Raises:
        ValueError: the runs have no question in common, or the first is not among them.
    """
    common = set.intersection(*({one.id for one in run} for run in records.values() or [[]]))
    if first not in records or not common:
        raise ValueError("there is nothing to compare: no question was answered by all prompts")
    runs = {name: [one for one in run if one.id in common] for name, run in records.items()}
    rows = [
        (name, *_share_cells(run), *_against(runs[first], run, name == first), *_cost_cells(run))
        for name, run in runs.items()
    ]
    return Table(f"{len(common)} questions; ours: {first}", _COLUMNS, rows, _NOTES)


def _share(run: Sequence[EvalRecord]) -> Share:
    return share_of(run, lambda record: is_right(record, "strict"))


def _share_cells(run: Sequence[EvalRecord]) -> tuple[str, ...]:
    share = _share(run)
    return f"{share.right:g}", f"{100 * share.share:.1f}", percent_range(share.interval)


def _against(
    ours: Sequence[EvalRecord], run: Sequence[EvalRecord], is_ours: bool
) -> tuple[str, ...]:
    if is_ours:
        return ("",) * 6
    pairs = match(run, ours, "strict").pairs
    test, difference = mcnemar_of(pairs), difference_of(pairs)
    its_share = _share(run).share
    return (
        f"{_share(ours).share / its_share:.2f}" if its_share else "it has none",
        f"{difference.points:+.1f}",
        "{:+.1f} to {:+.1f}".format(*difference.interval) if difference.interval else "",
        str(test.c),
        str(test.b),
        f"{test.p_exact:.2g}",
    )


def _cost_cells(run: Sequence[EvalRecord]) -> tuple[str, ...]:
    costs = costs_of(run)
    failures = failure_counts(run).items()
    return (
        f"{costs['tokens'].mean:.0f}",
        f"{costs['prompt_tokens'].mean:.0f}",
        f"{costs['turns'].mean:.1f}",
        f"{costs['seconds'].mean:.1f}",
        ", ".join(f"{count} {kind}" for kind, count in failures),
    )
