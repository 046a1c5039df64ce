"""A judge's column on the page: its opinion of each answer, and its agreement with the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from training.judge.judged import Agreement, JudgedRecord, agreement_of
from training.report.source import ReportRun
from training.report.tables import NOTHING, FigureTable, TableRow
from training.report.words import plain

__all__ = ["WORDS", "JudgeNote", "judge_note", "judge_table", "opinion_of"]

Opinion = Literal["agrees", "differs", "none"]
WORDS: dict[Opinion, str] = {
    "agrees": "agrees with the benchmark's rules",
    "differs": "differs from the benchmark's rules",
    "none": "no verdict",
}
_MAX_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class JudgeNote:
    """A judge's opinion of one answer."""

    judge: str
    right: bool | None
    """Verdict of the judge; `None` if it gave none."""
    words: str
    """The judge's reason, or why there is no verdict."""
    reformatted: str | None
    """The answer in the requested format; `None` if that step was not taken."""
    reformatted_right: bool | None
    reformatted_strict: bool | None
    reformat_error: str


def opinion_of(row: JudgedRecord) -> Opinion:
    """Return whether a judge's verdict agrees with that of the benchmark's rules."""
    if row.judged is None:
        return "none"
    return "agrees" if row.judged is row.strict else "differs"


def judge_note(row: JudgedRecord) -> JudgeNote:
    """Return a judge's row as the page shows it."""
    return JudgeNote(
        judge=row.judge,
        right=row.judged,
        words=plain(row.reason or row.error, _MAX_CHARS),
        reformatted=None if row.reformatted is None else plain(row.reformatted, _MAX_CHARS),
        reformatted_right=row.reformatted_right,
        reformatted_strict=row.reformatted_strict,
        reformat_error=plain(row.reformat_error, _MAX_CHARS),
    )


def judge_table(runs: Sequence[ReportRun]) -> FigureTable:
    """Return the judge's figures of each run, without rows if no run was judged."""
    measured = [_measures(run) for run in runs]
    names = dict.fromkeys(name for one in measured for name in one)
    rows = (TableRow((name,), tuple(one.get(name, NOTHING) for one in measured)) for name in names)
    caption = "A judge beside the rules; what was not answered is not judged, and counts as wrong"
    return FigureTable(caption, ("",), tuple(run.name for run in runs), ("",), tuple(rows))


def _measures(run: ReportRun) -> dict[str, str]:
    rows = [one.judged for one in run.tries if one.judged is not None]
    if not rows:
        return {}
    by_strict, by_ours = agreement_of(rows, "strict"), agreement_of(rows, "right")
    said = {
        "judge": ", ".join(dict.fromkeys(row.judge for row in rows)),
        "answers judged": f"{by_strict.total} of {len(run.tries)} tries",
        "without a verdict": str(by_strict.unscored),
        "right by the judge": _share(sum(row.judged is True for row in rows), rows, run),
        "agrees with the benchmark's rules": _agreement(by_strict),
        "agrees with our rules": _agreement(by_ours),
    }
    if any(row.reformat for row in rows):
        strict = sum(row.reformatted_strict is True for row in rows)
        ours = sum(row.reformatted_right is True for row in rows)
        said["right after reformatting, by the benchmark's rules"] = _share(strict, rows, run)
        said["right after reformatting, by our rules"] = _share(ours, rows, run)
    return said


def _share(count: int, rows: Sequence[JudgedRecord], run: ReportRun) -> str:
    """Return the share of all attempts, or a count so far while answers wait for the judge."""
    answered = sum(bool((record.answer or "").strip()) for record in run.records)
    if len(rows) < answered:
        return f"{count} of {len(rows)} so far"
    return f"{count / len(run.tries):.1%} ({count})"


def _agreement(found: Agreement) -> str:
    if found.accuracy is None:
        return NOTHING
    kappa = "" if found.kappa is None else f", kappa {found.kappa:.2f}"
    return f"{found.accuracy:.1%}{kappa}"
