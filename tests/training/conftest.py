"""Material shared by the tests of training."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.data.profile import FileProfile, profile_file
from dm_jupyter.data.profile_reader import ProfileReader

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def read_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has data files read in this process: what workers are forked from takes half a second."""

    async def profile(_: ProfileReader, path: Path, name: str | None = None) -> FileProfile:
        return await asyncio.to_thread(profile_file, path, name=name)

    monkeypatch.setattr(ProfileReader, "profile", profile)


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
