"""The markdown dialect: fenced blocks, for any instruct model.

Its shape measured best for a 1.5B model. The turn opens inside a python block that already loads
the data. A cell prints closed-form answers, and they are read from its output. The prompt asks for
one complete cell instead of many small ones. An attempt that failed or showed nothing is dropped
once a later one exists, so that a small model does not copy it. After the same error twice in a
row, the model starts over and sees only the error. It also starts over after a cell that was sent
back. All of these except the printed answers are rules of the help (`core.assistance`).

So by design this dialect shows another history than the sampled one; `fork_points` of `core.forks`
returns the turns. Without that help it only appends, as the others do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dm_jupyter.core import prompts
from dm_jupyter.core.absent_data import names_absent
from dm_jupyter.core.closed_form import answer_names, find_answers, is_no_value
from dm_jupyter.core.data_facts import fact_words
from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.dialects.conversation import in_fence, rendered, task_text
from dm_jupyter.core.limits_met import limit_met
from dm_jupyter.core.request_kind import RequestKind
from dm_jupyter.core.trajectory import Answer, RunCell, Step, Trajectory, Turn, Void
from kernel_sandbox.ledger.facts import Fact
from kernel_sandbox.types import CellResult

__all__ = ["MarkdownDialect"]

_BLOCK = re.compile(
    r"^[ \t]*```[ \t]*(?P<language>\w*)[^\n]*\n(?P<body>.*?)(?P<closing>^[ \t]*```|\Z)",
    re.DOTALL | re.MULTILINE,
)
_MOST_SELECTIONS = 2
_SAVED = re.compile(r"saved as (result_\d+)\.csv")
_ANSWERS: Mapping[RequestKind, str] = {
    "plot": "markdown_answer_plot",
    "report": "markdown_answer_report",
}
"""Prompts shown with an output, for the kinds of request that need one of their own."""
_RUNNABLE = {"": "python", "python": "python", "py": "python", "python3": "python", "sql": "sql"}


@dataclass(frozen=True, slots=True)
class MarkdownDialect:
    """Code in a fenced `python` or `sql` block; plain words are the answer."""

    name: str = "markdown"
    answers_in_words: bool = True
    thinks_in_text: bool = False
    is_append_only: bool = False
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = (
        "markdown_system",
        "markdown_system_sql",
        "markdown_print",
        "markdown_failed",
        "markdown_failed_absent",
        "absent_reply",
        "markdown_limit",
        "markdown_silent",
        "markdown_missing",
        "markdown_undefined",
        "markdown_answer",
        "markdown_answer_plot",
        "markdown_answer_report",
        "markdown_failed_before",
        "markdown_nothing_before",
        "markdown_second_thought",
        "markdown_void",
        "advice_tests",
        "advice_missing",
        "advice_population",
        "advice_plot",
        "advice_clean",
        "advice_explain",
        "advice_report",
        "task_files",
        "task_question",
        "task_links",
        "task_constraints",
        "task_format",
        "task_so_far",
    )

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Return the closing fence; if no block is open yet, only a fence before a new line."""
        return ("\n```",) if prefill else ("\n```\n",)

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """Return system, task, and the turns still worth showing with their observations."""
        system = "markdown_system_sql" if _speaks_sql(trajectory) else "markdown_system"
        task = task_text(trajectory)
        if not _may_answer(trajectory):  # a small model would answer in the words of the advice
            task = "\n\n".join([task, *map(prompts.text_of, trajectory.advice)])
        names = answer_names(trajectory.task.answer_format)
        if names:
            lines = "\n".join(f'print(f"@{name}[{{{_identifier(name)}}}]")' for name in names)
            task += "\n\n" + prompts.fill("markdown_print", lines=lines)
        if trajectory.steps and trajectory.steps[-1].critique:
            task += f"\n\n{trajectory.steps[-1].critique}"
        messages = [Message("system", prompts.text_of(system)), Message("user", task)]
        forgets = trajectory.assists.forgetting
        for step in _worth_showing(trajectory):
            text = step.completion.text
            shown = _closed(text) if forgets else text + self.ending(text)
            messages.append(Message("assistant", shown))
            messages.append(Message("user", step.observation))
        return tuple(messages)

    def prefill(self, trajectory: Trajectory) -> str:
        """Return an opened block with the data loaded, if code must come next."""
        if not _needs_code(trajectory):
            return ""
        if _speaks_sql(trajectory):
            return _sql_prefill(trajectory)
        opens = trajectory.assists.opening
        text = (trajectory.data_context.preamble if opens else "") + _second_thought(trajectory)
        return f"```python\n{text}" if opens or text else ""

    def parse(self, text: str) -> Turn:
        """Return the first runnable block, or the words if there is none."""
        for block in _BLOCK.finditer(text):
            language = _RUNNABLE.get(block["language"].lower())
            source = block["body"].strip("\n")
            if language and source.strip():
                return Turn(text[: block.start()].strip(), RunCell(source, language))
        words = text.strip()
        if not words or "```" in words:
            return Turn("", Void("no runnable block and no words" if words else "nothing at all"))
        return Turn("", Answer(words))

    def ending(self, text: str) -> str:
        """Return the fence that closes a block which is still open."""
        blocks = list(_BLOCK.finditer(text))
        return "\n```" if blocks and not blocks[-1]["closing"] else ""

    def render(self, turn: Turn) -> str:
        """Return the thought and the block below it, or the answer's words alone.

        The dialect can't express a thought before an answer, a fence at the start of a line, or any
        fence in an answer.

        Raises:
            UnrenderableTurnError: the dialect can't express this turn.
        """
        match turn.action:
            case RunCell() as cell:
                does = in_fence(cell)
            case Answer(answer):
                does = answer
            case Void():
                does = ""
        return rendered(self, turn, f"{turn.thought}\n{does}" if turn.thought else does)

    def is_well_formed(self, text: str) -> bool:
        """Whether it is one runnable block after at most a thought, or words without a fence."""
        blocks = list(_BLOCK.finditer(text))
        if not blocks:
            return bool(text.strip()) and "```" not in text
        first = blocks[0]
        runnable = first["language"].lower() in _RUNNABLE and bool(first["body"].strip())
        return len(blocks) == 1 and runnable and not text[first.end() :].strip()

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """Return the output and the next request: a fixed cell, missing values, or the answer."""
        if limit_met(result):
            language = "sql" if _speaks_sql(trajectory) else "python"
            return prompts.fill("markdown_limit", output=text, language=language)
        if not result.ok:
            return _failed(trajectory, result, text)
        names = answer_names(trajectory.task.answer_format)
        if names:
            printed = dict(find_answers(result.stdout))
            missing = [f"@{name}[...]" for name in names if name not in printed]
            if missing:
                return prompts.fill("markdown_missing", output=text, missing=", ".join(missing))
            undefined = [f"@{name}" for name in names if is_no_value(printed[name])]
            return prompts.fill("markdown_undefined", output=text, names=", ".join(undefined))
        if not _has_output(result):
            return prompts.text_of("markdown_silent")
        told = _ANSWERS.get(trajectory.kind, "markdown_answer")
        return prompts.fill(told, output=text, question=trajectory.task.question)

    def void_reminder(self, trajectory: Trajectory) -> str:
        """Return the message after a void turn."""
        return prompts.text_of("markdown_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """Return every requested `@name[value]` as printed, or `None`.

        Undefined values are accepted only the second time, or the third time if they result from an
        empty selection. A model that was just shown this mostly selects the same rows again.
        """
        names = answer_names(trajectory.task.answer_format)
        if not names or not result.ok:
            return None
        printed = dict(find_answers(result.stdout))
        if any(name not in printed for name in names):
            return None
        undefined = any(is_no_value(printed[name]) for name in names)
        is_empty = trajectory.assists.ledger and bool(_chose_nothing(result.facts))
        if undefined and _times_undefined(trajectory, names) < (2 if is_empty else 1):
            return None
        return "\n".join(f"@{name}[{value}]" for name, value in printed.items())


def _second_thought(trajectory: Trajectory) -> str:
    """Return the comments that open the next cell and say why the last one was not good enough.

    After an exception the last comment is left open: the model has to say what was wrong.
    """
    if not trajectory.steps:
        return ""
    if critique := trajectory.steps[-1].critique:
        return _commented("#", critique)
    told = _failed_before(trajectory, "#")
    if not told or _begins_anew(trajectory):
        return told
    return told + _commented("#", prompts.text_of("markdown_second_thought")).rstrip("\n")


def _failed_before(trajectory: Trajectory, sign: str) -> str:
    """Return the last cell's failure as comments in its language, or "" if it was good.

    A cell that selected no row is not good: the comments state what the data contain instead.
    """
    last = trajectory.steps[-1]
    if last.result is None or not trajectory.assists.second_thought:
        return ""
    error = last.result.error
    absent = _chose_nothing(last.result.facts) if trajectory.assists.ledger else []
    if error is None:
        told = prompts.fill("markdown_nothing_before", facts="\n".join(absent)) if absent else ""
        return _commented(sign, told)
    message = error.message.strip().splitlines() or [""]
    unknown = [fact_words(one) for one in last.result.facts if one.kind == "unknown"]
    names = unknown[:1] if trajectory.assists.ledger else []
    lines = [f"{error.name}: {message[0][:160]}", *names, *absent]
    failed = prompts.fill("markdown_failed_before", error="\n".join(lines))
    return _commented(sign, failed)


def _chose_nothing(facts: Sequence[Fact]) -> list[str]:
    """Return the selections of a cell that matched no row, in words."""
    chosen = [fact for fact in facts if fact.kind == "kept" and fact.is_absence]
    return [fact_words(fact) for fact in chosen[:_MOST_SELECTIONS]]


def _commented(sign: str, text: str) -> str:
    return "".join(f"{sign} {line}\n" for line in text.splitlines())


def _sql_prefill(trajectory: Trajectory) -> str:
    """Return the opening: of a query until one has worked, then of Python over its rows."""
    steps, opens = trajectory.steps, trajectory.assists.opening
    if not steps:
        return "```sql\n" if opens else ""
    results = [name for step in steps if _is_query(step) and (name := _saved_as(step))]
    if not results or (_is_query(steps[-1]) and not _succeeded(steps[-1])):
        notes = _failed_before(trajectory, "--")
        return f"```sql\n{notes}{'SELECT' if opens else ''}" if opens or notes else ""
    return f"```python\nrows = {results[-1]}\n" if opens else ""


def _saved_as(query: Step) -> str:
    """Return the variable with a query's rows; an earlier run may have used the first names."""
    saved = _SAVED.search(query.result.stdout) if query.result and _succeeded(query) else None
    return saved[1] if saved else ""


def _is_query(step: Step) -> bool:
    return isinstance(step.turn.action, RunCell) and step.turn.action.language == "sql"


def _speaks_sql(trajectory: Trajectory) -> bool:
    """Whether all the data is in databases, so that code begins with a query."""
    return bool(trajectory.data_context.databases) and not trajectory.data_context.preamble


def _needs_code(trajectory: Trajectory) -> bool:
    """Whether only code makes sense next: no cell has run, or none gave what is needed."""
    if not any(step.result for step in trajectory.steps) and trajectory.kind == "explain":
        return False
    if not trajectory.steps or trajectory.steps[-1].critique:
        return True
    last = trajectory.steps[-1]
    results = [step.result for step in trajectory.steps if step.result is not None]
    if results and limit_met(results[-1]):  # it may say that it can't be done, or ask
        return False
    if last.result is None:
        return not any(step.result and step.result.ok for step in trajectory.steps)
    if not last.result.ok:
        return _begins_anew(trajectory) or not _lacks_the_asked(trajectory, last.result)
    return trajectory.task.is_closed_form or not _has_output(last.result)


def _failed(trajectory: Trajectory, result: CellResult, text: str) -> str:
    """Return the message about a cell that raised an exception."""
    what = "query" if _speaks_sql(trajectory) else "cell"
    if not _lacks_the_asked(trajectory, result):
        return prompts.fill("markdown_failed", output=text, what=what)
    return prompts.fill(
        "markdown_failed_absent",
        output=text,
        what=what,
        question=trajectory.task.question,
        reply=prompts.text_of("absent_reply"),
    )


def _lacks_the_asked(trajectory: Trajectory, result: CellResult) -> bool:
    """Whether a cell selected no row for what a free question names, which may be the answer."""
    if trajectory.task.is_closed_form or not trajectory.assists.ledger:
        return False
    return names_absent(result.facts, trajectory.task.question)


def _may_answer(trajectory: Trajectory) -> bool:
    """Whether words may come next: on a free question, once a cell has shown something."""
    is_shown = any(map(_showed, trajectory.steps))
    return is_shown and not trajectory.task.is_closed_form and not _needs_code(trajectory)


def _worth_showing(trajectory: Trajectory) -> tuple[Step, ...]:
    """Return the shown steps without fruitless ones that a later step has replaced.

    A turn that repeated itself is never shown, even as the last one: a small model would continue
    it.
    """
    shown = trajectory.shown_steps
    if not trajectory.assists.forgetting:
        return shown
    told = [step for step in shown if step.completion.finish_reason != "repetition"]
    is_last_shown = not _begins_anew(trajectory)
    return tuple(
        step
        for index, step in enumerate(told)
        if not step.critique
        if (index == len(told) - 1 and is_last_shown)
        or isinstance(step.turn.action, Answer)
        or _showed(step)
        or _met_limit(step)
    )


def _begins_anew(trajectory: Trajectory) -> bool:
    """Whether a small model that sees its last cell would only write it again.

    This is so if the cell was sent back, or failed like the one before.
    """
    steps = trajectory.steps
    if not trajectory.assists.forgetting:
        return False
    if steps and steps[-1].critique:
        return True
    results = [step.result for step in steps[-2:]]
    if any(result is not None and limit_met(result) for result in results):
        return False
    errors = [result.error if result else None for result in results]
    if len(errors) < 2 or errors[0] is None or errors[1] is None:
        return False
    return (errors[0].name, errors[0].message) == (errors[1].name, errors[1].message)


def _showed(step: Step) -> bool:
    return _succeeded(step) and step.result is not None and _has_output(step.result)


def _met_limit(step: Step) -> bool:
    return step.result is not None and bool(limit_met(step.result))


def _succeeded(step: Step) -> bool:
    return step.result is not None and step.result.ok


def _has_output(result: CellResult) -> bool:
    return any(output for output in result.outputs)


def _times_undefined(trajectory: Trajectory, names: tuple[str, ...]) -> int:
    """Return how many cells have printed an answer without a value."""
    worked = [step.result for step in trajectory.steps if _succeeded(step) and step.result]
    printed = [dict(find_answers(result.stdout)) for result in worked]
    return sum(any(is_no_value(one[name]) for name in names if name in one) for one in printed)


def _closed(text: str) -> str:
    """Return the turn up to the end of its cell, with the closing fence that a stop removed."""
    for block in _BLOCK.finditer(text):
        if block["language"].lower() in _RUNNABLE and block["body"].strip():
            text = text[: block.end()]
            break
    return f"{text.rstrip()}\n```" if text.count("```") % 2 else text


def _identifier(name: str) -> str:
    identifier = re.sub(r"\W", "_", name)
    return f"_{identifier}" if identifier[:1].isdigit() else identifier
