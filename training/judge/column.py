"""A judge's column of a finished run: every answer judged once, and optionally reformatted.

The reformat step is InfiAgent's (arXiv 2401.05507): a model rewrites an answer in the requested
form. It helps models that were never trained on `@name[value]`, so it does not measure the answer
alone. Its verdict is therefore a separate column and never replaces the first. It deviates in two
points. An answer that already has the form is not sent. Every number of the new text must appear in
the answer, or the reply is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dm_jupyter.core.closed_form import answer_names, find_answers
from dm_jupyter.core.task import Task
from dm_jupyter.models.protocols import Policy
from training.durable.at_once import each_at_once
from training.evaluation.scoring import ScoringError, ScoringPool, SuiteError
from training.judge.judged import JudgedLog, JudgedRecord, expected_text, item_of
from training.marking.asking import (
    AskedModel,
    ModelUnreachableError,
    NoReplyError,
    UnusableReplyError,
)
from training.marking.judge import Judge
from training.prompts import load_prompt
from training.records.records import EvalRecord
from training.scoring.short_answer import Token, read_tokens, tokens_equal
from training.suites.suite import Outcome, Sample

__all__ = ["ColumnOptions", "Reformatter", "SecondColumn", "judge_answers", "read_reformatted"]

REWARD_PROMPT = "judge_reward"
NO_FOLDER = Path("/nonexistent")
"""Folder without files: a reformatted answer is scored by its text alone."""
_PROMPT = "reformat"
_NOTHING = "NONE"


@dataclass(frozen=True, slots=True)
class SecondColumn:
    """The reformat step, and the scorer of its results by the rules of the run's suite."""

    reformatter: Reformatter
    scorer: ScoringPool
    items: Mapping[str, Sample] = field(default_factory=dict)
    """The suite's items by id; a missing one is built from its record."""


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """Settings of a judge's column."""

    folder: Path
    """The run's folder; the column is `judged.jsonl` in it."""
    judge: Judge
    reformat: SecondColumn | None = None
    at_once: int = 4
    """Answers that are judged concurrently."""

    def __post_init__(self) -> None:
        if self.at_once < 1:
            raise ValueError(f"can't judge {self.at_once} answers at a time: it must be 1 or more")


async def judge_answers(
    records: Sequence[EvalRecord],
    options: ColumnOptions,
    on_row: Callable[[JudgedRecord], None] = lambda _: None,
) -> list[JudgedRecord]:
    """Return the column: a row for each record that has an answer, in their order.

    Rows of an earlier call by the same judge and prompts are reused; those without a verdict are
    judged again. Each new row is on disk before its slot judges the next answer.

    Args:
        records: of the run.
        options: the judge and its settings.
        on_row: receives each new row.

    Raises:
        ModelUnreachableError: no answer can be judged now; the rows so far are kept.
        ValueError: the column's file or a record is incomplete, or the suite can't score a label
            from a record.
        SuiteError: the suite can't score an answer, or its process did not start.
        OSError: the column can't be written.
    """
    log = JudgedLog(options.folder / "judged.jsonl")
    rows = log.by_key()
    answered = [record for record in records if (record.answer or "").strip()]
    to_judge = [one for one in answered if not _is_done(rows.get(one.key), one, options)]

    async def judge_one(record: EvalRecord) -> None:
        row = await _row(record, options)
        log.append(row)
        rows[row.key] = row
        on_row(row)

    await each_at_once(to_judge, options.at_once, judge_one)
    return [rows[record.key] for record in answered]


def _is_done(row: JudgedRecord | None, record: EvalRecord, options: ColumnOptions) -> bool:
    """Return whether a row is complete for exactly this answer, judge and prompt."""
    if row is None or row.error or row.reformat_error:
        return False
    return (
        (row.answer, row.right, row.strict)
        == (record.answer, record.correct, record.strict_correct)
        and (row.judge, row.prompt) == (options.judge.name, load_prompt(REWARD_PROMPT).fingerprint)
        and (options.reformat is None or row.reformat == load_prompt(_PROMPT).fingerprint)
    )


