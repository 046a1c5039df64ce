"""From Enter to the local model's first word, with and without the file read ahead.

`python -m benchmarks.reading_ahead FILE...` asks one question about each file, as the panel does,
with a fresh server of the model for each measurement: nothing is left of another conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from pathlib import Path

from dm_jupyter.agent.brief import brief_of
from dm_jupyter.agent.loop import RunSettings, request_for
from dm_jupyter.agent.models import open_policy
from dm_jupyter.agent.protocols import Policy, SampleRequest
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory

_QUESTION = (
    "How many rows are there, and which value of the first text column is the most frequent?"
)
_SETTINGS = RunSettings(turn_tokens=1)


def _run_about(file: Path, question: str) -> Trajectory:
    return Trajectory(Task("", question, (file,)), "markdown", brief_of({file.name: file}))


async def _seconds_to_answer(policy: Policy, file: Path) -> float:
    request = request_for(_run_about(file, _QUESTION), _SETTINGS)
    began = time.perf_counter()
    await policy.sample(request, lambda _: None)
    return time.perf_counter() - began


async def _read(policy: Policy, file: Path) -> float:
    """Reads a file as the panel has it read; returns what that took, seconds."""
    messages = dialect_named("markdown").messages(_run_about(file, ""))
    began = time.perf_counter()
    await policy.sample(SampleRequest(messages, max_tokens=1), lambda _: None)
    return time.perf_counter() - began


async def _measure(file: Path) -> tuple[float, float, float]:
    async with open_policy(ModelChoice()) as policy:
        cold = await _seconds_to_answer(policy, file)
    async with open_policy(ModelChoice()) as policy:
        reading = await _read(policy, file)
        ahead = await _seconds_to_answer(policy, file)
    return cold, reading, ahead


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading_ahead", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    found = []
    print(f"{'file':24}{'not read':>10}{'reading':>10}{'read':>10}   seconds")
    for file in parser.parse_args().files:
        found.append(asyncio.run(_measure(file)))
        print(f"{file.name:24}" + "".join(f"{seconds:10.1f}" for seconds in found[-1]), flush=True)
    medians = [statistics.median(column) for column in zip(*found, strict=True)]
    print(f"{'median':24}" + "".join(f"{seconds:10.1f}" for seconds in medians))


if __name__ == "__main__":
    main()
