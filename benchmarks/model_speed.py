"""Speed of the local model, by cause: waiting threads, slots, speculation, an adapter.

`python -m benchmarks.model_speed spin --busy 2` measures next to two processes that never rest.
`python -m benchmarks.model_speed slots` asks three questions at once, with several slot counts.
`python -m benchmarks.model_speed speculation` writes first cells and corrects failed ones, with and
without tokens guessed from the prompt.
`python -m benchmarks.model_speed adapter --adapter FILE` answers with and without an adapter.
Each way runs in a separate process. Rounds alternate between the ways, so that a slow minute of the
machine slows them all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dm_jupyter.agent.loop import RunSettings, request_for, step
from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, RunCell, Trajectory
from dm_jupyter.data.data_context import build_data_context
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.call import build_call
from dm_jupyter.models.capabilities import LOCAL_SERVER
from dm_jupyter.models.local import cache, catalogue, engine
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.types import CellError, CellResult, CellStatus

KEY = "benchmark"
_TOGETHER = 3
_WRITTEN = 60
EXAMPLES = Path(__file__).parents[1] / "examples"
WAYS: dict[str, list[dict[str, Any]]] = {
    "spin": [{"spin_count": 0}, {}],
    "slots": [{"slots": count} for count in (1, 2, 3, 4)],
    "speculation": [
        {},
        {"guess": ["NGRAM_SIMPLE", 12, 48]},
        {"guess": ["NGRAM_SIMPLE", 12, 12]},
        {"guess": ["NGRAM_MAP_K", 12, 12]},
    ],
    "adapter": [{}, {"has_adapter": True}],
}
"""Ways that are compared; the first is the base of the ratios."""
QUESTIONS = {
    "penguins.csv": (
        "For each species: the mean, the median and the standard deviation of the body mass, and "
        "the share of females?",
        "sp = df.groupby('species')['body_mass']\nprint(sp.mean().round(1))\n"
        "print(sp.median().round(1))\nprint(sp.std().round(1))\n"
        "print((df['sex'] == 'female').groupby(df['species']).mean().round(3))",
        "'Column not found: body_mass'",
    ),
    "seattle-weather.csv": (
        "In which month is the mean of the highest temperature highest, how much rain falls then "
        "in the mean of the years, and how windy is it?",
        "df['month'] = df['date'].dt.month\nby_month = df.groupby('month')['temp_max'].mean()\n"
        "best = by_month.idxmax()\nrain = df[df['month'] == best].groupby(df['date'].dt.year)"
        "['precipitation'].sum().mean()\nwind = df[df['month'] == best]['wind'].mean()\n"
        "print(best, round(rain, 1), round(wind, 1))",
        "Can only use .dt accessor with datetimelike values",
    ),
}
"""By file: a question, a first cell with a real mistake, and the error it raised."""


class _Said:
    """Both policy and notebook, for one recorded turn."""

    name = "said"

    def __init__(self, cell: str, error: str) -> None:
        self._cell, self._error = cell, error

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        on_text(self._cell)
        return Completion(f"{request.prefill}{self._cell}\n```", request.prefill)

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:  # noqa: ARG002
        kind = "KeyError" if self._error.startswith("'") else "AttributeError"
        raised = CellError(kind, self._error, (f"{kind}: {self._error}",))
        return ExecutedCell(cell, CellResult(CellStatus.ERROR, (raised,)))


async def requests() -> dict[str, list[dict[str, Any]]]:
    """Return the bodies of requests: `first` cells, and those that write a cell `again`."""
    settings = RunSettings(turn_tokens=150)
    found: dict[str, list[dict[str, Any]]] = {"first": [], "again": []}
    async with ProfileReader() as reader:
        for name, (question, cell, error) in QUESTIONS.items():
            file = EXAMPLES / name
            data_context = await build_data_context({name: file}, reader)
            start = Trajectory(Task("", question, (file,)), "markdown", data_context)
            said = _Said(cell, error)
            failed = await step(start, said, said, settings, lambda _: None)
            for kind, trajectory in (("first", start), ("again", failed)):
                call = build_call("m", request_for(trajectory, settings), LOCAL_SERVER, 1, False)
                body = call.body()
                body |= body.pop("extra_body") or {}
                del body["stream_options"]
                found[kind].append({**body, "stream": False})
    return found


def started(way: dict[str, Any], adapter: str) -> engine.Engine:
    """Start this process's own engine and return it."""
    model = catalogue.find()
    settings = engine.EngineSettings(
        model_file=str(cache.require(model)),
        model_name="m",
        api_key=KEY,
        context_tokens=model.context_tokens,
        slots=way.get("slots", 1),
        port=0,
        adapter_file=adapter if "has_adapter" in way else "",
    )
    guess = engine.Guess(*way["guess"]) if "guess" in way else None
    return engine.start_engine(settings, way.get("spin_count", engine.SPIN_COUNT), guess)