async def _row(record: EvalRecord, options: ColumnOptions) -> JudgedRecord:
    item = item_of(record)
    answer = record.answer or ""
    row = JudgedRecord(
        id=record.id,
        trial=record.trial,
        answer=answer,
        judge=options.judge.name,
        prompt=load_prompt(REWARD_PROMPT).fingerprint,
        right=record.correct,
        strict=record.strict_correct,
        judged=None,
        reason="",
        error="",
    )
    fields = {
        "question": _question(item.task),
        "expected": expected_text(item.label),
        "given": answer,
    }
    try:
        verdict = await options.judge.score(REWARD_PROMPT, fields, (0, 1), is_whole=True)
        row = replace(row, judged=verdict.score == 1, reason=verdict.reason)
    except ModelUnreachableError:
        raise
    except NoReplyError as error:
        row = replace(row, error=str(error))
    if options.reformat is None:
        return row
    return await _with_reformat(row, item, options.reformat)


async def _with_reformat(row: JudgedRecord, item: Sample, second: SecondColumn) -> JudgedRecord:
    """Return the row with the reformatted answer and the suite's verdict on it."""
    row = replace(row, reformat=load_prompt(_PROMPT).fingerprint)
    try:
        text = await second.reformatter.reformat(item.task, row.answer)
    except ModelUnreachableError:
        raise
    except NoReplyError as error:
        return replace(row, reformat_error=str(error))
    if text == row.answer:
        right, strict = row.right, row.strict
    else:
        try:
            right, strict = await _scored(text, item, second)
        except ScoringError as error:
            return replace(row, reformat_error=str(error))
    return replace(row, reformatted=text, reformatted_right=right, reformatted_strict=strict)


async def _scored(text: str, item: Sample, second: SecondColumn) -> tuple[bool, bool]:
    known = second.items.get(item.task.id)
    try:
        score = await second.scorer.score(known or item, Outcome(text, NO_FOLDER))
    except SuiteError as error:
        if known is not None:
            raise
        # A label that JSON can't represent came back as text.
        raise ValueError(
            f"{error}; if its record lacks the label, add --split with the folder of the split"
        ) from error
    return score.correct, score.strict_correct


def _question(task: Task) -> str:
    """Return the question with its constraints and answer format."""
    extra = (("Constraints", task.constraints), ("Answer format", task.answer_format))
    return "\n".join([task.question, *(f"{name}: {text}" for name, text in extra if text)])


class Reformatter:
    """Rewriter of answers in their form; it omits missing values and never invents one."""

    def __init__(self, policy: Policy, cache: Path, max_tokens: int = 1_000) -> None:
        """Prepare the step without any request or write.

        Args:
            policy: the model; an `HttpPolicy` must be open.
            cache: folder of its replies; it may be the judge's.
            max_tokens: of a reply.
        """
        self._model = AskedModel(policy, cache, max_tokens)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def reformat(self, task: Task, answer: str) -> str:
        """Return the answer in the task's form; empty if it states no value.

        A blank answer is returned unchanged, and so is one that already has all names of the
        task's form, or whose task has none.

        Raises:
            NoReplyError: the model could not be asked, or changed values twice.
        """
        names = answer_names(task.answer_format)
        said = {name for name, _ in find_answers(answer)}
        if not answer.strip() or all(name in said for name in names):
            return answer
        fields = {"question": task.question, "format": task.answer_format, "answer": answer}
        read = partial(read_reformatted, names=names, answer=answer)
        return (await self._model.ask(_PROMPT, fields, read)).value


def read_reformatted(reply: str, *, names: Sequence[str], answer: str) -> str:
    """Return the `@name[value]` lines of a reply; empty if the reply says there is no value.

    Args:
        reply: the model's text.
        names: the names that the form requires.
        answer: the source of the values.

    Raises:
        UnusableReplyError: the reply has no such line, a name that the form lacks, or a number
            that the answer lacks.
    """
    found = find_answers(reply)
    if not found:
        if reply.strip().strip(".").upper() == _NOTHING:
            return ""
        raise UnusableReplyError(f"it has no line of the form @name[value], and is not {_NOTHING}")
    for name, value in found:
        if name not in names:
            raise UnusableReplyError(f"@{name} is not a name of the format")
        if not _is_from(answer, value):
            raise UnusableReplyError(f"@{name}[{value[:60]}] holds a number that the answer lacks")
    return "\n".join(f"@{name}[{value}]" for name, value in found)


def _is_from(answer: str, value: str) -> bool:
    """Return whether the answer contains every number of a value, in either reading of commas."""
    stated = [number for grouped in (True, False) for number in _numbers(answer, grouped)]
    return any(
        all(any(tokens_equal(one, other) for other in stated) for one in _numbers(value, grouped))
        for grouped in (True, False)
    )


def _numbers(text: str, grouped: bool) -> list[Token]:
    return [part for part in read_tokens(text, thousands=grouped) if not isinstance(part, str)]
