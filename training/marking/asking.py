"""One question to a model from a prompt file: asked once, parsed strictly, cached on disk.

The cache has one file per question, so that no reply is paid for twice. The files contain the
replies, never the questions. Any number of processes may share the folder: entries are written
atomically, and an unreadable one counts as missing.

The faults are below. None of a judge's is a verdict: an answer without one stays unmarked.

DmJupyterError
└── NoReplyError                 one question has no usable reply
    └── ModelUnreachableError    no question can be asked, or no reply kept, now

UnusableReplyError is not a fault of the run. It describes what is wrong with a reply, so that the
model can be asked again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import (
    DmJupyterError,
    EndpointBlockedError,
    EndpointRefusedError,
    EndpointUnreachableError,
    PolicyError,
)
from dm_jupyter.models.protocols import Policy, SampleRequest
from training.durable.at_once import KeyLocks
from training.durable.atomic import write_whole
from training.durable.budget import BudgetSpentError
from training.prompts import load_prompt

__all__ = [
    "Asked",
    "AskedModel",
    "ModelUnreachableError",
    "NoReplyError",
    "ReplyCache",
    "UnusableReplyError",
    "cache_key",
]

T = TypeVar("T")
_OF_ONE_REQUEST = (400, 413, 422)
"""Status codes for a single request that an endpoint can't process, such as one too long."""


class NoReplyError(DmJupyterError):
    """The model could not be asked, or its replies do not follow the form."""


class ModelUnreachableError(NoReplyError):
    """Nothing answers, the key or the model name is wrong, or the disk for replies is full."""


class UnusableReplyError(ValueError):
    """A reply does not follow the form; the message, written for the model, says where."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """Answer to a question."""

    value: T
    reply: str
    """The model's text."""
    is_cached: bool
    """Whether it was cached, or came from an equal request in flight."""


class AskedModel:
    """A model asked at temperature 0 and seed 0, without a limit on concurrent questions.

    Equal concurrent questions through one object are sent once. If the caller that sent one is
    cancelled, the next caller sends it.
    """

    def __init__(self, policy: Policy, cache: Path, max_tokens: int) -> None:
        self._policy = policy
        self._cache = ReplyCache(cache)
        self._max_tokens = max_tokens
        self._in_flight = KeyLocks()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def ask(
        self, prompt: str, fields: Mapping[str, str], read: Callable[[str], T]
    ) -> Asked[T]:
        """Return the parsed reply; after an unusable one, ask once more with a reminder.

        Args:
            prompt: name of the prompt file.
            fields: values for the prompt's fields.
            read: parses a reply, or raises `UnusableReplyError`.

        Raises:
            NoReplyError: the model can't be asked, its replies are unusable twice, or the reply
                can't be cached.
            BudgetSpentError: the policy is metered, and its budget is spent.
            FileNotFoundError: there is no such prompt.
            KeyError: the prompt has a field that `fields` lacks.
        """
        request = self._request(load_prompt(prompt).fill(fields))
        key = cache_key(self.name, load_prompt(prompt).fingerprint, request)
        async with self._in_flight.holding(key) as question:
            kept = await self._kept(key, read)
            if kept is not None:
                return kept
            if question.fault is not None:
                raise type(question.fault)(str(question.fault)) from question.fault
            try:
                return await self._fresh(prompt, key, request, read)
            except NoReplyError as fault:
                question.fault = fault
                raise

    def _request(self, text: str) -> SampleRequest:
        sendable = text.encode("utf-8", "replace").decode()  # half a surrogate pair can't be sent
        return SampleRequest(
            (Message("user", sendable),),
            temperature=0.0,
            top_p=1.0,
            max_tokens=self._max_tokens,
            seed=0,
        )

    async def _kept(self, key: str, read: Callable[[str], T]) -> Asked[T] | None:
        reply = await asyncio.to_thread(self._cache.read, key)
        if reply is None:
            return None
        try:
            return Asked(read(reply), reply, is_cached=True)
        except UnusableReplyError:  # damaged, or cached by a release with other parsing
            return None

    async def _fresh(
        self, prompt: str, key: str, request: SampleRequest, read: Callable[[str], T]
    ) -> Asked[T]:
        reply = await self._sampled(request)
        try:
            value = read(reply)
        except UnusableReplyError as problem:
            reply = await self._sampled(_reminded(request, reply, str(problem)))
            try:
                value = read(reply)
            except UnusableReplyError as still:
                raise NoReplyError(
                    f"{self.name} gave no usable reply to {prompt}, asked twice: {still}; "
                    "a larger model keeps to the form more often"
                ) from still
        await self._keep(prompt, key, reply)
        return Asked(value, reply, is_cached=False)

    async def _sampled(self, request: SampleRequest) -> str:
        try:
            return (await self._policy.sample(request, lambda _: None)).text
        except BudgetSpentError:
            raise
        except PolicyError as error:
            kind = ModelUnreachableError if _concerns_all(error) else NoReplyError
            raise kind(f"{self.name} can't be asked: {error}") from error

    async def _keep(self, prompt: str, key: str, reply: str) -> None:
        about = {
            "model": self.name,
            "prompt": prompt,
            "fingerprint": load_prompt(prompt).fingerprint,
        }
        try:
            await asyncio.to_thread(self._cache.write, key, reply, about)
        except OSError as error:
            raise ModelUnreachableError(
                f"the reply of {self.name} can't be kept in {self._cache.folder}: {error}; "
                "free the disk, or name another folder"
            ) from error


def _concerns_all(error: PolicyError) -> bool:
    """Return whether other questions would be refused as well."""
    if isinstance(error, EndpointRefusedError):
        return error.status not in _OF_ONE_REQUEST
    return isinstance(error, EndpointUnreachableError | EndpointBlockedError)


def _reminded(request: SampleRequest, reply: str, problem: str) -> SampleRequest:
    """Return the request extended by the unusable reply and what is wrong with it."""
    reminder = load_prompt("judge_reminder").fill({"problem": problem})
    said = reply if reply.strip() else "(no reply)"  # endpoints refuse an empty message
    told = (Message("assistant", said), Message("user", reminder))
    return replace(request, messages=(*request.messages, *told))


def cache_key(model: str, fingerprint: str, request: SampleRequest) -> str:
    """Return the sha256 of everything that a reply depends on, as hex digits.

    Args:
        model: the model's name.
        fingerprint: of the prompt.
        request: the request, including its sampling settings.
    """
    parts = {
        "model": model,
        "prompt": fingerprint,
        "messages": [message.to_json() for message in request.messages],
        "prefill": request.prefill,
        "stop": list(request.stop),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ReplyCache:
    """Folder of cached replies; the first write creates it."""

    folder: Path

    def read(self, key: str) -> str | None:
        """Return the reply cached under a key; `None` if it is missing or incomplete."""
        try:
            entry = json.loads(self._path(key).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        reply = entry.get("reply") if isinstance(entry, dict) else None
        return reply if isinstance(reply, str) else None

    def write(self, key: str, reply: str, about: Mapping[str, str]) -> None:
        """Cache a reply; it replaces an earlier one.

        Args:
            key: of the question.
            reply: the model's text.
            about: facts for a reader of the folder, such as the model.

        Raises:
            OSError: the folder can't be written; an earlier entry is then unchanged.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(f"{json.dumps({**about, 'reply': reply})}\n".encode(), self._path(key))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
