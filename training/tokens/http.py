"""JSON requests to a model server, with its failures as this project's errors."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Annotated, Any, Final, Self, TypeVar

import httpx2
import msgspec

from dm_jupyter.core.codec import decode_json
from dm_jupyter.core.errors import (
    ContextFullError,
    EndpointRefusedError,
    EndpointUnreachableError,
    StreamBrokenError,
)
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.models.capabilities import CONTEXT_STATUSES, names_context

__all__ = ["ModelServer", "TokenId"]

TokenId = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
"""An id in a reply; arrays of ids have 32 bits."""

_TIMEOUT: Final = httpx2.Timeout(600.0, connect=10.0)
"""A turn arrives in one reply, so the server sends nothing while it samples."""
_ATTEMPTS: Final = 4
_PAUSE_S: Final = 0.5
_BUSY: Final = (429, 502, 503)
"""Status codes of a server that is loading or overloaded."""
_REASON_CHARS: Final = 300
_Reply = TypeVar("_Reply")


class ModelServer:
    """Connection to one server; an async context manager that closes it."""

    def __init__(self, base_url: str, api_key: str, needed: str) -> None:
        """Prepare the client; the first request connects.

        Args:
            base_url: Root of its OpenAI-compatible interface, ending in `/v1`.
            api_key: Bearer token of each request; empty for none.
            needed: Which server it must be, told if a reply is not usable.
        """
        self._needed = needed
        self._address = shown_address(base_url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(
            base_url=base_url.rstrip("/").removesuffix("/v1"),
            headers=headers,
            timeout=_TIMEOUT,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        """Return the connection."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def reply(self, path: str, body: dict[str, Any], kind: type[_Reply]) -> _Reply:
        """Return the server's reply to a request.

        Args:
            path: Below the server's root, such as `/tokenize`.
            body: The request.
            kind: A dataclass with the fields that are needed of the reply.

        Raises:
            EndpointUnreachableError: Nothing answers, after all attempts.
            EndpointRefusedError: The reply is an error, or lacks a field of its type.
            ContextFullError: The prompt is longer than the model's context.
            StreamBrokenError: The reply broke off, or did not arrive in time.
        """
        response = await self._posted(path, body)
        if response.status_code != httpx2.codes.OK:
            self._refuse(path, response)
        try:
            return decode_json(kind, response.content, "its reply")
        except ValueError as error:
            raise EndpointRefusedError(
                f"{self._address}{path} can't be used: {error}. {self._needed}"
            ) from error

    async def _posted(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        for attempt in range(_ATTEMPTS):
            is_last = attempt == _ATTEMPTS - 1
            try:
                response = await self._client.post(path, json=body)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if is_last:
                    raise EndpointUnreachableError(
                        f"Nothing answers at {self._address}. Is the server running?"
                    ) from error
            except httpx2.HTTPError as error:
                raise StreamBrokenError(
                    f"The answer of {self._address}{path} broke off before its end "
                    f"({type(error).__name__}). Look at the server's log."
                ) from error
            else:
                if is_last or response.status_code not in _BUSY:
                    return response
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _refuse(self, path: str, response: httpx2.Response) -> None:
        text = response.text[:_REASON_CHARS]
        if response.status_code in CONTEXT_STATUSES and names_context(text):
            raise ContextFullError(f"{self._address}: {text}")
        raise EndpointRefusedError(
            f"{self._address}{path} answered {response.status_code}: {text}", response.status_code
        )
