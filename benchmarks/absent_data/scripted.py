"""A capable analyst as a policy: correct code, a naive answer, then an honest one.

It tests the loop without a model. The code runs in real kernels, and the second answer is composed
from the fact that the loop has sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping

from benchmarks.absent_data.questions import Script
from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest

__all__ = ["ScriptedAnalyst"]

_OUTPUT = re.compile(r"\AOutput:\n```\n(.*?)(?:\n\nWhat happened to the data:.*)?\n```", re.DOTALL)
_FACT = re.compile(
    re.escape(prompts.text_of("answer_absent"))
    .replace(r"\$absent", "(.+)")
    .replace(r"\$reply", ".+"),
    re.DOTALL,
)


class ScriptedAnalyst:
    """Policy that follows the script of the question in the request."""

    def __init__(self, scripts: Mapping[str, Script], *, is_stubborn: bool = False) -> None:
        """Create the policy.

        Args:
            scripts: by the names of their questions.
            is_stubborn: whether it keeps the naive answer, whatever the loop sends.
        """
        self.name = "stubborn analyst" if is_stubborn else "scripted analyst"
        self._is_stubborn = is_stubborn
        self._scripts = sorted(scripts.values(), key=lambda one: len(one.question), reverse=True)

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return the next cell if code is requested, and an answer otherwise.

        Raises:
            ValueError: no script fits the request's question.
        """
        await asyncio.sleep(0)
        text = self._said(request)
        on_text(text)
        return Completion(request.prefill + text, request.prefill, 100, len(text.split()), 0.01)

    def _said(self, request: SampleRequest) -> str:
        script = self._script(request.messages)
        if request.prefill:
            cell = script.cells[min(request.seed, len(script.cells) - 1)]
            return f"{cell}\n```"
        told = _FACT.search(request.messages[-1].content)
        if told and not self._is_stubborn:
            return f"The data have no such rows: {told[1]}."
        return script.answer.replace("{}", _last_word(request.messages))

    def _script(self, messages: tuple[Message, ...]) -> Script:
        asked = "\n".join(one.content for one in messages if one.role == "user")
        for script in self._scripts:
            if script.question in asked:
                return script
        raise ValueError("the request is about no question that there is a script for")


def _last_word(messages: tuple[Message, ...]) -> str:
    """Return the last word of the last output."""
    for message in reversed(messages):
        shown = _OUTPUT.match(message.content)
        if shown and shown[1].split():
            return shown[1].split()[-1]
    return ""