def asked(address: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's own figures of one answer."""
    request = urllib.request.Request(
        f"{address}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        timings: dict[str, Any] = json.load(answer)["timings"]
    return timings


def first_cell(address: str, bodies: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return tokens read and written per second, of one question."""
    timings = asked(address, bodies["first"][0])
    return {"read/s": timings["prompt_per_second"], "written/s": timings["predicted_per_second"]}


def first_token_and_answer(
    address: str, bodies: dict[str, list[dict[str, Any]]]
) -> dict[str, float]:
    """Return the seconds until the first token and the last one, of answers of one length."""
    asked(address, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})  # warm up
    told = [
        asked(address, {**body, "ignore_eos": True, "stop": None, "max_tokens": _WRITTEN})
        for body in bodies["first"]
    ]
    first = sum(one["prompt_ms"] for one in told) / 1000 / len(told)
    writing = sum(one["predicted_ms"] for one in told) / 1000 / len(told)
    return {"first token, s": first, "answer, s": first + writing}


def three_at_once(address: str, bodies: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return the speed of three concurrent answers after the prompt is read, and the memory."""
    body = {**bodies["first"][0], "ignore_eos": True, "stop": None}
    together(address, body, 1)  # read the prompt first: only the writing should differ
    began = time.monotonic()
    together(address, body, _WRITTEN)
    seconds = time.monotonic() - began
    resident = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    return {
        "written/s": _TOGETHER * _WRITTEN / seconds,
        "memory, MB": int(resident) / 1000,
    }


def together(address: str, body: dict[str, Any], tokens: int) -> None:
    """Request the same answer three times concurrently."""
    bodies = [{**body, "seed": seed, "max_tokens": tokens} for seed in range(_TOGETHER)]
    with ThreadPoolExecutor(_TOGETHER) as threads:
        list(threads.map(asked, [address] * _TOGETHER, bodies))


def again_and_first(address: str, bodies: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return tokens written per second in each kind of turn, and how many guesses were right."""
    figures: dict[str, float] = {}
    for kind, group in bodies.items():
        told = [asked(address, body) for body in group]
        seconds = sum(one["predicted_ms"] for one in told) / 1000
        figures[f"{kind}/s"] = sum(one["predicted_n"] for one in told) / seconds
        figures[f"{kind}, guessed"] = sum(one.get("draft_n", 0) for one in told)
        figures[f"{kind}, right"] = sum(one.get("draft_n_accepted", 0) for one in told)
    return figures


MEASURES = {
    "spin": first_cell,
    "slots": three_at_once,
    "speculation": again_and_first,
    "adapter": first_token_and_answer,
}


def apart(cause: str, place: int, adapter: str) -> dict[str, float]:
    """Return the figures of one way, measured in a separate process."""
    command = [sys.executable, "-m", "benchmarks.model_speed", cause, "--one", str(place)]
    command += ["--adapter", adapter]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(said.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cause", choices=tuple(WAYS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--adapter", default="", metavar="FILE", help="a .gguf adapter")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cause, ways = arguments.cause, WAYS[arguments.cause]
    if cause == "adapter" and not Path(arguments.adapter).is_file():
        parser.error("name the adapter's file with --adapter")
    if cause != "adapter" and arguments.adapter:
        parser.error(f"--adapter is for the cause adapter, not for {cause}")
    if arguments.one is not None:
        bodies = asyncio.run(requests())
        # Without a reference, it would end.
        running = started(ways[arguments.one], arguments.adapter)
        print(json.dumps(MEASURES[cause](running.address, bodies)), flush=True)
        os._exit(0)  # skips the engine's slow tear-down
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.busy)
    ]
    try:
        rounds = [
            [apart(cause, place, arguments.adapter) for place in range(len(ways))]
            for _ in range(arguments.rounds)
        ]
    finally:
        for other in others:
            other.kill()
    print(f"{os.cpu_count()} cores, {arguments.busy} of them busy, median of {arguments.rounds}")
    for place, way in enumerate(ways):
        print(f"{json.dumps(way):34}", end="")
        for name in rounds[0][0]:
            found = statistics.median(one[place][name] for one in rounds)
            ratio = statistics.median(one[place][name] / (one[0][name] or 1) for one in rounds)
            is_speed = name.endswith(("/s", ", s"))
            print(f"{name} {found:7.1f}" + (f" ({ratio:.2f} x)  " if is_speed else "  "), end="")
        print()


if __name__ == "__main__":
    main()
