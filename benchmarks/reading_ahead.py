"""Time from Enter to the local model's first word, with and without prefetching the prompt.

`python -m benchmarks.reading_ahead FILE...` asks one question about each file, as the panel does.
Each measurement has a fresh model server, so that no other conversation is cached.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from pathlib import Path

from dm_jupyter.agent.loop import RunSettings, request_for
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.data.data_context import build_data_context
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Policy, SampleRequest
from dm_jupyter.server.runs.run_preparer import ahead_of

_QUESTION = (
    "How many rows are there, and which value of the first text column is the most frequent?"
)


async def _seconds(policy: Policy, request: SampleRequest) -> float:
    began = time.perf_counter()
    await policy.sample(request, lambda _: None)
    return time.perf_counter() - began


async def _measure(file: Path) -> tuple[float, float, float]:
    names = {file.name: file}
    async with ProfileReader() as reader:
        data_context = await build_data_context(names, reader)
    start = Trajectory(Task("", _QUESTION, (file,)), "markdown", data_context)
    question = request_for(start, RunSettings(turn_tokens=1))
    async with open_policy(ModelChoice()) as policy:
        cold = await _seconds(policy, question)
    async with open_policy(ModelChoice()) as policy:
        reading = await _seconds(policy, ahead_of((file,), data_context))
        ahead = await _seconds(policy, question)
    return cold, reading, ahead


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading_ahead", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    found = []
    print(f"{'file':24}{'not read':>10}{'reading':>10}{'read':>10}   seconds")
    for file in parser.parse_args().files:
        found.append(asyncio.run(_measure(file.resolve())))
        print(f"{file.name:24}" + "".join(f"{seconds:10.1f}" for seconds in found[-1]), flush=True)
    medians = [statistics.median(column) for column in zip(*found, strict=True)]
    print(f"{'median':24}" + "".join(f"{seconds:10.1f}" for seconds in medians))


if __name__ == "__main__":
    main()
