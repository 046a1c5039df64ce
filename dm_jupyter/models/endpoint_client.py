"""The connection to an OpenAI-compatible endpoint: requests, streams and faults.

Covered: no message and no traceback contains the key, even if the endpoint repeats it or its
beginning. Not covered: an answer of the model that contains it.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dm_jupyter.core.errors import (
    ContextFullError,
    EndpointBlockedError,
    EndpointRefusedError,
    EndpointUnreachableError,
    PolicyError,
    StreamBrokenError,
)
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.models.call import AnswerStream, Call
from dm_jupyter.models.capabilities import CONTEXT_STATUSES, Capabilities, names_context

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Endpoint", "EndpointClient"]

_LIST_S = 10.0
_WAYS_OUT = {
    401: " — set DM_JUPYTER_API_KEY or --api-key-file",
    403: " — this key may not use this model",
    404: " — check --model and --base-url",
    429: " — too many requests, and still after all retries; wait, or use another endpoint",
}
_IS_IT_RIGHT = "is --base-url right (it usually ends in /v1)?"
_STREAM = "text/event-stream"
_RESOURCES = ("/chat/completions", "/models")
"""What a request adds to an endpoint's address."""
_MOST_SAID = 300
_SHORTEST_PIECE = 8
"""Shortest beginning of a key that is removed from messages; a shorter one reveals nothing."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model, and how to call it."""

    base_url: str = field(repr=False)
    """Full address, which may contain a password; messages show `address`."""
    model: str
    api_key: str = field(default="", repr=False)
    capabilities: Capabilities = field(default_factory=Capabilities)
    """Capabilities known before the first request."""
    retries: int = 4
    """Retries after a refused connection, a 429 or a 5xx, with growing pauses."""
    read_timeout_s: float = 300.0
    """Silence after which an answer counts as broken; a model on a CPU reads a prompt slowly."""

    @property
    def address(self) -> str:
        """The base URL without possible secrets."""
        return shown_address(self.base_url)


