"""A policy that keeps each completion, so that resumed work repeats no call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dm_jupyter.core.sampled_tokens import SampledTokens
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import BatchPolicy, Policy, SampleRequest
from dm_jupyter.models.sample_each import sample_each
from training.durable.at_once import KeyLocks
from training.durable.log import DurableLog

__all__ = ["CALLS_FILE", "KeptPolicy", "completion_key"]

CALLS_FILE = "calls.jsonl"
"""Name of the log in the folder of a run."""
_WAY_OUT = "Add --salvage to the command, or remove the line: its call is then made again."
_DECIDING = (
    "prefill", "stop", "stop_unopened", "tools", "temperature", "top_p", "max_tokens", "seed",
    "cuts_repetition", "thinks_in_text",
)  # fmt: skip
"""Fields of a request that determine the completion, besides the messages."""


@dataclass(frozen=True, slots=True)
class _KeptCall:
    """Completions of one request."""

    key: str
    completions: tuple[Completion, ...]


class KeptPolicy:
    """`BatchPolicy` over another policy that logs each completion, for later runs to reuse.

    The same request gets the same answer without another call, within a run and in the run that
    resumes a killed one. Equal concurrent requests make one call. A request that was in flight when
    the process was killed is made again.

    A batch is kept as one call if the policy samples it as one. Otherwise each turn is one.
    """

    def __init__(
        self, policy: Policy, file: Path, draws_together: Callable[[], bool] = lambda: True
    ) -> None:
        """Create the policy; the first request loads the log unless `load` did.

        Args:
            policy: samples requests that are not in the log.
            file: the log, created with its folder. One process at a time uses it.
            draws_together: whether the endpoint currently returns all turns of a batch in one
                answer; otherwise they are kept one by one.
        """
        self._policy = policy
        self._draws_together = draws_together
        self._log = DurableLog(file, _encoded, _decoded, lambda call: call.key, _WAY_OUT)
        self._known: dict[str, int] = {}
        """Offset of each call in the log, so that no completion stays in memory."""
        self._is_loaded = False
        self._in_flight = KeyLocks()

    def load(self, *, salvages: bool = False) -> None:
        """Index the log; an incomplete last line is removed.

        Args:
            salvages: whether damaged lines are set aside first.

        Raises:
            LogError: a line is not a kept call.
            OSError: the file can't be read, or its folder can't be created.
        """
        self._log.path.parent.mkdir(parents=True, exist_ok=True)
        if salvages:
            self._log.salvage()
        self._known = self._log.index()
        self._is_loaded = True

    @property
    def name(self) -> str:
        """The name of the wrapped policy's model."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return the kept turn of this request, or sample it.

        Raises:
            PolicyError: the model can't be sampled; nothing is kept.
            LogError: the log is damaged.
            OSError: the turn can't be written to the log.
        """
        key = completion_key(self.name, request)
        async with self._in_flight.holding(key):
            if not self._is_loaded:
                self.load()
            if key in self._known:
                (known,) = self._log.at(self._known[key]).completions
                on_text(known.text)
                return known
            found = await self._policy.sample(request, on_text)
            self._known[key] = self._log.append(_KeptCall(key, (found,)))
            return found

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Return the kept turns of this request, or sample them.

        Raises:
            PolicyError: the model can't be sampled; nothing is kept.
            LogError: the log is damaged.
            OSError: the turns can't be written to the log.
        """
        if not isinstance(self._policy, BatchPolicy):
            return await sample_each(lambda one: self.sample(one, lambda _: None), request, count)
        if count > 1 and not self._draws_together():
            return await sample_each(self._batch_of_one, request, count)
        key = completion_key(self.name, request, count)
        async with self._in_flight.holding(key):
            if not self._is_loaded:
                self.load()
            if key in self._known:
                return list(self._log.at(self._known[key]).completions)
            drawn = await self._policy.sample_many(request, count)
            self._known[key] = self._log.append(_KeptCall(key, tuple(drawn)))
            return drawn

    async def _batch_of_one(self, request: SampleRequest) -> Completion:
        return (await self.sample_many(request, 1))[0]


def completion_key(model: str, request: SampleRequest, count: int | None = None) -> str:
    """Return the sha256 of everything that determines a completion, as hex digits.

    Args:
        model: the model's name.
        request: the request; its urgency and callbacks do not count.
        count: of the turns of a batch; `None` for a single turn.
    """
    parts: dict[str, Any] = {
        "model": model,
        "messages": [asdict(message) for message in request.messages],
        **{name: _plain(getattr(request, name)) for name in _DECIDING},
    }
    if request.before is not None:
        parts["before"] = request.before.to_json()
    if count is not None:
        parts["count"] = count
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    """Return a field of a request as a JSON value."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [one if isinstance(one, str) else one.to_json() for one in value]
    return value


def _encoded(call: _KeptCall) -> str:
    return json.dumps({"key": call.key, "completions": [_row(one) for one in call.completions]})


def _row(completion: Completion) -> dict[str, Any]:
    row = asdict(replace(completion, tokens=None))
    if completion.tokens is not None:
        row["tokens"] = completion.tokens.to_json()
    return row


def _completion(row: dict[str, Any]) -> Completion:
    tokens = row.get("tokens")
    return Completion(**{**row, "tokens": SampledTokens.from_json(tokens) if tokens else None})


def _decoded(line: bytes) -> _KeptCall:
    row = json.loads(line)
    completions = tuple(_completion(one) for one in row["completions"])
    if not isinstance(row["key"], str) or not completions:
        raise ValueError("expected a key and completions")
    return _KeptCall(row["key"], completions)
