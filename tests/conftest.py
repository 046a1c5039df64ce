"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import settings

from tests.coverage_floor import FLOORS
from tests.examples import USUAL_EXAMPLES

# A slow machine is no failure. `make test-all` asks for the thorough profile.
settings.register_profile("quick", deadline=None, max_examples=USUAL_EXAMPLES // 4)
settings.register_profile("thorough", deadline=None, max_examples=USUAL_EXAMPLES)
settings.load_profile("quick")

# A shell's background job ignores interrupts, and so would each command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# For this process and for those that it starts.
_LEAN = str(Path(__file__).parent / "lean")
sys.path.insert(0, _LEAN)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_LEAN, os.environ.get("PYTHONPATH"))))

_MEASURED = tuple(Path(__file__).parent / folder for folder in FLOORS)
"""Where the folders with a floor are tested."""

_LONGEST = (
    "kernel_sandbox/conformance/test_attacks.py",
    "training/evaluation/test_evaluate.py",
    "dm_jupyter/server/runs/test_runs.py",
    "dm_jupyter/server/notebooks/test_files_of_runs.py",
    "dm_jupyter/cli/test_ask.py",
    "dm_jupyter/cli/test_continue.py",
    "training/evaluation/test_resume.py",
    "kernel_sandbox/runners/test_session.py",
    "dm_jupyter/server/runs/test_try_harder.py",
    "kernel_sandbox/packages/test_packages.py",
    "training/evaluation/test_scoring_pool.py",
    "dm_jupyter/data/profile/test_large_files.py",
    "dm_jupyter/server/test_http.py",
    "dm_jupyter/models/test_conformance.py",
)
"""Files that begin first: a process that got one of them last would keep all others waiting."""


@pytest.fixture(scope="session", autouse=True)
def lean_pools() -> Generator[None]:
    """Pools of tests import little before they fork: few cells of tests use more."""
    with pytest.MonkeyPatch.context() as patch:
        lean = ("numpy", "pandas")
        patch.setattr("kernel_sandbox.runners.pool_settings.DEFAULT_MODULES", lean)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; the order within a file stays."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measures coverage where there is a floor alone: it doubles the time of a computation.

    Whoever names folders, `--cov=FOLDER`, gets what any test covers of them.
    """
    coverage = Coverage.current()
    is_named = item.config.getoption("cov_source", None) != [True]
    if coverage is None or is_named or any(map(item.path.is_relative_to, _MEASURED)):
        return (yield)
    coverage.stop()
    try:
        return (yield)
    finally:
        coverage.start()
