"""A policy that works on token ids: a model is trained on exactly the ids that it sampled.

    async with LlamaCppEngine(base_url, model, api_key) as engine:
        ended = await run(start, TokenPolicy(engine), notebook, RunSettings.for_rollouts(), emit)

The policy is stateless: each request carries the ids of the turn before. So a search may branch
from any step of a trajectory.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace

from dm_jupyter.assist.repetition import is_looping
from dm_jupyter.core.errors import EndpointRefusedError, PolicyError
from dm_jupyter.core.sampled_tokens import SampledTokens, TurnEnd
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest
from training.tokens.engine import SampledIds, TokenEngine
from training.tokens.prompt import build_prompt

__all__ = ["TokenPolicy", "UnsupportedRequestError"]

_LOOK_EACH = 100
"""Interval in characters at which a long line is checked as well."""


class UnsupportedRequestError(PolicyError):
    """The request has pictures or tools, which a prompt of token ids can't contain."""


@dataclass(frozen=True, slots=True)
class TokenPolicy:
    """Policy that samples turns as ids; safe for many concurrent trajectories.

    It does not stream: `on_text` receives the complete turn at its end. A turn that loops runs to
    its limit. Its ids and its text are then truncated at the same position.
    """

    engine: TokenEngine
    weight_version: str = ""
    """Recorded with each turn. New weights get a new policy."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.engine.model

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return one turn, with its ids in `Completion.tokens`.

        Raises:
            UnsupportedRequestError: The request has tools or pictures.
            EndpointRefusedError: A log-probability is not a finite number.
            PolicyError: The server can't be reached, refuses, or breaks off.
        """
        if request.tools or any(message.pictures for message in request.messages):
            raise UnsupportedRequestError(
                "A token policy takes no tools and no pictures. "
                "Choose a dialect of plain text, and leave `shows_pictures` off."
            )
        started = time.monotonic()
        prompt = await build_prompt(self.engine, request)
        drawn = await self.engine.sample_ids(prompt.ids, request)
        if not all(map(math.isfinite, drawn.logprobs)):
            raise EndpointRefusedError(
                f"{self.name} sampled an id whose log-probability is not a finite number. "
                "Look at the server's log, and check the model's weights."
            )
        if request.cuts_repetition:
            drawn = await self._cut_at_circle(drawn)
        turn = request.prefill + drawn.text
        end = TurnEnd.of(
            prompt.text + drawn.text,
            turn,
            await self._beyond(drawn),
            drawn.stop,
            is_closed=drawn.is_closed,
        )
        tokens = SampledTokens(
            prompt=prompt.ids,
            sampled=drawn.ids,
            logprobs=drawn.logprobs,
            temperature=request.temperature,
            top_p=request.top_p,
            end=end,
            weight_version=self.weight_version,
            is_forked=prompt.is_forked,
        )
        on_text(turn)
        return Completion(
            text=turn,
            prefill=request.prefill,
            prompt_tokens=len(prompt.ids),
            completion_tokens=len(drawn.ids),
            seconds=time.monotonic() - started,
            finish_reason=drawn.finish_reason,
            mean_probability=_mean_probability(drawn.logprobs),
            tokens=tokens,
        )

    async def _beyond(self, drawn: SampledIds) -> str:
        """Return the text of the ids after the text of the turn."""
        if drawn.is_closed:
            return await self.engine.text_of_ids(drawn.ids[-1:])
        whole = await self.engine.text_of_ids(drawn.ids)
        return whole.removeprefix(drawn.text) if whole.startswith(drawn.text) else ""

    async def _cut_at_circle(self, drawn: SampledIds) -> SampledIds:
        """Return the turn, truncated at the first position where it loops."""
        lines = [at + 1 for at, char in enumerate(drawn.text) if char == "\n"]
        places = sorted([*lines, *range(_LOOK_EACH, len(drawn.text), _LOOK_EACH)])
        chars = next((place for place in places if is_looping(drawn.text[:place])), None)
        if chars is None:
            return drawn
        text = drawn.text[:chars]
        count = await self._ids_that_say(text, drawn.ids)
        return replace(
            drawn,
            ids=drawn.ids[:count],
            logprobs=drawn.logprobs[:count],
            text=text,
            finish_reason="repetition",
            stop="",
            is_closed=False,
        )

    async def _ids_that_say(self, text: str, ids: array[int]) -> int:
        """Return how many leading ids cover a text with which the text of all ids begins."""
        low, high = 0, len(ids)
        while low < high:
            middle = (low + high) // 2
            if (await self.engine.text_of_ids(ids[:middle])).startswith(text):
                high = middle
            else:
                low = middle + 1
        return low


def _mean_probability(logprobs: array[float]) -> float | None:
    """Return the geometric mean of the probabilities."""
    return math.exp(sum(logprobs) / len(logprobs)) if logprobs else None
