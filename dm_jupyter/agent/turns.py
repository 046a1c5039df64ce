"""Interpretation of a model's turn as code or an answer, and what follows from the answer.

A repetition counts as a void turn. Comments in the opening of a turn are for the model only, and
are removed from the cell that runs. An answer ends the run, or is sent back once with what it
lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dm_jupyter.agent.figures.figure_words import figure_words, is_figure
from dm_jupyter.agent.observe import describe
from dm_jupyter.assist.critique import has_sections, unfinished
from dm_jupyter.assist.grounding import ground, stated_numbers, unshown_values, unused_names
from dm_jupyter.core import prompts
from dm_jupyter.core.absent_data import absent_data, covered_words, says_absent
from dm_jupyter.core.data_changes import cleaning_words, saved_files, saved_pictures
from dm_jupyter.core.data_facts import facts_block
from dm_jupyter.core.dialect import Dialect
from dm_jupyter.core.grounded import Grounded, Verdict, doubts
from dm_jupyter.core.question_names import (
    idle_limit_words,
    missing_name_words,
    respelt_words,
    unused_limit_words,
    unused_name_words,
)
from dm_jupyter.core.request_kind import request_kind
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
    Void,
)
from kernel_sandbox.types import CellResult, Display

__all__ = ["PROMPTS", "absent_of", "after_answer", "answered", "parse_turn"]

PROMPTS = (
    "absent_reply",
    "answer_absent",
    "answer_unsupported",
    "answer_uncomputed",
    "answer_unused",
)
"""Names of the prompts that this module uses."""


def parse_turn(dialect: Dialect, completion: Completion, trajectory: Trajectory) -> Turn:
    """Return the thought and the action of a completion; one that repeats itself is void.

    Args:
        dialect: the parser of the text.
        completion: the sampled completion.
        trajectory: the run before it.
    """
    if completion.finish_reason == "repetition":
        return Turn("", Void("the same lines again and again"))
    if completion.finish_reason == "content_filter":
        return Turn("", Void("ended by the endpoint's content filter"))
    turn = dialect.parse(completion.text)
    if completion.finish_reason == "length" and _is_cut(dialect, completion.text, turn):
        return Turn("", Void("cut off at its limit of length"))
    is_plain = dialect.answers_in_words and trajectory.assists.said_again
    if is_plain and _is_said_again(dialect, turn, trajectory):
        is_told = bool(turn.thought) and not turn.thought.endswith(":")
        return Turn("", Answer(turn.thought) if is_told else Void("the same cell again"))
    openings = completion.prefill, dialect.prefill(trajectory)
    return _without_notes(turn, openings, kept=trajectory.data_context.preamble)


def _without_notes(turn: Turn, openings: Iterable[str], kept: str) -> Turn:
    """Return the turn without the comments of an opening, or what the model added to one.

    The last comment may be left open, and the rest of its line is the model's. The comments of the
    code that loads the data, `kept`, stay: they say what happens to which values.
    """
    if not isinstance(turn.action, RunCell):
        return turn
    sign = "--" if turn.action.language == "sql" else "#"
    of_load = frozenset(kept.splitlines())
    notes = tuple(
        line
        for opening in openings
        for line in opening.splitlines(keepends=True)
        if line.startswith(f"{sign} ") and line.rstrip("\n") not in of_load
    )
    left = [
        line
        for line in f"{turn.action.source}\n".splitlines(keepends=True)
        if not line.startswith(notes)
    ]
    source = "".join(left).strip("\n")
    if not source.strip():
        return replace(turn, action=Void("a comment alone"))
    return replace(turn, action=replace(turn.action, source=source))


def _is_cut(dialect: Dialect, text: str, turn: Turn) -> bool:
    """Whether the turn's action is incomplete: more text would have changed it."""
    return dialect.parse(f"{text}\nmore").action != turn.action


def _is_said_again(dialect: Dialect, turn: Turn, trajectory: Trajectory) -> bool:
    """Whether the turn only repeats the cell whose output was just shown.

    On a free question, a small model may do so until no turn is left, each time after its answer.
    """
    if trajectory.task.is_closed_form or not trajectory.steps:
        return False
    last = trajectory.steps[-1]
    has_shown = last.result is not None and last.result.ok and bool(last.result.outputs)
    shown = last.turn.action if last.is_edited else dialect.parse(last.completion.text).action
    return has_shown and shown == turn.action and not last.critique


