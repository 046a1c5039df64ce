"""Where the cells of a pipeline run; the slow test needs Ray."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import RayMissingError
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from training.evaluation.pools import open_pool

CHECKOUT = Path(__file__).resolve().parents[3]
SETTINGS = PoolSettings(profile=Strictness.INTERACTIVE, modules=())


async def test_a_local_pool_runs_as_many_cells_as_were_asked_for() -> None:
    async with open_pool("local", SETTINGS, 3) as pool:
        assert isinstance(pool, SandboxPool)
        assert pool.settings.cells_at_once == 3
    with pytest.raises(ValueError, match="local, ray, not 'cloud'"):
        open_pool("cloud", SETTINGS)


async def test_a_missing_ray_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RayMissingError, match="pip install 'ray"):
        async with open_pool("ray", SETTINGS):
            pass


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="the extra `ray` is not installed"
)
def test_groups_run_on_ray_and_leave_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.rollouts", "--pool", "ray", "--count", "8",
         "--size", "4", "--profile", "interactive", "--out", str(tmp_path / "out")],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {line.split("  ")[0]: line.split()[-1] for line in done.stdout.splitlines()}
    assert rows["faults"] == "0"
    assert rows["rewards of 1"] == "4"
    assert rows["of these left behind"] == "none"
