"""Material shared by the tests of training."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernel_sandbox.runners.pool_settings import PoolSettings

CHECKOUT = Path(__file__).resolve().parents[2]


PREPARED = ("pandas",)
"""What the workers of these tests start with: all that a pool prepares takes three seconds."""


@pytest.fixture(autouse=True)
def _light_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the commands start their pools with that, too."""
    settings = partial(PoolSettings, modules=PREPARED)
    for command in ("evaluate", "replay", "export.__main__"):
        monkeypatch.setattr(f"training.{command}.PoolSettings", settings)


@pytest.fixture
def shared_data() -> Path:
    """The folder of real material beside the checkout; tests that need it skip without."""
    folder = CHECKOUT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("skipped: no ../shared")
    return folder


@pytest.fixture
def write_questions(tmp_path: Path) -> Callable[..., Path]:
    """Writes records (or raw lines) as the `questions.jsonl` of a split, and returns the split."""

    def write(*records: dict[str, Any] | str) -> Path:
        lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
        (tmp_path / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path

    return write
