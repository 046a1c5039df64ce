"""The figures of an evaluation: as JSON, and printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from training.durable.atomic import write_json
from training.durable.budget import Price
from training.metrics.accuracy import (
    Rules,
    abq,
    any_of_each,
    by_question,
    has_sub_answers,
    is_right,
    part_shares,
    pasq,
    pass_of_each,
    reported_ks,
    share_of,
    uasq,
    uasq_interval,
)
from training.metrics.intervals import share_interval
from training.metrics.runs import (
    by_group,
    costs_of,
    failure_counts,
    grades_of,
    group_names,
    self_debugging,
)
from training.metrics.tables import tables_of, wide_console
from training.records.records import EvalRecord

__all__ = ["print_summary", "summary_of", "write_summary"]

_Figures = Callable[[Sequence[EvalRecord], Rules], dict[str, Any]]

DIGITS = 6
"""Decimal places of every fraction that is kept."""


def summary_of(records: Sequence[EvalRecord], price: Price | None = None) -> dict[str, Any]:
    """Return every figure of a run as plain JSON values.

    Args:
        records: the records of one or several attempts at each question.
        price: the price of the tokens; without one there are no costs in dollars.
    """
    mended = self_debugging(records)
    summary = {
        "all": _shares(records),
        "groups": {
            name: {value: _shares(members) for value, members in by_group(records, name).items()}
            for name in group_names(records)
        },
        "pass_at": _by_rules(records, _passes),
        "any_try": _by_rules(records, _any_try),
        "sub_answers": _by_rules(records, _sub_answers),
        "parts": _parts(records),
        "grades": {name: asdict(grade) for name, grade in grades_of(records).items()},
        "failures": failure_counts(records),
        "self_debugging": asdict(mended) if mended else None,
        "costs": {name: asdict(spread) for name, spread in costs_of(records, price).items()},
    }
    return dict(_rounded(summary))


def write_summary(records: Sequence[EvalRecord], path: Path, price: Price | None = None) -> None:
    """Write the figures as JSON, atomically.

    Raises:
        OSError: the file can't be written; an existing one is unchanged.
    """
    write_json(summary_of(records, price), path)


def print_summary(records: Sequence[EvalRecord], price: Price | None = None) -> None:
    """Print the figures as tables."""
    console = wide_console()
    for table in tables_of(summary_of(records, price)):
        console.print(table)


def _rounded(value: Any) -> Any:
    """Return a JSON value with rounded fractions, so that files of two runs compare well."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def _shares(records: Sequence[EvalRecord]) -> dict[str, Any]:
    return {
        "questions": len(by_question(records)),
        "runs": len(records),
        "answered": sum(record.answer is not None for record in records),
        **_by_rules(records, _right),
    }


def _by_rules(records: Sequence[EvalRecord], figures: _Figures) -> dict[str, dict[str, Any]]:
    found = {rules: figures(records, rules) for rules in get_args(Rules)}
    return found if any(found.values()) else {}


def _right(records: Sequence[EvalRecord], rules: Rules) -> dict[str, Any]:
    share = share_of(records, lambda record: is_right(record, rules))
    return {"right": share.right, "share": share.share, "interval": share.interval}


def _passes(records: Sequence[EvalRecord], rules: Rules) -> dict[str, Any]:
    ks = reported_ks(records)
    if len(ks) < 2:
        return {}
    return {str(k): _mean(pass_of_each(k, records, rules)) for k in ks}


def _any_try(records: Sequence[EvalRecord], rules: Rules) -> dict[str, Any]:
    solved = any_of_each(records, rules)
    return _mean(solved) if len(records) > len(solved) else {}


def _mean(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean and interval of values, one per question."""
    return {"share": sum(values) / len(values), "interval": share_interval(values)}


def _parts(records: Sequence[EvalRecord]) -> dict[str, Any]:
    shares = {} if has_sub_answers(records) else part_shares(records)
    return {name: asdict(share) for name, share in shares.items()} if len(shares) > 1 else {}


def _sub_answers(records: Sequence[EvalRecord], rules: Rules) -> dict[str, Any]:
    if not has_sub_answers(records):
        return {}
    proportional = pasq(records, rules)
    return {
        "abq": abq(records, rules).share,
        "pasq": proportional.share,
        "pasq_interval": proportional.interval,
        "uasq": uasq(records, rules),
        "uasq_interval": uasq_interval(records, rules),
    }
