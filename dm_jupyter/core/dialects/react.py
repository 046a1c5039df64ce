"""The dialects in the shape of ReAct: InfiAgent-DABench's (arXiv 2401.05507, App. C) and Jupiter's.

By default `react` is given our help, as a person who chooses it wants the best answer;
`react-published` is not, for comparisons, and after a void turn it is asked the same again, as the
published program does. Deviates from what was published: the sentences but the one before the
answer are our own, they stand in a system message, and the answer's format is asked for at once,
where the paper has a second model bring the answer into it.

`jupiter` has the shape of Jupiter (arXiv 2509.09245; microsoft/Jupiter, `mcts_search/inference`).
The whole task is one user message: form of a turn, notes, then question, constraints, format and
the names of the files; nothing of their contents, and no opening is put into the model's mouth.
The sentences are our own. Deviates: sampling ends where an observation would be invented; of code
and an answer in one turn the first counts, as the answer was written before the output was seen;
and a fenced block runs without its labels, where the published program asks again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.dialects.conversation import (
    alternating,
    file_names,
    so_far,
    task_text,
    unfenced,
)
from dm_jupyter.core.trajectory import Answer, RunCell, Trajectory, Turn, Void
from kernel_sandbox.types import CellResult

__all__ = ["JupiterDialect", "ReactDialect"]

_OBSERVATION = re.compile(r"^\s*Observation\s*:", re.MULTILINE)
_FINAL = re.compile(
    r"^[ \t*#]*(?:The )?Final Answer[ \t*]*(?::|is\b)[\s*:]*", re.MULTILINE | re.IGNORECASE
)
_INPUT = re.compile(r"^\s*Action Input\s*:\s*", re.MULTILINE)
_ACTION = re.compile(r"^\s*Action\s*:.*$", re.MULTILINE)
_THOUGHT = re.compile(r"^\s*Thought\s*:\s*", re.MULTILINE)
_WHOLE_TURN = re.compile(
    r"\s*Thought: [^\n].*?\n"
    r"(?:Action: python_code_sandbox\nAction Input:\s*```python\n.+?\n```|Final Answer: .+?)\s*",
    re.DOTALL,
)
_LABELS = re.compile(r"^(?:Thought|Action|Action Input|Final Answer|Observation):", re.MULTILINE)
_JUPITER_FENCE = "```"
_JUPITER_BLOCK = re.compile(
    r"```(?P<language>\w*)(?:[ \t]*\n|[ \t]+)(?P<body>.*?)(?:```|\Z)",
    re.DOTALL,
)
_JUPITER_PYTHON = ("", "python", "python3", "py")
_JUPITER_FINAL = re.compile(
    r"^[ \t*#]*Formatted answer[ \t]*:[ \t*]*", re.MULTILINE | re.IGNORECASE
)
_JUPITER_OBSERVATION = re.compile(r"^[ \t*#]*Observation[ \t]*:", re.MULTILINE)
_JUPITER_LABEL = re.compile(r"^[ \t*#]*(?:Thought|Action)[ \t]*:[ \t*]*", re.MULTILINE)
_JUPITER_WHOLE_TURN = re.compile(
    r"\s*Thought: (?P<thought>[^\n].*?)\n"
    r"(?:Action:\s*```python\n(?P<code>.+?)```|Formatted answer: *(?P<answer>\S.*?))\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ReactDialect:
    """`Thought:`, `Action:`, `Action Input:` and `Final Answer:`; replies begin `Observation:`."""

    name: str = "react"
    drops_voids: bool = False
    """Whether void turns are left out of the conversation."""
    answers_in_words: bool = False
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = (
        "react_system",
        "react_void",
        "task_files",
        "task_question",
        "task_links",
        "task_constraints",
        "task_format",
        "task_so_far",
    )

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """A turn ends where the model would invent the observation."""
        return ("\nObservation:",)

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """System, task, then each turn and its observation."""
        task = task_text(trajectory)
        if self.drops_voids:
            kept = (one for one in trajectory.shown_steps if not isinstance(one.turn.action, Void))
            trajectory = replace(trajectory, steps=tuple(kept), folds=())
        return alternating(prompts.text_of("react_system"), task, trajectory, str.strip)

    def prefill(self, trajectory: Trajectory) -> str:
        """Nothing: the model begins with its thought."""
        return ""

    def parse(self, text: str) -> Turn:
        """The first action or final answer; an observation that the model invented is dropped."""
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
        source = unfenced(_first_block(body[: _end_of_input(body)]))
        return Turn(thought, RunCell(source) if source.strip() else Void("an empty Action Input"))

    def is_well_formed(self, text: str) -> bool:
        """One thought, then one action with fenced python or one final answer."""
        if _WHOLE_TURN.fullmatch(text) is None:
            return False
        labels = _LABELS.findall(text)
        return labels in (["Thought:", "Action:", "Action Input:"], ["Thought:", "Final Answer:"])

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """The output after its label."""
        return f"Observation: {text}"

    def void_reminder(self, trajectory: Trajectory) -> str:
        """What a void turn is told."""
        return prompts.text_of("react_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """None: the answer follows its label."""
        return None


def _thought(text: str) -> str:
    return _ACTION.sub("", _THOUGHT.sub("", text)).strip()


def _end_of_input(body: str) -> int:
    """Where the action's input ends: at the next label."""
    ends = [m.start() for m in (_FINAL.search(body), _THOUGHT.search(body)) if m]
    return min(ends, default=len(body))


