"""The tree of `tree` in bare forks of one process: a lower bound for every way of confining.

`python -m benchmarks.sandbox.bare_forks WAY` reads the tree from its standard input and prints
seconds of processor time. Nothing confines the forks, nothing is sent, and one runs at a time.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.sandbox.peers import ONE_THREAD
from benchmarks.sandbox.pipeline import CELLS
from kernel_sandbox.forkserver.zygote import DEFAULT_MODULES

__all__ = ["AGAIN", "FORKS", "bare_seconds"]

FORKS, AGAIN = "forks", "again"
_Below = Mapping[int, Sequence[int]]
_Work = Callable[[], None]
_SECONDS = struct.Struct("d")


def bare_seconds(way: str, shape: Sequence[int], children: int, folder: Path) -> float:
    """Return the processor seconds that the tree takes, without the ends of processes.

    Args:
        way: `FORKS` of the parent state, or the earlier cells run `AGAIN`.
        shape: for each expansion, the number of the expanded node.
        children: of each expansion.
        folder: with the file that the cells read.

    Raises:
        subprocess.CalledProcessError: a cell failed.
    """
    below: dict[int, list[int]] = {}
    for place, node in enumerate(shape):
        first = place * children + 1
        below[node] = list(range(first, first + children))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sandbox.bare_forks", way],
        input=json.dumps({"below": list(below.items()), "folder": str(folder)}),
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def _forks(below: _Below, fork: Callable[[_Work], None]) -> None:
    def expand(node: int, depth: int, names: dict[str, Any]) -> None:
        for child in below.get(node, ()):
            fork(partial(take, child, depth, names))

    def take(node: int, depth: int, names: dict[str, Any]) -> None:
        exec(CELLS[depth], names)
        expand(node, depth + 1, names)

    expand(0, 0, {})


def _again(below: _Below, fork: Callable[[_Work], None]) -> None:
    def expand(node: int, depth: int) -> None:
        for child in below.get(node, ()):
            fork(partial(take, depth + 1))
            expand(child, depth + 1)

    def take(depth: int) -> None:
        names: dict[str, Any] = {}
        for cell in CELLS[:depth]:
            exec(cell, names)

    expand(0, 0)


def main() -> None:
    """Grow the tree one way."""
    told = json.load(sys.stdin)
    for name in DEFAULT_MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    os.chdir(told["folder"])
    reader, writer = os.pipe()

    def fork(work: _Work) -> None:
        pid = os.fork()
        if pid == 0:
            with contextlib.redirect_stdout(io.StringIO()):
                work()
            os.write(writer, _SECONDS.pack(time.process_time()))
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            os._exit(1)

    began = time.process_time()
    {FORKS: _forks, AGAIN: _again}[sys.argv[1]](dict(told["below"]), fork)
    own = time.process_time() - began
    os.close(writer)
    with os.fdopen(reader, "rb") as spent:
        print(own + sum(seconds for (seconds,) in _SECONDS.iter_unpack(spent.read())))


if __name__ == "__main__":
    main()
