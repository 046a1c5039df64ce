"""Applies the rules of a family to one request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.dm_jupyter.models.family import Family

__all__ = ["Refusal", "effective", "error_body", "opening_of", "refusal", "stops_of"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error in place of an answer."""

    status: int
    content: Any


def refusal(family: Family, body: dict[str, Any]) -> Refusal | None:
    """Returns the first rule that the request breaks, or None."""
    for field, message, code in _faults(family, body):
        status = family.refusal_status if code == "unknown_parameter" else 400
        value = body.get(field)
        return Refusal(status, error_body(family, status, message, (field, value), code))
    return None


def effective(family: Family, body: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields that have an effect on the answer."""
    return {
        name: value
        for name, value in body.items()
        if value is not None and name in family.known and name not in family.ignores
    }


def opening_of(family: Family, body: dict[str, Any]) -> str:
    """Returns the text that the answer continues; empty where it begins a new message."""
    last = body["messages"][-1] if body.get("messages") else {}
    if last.get("role") != "assistant" or last.get("tool_calls"):
        return ""
    continues = {
        "continues": True,
        "prefix": bool(last.get("prefix")),
        "flag": bool(body.get("continue_final_message")),
    }
    return str(last.get("content") or "") if continues.get(family.last_assistant) else ""


def _faults(family: Family, body: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The broken rules: field, message, code."""
    sent = {name: value for name, value in body.items() if value is not None}
    for name, value in sent.items():
        if family.refuses_unknown and name not in family.known:
            says = family.unknown_says.format(field=name, value=value)
            yield name, says, "unknown_parameter"
        if name in family.refuses:
            says = family.refused_says.format(field=name, more=family.refuses[name])
            yield name, says, "unsupported_parameter"
        if name in family.only and value != family.only[name]:
            says = family.only_says.format(field=name, value=value, only=family.only[name])
            yield name, says, "unsupported_value"
    for names in family.refused_together:
        if all(sent.get(name) for name in names):
            yield sorted(names)[0], family.refused_says, "invalid_value"
    yield from _stop_faults(family, sent)
    yield from _flag_faults(family, sent)
    yield from _size_faults(family, sent)
    yield from _message_faults(family, sent)


def _stop_faults(family: Family, sent: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if family.blank_stop_refused and any(not stop.strip() for stop in stops_of(sent)):
        says = "stop_sequences: each stop sequence must contain non-whitespace"
        yield "stop", says, "invalid_value"


def stops_of(body: dict[str, Any]) -> list[str]:
    """Returns the stop strings of a request."""
    stop = body.get("stop") or []
    return [stop] if isinstance(stop, str) else list(stop)


def _flag_faults(family: Family, sent: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    both = sent.get("continue_final_message") and sent.get("add_generation_prompt", True)
    if family.both_flags_says and both:
        yield "continue_final_message", family.both_flags_says, "invalid_value"
    if family.tools_refused and sent.get("tools") and sent.get("tool_choice") != "none":
        yield "tools", family.tools_refused, "invalid_value"


def _size_faults(family: Family, sent: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    count = sent.get("n", 1)
    if family.greedy_says and count > 1 and sent.get("temperature") == 0:
        yield "", family.greedy_says.format(n=count), "invalid_value"
    asked = sent.get("max_completion_tokens") or sent.get("max_tokens") or 0
    if family.most_tokens and asked > family.most_tokens:
        says = (
            f"max_tokens={asked} cannot be greater than max_model_len={family.most_tokens}. Please "
            f"request fewer output tokens. (parameter=max_tokens, value={asked})"
        )
        yield "max_tokens", says, "invalid_value"


def _message_faults(family: Family, sent: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    messages = sent.get("messages") or [{}]
    if family.refuses_names and any("name" in message for message in messages):
        yield "messages", "property 'name' is unsupported", "invalid_value"
    last = messages[-1]
    refused = family.last_assistant == "refuses" or (
        family.last_assistant == "prefix" and not last.get("prefix")
    )
    if last.get("role") == "assistant" and refused:
        yield "messages", family.last_assistant_says, "invalid_value"


def error_body(
    family: Family,
    status: int,
    message: str,
    field: tuple[str, Any] = ("", None),
    code: str | None = None,
) -> Any:
    """Returns an error in the family's shape."""
    kind = "invalid_request_error"
    plain = {"message": message, "type": kind}
    unknown = code == "unknown_parameter"
    named = {"param": None if unknown else field[0] or None, "code": None if unknown else code}
    strict = {"type": "extra_forbidden", "loc": ["body", field[0]], "msg": message}
    detail = {"detail": [{**strict, "input": field[1]}]} if unknown else message
    shapes: dict[str, Any] = {
        "openai": {"error": {**plain, **named}},
        "anthropic": {"type": "error", "error": plain, "request_id": "req_1"},
        "google": [{"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}],
        "mistral": {"object": "error", "message": detail, "type": kind, "param": None},
        "groq": {"error": plain},
        "vllm": {"error": {"message": message, "type": "BadRequestError", "code": status}},
        "llama": {"error": {"code": status, **plain}},
        "gateway": {"error": {"code": status, "message": message}},
        "litellm": {"error": {"message": message, "type": "None", "code": str(status)}},
    }
    return shapes[family.error]
