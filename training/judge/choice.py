"""Which model judges."""

from __future__ import annotations

from pathlib import Path

from dm_jupyter.config import ModelChoice, model_choice

__all__ = ["judge_choice"]


def judge_choice(model: str, base_url: str, key_file: Path | None) -> ModelChoice:
    """Returns the judge's endpoint. The agent's key and address are not for another host.

    Raises:
        UsageError: the key file can't be read or is empty, or an endpoint has no model's name.
    """
    if key_file is None:
        return ModelChoice(model, base_url)
    return model_choice(model, base_url, key_file)
