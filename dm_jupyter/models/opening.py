"""Opening of a chosen model as a policy."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.models.capabilities import LOCAL_SERVER, Capabilities, CapabilityMemory
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.protocols import Policy, Urgency
from dm_jupyter.presets import preset_at

__all__ = [
    "AUTO",
    "adapter_hash",
    "chosen_dialect",
    "known_context",
    "open_policy",
    "weights_hash",
]

AUTO = "auto"
"""Name for the dialect that suits the model."""
_LOCAL_RETRIES = 2
"""Retries at a server of this machine, where nothing answers only if it has ended."""


@asynccontextmanager
async def open_policy(
    choice: ModelChoice,
    on_progress: Callable[[str], None] = lambda _: None,
    urgency: Urgency = Urgency.QUESTION,
    slots: int | None = None,
) -> AsyncIterator[HttpPolicy]:
    """Yield a policy for the choice; a local model is served for as long as the block lasts.

    Args:
        choice: which model, and where.
        on_progress: receives a line now and then while a local model is being loaded.
        urgency: who waits for the turns; on this machine, background work yields to a question.
        slots: turns that a local model writes at the same time, if this call starts it. With more
            than two, each has its own context memory. `None` means two.

    Raises:
        LocalModelError: the local model is missing or can't start; the message says what to do.
    """
    if not choice.is_local:
        async with HttpPolicy(_endpoint(choice), CapabilityMemory()) as policy:
            yield policy
        return
    # An optional extra.
    from dm_jupyter.models.local import ServerOptions, local_endpoint  # noqa: PLC0415

    options = ServerOptions() if slots is None else ServerOptions(slots=slots)
    async with local_endpoint(choice.model, options, on_progress) as served:
        known = replace(LOCAL_SERVER, context_tokens=served.context_tokens)
        endpoint = Endpoint(
            served.base_url, served.model_name, served.api_key, known, _LOCAL_RETRIES
        )
        async with HttpPolicy(
            endpoint, queue=served.queue(), urgency=urgency, is_served=served.is_served
        ) as policy:
            yield policy


def adapter_hash(choice: ModelChoice) -> str:
    """Return the sha256 of the adapter over a local model; empty for a model without one.

    Args:
        choice: which model, and where.

    Raises:
        LocalModelError: there is no such model, or its adapter's file is not an adapter.
    """
    if not choice.is_local:
        return ""
    from dm_jupyter.models.local.catalogue import resolve  # noqa: PLC0415  (as above)

    adapter = resolve(choice.model).adapter
    return "" if adapter is None else adapter.sha256


def weights_hash(choice: ModelChoice) -> str:
    """Return the sha256 of a local model's weights, without its adapter; empty for an endpoint.

    That of a model from the list is known. A file that a person named is read.

    Args:
        choice: which model, and where.

    Raises:
        LocalModelError: there is no such model, or its adapter's file is not an adapter.
        OSError: the model's file can't be read.
    """
    if not choice.is_local:
        return ""
    from dm_jupyter.models.local.catalogue import resolve  # noqa: PLC0415  (as above)

    model = resolve(choice.model)
    if model.path is None:
        return model.sha256
    with model.path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _endpoint(choice: ModelChoice) -> Endpoint:
    preset = preset_at(choice.base_url)
    known = Capabilities.from_json(preset.capabilities) if preset else Capabilities()
    return Endpoint(choice.base_url, choice.model, choice.api_key, known)


def known_context(choice: ModelChoice) -> int:
    """Return the context of an endpoint's model in tokens, as learned from earlier questions.

    No request is sent. It is 0 if unknown. It is also 0 for a local model, whose data context is
    prefetched before the question and so depends only on the files.

    Args:
        choice: which model, and where.
    """
    if choice.is_local:
        return 0
    endpoint = _endpoint(choice)
    known = CapabilityMemory().recall(endpoint.address, endpoint.model) or endpoint.capabilities
    return known.context_tokens or 0


async def chosen_dialect(name: str, policy: Policy) -> str:
    """Return the dialect that a name means: `auto` is `tools` for a model that calls them.

    Args:
        name: of a dialect, or `auto`.
        policy: the model; an unknown endpoint is sent a tiny question or two.

    Raises:
        PolicyError: the endpoint does not answer.
        UsageError: there is no dialect of that name.
    """
    if name != AUTO:
        return dialect_named(name).name
    if isinstance(policy, HttpPolicy) and (await policy.learn()).tools:
        return "tools"
    return "markdown"
