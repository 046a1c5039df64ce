"""From a choice of model to a policy that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from dm_jupyter.agent.http_policy import Endpoint, HttpPolicy
from dm_jupyter.config import ModelChoice

__all__ = ["open_policy"]

_STARTS_AFRESH = ("api.openai.com", "openai.azure.com")
"""Hosts that answer an assistant message at the end instead of continuing it."""


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
        host = urlsplit(choice.base_url).hostname or ""
        continues = not host.endswith(_STARTS_AFRESH)
        endpoint = Endpoint(choice.base_url, choice.model, choice.api_key, continues)
        async with HttpPolicy(endpoint) as policy:
            yield policy
        return
    from dm_jupyter.agent.local_model import (  # noqa: PLC0415  (optional extra)
        ServerOptions,
        local_endpoint,
    )

    options = ServerOptions(slots=at_once)
    async with local_endpoint(choice.model, options, on_progress) as served:
        endpoint = Endpoint(served.base_url, served.model_name, served.api_key)
        async with HttpPolicy(endpoint) as policy:
            yield policy
