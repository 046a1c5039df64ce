"""Corrections by the local model as line edits, compared with complete cells.

`python -m benchmarks.line_edits RUN_FOLDER TABLES_FOLDER` reads each failed cell of a run of
`training.evaluate`. The model corrects it twice. The product's own prompt requests the complete
cell; the other prompt numbers the cell's lines and requests those that change. Both corrections run
in a fresh worker after the cells that had run before. For each way, the command prints how many
corrections can be parsed, how many then run without an error, tokens and seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dm_jupyter.agent.loop import RunSettings, request_for
from dm_jupyter.agent.turns import parse_turn
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.trajectory import RunCell, Trajectory
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Policy
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import Limits

ASKED = """\
The cell failed. Here it is with line numbers:
{numbered}
The error:
{error}
Correct it. Give only the lines that change, in one block, each as its number, a colon, and the \
whole new line with its indentation. To insert lines after line 4, number them 4a, 4b. To remove \
line 4, write `4:` alone."""
_EDIT = re.compile(r"(\d{1,3})([a-z]?):(?: ?)(.*)")


@dataclass(frozen=True)
class Correction:
    """Correction from one way of asking."""

    source: str | None
    """The corrected cell; `None` if the reply can't be parsed as one."""
    tokens: int
    seconds: float


def failures_of(folder: Path) -> Iterator[Trajectory]:
    """Yield a run's trajectories up to each Python cell that raised, including the cell.

    Yields:
        Trajectories that end with the failed step.
    """
    for file in sorted(folder.glob("items/*/*/notebook.ipynb")):
        kept = json.loads(file.read_text())["metadata"]["dm_jupyter"]["trajectory"]
        trajectory = Trajectory.from_json(kept)
        for place, step in enumerate(trajectory.steps):
            is_python = (
                isinstance(step.turn.action, RunCell) and step.turn.action.language == "python"
            )
            if is_python and step.result is not None and step.result.error is not None:
                yield replace(trajectory, steps=trajectory.steps[: place + 1], stop=None)


def edited(source: str, said: str) -> str | None:
    """Return the cell after the edits in a text; `None` without edits or with a wrong number."""
    lines: dict[tuple[int, str], str] = {
        (number, ""): line for number, line in enumerate(source.splitlines(), 1)
    }
    found = [match for line in said.splitlines() if (match := _EDIT.fullmatch(line))]
    if not found or any((int(one[1]), "") not in lines for one in found):
        return None
    for one in found:
        key = (int(one[1]), one[2])
        lines[key] = one[3]
        if not one[3] and not one[2]:
            del lines[key]
    return "\n".join(lines[key] for key in sorted(lines))


async def whole_cell(policy: Policy, failed: Trajectory, settings: RunSettings) -> Correction:
    """Return the correction the product's own way: the complete cell again."""
    began = time.perf_counter()
    completion = await policy.sample(request_for(failed, settings), lambda _: None)
    seconds = time.perf_counter() - began
    action = parse_turn(dialect_named(failed.dialect), completion, failed).action
    source = action.source if isinstance(action, RunCell) else None
    return Correction(source, completion.completion_tokens, seconds)


async def line_edits(policy: Policy, failed: Trajectory, settings: RunSettings) -> Correction:
    """Return the correction the other way: only the lines that change."""
    step = failed.steps[-1]
    assert isinstance(step.turn.action, RunCell)
    assert step.result is not None
    source = step.turn.action.source
    numbered = "\n".join(f"{place}: {line}" for place, line in enumerate(source.splitlines(), 1))
    error = step.result.error
    asked = ASKED.format(numbered=numbered, error=f"{error.name}: {error.message}" if error else "")
    request = request_for(failed, settings)
    messages = (*request.messages[:-1], replace(request.messages[-1], content=asked))
    request = replace(request, messages=messages, prefill="```\n", stop=("\n```",))
    began = time.perf_counter()
    completion = await policy.sample(request, lambda _: None)
    seconds = time.perf_counter() - began
    said = completion.text.removeprefix("```\n").removesuffix("```")
    return Correction(edited(source, said), completion.completion_tokens, seconds)


async def runs(zygote: Zygote, tables: Path, failed: Trajectory, source: str) -> bool:
    """Return whether the cell runs without an error after the cells before it."""
    inputs = {file.name: tables / file.name for file in failed.task.files}
    async with CellWorker(zygote, Limits(wall_s=60.0), inputs) as worker:
        for step in failed.steps[:-1]:
            if isinstance(step.turn.action, RunCell):
                await worker.run(step.turn.action.source)
        return (await worker.run(source)).ok


async def measure(folder: Path, tables: Path, most: int, seeds: int) -> None:
    """Print the table."""
    found: dict[str, list[tuple[Correction, bool]]] = {"whole cell": [], "line edits": []}
    cases = list(failures_of(folder))
    cases = cases[:: -(-len(cases) // most)]  # spread over all questions, not only the first
    async with Zygote(("pandas",)) as zygote, open_policy(ModelChoice()) as policy:
        for place, failed in enumerate(cases):
            for seed in range(seeds):
                settings = RunSettings(seed=1000 * seed)
                for name, way in (("whole cell", whole_cell), ("line edits", line_edits)):
                    one = await way(policy, failed, settings)
                    ran = one.source is not None and await runs(zygote, tables, failed, one.source)
                    found[name].append((one, ran))
            print(f"{place + 1} of {len(cases)}", flush=True)
    print(f"{len(cases)} failed cells, {seeds} seeds each\n{'way':12}{'read':>8}{'run':>8}", end="")
    print(f"{'tokens':>10}{'seconds':>10}   (medians)")
    for name, all_of in found.items():
        read = sum(one.source is not None for one, _ in all_of)
        good = sum(ran for _, ran in all_of)
        tokens = statistics.median(one.tokens for one, _ in all_of)
        seconds = statistics.median(one.seconds for one, _ in all_of)
        print(
            f"{name:12}{read:>5}/{len(all_of)}{good:>5}/{len(all_of)}{tokens:10.0f}{seconds:10.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("tables", type=Path, metavar="TABLES_FOLDER")
    parser.add_argument("--cells", type=int, default=100, help="how many at most")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    asyncio.run(measure(given.folder, given.tables.resolve(), given.cells, given.seeds))


if __name__ == "__main__":
    main()
