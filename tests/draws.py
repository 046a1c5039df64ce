"""A scripted model that draws several turns at once, and how it speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest


def cell(code: str) -> str:
    """Returns a turn of the dialect `react` that runs code."""
    return f"Thought: run\nAction: python_code_sandbox\nAction Input:\n```python\n{code}\n```"


def answer(text: str) -> str:
    """Returns a turn of the dialect `react` that answers."""
    return f"Thought: done\nFinal Answer: {text}"


@dataclass
class Scripted:
    """A model that draws several turns at once; what it says depends on what it was shown."""

    says: Callable[[str, int], Sequence[str]]
    """From the last message and the number of the turn, to the turns to draw from."""
    name: str = "scripted"
    batches: list[int] = field(default_factory=list)
    singles: int = 0

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        self.singles += 1
        return self._completion(request, 0)

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        self.batches.append(count)
        await asyncio.sleep(0)
        return [self._completion(request, place) for place in range(count)]

    def _completion(self, request: SampleRequest, place: int) -> Completion:
        turn = sum(message.role == "assistant" for message in request.messages)
        texts = self.says(request.messages[-1].content, turn)
        text = texts[place % len(texts)]
        return Completion(text, "", 100, 10, 0.01, mean_probability=0.5 + 0.1 * place)
