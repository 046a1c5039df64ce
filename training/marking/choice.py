"""Which model judges."""

from __future__ import annotations

from pathlib import Path

from dm_jupyter.config import ModelChoice, model_choice
from dm_jupyter.core.errors import UsageError

__all__ = ["judge_choice"]


def judge_choice(model: str, base_url: str, key_file: Path | None) -> ModelChoice:
    """Returns the judge's endpoint. The agent's key and address are not for another host.

    Raises:
        UsageError: the key file can't be read or is empty, it is given without an address, or an
            endpoint has no model's name.
    """
    if key_file is None:
        return ModelChoice(model, base_url)
    if not base_url:
        raise UsageError("whose key is that? Name the judge's endpoint, too: --judge-base-url")
    return model_choice(model, base_url, key_file)
