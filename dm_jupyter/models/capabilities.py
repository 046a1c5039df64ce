"""What an endpoint can do with a model: from a preset, or learned from it and remembered.

Nothing is guessed from the name of a host. A refusal that names a field of the request shows that
the field must be left out. What was learned is stored in one file of the person's cache folder, per
address and model, and expires.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from dm_jupyter.core.codec import decode_json, decode_value, encode_json, encode_value
from dm_jupyter.models.local.runtime import write_private

__all__ = [
    "CONTEXT_STATUSES",
    "HIDDEN",
    "LOCAL_SERVER",
    "OPTIONAL_FIELDS",
    "Capabilities",
    "CapabilityMemory",
    "is_out_of_range",
    "largest_limit",
    "named_field",
    "names_context",
    "refuses_prefill",
]

OPTIONAL_FIELDS = (
    *("stop", "temperature", "top_p", "seed", "logprobs", "n"),
    *("stream_options", "continue_final_message", "add_generation_prompt"),
)
"""Fields of a request that can be left out, by their names there."""
HIDDEN = "hidden"
_USES = {
    "stop": "Where it is not taken, answers are cut here.",
    "temperature": "Where it is not taken, the endpoint's own.",
    "seed": "The same question can be answered the same way again.",
    "n": "Several tries in one request.",
    "logprobs": "How sure the model is, for a search.",
}
_LENGTHS = ("context_length", "max_model_len", "context_window", "max_context_length")
"""Names of the context length in lists of models: OpenRouter, vLLM, Groq, Mistral."""
_QUESTION_TOKENS = (20_000, 1_500)
"""Tokens read and written in a question of several steps, to illustrate a price."""
_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens", "")
"""Names of the length limit of an answer; if none is accepted, there is no limit."""
_MOST_DOLLARS = 1e5
"""Dollars per million tokens: nothing costs that much, and infinity is not a price."""
_TOO_LARGE = re.compile(
    r"greater|larger|less than or equal|at most|too large|exceed|maximum|[<>]", re.IGNORECASE
)
CONTEXT_STATUSES = (400, 413, 422, 500)
"""Statuses with which endpoints refuse a conversation that is too long."""
_CONTEXT_FULL = re.compile(
    r"context[ _-]?(?:length|size|window|limit)|context[^.]{0,20}(?:full|overflow)"
    r"|exceed[^.]{0,60} context|maximum prompt length|(?:prompt|input)s? (?:is|are) too long"
    r"|input token count|too many (?:input |prompt )?tokens|tokens? \+ \W?max_new_tokens"
    r"|request too large[^.]{0,80} tokens",
    re.IGNORECASE,
)
_OUT_OF_RANGE = re.compile(
    r"\brange\b|\bbetween\b|(?:less|lower|smaller|greater|higher|larger|more) than"
    r"|at (?:most|least)|positive|negative|exceed|maximum|minimum|finite|[<>≤≥]=? ?-?\d",
    re.IGNORECASE,
)
_KEPT_S = 30 * 24 * 3600.0
_MOST_KEPT = 200
_CONTINUES = re.compile(
    r"prefill|last (?:message|role)|final message|(?:end|ends) with a user|prefix", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of an endpoint with a model; `None` means not known yet."""

    continues_prefill: bool | None = None
    """Whether it continues an assistant message at the end instead of answering it."""
    tools: bool | None = None
    """Whether it accepts tools and returns calls of them."""
    token_limit: str = "max_tokens"  # noqa: S105
    """The field that limits an answer's length; empty for none."""
    refused: frozenset[str] = frozenset()
    """Those of `OPTIONAL_FIELDS` that it does not accept."""
    reasoning_field: str = ""
    """Where it streams the thoughts: a field next to the text, `<think>` in it, or `HIDDEN`.

    `HIDDEN` means that thoughts use up the length limit but are never shown."""
    context_tokens: int | None = None
    """Length of prompt and answer together, if the endpoint's list of models states it."""
    images: bool | None = None
    """Whether the model reads pictures, if the list states it."""
    price: tuple[float, float] | None = None
    """Dollars per million tokens read and written, if the list states it."""
    most_tokens: int = 0
    """The largest length limit of an answer that it accepts; 0 if unknown."""

    def takes(self, field: str) -> bool:
        """Whether a field may be sent."""
        return field not in self.refused

    def without(self, *fields: str) -> Capabilities:
        """Return what is known once these fields of a request have been refused.

        Args:
            fields: by their names in the request.
        """
        limit, refused = self.token_limit, self.refused
        for field in fields:
            if field == limit and field:
                limit = _TOKEN_LIMITS[_TOKEN_LIMITS.index(limit) + 1]
            elif field in OPTIONAL_FIELDS:
                refused |= {field}
        return replace(self, token_limit=limit, refused=refused)

    def listed(self, entry: Mapping[str, Any]) -> Capabilities:
        """Return what is known once the model's entry in the endpoint's list has been read.

        Args:
            entry: as the endpoint sends it; each family uses different names.
        """
        length = next((n for key in _LENGTHS if (n := _whole(entry.get(key)))), None)
        architecture, abilities = entry.get("architecture"), entry.get("capabilities")
        images = self.images
        if isinstance(architecture, dict) and isinstance(
            architecture.get("input_modalities"), list
        ):
            images = "image" in architecture["input_modalities"]
        elif isinstance(abilities, dict) and isinstance(abilities.get("vision"), bool):
            images = abilities["vision"]
        return replace(
            self,
            context_tokens=length or self.context_tokens,
            images=images,
            price=_price(entry.get("pricing")) or self.price,
        )

    def described(self) -> list[tuple[str, bool | None, str]]:
        """Return rows for a person: each ability, whether the endpoint has it, and details."""
        limit = f"Sent as {self.token_limit}." if self.token_limit else "Answers have no limit."
        if self.most_tokens:
            limit += f" At most {self.most_tokens}."
        thinking = f"Comes in {self.reasoning_field}." if self.reasoning_field else "None was seen."
        if self.reasoning_field == HIDDEN:
            thinking = "It thinks, and does not show it."
        rows: list[tuple[str, bool | None, str]] = [
            ("tool calls", self.tools, "Chooses the dialect tools; without them, markdown."),
            ("continues an opening", self.continues_prefill, "Small models do better with one."),
            ("limit of length", bool(self.token_limit), limit),
            ("reasoning", bool(self.reasoning_field) or None, thinking),
            (
                "images",
                self.images,
                "Reads figures as pictures, where you allow it; else in words.",
            ),
        ]
        if self.context_tokens:
            rows.append(("context", True, f"{self.context_tokens:,} tokens."))
        if self.price:
            rows.append(("price", True, self._price_in_words()))
        return rows + [(name, self.takes(name), _USES[name]) for name in _USES]

    def _price_in_words(self) -> str:
        read, written = self.price or (0.0, 0.0)
        question = (read * _QUESTION_TOKENS[0] + written * _QUESTION_TOKENS[1]) / 1e6
        return (
            f"${read:g} per million tokens read, ${written:g} written: about ${question:.2g} for "
            f"a question of {_QUESTION_TOKENS[0]:,} and {_QUESTION_TOKENS[1]:,}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**encode_value(self), "refused": sorted(self.refused)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Capabilities:
        """Return the capabilities that `to_json` encoded.

        Raises:
            ValueError: a value has the wrong type, or its field is unknown.
        """
        if unknown := raw.keys() - {item.name for item in fields(cls)}:
            raise ValueError(f"capabilities: there is no {min(unknown)}")
        found = decode_value(cls, raw, "capabilities")
        if found.token_limit not in _TOKEN_LIMITS or found.refused - set(OPTIONAL_FIELDS):
            raise ValueError("capabilities: a field of a request that nobody knows")
        if found.most_tokens < 0:
            raise ValueError("capabilities.most_tokens: a limit that is none")
        return found


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _price(pricing: object) -> tuple[float, float] | None:
    """Return dollars per million tokens read and written, from OpenRouter's dollars per token."""
    try:
        read, written = (float(pricing[key]) * 1e6 for key in ("prompt", "completion"))  # type: ignore[index]
    except (TypeError, ValueError, KeyError):
        return None
    return (read, written) if 0 <= read < _MOST_DOLLARS and 0 <= written < _MOST_DOLLARS else None


LOCAL_SERVER = Capabilities(continues_prefill=True, tools=False, images=False)
"""The local model's own server, whose models do better in a dialect that helps them."""


def named_field(body: object, sent: Iterable[str]) -> str:
    """Return the field of a request that a refusal names; empty if it names none.

    Args:
        body: of the refusal, as parsed from JSON, or its text.
        sent: the names of the fields that were sent.
    """
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    fields = sorted(sent, key=len, reverse=True)  # max_completion_tokens before max_tokens
    parameter = re.search(r'"param(?:eter)?": *"([^"]+)"', text)
    if parameter and parameter[1] in fields:
        return parameter[1]
    # A refusal may name the field to use instead: the first field that was sent counts.
    found = [(at.start(), field) for field in fields if (at := _mention(field, text))]
    return min(found)[1] if found else ""


def largest_limit(body: object, sent: int) -> int:
    """Return the largest length limit that a refusal allows; 0 if it is about something else.

    Args:
        body: as for `named_field`.
        sent: the limit that was refused.
    """
    text = body if isinstance(body, str) else json.dumps(body, default=str)
    smaller = [int(number) for number in re.findall(r"(?<![\w.-])\d{2,9}\b", text)]
    return max((one for one in smaller if one < sent), default=0) if _TOO_LARGE.search(text) else 0


def _mention(field: str, text: str) -> re.Match[str] | None:
    # A single letter is a name only where it is marked as one.
    pattern = rf"(?<![\w-]){re.escape(field)}(?![\w-])"
    if len(field) == 1:
        pattern = rf"""['"`]{field}['"`]|\b{field} ?[=>]|\b{field} (?:must|cannot|can't|should)\b"""
    return re.search(pattern, text)


def refuses_prefill(body: object) -> bool:
    """Whether a refusal is about an assistant message at the end.

    Args:
        body: as for `named_field`.
    """
    text = body if isinstance(body, str) else json.dumps(body, default=str)
    return bool(_CONTINUES.search(text))


def is_out_of_range(body: object) -> bool:
    """Whether a refusal of a field is about its value, so that another value may be accepted.

    Args:
        body: as for `named_field`.
    """
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    return bool(_OUT_OF_RANGE.search(text))


def names_context(body: object) -> bool:
    """Whether an error says that the conversation is too long; not one of a cancelled context.

    Args:
        body: as for `named_field`.
    """
    text = body if isinstance(body, str) else json.dumps(body, default=str)
    return bool(_CONTEXT_FULL.search(text))


@dataclass(frozen=True, slots=True)
class _Learned:
    """The entry of one model at one address in the file."""

    learned_at: float
    """Seconds since 1970."""
    capabilities: dict[str, Any]


class CapabilityMemory:
    """The learned capabilities of endpoints, in a file; entries expire after 30 days."""

    def __init__(self, path: Path | None = None) -> None:
        """Create the memory without reading the file.

        Args:
            path: the file; `None` for the one in the person's cache folder.
        """
        self._path = path or user_cache_path("dm-jupyter") / "endpoints.json"

    def recall(self, address: str, model: str) -> Capabilities | None:
        """Return what was learned of a model at an address; `None` if nothing.

        Args:
            address: without possible secrets.
            model: as the endpoint calls it.
        """
        try:
            entry = decode_value(_Learned, self._read().get(_key(address, model)), "entry")
            if time.time() - entry.learned_at > _KEPT_S:
                return None
            return Capabilities.from_json(entry.capabilities)
        except ValueError:
            return None

    def keep(self, address: str, model: str, learned: Capabilities) -> None:
        """Store what was learned; a folder that can't be written is not a fault.

        Args:
            address: without possible secrets.
            model: as the endpoint calls it.
            learned: its capabilities.
        """
        entries = self._read()
        entries.pop(_key(address, model), None)
        entries[_key(address, model)] = _Learned(time.time(), learned.to_json())
        while len(entries) > _MOST_KEPT:
            del entries[next(iter(entries))]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._path.with_suffix(f".{os.getpid()}.new")
            write_private(fresh, encode_json(entries))
            fresh.replace(self._path)
        except OSError:
            return

    def _read(self) -> dict[str, Any]:
        try:
            return decode_json(dict[str, Any], self._path.read_bytes(), str(self._path))
        except (OSError, ValueError):
            return {}


def _key(address: str, model: str) -> str:
    return f"{address.rstrip('/')} {model}"
