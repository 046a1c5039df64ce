"""What a person should know before the first question."""

from __future__ import annotations

from typing import Any

from dm_jupyter.server.models.model_pool import ModelPool
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.strictness import weaknesses

__all__ = ["status_of"]

_OFF = {
    "text": "The sandbox is switched off on this server: code can do there all that you can.",
    "remedy": 'An administrator can remove SandboxProvisioner.profile = "off" from its settings.',
}


def status_of(
    house: ModelPool, *, is_shared: bool, are_confined: bool, expected: Containment
) -> dict[str, Any]:
    """Returns the models, the layers that a restricted kernel would have, and what is missing.

    Args:
        house: the models that answer.
        is_shared: whether notebooks are shared documents.
        are_confined: whether the server's settings leave the sandbox on.
        expected: the layers of a new restricted kernel, those that are missing among them.
    """
    models = house.listed()
    problems = _weak_spots(expected) if are_confined else [_OFF]
    names = [layer.name for layer in expected.layers]
    active = [name for name in names if are_confined and expected.is_active(name)]
    return {
        "models": models,
        "default_model": models[0]["name"] if models else "",
        "containment": {
            "active": active,
            "missing": [name for name in names if name not in active],
        },
        "is_shared": is_shared,
        "problems": problems,
    }


def _weak_spots(expected: Containment) -> list[dict[str, str]]:
    return [{"text": x.text, "remedy": x.remedy} for x in weaknesses(expected) if x.is_grave]
