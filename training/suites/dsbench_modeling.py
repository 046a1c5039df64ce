"""DSBench, data modelling (arXiv 2409.07703): a submission file, scored by its relative gap.

A split is a folder with `questions.jsonl` and, for each competition, `data/ID/train.csv`,
`test.csv` and `answer.csv`. The agent does not get `answer.csv`. It writes `submission.csv`. The
competitions' data belongs to their hosts and is not part of this project.

The relative performance gap maps scores of any scale to one from 0 up. For one competition, RPG =
max(0, (p - b) / (g - b)), with the submission's score p, the baseline's b and the best known g. The
result is the mean over all competitions; a missing submission counts 0. The sign of g - b says
whether more is better, so no metric needs a direction here. As published, it is not cut at 1: a
score beyond the best known one counts more than 1. Deviates from the released script only in its
errors: an undefined score is 0 there as well. Test: `test_the_gap_by_hand`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.core.task import Task
from training.scoring.metrics_table import METRICS, MetricError, score_columns
from training.scoring.reader import Number, exact_number
from training.scoring.tables import tables_equal
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["DSBenchModeling", "ModelingLabel", "relative_gap"]

SUBMISSION = "submission.csv"
MAX_SUBMISSION_BYTES = 512 * 2**20
CONSTRAINTS = (
    "Train a model on train.csv and predict every row of test.csv. Write submission.csv into the "
    "working folder, with a header line and without an index: the columns {columns}, one row for "
    "each row of test.csv, in the same order. It is scored by {metric}."
)
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


@dataclass(frozen=True, slots=True)
class ModelingLabel:
    """Data that scores one competition."""

    metric: str
    key: str
    """Column that identifies a row, the same in the answer and in the submission."""
    targets: tuple[str, ...]
    truth: tuple[dict[str, str], ...]
    """Rows of the answer."""
    baseline: float
    best: float


class DSBenchModeling:
    """The modelling competitions; a label is a `ModelingLabel`."""

    name = "dsbench-modeling"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`; `metadata["format"]` is the metric's name.

        Raises:
            RecordError: a record or a file is invalid, or scikit-learn is needed and not installed.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict: correct is a submission that can be scored and beats the baseline.

        `parts` has `submitted` and `above_baseline`; `grades` has the `score` by the competition's
        metric and the `gap`, from 0 up. Our rules find rows by their key. The strict rules read
        them in the file's order, as the published scripts do, with the gap as `strict_gap`. A
        submission that can't be scored has no `score` and gaps of 0.

        Raises:
            ModuleNotFoundError: scikit-learn is not installed.
        """
        label: ModelingLabel = item.label
        rows = _submission(outcome.folder)
        ours, strict = _scored(label, _by_key(label, rows)), _scored(label, rows)
        gap, strict_gap = _gap(label, ours), _gap(label, strict)
        return ItemScore(
            correct=gap > 0,
            strict_correct=strict_gap > 0,
            parts={"submitted": ours is not None, "above_baseline": gap > 0},
            strict_parts={"submitted": strict is not None, "above_baseline": strict_gap > 0},
            grades={
                **({} if ours is None else {"score": ours}),
                "gap": gap,
                "strict_gap": strict_gap,
            },
        )

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether two submissions have equal predictions in the label's columns."""
        label: ModelingLabel = item.label
        tables = []
        for outcome in (one, other):
            rows = _submission(outcome.folder)
            columns = (label.key, *label.targets)
            if not rows or any(column not in rows[0] for column in columns):
                return False
            tables.append([[row[column] for column in columns] for row in rows])
        return tables_equal(tables[0], tables[1])


def _scored(label: ModelingLabel, rows: Sequence[dict[str, str]]) -> float | None:
    """Return the metric of rows in the truth's order; `None` if it or a target is missing."""
    if not rows or any(target not in rows[0] for target in label.targets):
        return None
    try:
        return score_columns(label.metric, _columns(label, label.truth), _columns(label, rows))
    except MetricError:
        return None


def _gap(label: ModelingLabel, score: float | None) -> float:
    return 0.0 if score is None else relative_gap(score, label.baseline, label.best)


def _columns(label: ModelingLabel, rows: Sequence[dict[str, str]]) -> list[list[str]]:
    return [[row[target] for row in rows] for target in label.targets]