class EndpointClient:
    """A client of one endpoint. An async context manager, so that its connections are closed."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Create the client without connecting.

        Args:
            endpoint: the address of the model.
        """
        self._endpoint = endpoint
        self._client: AsyncOpenAI | None = None

    async def __aenter__(self) -> EndpointClient:
        from httpx2 import InvalidURL  # noqa: PLC0415

        from dm_jupyter.models.openai_client import (  # noqa: PLC0415  (0.8 s, not for --help)
            open_client,
        )

        try:
            self._client = open_client(
                self._endpoint.base_url,
                self._endpoint.api_key,
                retries=self._endpoint.retries,
                read_timeout_s=self._endpoint.read_timeout_s,
            )
        except (ImportError, OSError, ValueError, InvalidURL) as error:
            why = f"{self._where} can't be reached: {_unusable(error)}"
            raise EndpointBlockedError(why) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    @property
    def _where(self) -> str:
        model, address = self._endpoint.model, self._endpoint.address
        return f"{model} at {address}" if model else address

    def _silence(self, timeout_s: float) -> str:
        return (
            f"{self._where} did not begin to answer within {timeout_s:g} s; ask again when it has "
            "less to do, ask about less data, or use a faster model"
        )

    @property
    def _broken(self) -> str:
        return (
            f"the answer of {self._where} broke off before its end; ask again, or look at the "
            "server's log"
        )

    async def listed(self) -> list[Any]:
        """Return the entries of its list of models; empty if the list is unavailable."""
        try:
            return await self.list_of_models() or []
        except PolicyError:
            return []

    async def list_of_models(self) -> list[Any] | None:
        """Return the entries of its list of models; `None` if it sent something else.

        Raises:
            EndpointUnreachableError: nothing listens there, or it did not answer in time.
            EndpointBlockedError: a proxy, a certificate or a redirect is in the way.
            EndpointRefusedError: it answered with an error.
        """
        assert self._client is not None  # noqa: S101
        client = self._client.with_options(max_retries=0, timeout=_LIST_S)
        async with self._faults(_LIST_S):
            # The raw reply: the client accepts anything as a list, even the page of a proxy.
            raw = (await client.models.with_raw_response.list()).content
        try:
            reply = json.loads(raw)
        except ValueError:
            return None
        entries = reply.get("data", reply) if isinstance(reply, dict) else reply
        if entries is None:  # some send this for an empty list
            return []
        return entries if isinstance(entries, list) else None

    async def asked(
        self,
        call: Call,
        on_text: Callable[[str], None],
        on_begun: Callable[[], None] = lambda: None,
    ) -> AnswerStream:
        """Send a request, and return the answers once the stream has ended.

        Args:
            call: the request.
            on_text: receives the text, piece by piece.
            on_begun: called at the first token.

        Raises:
            EndpointUnreachableError: nothing listens there, even after all retries, or it did not
                begin to answer in time.
            EndpointBlockedError: a proxy, a certificate or a redirect is in the way.
            EndpointRefusedError: it answered with an error: key, model name or request.
            ContextFullError: the conversation is longer than the model's context.
            StreamBrokenError: the answer broke off.
        """
        answers = AnswerStream(
            call.own_stop, bool(call.prefill), call.cuts_repetition, call.thinks_in_text
        )

        def begin() -> None:
            on_begun()
            if call.prefill:
                on_text(call.prefill)

        async with self._stream(call) as stream:
            await self._receive(stream, answers, on_text, begin)
        return answers

    async def _receive(
        self,
        stream: Any,
        answers: AnswerStream,
        on_text: Callable[[str], None],
        on_begun: Callable[[], None],
    ) -> None:
        """Read the stream to its end; it begins with the first token, not when it opens."""
        has_begun = False
        async with aclosing(self._pieces(stream, answers)) as pieces:
            async for text in pieces:
                if answers.has_begun and not has_begun:
                    has_begun = True
                    on_begun()
                if text:
                    on_text(text)
                if answers.is_enough:
                    return
        if answers.is_whole:
            return
        kind = stream.response.headers.get("content-type", "").partition(";")[0]
        if answers.replies or kind in ("", _STREAM):
            raise StreamBrokenError(self._broken)
        raise StreamBrokenError(f"{self._where} sent {kind} instead of a stream; {_IS_IT_RIGHT}")

    async def _pieces(self, stream: Any, answers: AnswerStream) -> AsyncGenerator[str]:
        """Yield what each event adds to the first answer, and name the faults of the stream."""
        import httpx2  # noqa: PLC0415  (the client may raise its errors unwrapped)
        import openai  # noqa: PLC0415

        where = self._where
        try:
            async for chunk in stream:
                yield answers.take(chunk)
        except openai.APITimeoutError as error:
            silence = self._silence(self._endpoint.read_timeout_s)
            raise StreamBrokenError(self._broken if answers.has_begun else silence) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise StreamBrokenError(f"{self._broken} ({type(error).__name__})") from error
        except openai.APIError as error:  # an event of the stream that tells an error
            reason = self._reason(error.body) or "it gave no reason"
            if names_context(error.body):
                raise ContextFullError(f"{where}: {reason}") from None
            raise StreamBrokenError(
                f"the answer of {where} broke off with an error: {reason}"
            ) from None
        except (ValueError, TypeError, AttributeError) as error:  # broken JSON, or other types
            raise StreamBrokenError(
                f"the answer of {where} broke off, because an event of its stream is damaged "
                f"({type(error).__name__}); ask again, or look at the server's log"
            ) from error

    def _reason(self, body: Any) -> str:
        """Return the endpoint's own message, shortened, without the request and the key."""
        body = body[0] if isinstance(body, list) and body else body
        if isinstance(body, dict):
            message = body.get("message") or body.get("error") or body
            body = message.get("message", message) if isinstance(message, dict) else message
        return self._without_key(str(body or ""))[:_MOST_SAID]

    def _without_key(self, text: str) -> str:
        key = self._endpoint.api_key
        for length in range(len(key), min(len(key), _SHORTEST_PIECE) - 1, -1):
            text = text.replace(key[:length], "[key]") if key else text
        return text

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator[Any]:
        if self._client is None:
            raise RuntimeError("use EndpointClient in an `async with` block")
        async with self._faults(self._endpoint.read_timeout_s):
            stream = await self._client.chat.completions.create(**call.body())
        try:
            yield stream
        finally:
            await stream.close()

    @asynccontextmanager
    async def _faults(self, timeout_s: float) -> AsyncIterator[None]:
        """Convert the client's exceptions into ours, each naming the endpoint and a remedy."""
        import httpx2  # noqa: PLC0415
        import openai  # noqa: PLC0415

        where = self._where
        try:
            yield
        except openai.APIStatusError as error:
            reason = self._reason(error.body) or error.response.reason_phrase
            if error.status_code in CONTEXT_STATUSES and names_context(error.body):
                raise ContextFullError(f"{where}: {reason}", is_refusal=True) from None
            if error.response.next_request is not None:
                moved = self._without_key(_endpoint_of(error.response.next_request.url))
                raise EndpointBlockedError(
                    f"{where} redirects to {moved}, to which nothing was sent. If you trust that "
                    "address, use it instead"
                ) from None
            raise EndpointRefusedError(
                f"{where} answered {error.status_code}: {reason}"
                f"{_WAYS_OUT.get(error.status_code, '')}",
                error.status_code,
                error.body,
            ) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ReadTimeout):
                raise EndpointUnreachableError(self._silence(timeout_s)) from error
            if obstacle := _obstacle(error):
                raise EndpointBlockedError(f"{where} can't be reached: {obstacle}") from error
            raise EndpointUnreachableError(
                f"nothing answers for {where}; is the server running, and {_IS_IT_RIGHT}"
            ) from error


def _endpoint_of(url: object) -> str:
    """Return the address of an endpoint to which one of its requests leads, safe to show."""
    address = shown_address(str(url))
    for resource in _RESOURCES:
        address = address.removesuffix(resource)
    return address


def _unusable(error: Exception) -> str:
    """Return why no connection can be prepared, and the way out, without a proxy's password."""
    if isinstance(error, ImportError):
        return (
            "the environment names a SOCKS proxy, which needs a package more. Run "
            "`python -m pip install socksio`"
        )
    if isinstance(error, OSError):
        return (
            "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names can't be read "
            f"({error.strerror or error}). Correct that variable"
        )
    return (
        "this address, or that of a proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, is not one. A "
        "proxy's begins with http://, https:// or socks5://"
    )


def _obstacle(error: BaseException | None) -> str:
    """Return what stood between this machine and an endpoint; empty if nothing is known of it."""
    import httpx2  # noqa: PLC0415

    while error is not None:
        match error:
            case ssl.SSLCertVerificationError():
                return (
                    f"its certificate is not accepted ({error.verify_message}). If you trust it, "
                    "name the file of its authority in SSL_CERT_FILE"
                )
            case ssl.SSLError():
                return "it does not answer in HTTPS. Does its address begin with http:// instead?"
            case httpx2.ProxyError():
                return f"the proxy that the environment names refuses ({error})"
        error = error.__cause__ or error.__context__
    return ""
