"""Runs an evaluation whose model says the same to the same question, until somebody kills it.

Usage: `python -m tests.training.evaluation.eval_program SPLIT OUT QUESTIONS`.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from training.evaluation.run import EvalOptions, evaluate, write_results
from training.suites.dabench import DABench


class Deterministic:
    """What it says follows from the question and the turn alone: three cells, then the answer."""

    name = "deterministic"

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        text = turn_text([message.to_json() for message in request.messages])
        return Completion(text, "", 100, len(text.split()), 0.01)


_NUMBER = re.compile(r"number ([0-9]+)")


def turn_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """What it says next in a conversation."""
    turn = sum(message["role"] == "assistant" for message in messages)
    return _turn(int(_NUMBER.findall(messages[1]["content"])[-1]), turn)


def _turn(number: int, turn: int) -> str:
    cells = [
        f"rows = open('t.csv').read().split(); n = {number}",
        "1 / 0" if number % 5 == 0 else "m = n * int(rows[-1])",
        "print(n % 7)",
    ]
    if turn < len(cells):
        return (
            "Thought: go on\nAction: python_code_sandbox\n"
            f"Action Input:\n```python\n{cells[turn]}\n```"
        )
    return f"Thought: done\nFinal Answer: @n[{number % 7 if number % 3 else 9}]"


async def main(split: Path, out: Path, questions: int, at_once: int = 4) -> None:
    """Evaluates, and writes `results.jsonl` when it comes to the end."""
    out.mkdir(parents=True, exist_ok=True)
    options = EvalOptions(DABench(), split, out, limit=questions, dialect="react", at_once=at_once)
    async with SandboxPool(
        PoolSettings(profile=Strictness.INTERACTIVE, modules=("pandas",))
    ) as pool:
        records = await evaluate(options, Deterministic(), pool)
    write_results(records, out / "results.jsonl")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