def _by_key(label: ModelingLabel, rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows in the truth's order; none if a key is missing, new or repeated.

    Keys that match as written are used so, because a code `007` may occur beside `7`.
    """
    for read in (str, _folded_key):
        found = {read(row.get(label.key, "")): row for row in rows}
        wanted = [read(row[label.key]) for row in label.truth]
        if len(found) == len(rows) == len(wanted) and found.keys() == set(wanted):
            return [found[key] for key in wanted]
    return []


def _folded_key(text: str) -> Number | str:
    """Return the value of a key: 0 for `0.0`, as pandas writes integers beside a missing one."""
    number = exact_number(text)
    return text.strip() if number is None else number


def _submission(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the submission; none if there is no such file or it is not a table."""
    file = folder / SUBMISSION
    try:
        if file.is_symlink() or file.stat().st_size > MAX_SUBMISSION_BYTES:
            return []
        return _table(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []


def _table(text: str) -> list[dict[str, str]]:
    """Return the rows of a csv text, each as values by column.

    Raises:
        ValueError: the text is not a table with distinct column names and rows of equal width.
    """
    try:
        lines = [line for line in csv.reader(io.StringIO(text.removeprefix("\ufeff"))) if line]
    except csv.Error as error:
        raise ValueError(f"not csv: {error}") from error
    header = lines[0] if lines else []
    if len(set(header)) < len(header) or any(len(line) != len(header) for line in lines):
        raise ValueError("not a table: its rows or column names don't fit")
    return [dict(zip(header, line, strict=True)) for line in lines[1:]]


def _item(record: Record) -> Sample:
    name = record.text("id")
    if not _SAFE_ID.fullmatch(name):
        raise record.fault("id", f"{name!r} is no folder name")
    label = _label(record, name)
    files = [record.inside("id", f"data/{name}/{file}") for file in ("train.csv", "test.csv")]
    columns = ", ".join((label.key, *label.targets))
    task = Task(
        id=name,
        question=record.text("question"),
        files=tuple(files),
        constraints=CONSTRAINTS.format(columns=columns, metric=label.metric),
        metadata={
            "suite": DSBenchModeling.name,
            "evaluation_only": True,
            "format": label.metric,
        },
    )
    return Sample(task, label)


def _label(record: Record, name: str) -> ModelingLabel:
    metric = record.text("metric")
    if metric not in METRICS:
        known = ", ".join(sorted(METRICS))
        raise record.fault("metric", f"{metric!r} is none of: {known}")
    baseline, best = record.number("baseline"), record.number("best")
    if baseline == best:
        raise record.fault("best", "is the baseline, so that no gap lies between them")
    targets = record.texts("targets")
    if not targets:
        raise record.fault("targets", "expected a list with at least one column name")
    key = record.text("key")
    truth = _truth(record, name, (key, *targets))
    label = ModelingLabel(metric, key, targets, truth, baseline, best)
    if relative_gap(_own_score(record, label, name), baseline, best) == 0:
        raise record.fault("best", "the expected values gain nothing: is it swapped with baseline?")
    return label


def _own_score(record: Record, label: ModelingLabel, name: str) -> float:
    """Return the score of the expected values themselves."""
    columns = _columns(label, label.truth)
    try:
        return score_columns(label.metric, columns, columns)
    except (MetricError, ModuleNotFoundError) as error:
        file = f"data/{name}/answer.csv"
        raise record.fault(
            "metric", f"{label.metric} can't score {file} itself: {error}"
        ) from error


def _truth(record: Record, name: str, columns: Sequence[str]) -> tuple[dict[str, str], ...]:
    file = record.inside("id", f"data/{name}/answer.csv")
    try:
        rows = _table(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise record.fault("id", f"{file} can't be read: {error}") from error
    if not rows or any(column not in rows[0] for column in columns):
        raise record.fault("targets", f"{file} has no rows with the columns {', '.join(columns)}")
    if len({row[columns[0]] for row in rows}) < len(rows):
        raise record.fault("key", f"{file} names a row twice")
    return tuple({column: row[column] for column in columns} for row in rows)


def relative_gap(score: float, baseline: float, best: float) -> float:
    """Return how far a score is from the baseline to the best, as a share from 0 up.

    Raises:
        ValueError: the baseline or the best is undefined, or they are equal.
    """
    if not (math.isfinite(baseline) and math.isfinite(best)) or baseline == best:
        raise ValueError(f"no gap lies between the baseline {baseline} and the best {best}")
    if not math.isfinite(score):
        return 0.0
    return max(0.0, (score - baseline) / (best - baseline))
