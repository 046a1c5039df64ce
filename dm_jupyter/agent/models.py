"""From a choice of model to a policy that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dm_jupyter.agent.capabilities import LOCAL_SERVER, Capabilities, CapabilityMemory
from dm_jupyter.agent.http_policy import Endpoint, HttpPolicy
from dm_jupyter.agent.protocols import Policy
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.presets import preset_at

__all__ = ["AUTO", "chosen_dialect", "open_policy"]

AUTO = "auto"
"""Stands for the dialect that suits the model."""


@asynccontextmanager
async def open_policy(
    choice: ModelChoice,
    on_progress: Callable[[str], None] = lambda _: None,
    at_once: int = 1,
) -> AsyncIterator[HttpPolicy]:
    """Yields a policy for the choice; a local model is served for as long as the block lasts.

    Args:
        choice: which model, and where.
        on_progress: gets a line now and then while a local model is being loaded.
        at_once: turns that a local model, unless it runs already, draws at the same time.

    Raises:
        LocalModelError: the local model is missing or can't start; the message says what to do.
    """
    if not choice.is_local:
        preset = preset_at(choice.base_url)
        known = Capabilities.from_json(preset.capabilities) if preset else Capabilities()
        endpoint = Endpoint(choice.base_url, choice.model, choice.api_key, known)
        async with HttpPolicy(endpoint, CapabilityMemory()) as policy:
            yield policy
        return
    from dm_jupyter.agent.local_model import (  # noqa: PLC0415  (optional extra)
        ServerOptions,
        local_endpoint,
    )

    options = ServerOptions(slots=at_once)
    async with local_endpoint(choice.model, options, on_progress) as served:
        endpoint = Endpoint(served.base_url, served.model_name, served.api_key, LOCAL_SERVER)
        async with HttpPolicy(endpoint) as policy:
            yield policy


async def chosen_dialect(name: str, policy: Policy) -> str:
    """Returns the dialect that a name stands for: `auto` is `tools` for a model that calls them.

    Args:
        name: of a dialect, or `auto`.
        policy: the model; an endpoint that nobody knows is asked a tiny question or two.

    Raises:
        PolicyError: the endpoint does not answer.
        UsageError: there is no dialect of that name.
    """
    if name != AUTO:
        return dialect_named(name).name
    if isinstance(policy, HttpPolicy) and (await policy.learn()).tools:
        return "tools"
    return "markdown"
