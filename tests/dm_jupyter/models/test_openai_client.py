"""What every client of an endpoint sends, and to whom."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from dm_jupyter.cli.doctor import _remote
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialect import Message
from dm_jupyter.models.capabilities import LOCAL_SERVER
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.openai_client import open_client
from dm_jupyter.models.protocols import SampleRequest
from dm_jupyter.server.models import endpoint_check
from tests.dm_jupyter.models.scripted_replies import Replies, failing, turn

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
