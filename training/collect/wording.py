"""Right runs rewritten as answers in words to questions without a form of the answer.

A suite needs a form such as `@mean[value]` to score an answer, so every run of a collection answers
in one. A model that learns from these alone fails when a person asks, who states no form. So a run
is rewritten: its question loses the form, its cells print `mean: 4.2` instead of `@mean[4.2]`, and
a sentence states the values. The model writes the sentence from the question and the values. It is
used only if it states every value and no other number. The replay then shows whether the new cells
print what the run claims.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dm_jupyter.core.closed_form import answer_names, find_answers
from dm_jupyter.core.trajectory import Action, RunCell, Step, Trajectory
from dm_jupyter.models.protocols import Policy
from kernel_sandbox.types import CellResult, Display, Output, Stream
from training.collect.examining import CollectedRun, is_grounded, written_in
from training.durable.at_once import each_at_once
from training.durable.progress import WorkProgress
from training.evaluation.knowledge import without_knowledge
from training.marking.asking import (
    AskedModel,
    ModelUnreachableError,
    NoReplyError,
    UnusableReplyError,
)
from training.scoring.free_answer import states_values

__all__ = ["in_words", "read_sentence", "without_form"]

_PROMPT = "answer_in_words"
_MAX_TOKENS = 250
_FEWEST_WORDS = 5
_REPLY = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_MEANING = re.compile(r"\bwhere\b(.*)", re.DOTALL)
"""What follows the names in a form of the answer: their meaning."""


async def in_words(
    runs: Iterable[CollectedRun],
    policy: Policy,
    replies: Path,
    dialects: Sequence[str],
    at_once: int,
) -> list[CollectedRun]:
    """Return right runs rewritten with an answer in words, at most one for each question.

    Left out are runs with a failed cell, and runs for which the model writes no usable sentence in
    two tries.

    Args:
        runs: right ones; of several at a question, the first one is used.
        policy: the model that writes the sentences, open.
        replies: the folder in which its replies are kept.
        dialects: names of the dialects that must be able to write the run.
        at_once: sentences that are written at the same time.

    Raises:
        ModelUnreachableError: the model can't be asked, or its replies can't be kept.
        BudgetSpentError: the policy is metered, and its budget is spent.
    """
    first = list({run.record.id: run for run in reversed(list(runs))}.values())[::-1]
    model = AskedModel(policy, replies, _MAX_TOKENS)
    written: dict[str, CollectedRun] = {}

    async def rewrite(run: CollectedRun) -> None:
        try:
            again = written[run.record.id] = await _rewritten(run, model, dialects)
            said = str(again.record.answer)
        except _LeftOutError as why:
            said = f"left out, {why}"
        progress.add(f"{run.record.id}: {said}", f"{len(written)} written")

    with WorkProgress("answers in words") as progress:
        progress.begin(len(first), 0)
        await each_at_once(first, at_once, rewrite)
    return [written[run.record.id] for run in first if run.record.id in written]


class _LeftOutError(Exception):
    """A run can't be rewritten; the text says why."""


async def _rewritten(run: CollectedRun, model: AskedModel, dialects: Sequence[str]) -> CollectedRun:
    """Return the run with an answer in words.

    Raises:
        ModelUnreachableError: the model can't be asked, or its replies can't be kept.
        _LeftOutError: for any other reason.
    """
    right = without_knowledge(Trajectory.from_json(run.record.trajectory))
    steps = _plain_steps(right)
    if steps is None:
        raise _LeftOutError("as a cell failed, or has the form of the answer in another way")
    task = right.task
    pairs = find_answers(right.answer or "")
    meaning = _MEANING.search(task.answer_format)
    fields = {
        "question": "\n".join(filter(None, (task.question, task.constraints))),
        "values": "\n".join(f"{_spaced(name)}: {value}" for name, value in pairs),
        "meaning": _spaced(meaning[1].strip()) if meaning else "",
    }
    values = [value for _, value in pairs]
    read = partial(read_sentence, values=values, question=fields["question"])
    try:
        sentence = (await model.ask(_PROMPT, fields, read)).value
    except ModelUnreachableError:
        raise
    except NoReplyError as error:
        raise _LeftOutError(f"as {error}") from error
    free = replace(right, task=replace(task, answer_format=""), steps=steps, answer=sentence)
    exported = await written_in(free, dialects)
    if exported is None or not all(is_grounded(one.trajectory) for one in exported.values()):
        raise _LeftOutError("as a dialect can't write it, or its cells show no such value")
    record = replace(run.record, trajectory=free.to_json(), answer=sentence)
    return replace(run, record=record, exported=exported, variant="in words")


