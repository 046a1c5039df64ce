"""What the default help asks a model, to the byte: a change of it has to be meant.

`python -m tests.dm_jupyter.assist.test_request_goldens` writes the file anew.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.dm_jupyter.assist.scripted_runs import SCRIPTS, digest_of, played

GOLDENS = Path(__file__).parent / "request_goldens.json"
DEFAULT_AID = ("markdown", "tools", "datamind", "deepanalyze", "react")


async def _asked(dialect: str, script: str) -> list[dict[str, Any]]:
    _, requests = await played(SCRIPTS[script], dialect)
    return [digest_of(request) for request in requests]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("dialect", DEFAULT_AID)
async def test_the_model_is_asked_the_same(dialect: str, script: str) -> None:
    kept = json.loads(GOLDENS.read_text("utf-8"))
    assert await _asked(dialect, script) == kept[dialect][script]


async def _all() -> dict[str, dict[str, list[dict[str, Any]]]]:
    return {
        dialect: {script: await _asked(dialect, script) for script in SCRIPTS}
        for dialect in DEFAULT_AID
    }


if __name__ == "__main__":
    GOLDENS.write_text(
        json.dumps(asyncio.run(_all()), indent=1, ensure_ascii=False) + "\n", "utf-8"
    )
