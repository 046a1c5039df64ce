"""Refusals and faulty streams of an endpoint become the analyst's own errors."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import (
    ContextFullError,
    EndpointRefusedError,
    PolicyError,
    StreamBrokenError,
)
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.capabilities import Capabilities
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.protocols import SampleRequest
from tests.dm_jupyter.models.scripted_replies import Replies, Reply, chunk, events, failing

KEY = "sk-very-secret-0123456789"
ASKED = SampleRequest((Message("user", "How many?"),), max_tokens=100)
KNOWN = Capabilities(continues_prefill=False, tools=True)


async def _sampled(reply: Reply, known: Capabilities = KNOWN, **sent: str) -> Completion:
    with Replies(lambda _: reply, **sent) as server:
        async with HttpPolicy(Endpoint(server.base_url, "m", KEY, known, retries=0)) as policy:
            return await policy.sample(ASKED, lambda _: None)


async def _fault(reply: Reply, **sent: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        await _sampled(reply, **sent)
    assert "m at http://127.0.0.1:" in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (failing(401, f"Incorrect key: {KEY}."), EndpointRefusedError, "Incorrect key: [key]."),
        (failing(401, f"Incorrect key: {KEY[:12]}"), EndpointRefusedError, "Incorrect key: [key]"),
        (failing(500, "x" * 290 + KEY), EndpointRefusedError, "x[key"),
        (failing(400, {"detail": [KEY]}), EndpointRefusedError, "['[key]']"),
        (events({"error": {"message": f"bad {KEY}"}}), StreamBrokenError, "bad [key]"),
        (events({"error": f"context size, {KEY}"}), PolicyError, "context size, [key]"),
    ],
)
async def test_a_key_that_an_endpoint_repeats_is_in_no_message_and_no_traceback(
    reply: Reply, kind: type[Exception], said: str
) -> None:
    error = await _fault(reply)
    assert isinstance(error, kind)
    assert said in str(error)
    assert KEY[:8] not in "".join(traceback.format_exception(error))


PIECE, END = chunk(content="3"), chunk("stop")


@pytest.mark.parametrize(
    "reply",
    [
        events(b"", PIECE, END),
        events(PIECE, None, [], "ping", 7, END),
        events(PIECE, {"choices": [None]}, END),
        events(PIECE, chunk(content=7), END),
        events({"choices": [{"delta": {"content": "3"}}]}, END),
        events(PIECE, END, before=b"\xef\xbb\xbf"),
        events(PIECE, END, before=b"event: ping\n\n: comment\n\n"),
        events(PIECE, END, {"choices": [], "usage": {"prompt_tokens": "7"}}),
    ],
    ids=[
        "empty",
        "no objects",
        "empty choice",
        "number",
        "no index",
        "BOM",
        "named ping",
        "numbers as text",
    ],
)
async def test_events_that_say_nothing_are_skipped(reply: Reply) -> None:
    done = await _sampled(reply)
    assert (done.text, done.finish_reason) == ("3", "stop")
    assert isinstance(done.prompt_tokens, int)


@pytest.mark.parametrize(
    "event",
    [
        b"{broken",
        b'{"choices": [{"index": 0, "delta": {"content": "\xff"}}]}',
        {"choices": 7},
        {"choices": ["x"]},
        {"choices": [{"index": 0, "delta": "x"}]},
        chunk(tool_calls=["x"]),
        {"choices": [{"index": "one", "delta": {"content": "4"}}]},
        {"choices": [], "usage": {"prompt_tokens": "many"}},
    ],
)
async def test_a_damaged_event_is_a_broken_stream(event: object) -> None:
    error = await _fault(events(PIECE, event, END))
    assert isinstance(error, StreamBrokenError)
    assert "damaged" in str(error)


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_a_page_in_place_of_a_stream_is_told_apart(kind: str) -> None:
    error = await _fault((200, b'{"error": "unexpected path"}'), Content_Type=f"{kind}; charset=u")
    assert isinstance(error, StreamBrokenError)
    assert f"sent {kind} instead of a stream; is --base-url right" in str(error)
    assert "broke off" in str(await _fault(events(), Content_Type="text/event-stream"))
    assert "broke off" in str(await _fault(events(PIECE), Content_Type=kind))


async def test_an_error_in_a_stream_may_have_no_words() -> None:
    error = await _fault(events({"error": {"error": {"message": ""}}}))
    assert isinstance(error, StreamBrokenError)
    assert "it gave no reason" in str(error)


@pytest.mark.parametrize("status", [400, 413, 422, 500])
async def test_a_full_context_is_told_apart_with_every_status(status: int) -> None:
    error = await _fault(failing(status, "prompt is too long: 210000 tokens > 200000 maximum"))
    assert type(error) is ContextFullError
    assert "210000 tokens" in str(error)


async def test_a_full_context_in_a_list_is_told_in_its_own_words() -> None:
    said = "The input token count (12) exceeds the maximum number of tokens allowed (10)."
    error = await _fault(failing(400, [{"error": {"code": 400, "message": said}}]))
    assert type(error) is ContextFullError
    assert str(error).endswith(f": {said}")


def _with_context(tokens: int) -> Callable[[dict[str, Any]], Reply]:
    """Answers as a vLLM does, which counts the limit of an answer as if it were used up."""

    def reply(body: dict[str, Any]) -> Reply:
        read = len(body["messages"][0]["content"])
        if read + body["max_tokens"] <= tokens:
            return events(chunk(reasoning_content="hm"), PIECE, END)
        words = f"This model's maximum context length is {tokens} tokens. However, you requested"
        return failing(400, f"{words} {read + body['max_tokens']} tokens.")

    return reply


async def test_a_model_that_thinks_is_asked_for_less_where_its_context_is_small() -> None:
    short, long, longest = (
        replace(ASKED, messages=(Message("user", "x" * n),)) for n in (100, 300, 1000)
    )
    with Replies(_with_context(1000)) as server:
        endpoint = Endpoint(server.base_url, "m", KEY, KNOWN, retries=0)
        async with HttpPolicy(endpoint) as policy:
            for request in (long, long, long, short):
                assert (await policy.sample(request, lambda _: None)).text == "3"
            with pytest.raises(ContextFullError, match="you requested 1100 tokens"):
                await policy.sample(longest, lambda _: None)
    limits = [body["max_tokens"] for body in server.bodies]
    assert limits == [100, 800, 100, 100, 800, 100]


async def test_a_context_that_is_full_after_an_answer_has_begun_is_not_asked_again() -> None:
    known = replace(KNOWN, reasoning_field="reasoning")
    full = events(PIECE, {"error": {"message": "the context size is exceeded"}})
    with Replies(lambda _: full) as server:
        async with HttpPolicy(Endpoint(server.base_url, "m", KEY, known, retries=0)) as policy:
            with pytest.raises(ContextFullError):
                await policy.sample(ASKED, lambda _: None)
    assert len(server.bodies) == 1
