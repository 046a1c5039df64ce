"""The client of HTTP through which every endpoint is reached.

Covered: requests to this machine use no proxy, whatever the environment says. Only OpenAI gets what
the environment sets for OpenAI. No other host gets a question, or the key, because an endpoint
redirects it there. A log of requests shows addresses without user, password and query.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import openai
from openai._streaming import ServerSentEvent, SSEDecoder

from dm_jupyter.core.plain_text import is_on_this_machine, shown_address

__all__ = ["open_client"]

_SENT = {
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
    *("transfer-encoding", "user-agent"),
}
"""Headers of a request that every endpoint gets, besides the key and the client's own."""
_OWN = "x-stainless-"
"""How the names of the client's own headers begin; it reads them again from the request."""
_READ = ("{", "[DONE]")
"""How the data of the events begins that are read."""
_MOST_REDIRECTS = 5
_OPENAI = "api.openai.com"


def _without_secrets(record: logging.LogRecord) -> bool:
    """Log a request, to whomever in this process, without the possible secrets of its address."""
    args = record.args if isinstance(record.args, tuple) else ()
    shown = (shown_address(str(one)) if isinstance(one, httpx2.URL) else one for one in args)
    record.args = tuple(shown) or record.args
    return True


logging.getLogger("httpx2").addFilter(_without_secrets)


def open_client(
    base_url: str, api_key: str, *, retries: int, read_timeout_s: float
) -> openai.AsyncOpenAI:
    """Return a client of an endpoint, not connected yet; the caller closes it.

    Args:
        base_url: full address, which may contain a password; each request gets its query.
        api_key: empty for none.
        retries: retries after a refused connection, a 429 or a 5xx.
        read_timeout_s: silence after which a request counts as failed.

    Raises:
        ImportError: the environment names a proxy whose kind needs a package that is missing.
        ValueError: the environment names a proxy of an unknown kind.
        httpx2.InvalidURL: the address, or that of a proxy, is not one.
        OSError: the certificates that the environment names can't be read.
    """
    address, _, query = base_url.partition("?")
    return _Client(
        base_url=address,
        default_query=dict(parse_qsl(query, keep_blank_values=True)),
        api_key=api_key or "none",
        max_retries=retries,
        timeout=openai.Timeout(read_timeout_s, connect=10.0),
        http_client=_HttpClient(base_url, api_key),
    )


class _Client(openai.AsyncOpenAI):
    def _make_sse_decoder(self) -> SSEDecoder:
        return _Decoder()


class _Decoder(SSEDecoder):
    """A decoder of streams that skips events without an object, such as empty ones.

    Gateways send those to keep a connection open, and `openai` would fail on them.
    """

    def decode(self, line: str) -> ServerSentEvent | None:
        event = super().decode(line.removeprefix("\ufeff"))  # a stream may begin with a BOM
        is_read = event is not None and event.data.lstrip().startswith(_READ)
        return event if is_read else None


class _HttpClient(openai.DefaultAsyncHttpxClient):
    """A client that sends no request again while the server still works on it.

    `openai` would repeat it after each timeout. It repeats no request that failed with its own
    error, and still those that were refused or never sent.
    """

    def __init__(self, base_url: str, api_key: str) -> None:
        is_here = is_on_this_machine(base_url)
        # Without the environment, its certificates would be lost with its proxies.
        super().__init__(trust_env=not is_here, verify=httpx2.create_ssl_context())
        self._foreign_key = None if _is_openai(base_url) else (api_key or "none")
        """Key of an endpoint that is not OpenAI's."""

    async def send(self, request: httpx2.Request, *args: Any, **kwargs: Any) -> httpx2.Response:
        if self._foreign_key is not None:
            for name in request.headers.keys() - _SENT:
                if not name.startswith(_OWN):
                    del request.headers[name]
            request.headers["Authorization"] = f"Bearer {self._foreign_key}"
        kwargs["follow_redirects"] = False
        try:
            response = await super().send(request, *args, **kwargs)
            for _ in range(_MOST_REDIRECTS):
                following = response.next_request
                if following is None or not _is_same_to(following, request):
                    break
                await response.aread()  # else its connection can't be used again
                response = await super().send(following, *args, **kwargs)
        except httpx2.ReadTimeout as error:
            raise openai.APITimeoutError(request=request) from error
        return response


def _is_same_to(following: httpx2.Request, request: httpx2.Request) -> bool:
    """Return whether a redirect leads to the same server, and keeps what is sent.

    A 301, 302 or 303 would turn a question into a request without one. `httpx2` keeps the key only
    for the same origin, or for its HTTPS.
    """
    return following.method == request.method and "Authorization" in following.headers


def _is_openai(base_url: str) -> bool:
    """Return whether an address is OpenAI's own, in any of its regions."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    return parts.scheme == "https" and (host == _OPENAI or host.endswith(f".{_OPENAI}"))
