"""Tokens a second of the local model, for several spin counts of its threads.

`python -m benchmarks.model_speed --spin 0 2000 --busy 2` measures beside two processes that never
rest. Rounds alternate between the counts, so that a slow minute of the machine slows them all.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import urllib.request

from dm_jupyter.agent.local_model import cache, catalogue, engine

KEY = "benchmark"
QUESTION = "Write Python code that fits a regression of col_1 on all the others and prints its r2."


def measured(spin_count: int) -> tuple[float, float]:
    """Returns tokens read and tokens written a second, of this process's own engine."""
    model = catalogue.find()
    path = cache.require(model)
    running = engine.start_engine(
        engine.EngineSettings(str(path), "m", KEY, 4096, 1, 0), spin_count
    )
    columns = "; ".join(f"'col_{i}': float64, {i} … {7 * i}" for i in range(45))
    asked = {
        "messages": [{"role": "user", "content": f"Columns: {columns}. {QUESTION}"}],
        "max_tokens": 100,
        "temperature": 0.0,
    }
    request = urllib.request.Request(
        f"{running.address}/v1/chat/completions",
        json.dumps(asked).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        timings = json.load(answer)["timings"]
    return timings["prompt_per_second"], timings["predicted_per_second"]


def apart(spin_count: int) -> tuple[float, float]:
    """Returns the same, measured in a process of its own: the library reads its settings once."""
    command = [sys.executable, "-m", "benchmarks.model_speed", "--one", str(spin_count)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    read, written = json.loads(said.splitlines()[-1])
    return read, written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spin", type=int, nargs="+", default=[0, 2_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(measured(arguments.one)), flush=True)
        os._exit(0)  # skips the engine's slow tear-down
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.busy)
    ]
    try:
        rounds = [[apart(count) for count in arguments.spin] for _ in range(arguments.rounds)]
    finally:
        for other in others:
            other.kill()
    print(f"{os.cpu_count()} cores, {arguments.busy} of them busy, median of {arguments.rounds}")
    for count, speeds in zip(arguments.spin, zip(*rounds, strict=True), strict=True):
        read, written = (statistics.median(column) for column in zip(*speeds, strict=True))
        print(f"spin count {count:>6}: reads {read:5.1f}, writes {written:5.1f} tokens/s")


if __name__ == "__main__":
    main()
