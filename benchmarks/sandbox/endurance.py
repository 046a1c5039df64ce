"""2,000 consecutive trajectories through one pool, with a check for leftovers every hundred.

With `--from` it resumes after the last check of an earlier run, with a new pool.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.sandbox.meter import MIB, Meter, descendants
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox import environment
from kernel_sandbox.runners.pool import SandboxPool

_NAME = "endurance"
_CELLS = (
    "import pandas as pd\ndf = pd.DataFrame({'a': range(1000)})\ndf.describe()",
    "open('kept.txt', 'w').write('x' * 10_000)\nprint(df.a.sum())",
    "1 / 0",
)
_GROWTH_MIB = 10.0


@dataclass(frozen=True, slots=True)
class _Look:
    """Resources in use between two trajectories."""

    pool: int
    """Id of the process that has the pool."""
    trajectories: int
    parent_mib: float
    zygote_mib: float
    parent_fds: int
    zygote_fds: int
    processes: int
    """Descendants of this process, including the zygote."""
    folders: int
    wall_ms: float
    """Of one trajectory since the last look; 0 for the first look."""
    cpu_ms: float


async def measure(run: Run) -> Table:
    """Run them one after another; the first hundred warms up the pool and is checked, too."""
    total, step = (40, 10) if run.is_quick else (2000, 100)
    looks = [_from_record(record) for record in run.earlier if record["benchmark"] == _NAME]
    done = looks[-1].trajectories if looks else 0
    with _Folders():
        async with SandboxPool() as pool:
            while done < total:
                meter = Meter()
                for _ in range(step):
                    await _play(pool)
                cost = meter.read()
                done += step
                times = (1000 * cost.wall_s / step, 1000 * cost.cpu_s / step)
                looks.append(_look(pool, done, times))
                run.record(_NAME, **asdict(looks[-1]))
    return _table(looks)


def _from_record(record: Mapping[str, float]) -> _Look:
    return _Look(**{name: value for name, value in record.items() if name != "benchmark"})  # type: ignore[arg-type]


class _Folders:
    """Separate base for run folders and working folders, so that all of them are counted."""

    def __init__(self) -> None:
        self._base = environment.runtime_base()
        self._before = (os.environ.get("XDG_RUNTIME_DIR"), tempfile.tempdir)

    def __enter__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="b-", dir=self._base)
        os.environ["XDG_RUNTIME_DIR"] = tempfile.tempdir = self._folder.name

    def __exit__(self, *_: object) -> None:
        runtime, tempfile.tempdir = self._before
        os.environ.pop("XDG_RUNTIME_DIR")
        if runtime is not None:
            os.environ["XDG_RUNTIME_DIR"] = runtime
        self._folder.cleanup()


async def _play(pool: SandboxPool) -> None:
    async with pool.runner() as runner:
        statuses = [(await runner.run(source)).status.value for source in _CELLS]
    if statuses != ["ok", "ok", "error"]:
        raise RuntimeError(f"the cells ended with {statuses}")


def _look(pool: SandboxPool, done: int, times: tuple[float, float]) -> _Look:
    parent, zygote = psutil.Process(), psutil.Process(pool.zygote.pid)
    folders = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
    return _Look(
        parent.pid,
        done,
        round(parent.memory_info().rss / MIB, 1),
        round(zygote.memory_info().rss / MIB, 1),
        parent.num_fds(),
        zygote.num_fds(),
        len(descendants(parent.pid)),
        sum(name.startswith(("dmj-", "dm-work-")) for name in folders),
        round(times[0], 1),
        round(times[1], 1),
    )


def _table(looks: list[_Look]) -> Table:
    rows = [
        [
            *(f"{x.trajectories:,}", f"{x.parent_mib:.1f}", f"{x.zygote_mib:.1f}"),
            *(str(x.parent_fds), str(x.zygote_fds), str(x.processes), str(x.folders)),
            *(f"{x.wall_ms:.0f}", f"{x.cpu_ms:.0f}"),
        ]
        for x in looks
    ]
    first = next(
        x for x in looks if x.pool == looks[-1].pool
    )  # of the last pool: each pool starts from zero
    last = looks[-1]
    grown_mib = max(last.parent_mib - first.parent_mib, last.zygote_mib - first.zygote_mib)
    left = max(last.parent_fds - first.parent_fds, last.zygote_fds - first.zygote_fds)
    left = max(left, last.processes - first.processes, last.folders)
    span = f"from {first.trajectories:,} to {last.trajectories:,}"
    notes = [
        verdict(f"growth of parent or zygote {span}", grown_mib, _GROWTH_MIB, "MiB"),
        verdict(f"descriptors, processes or folders left {span}", left, 0, "of any kind"),
        f"each runs {len(_CELLS)} cells, one of which raises, and writes a file",
        f"pools: {len({x.pool for x in looks})}; growth is that of the last one",
    ]
    columns = (
        *("trajectories", "parent MiB", "zygote MiB", "parent fds", "zygote fds"),
        *("processes", "run folders", "wall ms each", "CPU ms each"),
    )
    return Table("endurance: one pool, one trajectory after another", columns, rows, notes)
