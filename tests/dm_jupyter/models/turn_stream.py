"""The chunks in which a family streams one scripted turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.dm_jupyter.models.family import Family
from tests.dm_jupyter.models.rules import stops_of

__all__ = ["ScriptedModelRequest", "ScriptedTurn", "chunks_of", "limited", "usage_of"]

_TOKEN = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True, slots=True)
class ScriptedModelRequest:
    """What the model behind an endpoint gets to read."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[str, ...] = ()
    prefill: str = ""
    """The opening to continue; empty where the endpoint begins a new message."""


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """What the model writes: a continuation where the request has a prefill."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments as JSON."""
    finish_reason: str = "stop"


def limited(turn: ScriptedTurn, body: dict[str, Any]) -> ScriptedTurn:
    """Returns the turn as the stop strings and the limit of tokens end it.

    A token is a word here, with the white space before it; reasoning counts.
    """
    ends = [at for stop in stops_of(body) if stop and (at := turn.text.find(stop)) >= 0]
    if ends:
        turn = replace(turn, text=turn.text[: min(ends)], tool_calls=(), finish_reason="stop")
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    thought, said = _TOKEN.findall(turn.reasoning), _TOKEN.findall(turn.text)
    if limit is None or len(thought) + len(said) <= limit:
        return turn
    return ScriptedTurn(
        text="".join(said[: max(0, limit - len(thought))]),
        reasoning="".join(thought[:limit]),
        finish_reason="length",
    )


def chunks_of(
    family: Family, turns: list[ScriptedTurn], body: dict[str, Any], opening: str
) -> list[dict[str, Any]]:
    """Returns all events of the stream, the usage among them.

    Args:
        family: whose stream it is.
        turns: one for each choice.
        body: the fields of the request that have an effect.
        opening: what the turns continue.
    """
    chunks = [_filter_results()] if family.empty_choices_first else []
    for index, turn in enumerate(turns):
        chunks += [_chunk(body, index, delta) for delta in _deltas(family, turn, opening)]
        called = turn.tool_calls and turn.finish_reason == "stop"
        reason = family.tool_finish if called else turn.finish_reason
        chunks.append(_chunk(body, index, {}, reason=reason))
    if family.chunk_without_delta:
        filtered: dict[str, Any] = {"index": 0, "finish_reason": None, "content_filter_offsets": {}}
        chunks.append({**_chunk(body, 0, {}), "id": "", "model": "", "choices": [filtered]})
    _add_usage(family, chunks, turns, body)
    return chunks


def _deltas(family: Family, turn: ScriptedTurn, opening: str) -> Iterator[dict[str, Any]]:
    bare: dict[str, Any] = {"content": None} if family.null_content else {}
    text = opening + turn.text if family.echoes_prefill else turn.text
    if family.role_first:
        yield {"role": "assistant", "content": None if family.null_content else ""}
    if turn.reasoning and family.reasoning == "think":
        text = f"<think>\n{turn.reasoning}\n</think>\n\n{text}"
    elif family.reasoning != "hidden":
        for piece in _TOKEN.findall(turn.reasoning):
            yield {**bare, family.reasoning: piece}
    for piece in _TOKEN.findall(text):
        yield {"content": piece}
    for number, (name, arguments) in enumerate(turn.tool_calls):
        for call in _call_pieces(family, number, name, arguments):
            yield {**bare, "tool_calls": [call]}


def _call_pieces(
    family: Family, number: int, name: str, arguments: str
) -> Iterator[dict[str, Any]]:
    place = {"index": number} if family.tool_index else {}
    first = "" if family.arguments_in_pieces else arguments
    identity = {"id": f"call_{number + 1}", "type": "function"}
    yield {**place, **identity, "function": {"name": name, "arguments": first}}
    if family.arguments_in_pieces:
        for start in range(0, len(arguments), 9):
            yield {**place, "function": {"arguments": arguments[start : start + 9]}}


def _chunk(
    body: dict[str, Any],
    index: int,
    delta: dict[str, Any],
    reason: str | None = None,
) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": reason}
    piece = delta.get("content")
    if body.get("logprobs") and piece:
        token = {"token": piece, "logprob": -0.1, "bytes": None, "top_logprobs": []}
        choice["logprobs"] = {"content": [token]}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
    }


def _filter_results() -> dict[str, Any]:
    results = [{"prompt_index": 0, "content_filter_results": {}}]
    empty = {"id": "", "object": "", "created": 0, "model": ""}
    return {**empty, "choices": [], "prompt_filter_results": results}


def _add_usage(
    family: Family, chunks: list[dict[str, Any]], turns: list[ScriptedTurn], body: dict[str, Any]
) -> None:
    if family.usage_also_under:
        chunks[-1][family.usage_also_under] = {"usage": usage_of(turns, body)}
    asked = (body.get("stream_options") or {}).get("include_usage")
    if family.usage == "never" or (family.usage == "asked" and not asked):
        return
    usage = usage_of(turns, body)
    if family.usage_in == "last chunk":
        chunks[-1]["usage"] = usage
    else:
        chunks.append({**_chunk(body, 0, {}), "choices": [], "usage": usage})


def usage_of(turns: list[ScriptedTurn], body: dict[str, Any]) -> dict[str, int]:
    """Returns the tokens of the prompt and of the turns, a word a token."""
    read = sum(len(str(message.get("content")).split()) for message in body["messages"])
    written = sum(len(_TOKEN.findall(f"{turn.reasoning} {turn.text}")) for turn in turns)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
