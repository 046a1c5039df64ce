"""Judges behind a real endpoint on this machine, and what they reply."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import HttpPolicy
from training.marking.judge import Judge

REWARD = {"question": "How many rows?", "expected": "@n[3]", "given": "There are 3."}


def verdict(score: object, reason: str = "It says three.") -> str:
    """A reply in the form that is asked for."""
    return f"<reason>{reason}</reason>\n<score>{score}</score>"


@asynccontextmanager
async def open_judge(base_url: str, cache: Path, model: str = "judge-1") -> AsyncIterator[Judge]:
    """A judge that asks once: no retries after a refusal."""
    async with HttpPolicy(Endpoint(base_url, model, retries=0)) as policy:
        yield Judge(policy, cache)
