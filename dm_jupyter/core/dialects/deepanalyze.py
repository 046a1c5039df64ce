"""The DeepAnalyze dialect: five actions, each in tags of its own (DeepAnalyze, ruc-datalab).

A turn begins with `<Analyze>`, may continue with `<Understand>`, and ends with `<Code>` or
`<Answer>`. The environment replies with `<Execute>`. The thought is the content of all blocks
before the last. The sentences of the prompt are our own. Deviations: the environment's block is
closed with `</Execute>`, where the published program opens a second one. A turn without an action
is not well-formed, where the published check looks for two of the five tags.
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

__all__ = ["DEEPANALYZE_TOKENS", "DeepAnalyzeDialect"]

_ACTIONS = ("Analyze", "Understand", "Code", "Execute", "Answer")
DEEPANALYZE_TOKENS = tuple(f"<{slash}{name}>" for name in _ACTIONS for slash in ("", "/"))
"""The tags, which a tokenizer adds as special tokens before training on the dialect."""
_ANY_TAG = re.compile("|".join(map(re.escape, DEEPANALYZE_TOKENS)))
_THOUGHT = re.compile(
    r"<(Analyze|Understand)>(.*?)(?:</\1>|(?=<(?:Analyze|Understand|Code|Answer)>)|\Z)", re.DOTALL
)
_LAST = re.compile(r"<(Code|Answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_INSIDE = rf"(?:(?!{_ANY_TAG.pattern}).)*"
_WHOLE_TURN = re.compile(
    rf"\s*<Analyze>{_INSIDE}</Analyze>\s*"
    rf"(?:<(?P<more>Analyze|Understand)>{_INSIDE}</(?P=more)>\s*)*"
    rf"<(?P<tag>Code|Answer)>{_INSIDE}(?:</(?P=tag)>)?\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class DeepAnalyzeDialect:
    """`<Analyze>`, `<Understand>`, then `<Code>` or `<Answer>`; `<Execute>` replies."""

    name: str = "deepanalyze"
    answers_in_words: bool = False
    thinks_in_text: bool = False
    is_append_only: bool = True
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = (
        "deepanalyze_system",
        "deepanalyze_system_sql",
        "deepanalyze_void",
        "task_files",
        "task_question",
        "task_links",
        "task_constraints",
        "task_format",
        "task_so_far",
    )

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Return the closing tags of code and answer, which end a turn."""
        return ("</Code>", "</Answer>")

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """Return system, task, then each turn and its observation."""
        system = system_text("deepanalyze_system", trajectory)
        return alternating(self, system, task_text(trajectory), trajectory)

    def prefill(self, trajectory: Trajectory) -> str:
        """Return no opening: models trained on this dialect begin on their own."""
        return ""

    def parse(self, text: str) -> Turn:
        """Return the first code or answer block; the blocks before it are the thought."""
        last = _LAST.search(text)
        before = text[: last.start()] if last else text
        blocks = [match.group(2).strip() for match in _THOUGHT.finditer(before)]
        thought = "\n\n".join(filter(None, blocks)) or _ANY_TAG.sub("", before).strip()
        if last is None:
            return Turn(thought, Void("neither <Code> nor <Answer>"))
        is_answer = last.group(1) == "Answer"
        does = Answer(last.group(2).strip()) if is_answer else unfenced(last.group(2))
        if not (does.text if isinstance(does, Answer) else does.source).strip():
            return Turn(thought, Void(f"an empty <{last.group(1)}>"))
        return Turn(thought, does)

    def ending(self, text: str) -> str:
        """Return the closing tag of a code or answer block that is still open."""
        last = _LAST.search(text)
        closing = f"</{last.group(1)}>" if last else ""
        return "" if last and last.group().endswith(closing) else closing

    def render(self, turn: Turn) -> str:
        """Return one `<Analyze>` block with the entire thought, then fenced code or the answer.

        The dialect can't express a tag of its own in a thought, a cell or an answer.

        Raises:
            UnrenderableTurnError: the dialect can't express this turn.
        """
        match turn.action:
            case RunCell() as cell:
                block = f"<Code>\n{in_fence(cell)}\n</Code>"
            case Answer(answer):
                block = f"<Answer>\n{answer}\n</Answer>"
            case Void():
                block = ""
        return rendered(self, turn, f"<Analyze>\n{turn.thought}\n</Analyze>\n{block}")

    def is_well_formed(self, text: str) -> bool:
        """Whether it begins with `<Analyze>` and ends with one `<Code>` or `<Answer>`.

        No block may be cut off, nested or empty. Between them only more `<Analyze>` and
        `<Understand>` may come, since `<Execute>` belongs to the environment.
        """
        is_void = isinstance(self.parse(text).action, Void)
        return not is_void and _WHOLE_TURN.fullmatch(text) is not None

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """Return the output between an opening and a closing tag."""
        return f"<Execute>\n{text}\n</Execute>"

    def void_reminder(self, trajectory: Trajectory) -> str:
        """Return the message after a void turn."""
        return prompts.text_of("deepanalyze_void")

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """Return `None`: the answer is between answer tags."""
        return None
