"""What a person should know before the first question."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kernel_sandbox.contain import bubblewrap
from kernel_sandbox.containment import LAYER_NAMES, LayerState

if TYPE_CHECKING:
    from dm_jupyter.server.analyst import Analyst

__all__ = ["status_of"]

_NEEDS_NAMESPACES = ("read_only_view", "network_namespace", "pid_namespace")


async def status_of(analyst: Analyst) -> dict[str, Any]:
    """Returns the models, the layers that a restricted kernel would have, and what is missing."""
    models = analyst.models.listed()
    probe = await asyncio.to_thread(bubblewrap.probe)
    has_namespaces = probe.state is LayerState.ACTIVE
    missing = [] if has_namespaces else list(_NEEDS_NAMESPACES)
    problems = [
        {
            "text": f"The model {model['name']} is not on this machine yet.",
            "remedy": model["detail"],
        }
        for model in models[:1]
        if not model["is_present"]
    ]
    if not has_namespaces:
        problems.append(
            {
                "text": f"Restricted kernels see all files and the network: {probe.reason}.",
                "remedy": bubblewrap.REMEDY,
            }
        )
    return {
        "models": models,
        "default_model": models[0]["name"] if models else "",
        "containment": {
            "active": [name for name in LAYER_NAMES if name not in missing],
            "missing": missing,
        },
        "is_shared": analyst.desks.shared is not None,
        "problems": problems,
    }
