"""What every client of an endpoint sends, and to whom."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from dm_jupyter.cli.doctor import _remote
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointBlockedError
from dm_jupyter.models.capabilities import LOCAL_SERVER
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.openai_client import open_client
from dm_jupyter.models.protocols import SampleRequest
from dm_jupyter.server.models import endpoint_check
from tests.dm_jupyter.models.scripted_replies import Replies, Reply, failing, turn

KEY = "sk-of-this-endpoint"
ASKED = SampleRequest((Message("user", "private rows"),))


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replies]:
    """A proxy that the environment names for everything."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Replies(lambda _: failing(503, "no way through")) as named:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{named.port}")
        yield named


async def _sample(base_url: str) -> None:
    endpoint = Endpoint(base_url, "m", KEY, LOCAL_SERVER, retries=0)
    async with HttpPolicy(endpoint) as policy:
        await policy.sample(ASKED, lambda _: None)


async def test_what_goes_to_this_machine_goes_through_no_proxy(proxy: Replies) -> None:
    with Replies(lambda body: turn("3") if body else failing(404, "no list")) as server:
        choice = ModelChoice("m", server.base_url, KEY)
        await _sample(server.base_url)
        await _remote(choice)
        with pytest.raises(endpoint_check.SetupError, match="does not list its models"):
            await endpoint_check.listed(choice)
    assert proxy.paths == []
    assert server.paths == ["/v1/chat/completions", "/v1/models", "/v1/models"]


async def test_what_goes_elsewhere_goes_through_the_proxy(proxy: Replies) -> None:
    async with open_client("http://models.invalid/v1", KEY, retries=0, read_timeout_s=9) as client:
        with pytest.raises(Exception, match="no way through"):
            await client.models.list()
    assert proxy.paths == ["http://models.invalid/v1/models"]


@pytest.fixture
def openai_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of a person for OpenAI, in the variables of its client."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    headers = "X-Secret: private-header\nAuthorization: Bearer sk-private"
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", headers)


@pytest.mark.usefixtures("openai_settings")
async def test_settings_for_openai_go_to_no_other_endpoint() -> None:
    with Replies(lambda body: turn("3") if body else failing(404, "no list")) as server:
        choice = ModelChoice("m", server.base_url, KEY)
        await _sample(server.base_url)
        await _remote(choice)
        with pytest.raises(endpoint_check.SetupError):
            await endpoint_check.listed(choice)
    assert len(server.headers) == 3
    for headers in server.headers:
        assert "private" not in str(headers)
        assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.usefixtures("openai_settings")