def after_answer(trajectory: Trajectory, taken: Step, text: str) -> Trajectory:
    """End the run, unless the answer is sent back.

    It is sent back once if it lacks the requested chart, file or sections, and once if the outputs
    do not support a free answer.

    Args:
        trajectory: the run before the answer.
        taken: the turn that answers.
        text: the answer.
    """
    results = _python_results(trajectory)
    lacks = unfinished(
        trajectory, text, has_figure=_has_figure(results), has_file=bool(saved_files(results))
    )
    if lacks is not None:
        findings = (*taken.findings, lacks)
        # Sections need no other cell: what was computed stays.
        critique = "" if trajectory.kind == "report" else lacks.suggestion
        told = replace(taken, observation=lacks.suggestion, critique=critique)
        return trajectory.extended(replace(told, findings=findings))
    ended = answered(trajectory.extended(taken), text)
    if told_again := _doubts_on(ended, trajectory):
        return trajectory.extended(replace(taken, observation=told_again))
    return ended


def answered(trajectory: Trajectory, text: str) -> Trajectory:
    """Return the run, ended with a free answer and what a person should know about it.

    Args:
        trajectory: the run, including the turn that answers.
        text: the answer.
    """
    grounding = () if trajectory.task.is_closed_form else _grounded(trajectory, text)
    return replace(
        trajectory,
        stop=StopReason.ANSWERED,
        answer=text,
        unsupported=tuple(dict.fromkeys(one.text for one in grounding if one.is_doubtful)),
        rests_on=absent_of(trajectory, text),
        grounding=grounding,
        ending=_ending(trajectory, text, grounding),
    )


def _doubts_on(ended: Trajectory, before: Trajectory) -> str:
    """Return the message about an answer that the outputs don't support; "" if it stands."""
    if ended.task.is_closed_form or any(map(_was_doubted, before.steps)):
        return ""
    has_outputs, assists = bool(_outputs(before)), ended.assists
    is_meant_so = ended.kind == "explain" and not has_outputs  # nothing was to be computed
    told, answer = list[str](), ended.answer or ""
    if ended.rests_on and assists.ledger:
        absent, reply = ". ".join(ended.rests_on), prompts.text_of("absent_reply")
        told.append(prompts.fill("answer_absent", absent=absent, reply=reply))
    elif assists.grounding and ended.kind == "answer" and (unused := _unused(ended, answer)):
        told.append(prompts.fill("answer_unused", lines=" ".join(unused)))
    if ended.unsupported and assists.grounding and not is_meant_so:
        reason = "answer_unsupported" if has_outputs else "answer_uncomputed"
        lines = "\n".join(f"- {line}" for line in doubts(ended.grounding))
        told.append(prompts.fill(reason, numbers=lines))
    return "\n\n".join(told)


def _unused(trajectory: Trajectory, answer: str) -> tuple[str, ...]:
    """Return the names and limits of the question that no cell uses, in words.

    There are none if no cell worked, or if the answer says that the data lack what was asked for.
    """
    asked, steps = trajectory.task.question, trajectory.steps
    worked = any(result.ok for result in _outputs(trajectory))
    if not worked or says_absent(answer, asked):
        return ()
    names = unused_names(asked, _told(trajectory))
    return *unused_name_words(names, asked, steps), *unused_limit_words(asked, steps)


def _was_doubted(step: Step) -> bool:
    """Whether the step is an answer sent back for its numbers; for its form, it has a critique."""
    return isinstance(step.turn.action, Answer) and not step.critique


def _ending(trajectory: Trajectory, answer: str, grounding: Sequence[Grounded]) -> tuple[str, ...]:
    """Return the lines below the answer, on the kind of the request, names and limits."""
    results = _python_results(trajectory)
    kind = request_kind(trajectory.task)
    lines: tuple[str, ...] = ()
    if kind == "plot" and not _has_figure(results):
        lines = ("No figure was drawn.",)
    if kind == "clean":
        files = trajectory.task.files
        lines = cleaning_words(results, [*map(str, files), *(file.name for file in files)])
    if kind == "report":
        lines = tuple(_report_words(trajectory, answer, grounding))
    asked, steps = trajectory.task.question, trajectory.steps
    missed = trajectory.data_context.years_missed
    return (
        *lines,
        *respelt_words(asked, steps),
        *missing_name_words(asked, steps),
        *idle_limit_words(asked, steps),
        *_unused(trajectory, answer),
        *covered_words(answer, asked, _outputs(trajectory), missed),
    )