def _first_block(body: str) -> str:
    """The first fenced block of `body`, or all of it when there is no fence."""
    start = body.find("```")
    if start < 0:
        return body
    end = body.find("```", start + 3)
    return body[start : end + 3 if end >= 0 else len(body)]


@dataclass(frozen=True, slots=True)
class JupiterDialect:
    """`Thought:`, `Action:` with a fenced block, `Formatted answer:`; see the module."""

    name: str = "jupiter"
    answers_in_words: bool = False
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = ("jupiter_system", "jupiter_task", "jupiter_void", "task_so_far")

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """A turn ends where the model would invent the observation."""
        return ("\nObservation:",)

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """System, the one message with the task, then each turn and its observation."""
        task = trajectory.task
        asked = prompts.fill(
            "jupiter_task",
            question=task.question,
            constraints=task.constraints or "none",
            format=task.answer_format or "none",
            files=file_names(task) or "none",
        ) + so_far(trajectory)
        return alternating(prompts.text_of("jupiter_system"), asked, trajectory, str.strip)

    def prefill(self, trajectory: Trajectory) -> str:
        """Nothing: the model begins with its thought."""
        return ""

    def parse(self, text: str) -> Turn:
        """The first block or answer; an observation that the model invented is dropped."""
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
            return Turn(thought, RunCell(first["body"].strip("\n")))
        answer = text[first.end() :].strip()
        return Turn(thought, Answer(answer) if answer else Void("an empty Formatted answer"))

    def is_well_formed(self, text: str) -> bool:
        """One thought, then one action with fenced python or one answer."""
        if text.count(_JUPITER_FENCE) > 2 or _JUPITER_OBSERVATION.search(text):
            return False
        match = _JUPITER_WHOLE_TURN.fullmatch(text)
        if match is None or _JUPITER_FENCE in match["thought"]:
            return False
        labels = len(_JUPITER_LABEL.findall(text)), len(_JUPITER_FINAL.findall(text))
        if match["code"] is None:
            return labels == (1, 1)
        return labels == (2, 0) and bool(match["code"].strip())

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """The output below its label."""
        return f"Observation:\n{text}"

    def void_reminder(self, trajectory: Trajectory) -> str:
        """What a void turn is told."""
        return prompts.text_of("jupiter_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """None: the answer follows its label."""
        return None


def _jupiter_thought(text: str) -> str:
    return _JUPITER_LABEL.sub("", text).strip()


def _first_fenced(text: str) -> re.Match[str] | None:
    """The first block with something to run."""
    blocks = _JUPITER_BLOCK.finditer(text)
    return next(
        (m for m in blocks if m["language"].lower() in _JUPITER_PYTHON and m["body"].strip()), None
    )
