"""Milliseconds of processor time to read and write a megabyte of stored data.

It uses only interfaces of every release, so that it also runs on an earlier one.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, RunCell, Step, Trajectory, Turn
from dm_jupyter.data.profile import from_json, to_json
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.protocol import StepClosed
from dm_jupyter.server.protocol.operations import AppendOutput
from kernel_sandbox.types import CellResult, CellStatus, Stream

ROUNDS = 15
BYTES = 1_000_000


def best(call: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of the fastest of `ROUNDS` calls."""
    found = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        call()
        found.append(time.process_time() - begun)
    return 1000 * min(found)


def journal(folder: Path, chars: int) -> Journal:
    """Return a journal of a megabyte.

    Args:
        folder: where to write it.
        chars: of each output.
    """
    kept = Journal(folder)
    while kept.last * (chars + 400) < 2 * BYTES:
        output = {"output_type": "stream", "name": "stdout", "text": "x" * chars}
        kept.operate(AppendOutput("c", output))
        kept.add(
            StepClosed, step=1, action="cell", thought="Look.", tokens=20, seconds=1.5
        )  # fmt: skip
    return kept


def trajectory(chars: int) -> Trajectory:
    """Return a trajectory of about a megabyte.

    Args:
        chars: of each output.
    """
    result = CellResult(CellStatus.OK, (Stream("stdout", "x" * chars),), 3, 0.5, 1000)
    turn = Turn("Look.", RunCell("df.head()"))
    step = Step(Completion("t" * 200, "", 10, 20, 1.5), turn, result, "o" * (chars // 4))
    return Trajectory(Task("t", "q"), "markdown", steps=(step,) * (BYTES // (900 + 5 * chars // 4)))


def profile() -> FileProfile:
    """Return the profile of a table with very many columns, of about a megabyte."""
    common = tuple((f"value {number}", number) for number in range(50))
    column = ColumnProfile("a", "int64", 1, 2, 3, 4, (1, 2, 3), None, common[:6], False, common)
    return FileProfile("f.csv", "csv", 10, (TableProfile("f.csv", 3, (column,) * 1_000),))


def rows() -> Iterator[tuple[str, float]]:
    """Yield the name of each operation, and its milliseconds."""
    for name, chars in (("short", 150), ("long", 20_000)):
        with tempfile.TemporaryDirectory() as folder:
            kept = journal(Path(folder), chars)
            yield f"journal, {name} outputs: open", best(lambda: Journal(Path(folder)))
            yield f"journal, {name} outputs: read", best(lambda: list(kept.messages()))  # noqa: B023
        whole = trajectory(chars)
        text = json.dumps(whole.to_json())
        yield (
            f"trajectory, {name} outputs: read",
            best(lambda: Trajectory.from_json(json.loads(text))),  # noqa: B023
        )
        yield f"trajectory, {name} outputs: write", best(lambda: json.dumps(whole.to_json()))  # noqa: B023
    shown = profile()
    plain = to_json(shown)
    yield "profile: read", best(lambda: from_json(plain))
    yield "profile: write", best(lambda: to_json(shown))


def main() -> None:
    """Print the milliseconds."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, best of {ROUNDS}")
    for name, spent in rows():
        print(f"{name:<40}{spent:10.1f} ms")


if __name__ == "__main__":
    main()