def _report_words(
    trajectory: Trajectory, answer: str, grounding: Sequence[Grounded]
) -> Iterator[str]:
    """Yield what a report is based on, so that its reader knows how far to trust it."""
    if not has_sections(answer):
        yield "The report has no sections."
    worked = [result for result in _outputs(trajectory) if result.ok]
    facts = (fact for result in worked for fact in result.facts if fact.kind == "read")
    read = {fact.condition: fact.after for fact in facts if fact.condition}
    files = [name if rows is None else f"{name} ({rows:,} rows)" for name, rows in read.items()]
    files += [name for name in trajectory.data_context.databases if name not in read]
    cells = f"{len(worked)} {'cell' if len(worked) == 1 else 'cells'}"
    yield f"Made with {cells}" + (f" from {', '.join(files)}." if files else ".")
    stated = [one for one in grounding if one.verdict is not Verdict.RESTATED]
    if stated:
        sure = sum(not one.is_doubtful for one in stated)
        yield f"Numbers that follow from the outputs: {sure} of {len(stated)}."


def _has_figure(results: list[CellResult]) -> bool:
    shown = (x.data for result in results for x in result.outputs if isinstance(x, Display))
    return bool(saved_pictures(results)) or any(is_figure(x) or figure_words(x) for x in shown)


def absent_of(trajectory: Trajectory, answer: str) -> tuple[str, ...]:
    """Return the absent data that the answer rests on.

    Args:
        trajectory: the run up to the answer.
        answer: the answer that the model states.
    """
    task = trajectory.task
    asked = f"{task.question}\n{task.constraints}\n{task.answer_format}"
    missed = trajectory.data_context.years_missed
    actions = [step.turn.action for step in trajectory.steps if step.result is not None]
    sources = [one.source if isinstance(one, RunCell) else "" for one in actions]
    return absent_data(answer, asked, _outputs(trajectory), missed, sources)


def _outputs(trajectory: Trajectory) -> list[CellResult]:
    return [step.result for step in trajectory.steps if step.result is not None]


def _python_results(trajectory: Trajectory) -> list[CellResult]:
    """Return the results of Python cells only, since queries save their rows by themselves."""
    return [
        step.result
        for step in trajectory.steps
        if step.result is not None
        and not (isinstance(step.turn.action, RunCell) and step.turn.action.language == "sql")
    ]


def _grounded(trajectory: Trajectory, answer: str) -> tuple[Grounded, ...]:
    """Return where each number of an answer comes from, by the step that showed it."""
    shown = [(at, step.result) for at, step in enumerate(trajectory.steps) if step.result]
    outputs = [describe(result, limit_chars=1_000_000) for _, result in shown]
    facts = {at: facts_block(result.facts) for at, result in shown}
    asked, profile = trajectory.task.question, trajectory.data_context.text
    told = _told(trajectory)
    if trajectory.kind == "explain":  # it may be about earlier contents of the notebook
        found = ground(answer, outputs, f"{asked}\n{profile}", told=told)
    else:
        unshown = unshown_values(profile, asked, told)
        found = ground(answer, outputs, asked, unshown, [profile, *told])
    placed = (one if one.cell is None else replace(one, cell=shown[one.cell][0]) for one in found)
    return tuple(_told_by_a_fact(one, facts) for one in placed)


def _told(trajectory: Trajectory) -> list[str]:
    """Return the names of the files, the cells, their outputs, and the facts about them."""
    results = _outputs(trajectory)
    actions = (step.turn.action for step in trajectory.steps)
    return [
        *(file.name for file in trajectory.task.files),
        *(one.source for one in actions if isinstance(one, RunCell)),
        *(describe(result, limit_chars=1_000_000) for result in results),
        *(facts_block(result.facts) for result in results),
    ]


def _told_by_a_fact(number: Grounded, told: Mapping[int, str]) -> Grounded:
    """Return the number, as supported if no output contains it but the facts of a cell do."""
    if number.verdict is not Verdict.UNSUPPORTED:
        return number
    mine = stated_numbers(number.text)
    for at, facts in told.items():
        if mine and mine <= stated_numbers(facts):
            return replace(number, verdict=Verdict.SUPPORTED, cell=at, why="")
    return number
