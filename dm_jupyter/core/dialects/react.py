"""The dialects in the shape of ReAct: InfiAgent-DABench's (arXiv 2401.05507, App. C) and Jupiter's.

By default `react` gets our help, since a person who chooses it wants the best answer.
`react-published` gets none, for comparisons. After a void turn it gets the same prompt again, as in
the published program. Deviations from the publication: all sentences except the one before the
answer are our own, and they are in a system message. The prompt asks for the answer's format at
once, where the paper uses a second model to convert the answer.

`jupiter` has the shape of Jupiter (arXiv 2509.09245; microsoft/Jupiter, `mcts_search/inference`).
The entire task is one user message: form of a turn, notes, then question, constraints, format and
file names. It shows nothing of the files' contents, and the model's turn has no opening.
The sentences are our own. Deviations: sampling ends where an observation would be invented. If a
turn has code and an answer, the first counts, since the answer was written before the output was
seen. A fenced block runs without its labels, where the published program asks again.

In both, a block in a `sql` fence is a query. The prompt says so only if the data has databases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.dialects.conversation import (
    alternating,
    block_end,
    file_names,
    in_fence,
    rendered,
    so_far,
    system_text,
    task_text,
    unfenced,
)
from dm_jupyter.core.trajectory import Answer, RunCell, Trajectory, Turn, Void
from kernel_sandbox.types import CellResult

__all__ = ["JupiterDialect", "ReactDialect"]

_OBSERVATION = re.compile(r"^\s*Observation\s*:", re.MULTILINE)
_FINAL = re.compile(
    r"^(?:Final Answer: (?=\S)|[ \t*#]*(?:The )?Final Answer[ \t*]*(?::|is\b)[\s*:]*)",
    re.MULTILINE | re.IGNORECASE,
)
_INPUT = re.compile(r"^\s*Action Input\s*:\s*", re.MULTILINE)
_ACTION = re.compile(r"^\s*Action\s*:.*$", re.MULTILINE)
_THOUGHT = re.compile(r"^\s*Thought\s*:\s*", re.MULTILINE)
_WHOLE_TURN = re.compile(
    r"\s*Thought:(?: [^\n].*?)?\n"
    r"(?:Action: (?:python_code_sandbox\nAction Input:\s*(?P<python>```python\n.+?\n```)"
    r"|sql_query\nAction Input:\s*(?P<sql>```sql\n.+?\n```))|Final Answer: .+?)\s*",
    re.DOTALL,
)
_LABELS = re.compile(r"^(?:Thought|Action|Action Input|Final Answer|Observation):", re.MULTILINE)
_NAMES_SQL = re.compile(r"^\s*Action\s*:\s*sql\w*\s*\Z", re.MULTILINE | re.IGNORECASE)
_IN_PYTHON = re.compile(r"\s*```[ \t]*py", re.IGNORECASE)
_TOOLS = {"python": "python_code_sandbox", "sql": "sql_query"}
_JUPITER_FENCE = "```"
_JUPITER_BLOCK = re.compile(r"```(?P<language>\w*)(?:[ \t]*\n|[ \t]+)")
_JUPITER_LANGUAGES = ("", "python", "python3", "py", "sql")
_JUPITER_FINAL = re.compile(
    r"^(?:Formatted answer: (?=\S)|[ \t*#]*Formatted answer[ \t]*:[ \t*]*)",
    re.MULTILINE | re.IGNORECASE,
)
_JUPITER_OBSERVATION = re.compile(r"^[ \t*#]*Observation[ \t]*:", re.MULTILINE)
_JUPITER_LABEL = re.compile(
    r"^(?:(?:Thought|Action): (?=\S)|[ \t*#]*(?:Thought|Action)[ \t]*:[ \t*]*)", re.MULTILINE
)
_JUPITER_WHOLE_TURN = re.compile(
    r"\s*Thought:(?P<thought>(?: [^\n].*?)?)\n"
    r"(?:Action:\s*(?P<code>```(?:python|sql)\n.+?```)"
    r"|Formatted answer: *(?P<answer>\S.*?))\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ReactDialect:
    """`Thought:`, `Action:`, `Action Input:` and `Final Answer:`; replies begin `Observation:`."""

    name: str = "react"
    drops_voids: bool = False
    """Whether void turns are left out of the conversation."""
    answers_in_words: bool = False
    thinks_in_text: bool = False
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = (
        "react_system",
        "react_system_sql",
        "react_void",
        "task_files",
        "task_question",
        "task_links",
        "task_constraints",
        "task_format",
        "task_so_far",
    )

    @property
    def is_append_only(self) -> bool:
        """Whether prompts only grow: true unless void turns are left out."""
        return not self.drops_voids

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Return the observation's label, at which the model would invent the output."""
        return ("\nObservation:",)

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """Return system, task, then each turn and its observation."""
        task, system = task_text(trajectory), system_text("react_system", trajectory)
        if self.drops_voids:
            kept = (one for one in trajectory.shown_steps if not isinstance(one.turn.action, Void))
            trajectory = replace(trajectory, steps=tuple(kept), folds=())
        return alternating(self, system, task, trajectory)

    def prefill(self, trajectory: Trajectory) -> str:
        """Return no opening: the model begins with its thought."""
        return ""

    def parse(self, text: str) -> Turn:
        """Return the first action or final answer, without an observation the model invented."""
        invented = _OBSERVATION.search(text)
        text = text[: invented.start()] if invented else text
        code, final = _INPUT.search(text), _FINAL.search(text)
        first = min((m for m in (code, final) if m), key=lambda m: m.start(), default=None)
        if first is None:
            return Turn(_thought(text), Void("neither Action Input nor Final Answer"))
        thought, body = _thought(text[: first.start()]), text[first.end() :]
        if first is final:
            answer = body.strip()
            return Turn(thought, Answer(answer) if answer else Void("an empty Final Answer"))
        cell = unfenced(_first_block(body[: _end_of_input(body)]))
        if _NAMES_SQL.search(text[: first.start()]) and not _IN_PYTHON.match(body):
            cell = replace(cell, language="sql")
        return Turn(thought, cell if cell.source.strip() else Void("an empty Action Input"))

    def ending(self, text: str) -> str:
        """Return nothing: the observation's label ends a turn, and its message begins with it."""
        return ""

    def render(self, turn: Turn) -> str:
        """Return the thought, then the tool with its fenced input, or the final answer.

        The dialect can't express a line that begins with one of its labels. Nor can it express a
        fence at the start or the end of a line of a cell.

        Raises:
            UnrenderableTurnError: the dialect can't express this turn.
        """
        match turn.action:
            case RunCell() as cell:
                tool = _TOOLS.get(cell.language, "")
                does = f"Action: {tool}\nAction Input:\n{in_fence(cell)}"
            case Answer(answer):
                does = f"Final Answer: {answer}"
            case Void():
                does = ""
        return rendered(self, turn, f"{f'Thought: {turn.thought}'.rstrip()}\n{does}")

    def is_well_formed(self, text: str) -> bool:
        """Whether it is one thought, then one action with a fenced cell or one final answer."""
        match = _WHOLE_TURN.fullmatch(text)
        if match is None:
            return False
        block = match["python"] or match["sql"]
        if block and (block_end(block, 0) < len(block) or not unfenced(block).source.strip()):
            return False
        labels = _LABELS.findall(text)
        return labels in (["Thought:", "Action:", "Action Input:"], ["Thought:", "Final Answer:"])

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """Return the output after its label."""
        return f"Observation: {text}"

    def void_reminder(self, trajectory: Trajectory) -> str:
        """Return the message after a void turn."""
        return prompts.text_of("react_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """Return `None`: the answer follows its label."""
        return None


def _thought(text: str) -> str:
    return _ACTION.sub("", _THOUGHT.sub("", text)).strip()


def _end_of_input(body: str) -> int:
    """Return where the action's input ends: at the next label."""
    ends = [m.start() for m in (_FINAL.search(body), _THOUGHT.search(body)) if m]
    return min(ends, default=len(body))


def _first_block(body: str) -> str:
    """Return the first fenced block of `body`, or all of it if there is no fence."""
    start = body.find("```")
    return body if start < 0 else body[start : block_end(body, start)]


@dataclass(frozen=True, slots=True)
class JupiterDialect:
    """`Thought:`, then `Action:` with a fenced block or `Formatted answer:`; see the module."""

    name: str = "jupiter"
    answers_in_words: bool = False
    thinks_in_text: bool = False
    is_append_only: bool = True
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = (
        "jupiter_system",
        "jupiter_system_sql",
        "jupiter_task",
        "jupiter_void",
        "task_so_far",
    )

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Return the observation's label, at which the model would invent the output."""
        return ("\nObservation:",)

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """Return system, the one message with the task, then each turn and its observation."""
        task = trajectory.task
        asked = prompts.fill(
            "jupiter_task",
            question=task.question,
            constraints=task.constraints or "none",
            format=task.answer_format or "none",
            files=file_names(task) or "none",
        ) + so_far(trajectory)
        return alternating(self, system_text("jupiter_system", trajectory), asked, trajectory)

    def prefill(self, trajectory: Trajectory) -> str:
        """Return no opening: the model begins with its thought."""
        return ""

    def parse(self, text: str) -> Turn:
        """Return the first block or answer, without an observation the model invented."""
        invented = _JUPITER_OBSERVATION.search(text)
        text = text[: invented.start()] if invented else text
        block, final = _first_fenced(text), _JUPITER_FINAL.search(text)
        first = min((m for m in (block, final) if m), key=lambda m: m.start(), default=None)
        if first is None:
            return Turn(
                _jupiter_thought(text), Void("neither a python block nor a Formatted answer")
            )
        thought = _jupiter_thought(text[: first.start()])
        if first is block:
            return Turn(thought, _jupiter_cell(text, first))
        answer = text[first.end() :].strip()
        return Turn(thought, Answer(answer) if answer else Void("an empty Formatted answer"))

    def ending(self, text: str) -> str:
        """Return nothing: the observation's label ends a turn, and its message begins with it."""
        return ""

    def render(self, turn: Turn) -> str:
        """Return the thought, then a fenced action or the formatted answer.

        The dialect can't express a line that begins with one of its labels. Nor can it express a
        fence in a thought or an answer, or at the start or the end of a line of a cell.

        Raises:
            UnrenderableTurnError: the dialect can't express this turn.
        """
        match turn.action:
            case RunCell() as cell:
                does = f"Action: {in_fence(cell)}"
            case Answer(answer):
                does = f"Formatted answer: {answer}"
            case Void():
                does = ""
        return rendered(self, turn, f"{f'Thought: {turn.thought}'.rstrip()}\n{does}")

    def is_well_formed(self, text: str) -> bool:
        """Whether it is one thought, then one action with a fenced cell or one answer."""
        match = _JUPITER_WHOLE_TURN.fullmatch(text)
        if match is None or _JUPITER_OBSERVATION.search(text):
            return False
        code = match["code"]
        if _JUPITER_FENCE in match["thought"] or (code is None and text.count(_JUPITER_FENCE) > 2):
            return False
        said = text if code is None else text[: match.start("code")]
        labels = len(_JUPITER_LABEL.findall(said)), len(_JUPITER_FINAL.findall(said))
        if code is None:
            return labels == (1, 1)
        is_whole = block_end(code, 0) == len(code) and bool(unfenced(code).source.strip())
        return labels == (2, 0) and is_whole

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """Return the output below its label."""
        return f"Observation:\n{text}"

    def void_reminder(self, trajectory: Trajectory) -> str:
        """Return the message after a void turn."""
        return prompts.text_of("jupiter_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """Return `None`: the answer follows its label."""
        return None


def _jupiter_thought(text: str) -> str:
    return _JUPITER_LABEL.sub("", text).strip()


def _first_fenced(text: str) -> re.Match[str] | None:
    """Return the opening of the first block with something to run."""
    at = 0
    while opening := _JUPITER_BLOCK.search(text, at):
        at = block_end(text, opening.start())
        is_runnable = opening["language"].lower() in _JUPITER_LANGUAGES
        if is_runnable and _jupiter_cell(text, opening).source.strip():
            return opening
    return None


def _jupiter_cell(text: str, opening: re.Match[str]) -> RunCell:
    return unfenced(text[opening.start() : block_end(text, opening.start())])