def read_sentence(reply: str, *, values: Sequence[str], question: str) -> str:
    """Return the answer in a reply.

    Args:
        reply: the model's reply.
        values: that the answer must state.
        question: whose numbers it may repeat.

    Raises:
        UnusableReplyError: the reply does not have exactly one answer in its tags, or the answer is
            no sentence, lacks a value or has another number.
    """
    found = _REPLY.findall(reply)
    if len(found) != 1 or not found[0].strip():
        raise UnusableReplyError("it must have one answer between <answer> and </answer>")
    sentence = " ".join(found[0].split())
    if len(sentence.split()) < _FEWEST_WORDS:
        raise UnusableReplyError("the answer must be a sentence that says what each value is")
    if not states_values(values, sentence, question, others=0):
        raise UnusableReplyError(
            f"the answer must state each of these values, and no other number: {', '.join(values)}"
        )
    return sentence


def _plain_steps(run: Trajectory) -> tuple[Step, ...] | None:
    """Return the cells without the form of the answer; `None` if the form remains somewhere."""
    names = answer_names(run.task.answer_format)
    cells = [step for step in run.steps if step.result is not None]
    if not names or not cells or not all(step.result and step.result.ok for step in cells):
        return None
    steps = tuple(_plain_step(step, partial(without_form, names=names)) for step in cells)
    form = re.compile(rf"@(?:{'|'.join(map(re.escape, names))})\b")
    return None if any(form.search(text) for step in steps for text in _texts(step)) else steps


def _plain_step(step: Step, said: Callable[[str], str]) -> Step:
    written = step.written and replace(step.written, source=said(step.written.source))
    turn = replace(step.turn, action=_plain_action(step.turn.action, said))
    return replace(step, turn=turn, written=written, result=_plain_result(step.result, said))


def _plain_action(action: Action, said: Callable[[str], str]) -> Action:
    return replace(action, source=said(action.source)) if isinstance(action, RunCell) else action


def _plain_result(result: CellResult | None, said: Callable[[str], str]) -> CellResult | None:
    return result and replace(
        result, outputs=tuple(_plain_output(output, said) for output in result.outputs)
    )


def _plain_output(output: Output, said: Callable[[str], str]) -> Output:
    if isinstance(output, Stream):
        return replace(output, text=said(output.text))
    if isinstance(output, Display):
        plain = {
            kind: said(shown) if isinstance(shown, str) else shown
            for kind, shown in output.data.items()
        }
        return replace(output, data=plain)
    return output


def _texts(step: Step) -> list[str]:
    """Return the parts of a step in which the form may remain."""
    action = step.turn.action
    texts = [step.turn.thought, action.source if isinstance(action, RunCell) else ""]
    outputs = step.result.outputs if step.result is not None else ()
    return texts + [output.text for output in outputs if isinstance(output, Stream)]


def without_form(text: str, names: Collection[str]) -> str:
    """Return code or output that writes `mean: 4.2` instead of `@mean[4.2]`.

    Brackets inside a value stay. Text from a name on that no closing bracket follows is unchanged.

    Args:
        text: of a cell or an output.
        names: of the answer's values.
    """
    opening = re.compile(rf"@({'|'.join(map(re.escape, names))})\[")
    parts, at = list[str](), 0
    while match := opening.search(text, at):
        end = _closing(text, match.end())
        if end is None:
            break
        parts += [text[at : match.start()], f"{_spaced(match[1])}: ", text[match.end() : end]]
        at = end + 1
    return "".join([*parts, text[at:]])


def _closing(text: str, start: int) -> int | None:
    """Return the position of the bracket that closes the one before `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "[") - (text[at] == "]")
        if not depth:
            return at
    return None


def _spaced(name: str) -> str:
    return name.replace("_", " ")
