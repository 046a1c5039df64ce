"""TableBench (arXiv 2408.09174): questions over one table each, with short answers.

A split is a folder with one `.jsonl` file, as published, which contains the tables. `load` writes
each as `table.csv` into a folder of this user under the system's temporary folder, named after its
content. So nothing is written into the split, and the same table is written once.

Questions that no value answers are omitted: charts, which a script has to draw again, and
descriptions, causes and anomalies, whose labels are sentences. The benchmark scores those by
ROUGE-L, which measures how many words two texts share and not whether one is correct.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from dm_jupyter.core.task import Task
from training.durable.atomic import write_whole
from training.scoring.closed_form import strictly_equal
from training.scoring.short_answer import (
    SHORT_ANSWER_FORMAT,
    answers_equal,
    final_answer,
    final_answers_agree,
)
from training.scoring.values import is_within, kind_of, read_number
from training.suites.records import Record, RecordError, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["TableBench"]

WORDING = {
    "CorrelationAnalysis": (
        'Answer with a conclusion and the correlation coefficient: "No correlation", "Weak" or '
        '"Strong", then "positive" or "negative correlation", a comma, the coefficient rounded to '
        "two decimal places. Weak begins at 0.3, strong at 0.7."
    ),
    "ImpactAnalysis": (
        "Answer with the names of the factors, or with one of: Positive impact, Negative impact, "
        "No clear impact."
    ),
    "TrendForecasting": (
        "Answer with the forecast, or with one of: Increasing trend, Decreasing trend, No clear "
        "trend."
    ),
}
"""Choices of the labels, from the benchmark's instructions; the questions don't state them."""
LENIENT = frozenset({"CorrelationAnalysis", "StatisticalAnalysis", "TrendForecasting"})
LENIENT_SHARE = 0.1
"""The benchmark's own tolerance for numbers of these kinds, as a share of the label."""
LEFT_OUT = frozenset(
    {"AnomalyDetection", "CausalAnalysis", "ChartGeneration", "DescriptiveAnalysis"}
)


class TableBench:
    """The table questions; a label is the short answer as text."""

    name = "tablebench"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of the split's only `.jsonl` file that a value answers.

        `metadata["left_out"]` counts the others by kind, the same for each sample.
        `metadata["format"]` is the kind of the label: `number`, `list` or `text`.

        Raises:
            RecordError: there is no such file, or a record is invalid.
            OSError: a table can't be written.
        """
        records = list(read_records(_question_file(split)))
        kinds = [record.text("qsubtype") for record in records]
        left_out = dict(Counter(kind for kind in kinds if kind in LEFT_OUT))
        kept = [one for one, kind in zip(records, kinds, strict=True) if kind not in LEFT_OUT]
        if not kept:
            raise RecordError(f"{split} holds no questions that a value answers")
        return [_item(record, left_out) for record in kept]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict on the last `@answer[…]`, or on the entire answer without one.

        Our rules are `training.scoring.short_answer`; strict is DABench's strict rule on one value.
        The published scorer strips points and signs, and is not reproduced. Besides `answer`,
        `parts` has the benchmark's own reading without that, as `published`: our rules, and for
        forecasts, statistics and correlations also numbers within 10 %, alone or as comma items in
        order.
        """
        said = final_answer(outcome.answer)
        label: str = item.label
        is_lenient = item.task.concepts[-1] in LENIENT
        right = bool(said) and answers_equal(label, said)
        strict = bool(said) and strictly_equal(label, said)
        published = right or (bool(said) and is_lenient and _is_near(label, said))
        return ItemScore(
            right, strict, {"answer": right, "published": published}, {"answer": strict}
        )

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:  # noqa: ARG002
        """Return whether the two short answers say the same."""
        return final_answers_agree(one.answer, other.answer)


def _is_near(label: str, said: str) -> bool:
    """Whether the number, or else each of the comma items, is within 10 % of the label's.

    `10,500` is one number before it is two items.
    """
    if _item_is_near(label, said):
        return True
    items, others = label.split(","), said.split(",")
    return 1 < len(items) == len(others) and all(
        _item_is_near(one, other) for one, other in zip(items, others, strict=True)
    )


def _item_is_near(label: str, said: str) -> bool:
    """Whether a number is within 10 %, with percent signs divided by 100 or ignored as in ours."""
    expected, found = read_number(label), read_number(said)
    if expected is None or found is None:
        return answers_equal(label, said)
    scales = [100 if text.strip().endswith("%") else 1 for text in (label, said)]
    return is_within(expected, found, LENIENT_SHARE) or is_within(
        expected * scales[0], found * scales[1], LENIENT_SHARE
    )


def _question_file(split: Path) -> Path:
    files = sorted(split.glob("*.jsonl"))
    if len(files) != 1:
        raise RecordError(f"{split}: expected one .jsonl file with questions, found {len(files)}")
    return files[0]


def _item(record: Record, left_out: dict[str, int]) -> Sample:
    label = record.text("answer")
    kind = record.text("qsubtype")
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(_written(_table_text(record)),),
        constraints=WORDING.get(kind, ""),
        answer_format=SHORT_ANSWER_FORMAT,
        concepts=(record.text("qtype"), kind),
        metadata={"suite": TableBench.name, "format": kind_of(label), "left_out": left_out},
    )
    return Sample(task, label)


def _table_text(record: Record) -> str:
    """Return the table as csv; the field is an object, or its JSON text as first published."""
    table: Any = record.fields.get("table")
    if isinstance(table, str):
        table = record.decoded("table", table)
    columns, data = (table.get("columns"), table.get("data")) if isinstance(table, dict) else (0, 0)
    if not isinstance(columns, list) or not isinstance(data, list):
        raise record.fault("table", "expected an object with the lists 'columns' and 'data'")
    rows = record.table("table", [columns, *data])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _written(text: str) -> Path:
    """Return the file `table.csv` with that text, in a folder that belongs to this user alone.

    Raises:
        OSError: the file can't be written, or the folder belongs to another user.
    """
    raw = text.encode()
    root = Path(tempfile.gettempdir()) / f"dm_jupyter-tablebench-{os.getuid()}"
    folder = root / hashlib.sha256(raw).hexdigest()[:24]
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid():
        raise PermissionError(f"{root} belongs to somebody else: set TMPDIR to another folder")
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / "table.csv"
    if not file.is_file() or file.read_bytes() != raw:
        write_whole(raw, file)
    return file
