"""Checks of an endpoint named in the panel: whether it answers, its models, its capabilities.

Covered: the key is in no text that this module returns, raises or logs, even if the endpoint
repeats it. Not covered: what the endpoint itself does with the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from dm_jupyter.config import ModelChoice, is_address, key_in
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointRefusedError, EndpointUnreachableError, PolicyError
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.models.capabilities import Capabilities, CapabilityMemory
from dm_jupyter.models.endpoint_client import Endpoint, EndpointClient
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.protocols import SampleRequest
from dm_jupyter.presets import preset_at

__all__ = ["SetupError", "answering", "endpoint_of", "learned", "listed"]

_CHECK_S = 30.0
_LEARN_S = 120.0
"""Time limit of a test, seconds; a reasoning model needs long for its few questions."""
_LIST_S = 10.0
_MOST_NAMES = 500
_CHECK = SampleRequest((Message("user", "Say OK."),), max_tokens=8)
_MOST_CHARS = 2_000
_NOT_HERE = (404, 405)
"""Statuses with which a server answers at an address that is not an endpoint's."""
_MOST_SAID = 300
T = TypeVar("T")


class SetupError(Exception):
    """A set-up that is not possible; the text says why and what to do."""


def endpoint_of(
    base_url: object, model: object, api_key: object, *, needs_model: bool = True
) -> ModelChoice:
    """Return the endpoint that a person named.

    Args:
        base_url: its address, as typed.
        model: the model's name at the endpoint.
        api_key: the key; empty for none.
        needs_model: whether an empty name is refused.

    Raises:
        SetupError: the address, the name or the key is invalid.
    """
    words = (base_url, model, api_key)
    texts = [word.strip() for word in words if isinstance(word, str) and len(word) < _MOST_CHARS]
    if len(texts) < len(words):
        raise SetupError("Give the address, the model's name and the key as short texts.")
    url, name, typed = texts
    if not is_address(url):
        raise SetupError("The address must begin with http:// or https://; it usually ends in /v1.")
    _refuse_blank(url)
    if needs_model and not name:
        raise SetupError("Name the model as the endpoint calls it.")
    key = key_in(typed)
    if key is None:
        raise SetupError("The key has characters that no key has: copy it again.")
    return ModelChoice(name, url.rstrip("/"), key)


def _refuse_blank(url: str) -> None:
    preset = preset_at(url)
    if preset is not None and preset.blank and preset.blank in url:
        raise SetupError(
            f"The address still contains {preset.blank}. Replace it with your own name at "
            f"{preset.title}."
        )


async def answering(choice: ModelChoice) -> ModelChoice:
    """Return the choice once its endpoint answers, with `/v1` added to the address if needed.

    Args:
        choice: the endpoint, with its key.

    Raises:
        SetupError: the endpoint does not answer.
    """

    async def ask(choice: ModelChoice) -> ModelChoice:
        endpoint = Endpoint(choice.base_url, choice.model, choice.api_key, retries=0)
        async with HttpPolicy(endpoint) as policy:
            await policy.sample(_CHECK, lambda _: None)
        return choice

    return await _reached(choice, ask, _CHECK_S, _why)


async def learned(choice: ModelChoice) -> Capabilities:
    """Return what the endpoint can do with the model; unknown abilities take a few tiny questions.

    One question is always asked, because remembered capabilities say nothing about the key.

    Args:
        choice: the endpoint, with its key.

    Raises:
        SetupError: the endpoint does not answer.
    """

    async def ask(choice: ModelChoice) -> Capabilities:
        preset = preset_at(choice.base_url)
        known = Capabilities.from_json(preset.capabilities) if preset else Capabilities()
        endpoint = Endpoint(choice.base_url, choice.model, choice.api_key, known, retries=0)
        async with HttpPolicy(endpoint, CapabilityMemory()) as policy:
            await policy.sample(_CHECK, lambda _: None)
            return await policy.describe()

    return await _reached(choice, ask, _LEARN_S, _why)


async def listed(choice: ModelChoice) -> list[str]:
    """Return the names in the endpoint's own list of models, sorted; 500 at most.

    Args:
        choice: the endpoint, with its key; the model's name is ignored.

    Raises:
        SetupError: the endpoint does not answer, or lists no models.
    """

    async def ask(choice: ModelChoice) -> list[str]:
        endpoint = Endpoint(choice.base_url, "", choice.api_key)
        async with EndpointClient(endpoint) as client:
            return _names(await client.list_of_models() or [], choice.api_key)

    names = await _reached(choice, ask, _LIST_S, _why_unlisted)
    if not names:
        raise SetupError(
            f"{shown_address(choice.base_url)} lists no models. Type the model's name instead."
        )
    return names


def _names(entries: list[Any], api_key: str) -> list[str]:
    """Return the names in a list, except one that contains the key and would show it."""
    ids = (entry.get("id") for entry in entries if isinstance(entry, dict))
    names = {one.strip() for one in ids if isinstance(one, str) and len(one) < _MOST_CHARS}
    shown = (one for one in names if one and not (api_key and api_key in one))
    return sorted(shown, key=str.lower)[:_MOST_NAMES]


async def _reached(
    choice: ModelChoice,
    ask: Callable[[ModelChoice], Awaitable[T]],
    most_s: float,
    why: Callable[[ModelChoice, Exception, float], str],
) -> T:
    """Return the endpoint's answer; ask at `/v1` if nothing is found at the address.

    Raises:
        SetupError: the endpoint does not answer.
    """
    try:
        async with asyncio.timeout(most_s):
            return await ask(choice)
    except (PolicyError, TimeoutError) as error:
        is_missing = isinstance(error, EndpointRefusedError) and error.status in _NOT_HERE
        if not is_missing or choice.base_url.endswith("/v1"):
            raise SetupError(why(choice, error, most_s)) from None
    longer = replace(choice, base_url=f"{choice.base_url}/v1")
    try:
        async with asyncio.timeout(most_s):
            return await ask(longer)
    except (PolicyError, TimeoutError) as error:
        raise SetupError(why(longer, error, most_s)) from None


def _why(choice: ModelChoice, error: Exception, most_s: float) -> str:
    """Return why the endpoint was not accepted, in the panel's words, without the key."""
    address = shown_address(choice.base_url)
    if isinstance(error, TimeoutError):
        return f"{address} did not answer within {most_s:.0f} s. Is the server busy or blocked?"
    if isinstance(error, EndpointUnreachableError):
        return f"Nothing answers at {address}. Is the server running, and is the address right?"
    remedies = {
        401: f"{address} refuses the key. Check it.",
        403: f"{address} does not let this key use {choice.model}.",
        404: f"{address} has no model {choice.model}, or is not an endpoint: its address usually "
        "ends in /v1.",
    }
    known = remedies.get(getattr(error, "status", 0))
    return known or f"The endpoint was not accepted: {str(error)[:_MOST_SAID]}"


def _why_unlisted(choice: ModelChoice, error: Exception, most_s: float) -> str:
    """Return why there is no list, in the panel's words, without the key."""
    status: Any = getattr(error, "status", 0)
    if not status or status == 401:
        return _why(choice, error, most_s)
    address = shown_address(choice.base_url)
    if status in (403, *_NOT_HERE):
        return f"{address} does not list its models (it answered {status}). Type the model's name."
    return f"{address} did not list its models: {str(error)[:_MOST_SAID]}"
