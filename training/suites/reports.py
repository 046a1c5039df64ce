"""Research reports on data files, marked by a judge (DABStep-Research, DeepAnalyze 2510.16872).

A split is a folder with `questions.jsonl` and the files it names. Each row has an instruction and
the points that a report on it must make. The report is `report.md` in the working folder, or else
the answer itself. The benchmark's rubric is two grades from 1 to 5, content and format. The
checklist of points is a third grade, the share found, 0 to 1.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.core.task import Task
from training.scoring.short_answer import read_tokens
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

if TYPE_CHECKING:
    from training.marking.judge import Judge

__all__ = ["Reports"]

CONSTRAINTS = (
    "Write a report in markdown, with a title and headings, as report.md in the working folder. "
    "Support every finding with figures computed from the data."
)
REPORT_NAME = "report.md"
MAX_REPORT_BYTES = 2**20
PROMPT = "judge_report"
GRADE_SCALE = (1.0, 5.0)
RIGHT_FROM = 4.0
"""Mean of content and format from which a report is correct; the prompt defines what 4 means."""

_FENCE = re.compile(r"(`{3,})[^`]*|(~{3,}).*", re.DOTALL)
"""A line that begins a block of code, which a line with the same sign, at least as often, ends."""
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_SHORT_WORD = 3
"""Length up to which words say little about a point."""


class Reports:
    """The research instructions; a label is the tuple of required points."""

    name = "reports"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        Raises:
            RecordError: a record is invalid.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return what can be checked without a judge; it is never that the report is correct.

        `parts` has `report` (there is one), `headings`, and for each point whether the report
        contains its longer words and numbers: a hint for a person, not a verdict.
        """
        report = _report(outcome)
        parts = _form(report)
        for number, point in enumerate(item.label, 1):
            parts[f"words of point {number}"] = _has_words(point, report)
        return ItemScore(correct=False, strict_correct=False, parts=parts)

    async def judge(self, item: Sample, outcome: Outcome, judge: Judge) -> ItemScore:
        """Return the verdict: correct from a mean of 4 on, strict if every point is made too.

        `grades` has `content` and `format` (1 to 5) and `checklist` (0 to 1); `parts` has each
        point. Without a report, the grades are the lowest and the judge isn't asked.

        Raises:
            NoReplyError: the judge could not be asked, or its reply is not a verdict.
        """
        report = await asyncio.to_thread(_report, outcome)
        points: tuple[str, ...] = item.label
        names = [f"point_{number}" for number in range(1, len(points) + 1)]
        if not report:
            return _verdict(report, names, {"content": 1, "format": 1})
        scales = {
            "content": GRADE_SCALE, "format": GRADE_SCALE, **dict.fromkeys(names, (0.0, 1.0))
        }  # fmt: skip
        fields = {
            "instruction": item.task.question,
            "points": "\n".join(f"{number}. {point}" for number, point in enumerate(points, 1)),
            "report": report,
            "names": ", ".join(scales),
        }
        grades = await judge.grades(PROMPT, fields, scales, is_whole=True)
        return _verdict(report, names, grades.scores)

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:  # noqa: ARG002
        """Return whether two runs wrote the same text, ignoring line breaks and spaces."""
        first, second = _report(one).split(), _report(other).split()
        return bool(first) and first == second


def _verdict(report: str, names: list[str], scores: Mapping[str, float]) -> ItemScore:
    found = {name.replace("_", " "): scores.get(name) == 1 for name in names}
    share = sum(found.values()) / len(found)
    grades = {"content": scores["content"], "format": scores["format"], "checklist": share}
    right = (grades["content"] + grades["format"]) / 2 >= RIGHT_FROM
    strict = right and all(found.values())
    return ItemScore(right, strict, {**_form(report), **found}, grades=grades)


def _form(report: str) -> dict[str, bool]:
    return {"report": bool(report), "headings": _has_heading(report)}


def _has_heading(report: str) -> bool:
    """Whether a line outside of blocks of code is a heading; a block without an end has the rest.

    One pass over the lines, as a cell may have written any text.
    """
    fence = ""
    for line in report.split("\n"):
        begins = _FENCE.fullmatch(line)
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif begins:
            fence = begins[1] or begins[2]
        elif _HEADING.match(line):
            return True
    return False


def _report(outcome: Outcome) -> str:
    """Return the text of `report.md`, or the answer if there is no such file; links don't count."""
    file = outcome.folder / REPORT_NAME
    if file.is_file() and not file.is_symlink() and file.stat().st_size <= MAX_REPORT_BYTES:
        text = file.read_bytes().decode("utf-8", errors="replace").strip()
        if text:
            return text
    return outcome.answer.strip()


def _has_words(point: str, report: str) -> bool:
    wanted = {word for word in read_tokens(point) if not _is_short(word)}
    return bool(wanted) and wanted <= set(read_tokens(report))


def _is_short(word: object) -> bool:
    return isinstance(word, str) and len(word) <= _SHORT_WORD


def _item(record: Record) -> Sample:
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=_files(record),
        constraints=CONSTRAINTS,
        level=record.text("level", ""),
        concepts=record.texts("concepts"),
        metadata={"suite": Reports.name},
    )
    points = record.texts("checklist")
    if not points or not all(point.strip() for point in points):
        raise record.fault("checklist", "expected at least one point, and no blank one")
    return Sample(task, points)


def _files(record: Record) -> tuple[Path, ...]:
    """Return the files of a row; their bare names must differ, because the agent uses those."""
    files = record.data_files("files")
    if len({file.name for file in files}) < len(files):
        raise record.fault("files", "two of the files have the same name")
    return files
