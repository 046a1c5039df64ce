"""The DataMind dialect: reasoning, code, interpreter and answer tags (arXiv 2509.25084, App. G).

By default `datamind` gets our help, so that models trained on the tags give their best results.
`datamind-published` gets none, for comparisons. The sentences of the prompt are our own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.dialects.conversation import (
    alternating,
    in_fence,
    rendered,
    system_text,
    task_text,
    unfenced,
)
from dm_jupyter.core.trajectory import Answer, RunCell, Trajectory, Turn, Void
from kernel_sandbox.types import CellResult

__all__ = ["DataMindDialect"]

_THINK = re.compile(r"<think>(.*?)(?:</think>|(?=<code>|<answer>)|\Z)", re.DOTALL)
_ACTION = re.compile(r"<(code|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_WHOLE_TURN = re.compile(
    r"\s*<think>(?P<think>.*?)</think>\s*<(?P<tag>code|answer)>(?P<body>.*?)(?:</(?P=tag)>)?\s*",
    re.DOTALL,
)
_TAG = re.compile(r"</?(?:think|code|answer|interpreter)>")


@dataclass(frozen=True, slots=True)
class DataMindDialect:
    """`<think>…</think>` then `<code>…</code>` or `<answer>…</answer>`; `<interpreter>` replies."""

    name: str = "datamind"
    answers_in_words: bool = False
    thinks_in_text: bool = True
    is_append_only: bool = True
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = (
        "datamind_system",
        "datamind_system_sql",
        "datamind_void",
        "task_files",
        "task_question",
        "task_constraints",
        "task_format",
        "task_so_far",
    )

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Return the closing tags of code and answer, which end a turn."""
        return ("</code>", "</answer>")

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """Return system, task, then each turn and its observation."""
        system = system_text("datamind_system", trajectory)
        return alternating(self, system, task_text(trajectory), trajectory)

    def prefill(self, trajectory: Trajectory) -> str:
        """Return no opening: models trained on this dialect begin on their own."""
        return ""

    def parse(self, text: str) -> Turn:
        """Return the first code or answer block, and the think block before it as the thought."""
        think = _THINK.search(text)
        thought = think.group(1).strip() if think else ""
        action = _ACTION.search(text)
        if action is None:
            return Turn(thought or text.strip(), Void("neither <code> nor <answer>"))
        if not thought:
            thought = _TAG.sub("", text[: action.start()]).strip()
        is_answer = action.group(1) == "answer"
        does = Answer(action.group(2).strip()) if is_answer else unfenced(action.group(2))
        if not (does.text if isinstance(does, Answer) else does.source).strip():
            return Turn(thought, Void(f"an empty <{action.group(1)}>"))
        return Turn(thought, does)

    def ending(self, text: str) -> str:
        """Return the closing tag of a code or answer block that is still open."""
        action = _ACTION.search(text)
        closing = f"</{action.group(1)}>" if action else ""
        return "" if action and action.group().endswith(closing) else closing

    def render(self, turn: Turn) -> str:
        """Return one think block, then one code or answer block; a query is in a `sql` fence.

        The dialect can't express a tag of its own in a thought, a cell or an answer.

        Raises:
            UnrenderableTurnError: the dialect can't express this turn.
        """
        match turn.action:
            case RunCell() as cell:
                is_plain = cell.language == "python" and not cell.source.lstrip().startswith("```")
                block = f"<code>\n{cell.source if is_plain else in_fence(cell)}\n</code>"
            case Answer(answer):
                block = f"<answer>\n{answer}\n</answer>"
            case Void():
                block = ""
        return rendered(self, turn, f"<think>{turn.thought}</think>\n{block}")

    def is_well_formed(self, text: str) -> bool:
        """Whether it is one think block, then one code or answer block, none nested or empty."""
        match = _WHOLE_TURN.fullmatch(text)
        if match is None or isinstance(self.parse(text).action, Void):
            return False
        return not (_TAG.search(match["think"]) or _TAG.search(match["body"]))

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """Return the output between interpreter tags."""
        return f"<interpreter>\n{text}\n</interpreter>"

    def void_reminder(self, trajectory: Trajectory) -> str:
        """Return the message after a void turn."""
        return prompts.text_of("datamind_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """Return `None`: the answer is between answer tags."""
        return None