@pytest.mark.parametrize(
    ("base_url", "is_sent"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://api.openai.com.example.org/v1", False),
        ("https://notapi.openai.com/v1", False),
    ],
)
async def test_settings_for_openai_go_to_openai(
    base_url: str, is_sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[httpx2.Headers] = []

    async def answered(_: object, request: httpx2.Request, **__: object) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(200, json={"data": []}, request=request)

    monkeypatch.setattr(httpx2.AsyncClient, "send", answered)
    async with open_client(base_url, KEY, retries=0, read_timeout_s=9) as client:
        await client.with_options(max_retries=1).models.list()
    (headers,) = seen
    assert ("org-private" in str(headers)) is is_sent
    assert ("private-header" in str(headers)) is is_sent


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_question_is_redirected_to_no_other_server(status: int) -> None:
    with Replies(lambda _: turn("3")) as other:
        elsewhere = f"{other.base_url}/chat/completions?token=s3cret"
        with (
            Replies(lambda _: (status, b""), Location=elsewhere) as first,
            pytest.raises(EndpointBlockedError) as caught,
        ):
            await _sample(first.base_url)
    assert other.bodies == []
    assert f"redirects to {other.base_url}, to which nothing was sent" in str(caught.value)


async def test_a_list_of_models_is_redirected_to_no_other_server() -> None:
    with (
        Replies(lambda _: failing(404, "no list")) as other,
        Replies(lambda _: (308, b""), Location=f"{other.base_url}/models") as first,
    ):
        choice = ModelChoice("m", first.base_url, KEY)
        with pytest.raises(endpoint_check.SetupError, match=f"redirects to {other.base_url},"):
            await endpoint_check.listed(choice)
        assert f"redirects to {other.base_url}," in (await _remote(choice)).detail
    assert other.bodies == []


@pytest.mark.parametrize(("status", "is_followed"), [(303, False), (307, True), (308, True)])
async def test_a_question_is_redirected_within_its_server_if_it_stays_whole(
    status: int, is_followed: bool
) -> None:
    def reply(_: object) -> Reply:
        return turn("3") if server.paths[-1].startswith("/new") else (status, b"")

    with Replies(reply, Location="/new/chat/completions") as server:
        if is_followed:
            await _sample(server.base_url)
            assert server.bodies[0] == server.bodies[1]
            assert server.headers[1]["authorization"] == f"Bearer {KEY}"
        else:
            with pytest.raises(EndpointBlockedError):
                await _sample(server.base_url)
    assert server.paths == ["/v1/chat/completions", "/new/chat/completions"][: 1 + is_followed]


async def test_a_server_that_redirects_to_itself_without_end_is_left() -> None:
    with Replies(lambda _: (307, b""), Location="/v1/chat/completions") as server:
        with pytest.raises(EndpointBlockedError):
            await _sample(server.base_url)
        assert 1 < len(server.paths) < 10


async def test_each_request_has_the_query_of_the_address() -> None:
    with Replies(lambda _: turn("3")) as server:
        await _sample(f"{server.base_url}?api-version=preview&empty=")
    assert server.paths == ["/v1/chat/completions?api-version=preview&empty="]


async def test_a_log_of_requests_shows_no_password(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with Replies(lambda _: turn("3")) as server:
        with_password = server.base_url.replace("http://", "http://me:s3cret@")
        await _sample(f"{with_password}?key=s3cret")
    assert f"POST {server.base_url}/chat/completions" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("proxy_url", "said"),
    [
        ("socks5://me:s3cret@127.0.0.1:9", "pip install socksio"),
        ("x://me:s3cret@y", "HTTPS_PROXY"),
        ("http://me:s3cret@y:port", "HTTPS_PROXY"),
    ],
)
async def test_a_proxy_that_can_not_be_used_is_named_as_the_reason(
    proxy_url: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", proxy_url)
    choice = ModelChoice("m", "http://models.invalid/v1", KEY)
    with pytest.raises(EndpointBlockedError, match=said) as caught:
        await _sample(choice.base_url)
    with pytest.raises(endpoint_check.SetupError, match=said):
        await endpoint_check.answering(choice)
    assert said in (await _remote(choice)).detail
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


async def test_a_proxy_that_refuses_is_named_as_the_reason(proxy: Replies) -> None:
    with pytest.raises(EndpointBlockedError, match=r"the proxy .* refuses"):
        await _sample("https://models.invalid/v1")


async def test_certificates_that_are_missing_are_named_as_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(EndpointBlockedError, match="SSL_CERT_FILE"):
        await _sample("https://models.invalid/v1")


async def test_an_address_with_https_of_a_server_without_it_is_told_apart() -> None:
    with (
        Replies(lambda _: turn("3")) as server,
        pytest.raises(EndpointBlockedError, match="does not answer in HTTPS"),
    ):
        await _sample(server.base_url.replace("http:", "https:"))


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """What a server with a certificate of its own needs."""
    if shutil.which("openssl") is None:
        pytest.skip("a certificate needs openssl")
    files = ("-keyout", tmp_path / "key", "-out", tmp_path / "cert", "-subj", "/CN=localhost")
    new = ("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt")
    subprocess.run([*new, "ec_paramgen_curve:P-256", *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    return context


async def test_a_certificate_that_is_not_accepted_is_named_as_the_reason(
    self_signed: ssl.SSLContext,
) -> None:
    async def served(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0, ssl=self_signed) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(EndpointBlockedError, match=r"is not accepted \(self-signed"):
            await _sample(f"https://127.0.0.1:{port}/v1")
