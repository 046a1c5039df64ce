"""Budget of a pipeline over all its sessions: calls, tokens, dollars and seconds.

A log in the pipeline's folder records the spending. A pipeline that has spent its budget stops with
`BudgetSpentError`. It continues when it is started again with a larger one.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dm_jupyter.core.errors import PolicyError
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import BatchPolicy, Policy, SampleRequest
from training.durable.log import DurableLog

__all__ = [
    "Budget",
    "BudgetMeter",
    "BudgetSpentError",
    "Price",
    "Spending",
    "metered",
    "read_budget",
]

_SPENT_FILE = "spent.jsonl"


class BudgetSpentError(PolicyError):
    """The pipeline has spent its budget; the message names the limit and how to continue."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a pipeline may spend; `None` means no limit. Validated on creation."""

    calls: int | None = None
    """Turns requested, including those that failed or broke off."""
    tokens: int | None = None
    """Sum of tokens read and sampled."""
    dollars: float | None = None
    """Cost of the tokens, at the meter's price."""
    seconds: float | None = None
    """Clock time during which the pipeline ran."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"a budget of {one.name} must be above 0, got {value:g}")


def read_budget(text: str) -> Budget:
    """Return the budget that an option specifies, such as `calls=500,dollars=2.5`.

    Raises:
        ValueError: a name is unknown or occurs twice, or its value is not above 0.
    """
    kinds: dict[str, Callable[[str], Any]] = {
        "calls": int, "tokens": int, "dollars": float, "seconds": float,
    }  # fmt: skip
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in kinds or name in given:
            raise ValueError(f"{part!r} is not one of {', '.join(f'{one}=N' for one in kinds)}")
        given[name] = kinds[name](value)
    return Budget(**given)


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model's tokens; tokens that an endpoint has cached cost as much as others."""

    input_per_million: float
    """Dollars per million tokens read."""
    output_per_million: float
    """Dollars per million tokens sampled."""

    def __post_init__(self) -> None:
        for value in (self.input_per_million, self.output_per_million):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"a price must be 0 dollars or more, not {value}")

    def of(self, read: int, sampled: int) -> float:
        """Return the cost of tokens in dollars.

        Tokens read x input + tokens sampled x output, over a million. Test: `test_a_price_by_hand`.
        """
        return (read * self.input_per_million + sampled * self.output_per_million) / 1_000_000


