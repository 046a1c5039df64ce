"""The ReAct shape of Jupiter (arXiv 2509.09245; microsoft/Jupiter, `mcts_search/inference`).

The whole task is one user message: form of a turn, notes, then question, constraints, format and
the names of the files; nothing of their contents, and no opening is put into the model's mouth.
The sentences are our own. Deviates: sampling ends where an observation would be invented; of code
and an answer in one turn the first counts, as the answer was written before the output was seen;
and a fenced block runs without its labels, where the published program asks again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.dialects.conversation import alternating, file_names, so_far
from dm_jupyter.core.trajectory import Answer, RunCell, Trajectory, Turn, Void
from kernel_sandbox.types import CellResult

__all__ = ["JupiterDialect"]

_FENCE = "```"
_BLOCK = re.compile(
    r"```(?P<language>\w*)(?:[ \t]*\n|[ \t]+)(?P<body>.*?)(?:```|\Z)",
    re.DOTALL,
)
_PYTHON = ("", "python", "python3", "py")
_FINAL = re.compile(r"^[ \t*#]*Formatted answer[ \t]*:[ \t*]*", re.MULTILINE | re.IGNORECASE)
_OBSERVATION = re.compile(r"^[ \t*#]*Observation[ \t]*:", re.MULTILINE)
_LABEL = re.compile(r"^[ \t*#]*(?:Thought|Action)[ \t]*:[ \t*]*", re.MULTILINE)
_WHOLE_TURN = re.compile(
    r"\s*Thought: (?P<thought>[^\n].*?)\n"
    r"(?:Action:\s*```python\n(?P<code>.+?)```|Formatted answer: *(?P<answer>\S.*?))\s*",
    re.DOTALL,
)


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
        invented = _OBSERVATION.search(text)
        text = text[: invented.start()] if invented else text
        block, final = _first_block(text), _FINAL.search(text)
        first = min((m for m in (block, final) if m), key=lambda m: m.start(), default=None)
        if first is None:
            return Turn(_thought(text), Void("neither a python block nor a Formatted answer"))
        thought = _thought(text[: first.start()])
        if first is block:
            return Turn(thought, RunCell(first["body"].strip("\n")))
        answer = text[first.end() :].strip()
        return Turn(thought, Answer(answer) if answer else Void("an empty Formatted answer"))

    def is_well_formed(self, text: str) -> bool:
        """One thought, then one action with fenced python or one answer."""
        if text.count(_FENCE) > 2 or _OBSERVATION.search(text):
            return False
        match = _WHOLE_TURN.fullmatch(text)
        if match is None or _FENCE in match["thought"]:
            return False
        labels = len(_LABEL.findall(text)), len(_FINAL.findall(text))
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


def _thought(text: str) -> str:
    return _LABEL.sub("", text).strip()


def _first_block(text: str) -> re.Match[str] | None:
    """The first block with something to run."""
    blocks = _BLOCK.finditer(text)
    return next((m for m in blocks if m["language"].lower() in _PYTHON and m["body"].strip()), None)
