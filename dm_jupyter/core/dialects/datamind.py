"""The DataMind dialect: reasoning, code, interpreter and answer tags (arXiv 2509.25084, App. G).

By default `datamind` is given our help, as models trained on the tags are to do their best with it;
`datamind-published` is not, for comparisons. The sentences of the prompt are our own.
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
        """A turn ends with its code or its answer."""
        return ("</code>", "</answer>")

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """System, task, then each turn and its observation."""
        system = system_text("datamind_system", trajectory)
        return alternating(self, system, task_text(trajectory), trajectory)

    def prefill(self, trajectory: Trajectory) -> str:
        """Nothing: models trained on this dialect begin on their own."""
        return ""

    def parse(self, text: str) -> Turn:
        """The first code or answer block; what stands in the think block before it."""
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
        """The closing tag of a code or answer block that is still open."""
        action = _ACTION.search(text)
        closing = f"</{action.group(1)}>" if action else ""
        return "" if action and action.group().endswith(closing) else closing

    def render(self, turn: Turn) -> str:
        """One think block, then one code or answer block; a query stands in a `sql` fence.

        It can't hold a tag of the dialect in a thought, a cell or an answer.

        Raises:
            UnrenderableTurnError: the dialect can't hold this turn.
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
        """Exactly one think block, then exactly one code or answer block, none nested or empty."""
        match = _WHOLE_TURN.fullmatch(text)
        if match is None or isinstance(self.parse(text).action, Void):
            return False
        return not (_TAG.search(match["think"]) or _TAG.search(match["body"]))

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """The output between interpreter tags."""
        return f"<interpreter>\n{text}\n</interpreter>"

    def void_reminder(self, trajectory: Trajectory) -> str:
        """What a void turn is told."""
        return prompts.text_of("datamind_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """None: the answer stands between answer tags."""
        return None