@dataclass(frozen=True, slots=True)
class Spending:
    """Spending of one call or of many."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Clock time since the line before, or since the session began."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
        )


class BudgetMeter:
    """Meter of a pipeline's spending over all its sessions; a context manager.

    Calls are counted before they are made. Tokens and dollars are known only afterwards, so calls
    in flight together may exceed the budget. *Not covered*: if the process is killed, the tokens of
    calls in flight, and the seconds since the last call.
    """

    def __init__(self, folder: Path, budget: Budget, price: Price | None = None) -> None:
        """Create the meter without file access; `load` reads the spending of earlier sessions.

        Args:
            folder: of the pipeline, which contains `spent.jsonl`.
            budget: of all sessions together.
            price: of the tokens; a budget of dollars needs one.

        Raises:
            ValueError: dollars are limited but no price is given.
        """
        if budget.dollars is not None and price is None:
            raise ValueError("a budget in dollars needs the price of a token: see --price")
        self._budget = budget
        self._price = price or Price(0.0, 0.0)
        numbers = itertools.count()
        way_out = "Add --salvage to the command, or remove the line: what it spent counts no more."
        self._log = DurableLog(
            folder / _SPENT_FILE, _encoded, _decoded, lambda _: next(numbers), way_out
        )
        self._spent = Spending()
        self._in_flight = 0
        self._since: float | None = None

    def __enter__(self) -> Self:
        """Return the meter."""
        return self

    def load(self, *, salvages: bool = False) -> None:
        """Read the spending of earlier sessions, and start to count seconds.

        Args:
            salvages: whether damaged lines are set aside first.

        Raises:
            LogError: a line of the log is damaged.
            OSError: the folder can't be created, or the log can't be read.
        """
        self._log.path.parent.mkdir(parents=True, exist_ok=True)
        if salvages:
            self._log.salvage()
        self._spent = sum(self._log.each(), Spending())
        self._since = time.monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record the seconds since the last call."""
        if self._since is not None:
            self._add(Spending())

    @property
    def spent(self) -> Spending:
        """Spending of all sessions until now."""
        return self._spent + Spending(seconds=self._session_s())

    @property
    def dollars(self) -> float:
        """Cost of the tokens."""
        return self._price.of(self._spent.prompt_tokens, self._spent.completion_tokens)

    def refuse(self, calls: int = 0) -> None:
        """Raise if the budget is spent, or if so many further calls would exceed it.

        Raises:
            BudgetSpentError: the budget is or would be exceeded.
        """
        spent = self.spent
        used = {
            "calls": spent.calls + self._in_flight + max(0, calls - 1),
            "tokens": spent.prompt_tokens + spent.completion_tokens,
            "dollars": self.dollars,
            "seconds": spent.seconds,
        }
        for name, value in used.items():
            limit = getattr(self._budget, name)
            if limit is not None and value >= limit:
                raise BudgetSpentError(
                    f"the budget of {limit:,} {name} is used up: {_said(spent, self.dollars)}. "
                    "What is done is kept. To go on, give the same command with a larger "
                    f"--budget {name}=N."
                )

    @asynccontextmanager
    async def call(self, count: int = 1) -> AsyncIterator[list[Completion]]:
        """Count a request for `count` turns; the caller adds the turns to the yielded list.

        Raises:
            BudgetSpentError: the budget does not allow the request.
            OSError: the spending can't be recorded.
        """
        if self._since is None:
            self.load()
        self.refuse(count)
        self._in_flight += count
        drawn: list[Completion] = []
        try:
            yield drawn
        finally:
            self._in_flight -= count
            read = sum(one.prompt_tokens for one in drawn)
            self._add(Spending(count, read, sum(one.completion_tokens for one in drawn)))

    def _add(self, spending: Spending) -> None:
        spending = replace(spending, seconds=round(self._session_s(), 3))
        self._since = time.monotonic()
        self._log.append(spending)
        self._spent += spending

    def _session_s(self) -> float:
        """Return the seconds since the last line."""
        return 0.0 if self._since is None else time.monotonic() - self._since


def metered(policy: Policy, meter: BudgetMeter) -> Policy:
    """Return the policy with every call counted against a budget; it raises `BudgetSpentError`.

    It belongs below a `KeptPolicy`, since kept calls cost nothing. A `BatchPolicy` remains one.

    Args:
        policy: the model.
        meter: of the pipeline.
    """
    if isinstance(policy, BatchPolicy):
        return _MeteredBatchPolicy(policy, meter)
    return _MeteredPolicy(policy, meter)


class _MeteredPolicy:
    """`Policy` that counts each call."""

    def __init__(self, policy: Policy, meter: BudgetMeter) -> None:
        self._policy = policy
        self._meter = meter

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return one turn."""
        async with self._meter.call() as drawn:
            drawn.append(await self._policy.sample(request, on_text))
        return drawn[0]


class _MeteredBatchPolicy(_MeteredPolicy):
    """`BatchPolicy` that counts each call."""

    def __init__(self, policy: BatchPolicy, meter: BudgetMeter) -> None:
        super().__init__(policy, meter)
        self._batch_policy = policy

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Return `count` turns."""
        async with self._meter.call(count) as drawn:
            drawn.extend(await self._batch_policy.sample_many(request, count))
        return drawn


def _said(spent: Spending, dollars: float) -> str:
    tokens = spent.prompt_tokens + spent.completion_tokens
    return f"{spent.calls:,} calls, {tokens:,} tokens, ${dollars:.2f}, {spent.seconds:,.0f} s"


def _encoded(spending: Spending) -> str:
    return json.dumps(asdict(spending))


def _decoded(line: bytes) -> Spending:
    return Spending(**json.loads(line))
