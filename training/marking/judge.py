"""A model that marks answers: any OpenAI-compatible endpoint, or any other `Policy`.

Its reply contains scores in tags, parsed strictly: anything else is not a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dm_jupyter.config import ModelChoice, model_choice
from dm_jupyter.core.errors import UsageError
from dm_jupyter.models.protocols import Policy
from training.marking.asking import AskedModel, UnusableReplyError

__all__ = [
    "Grades",
    "Judge",
    "Marks",
    "Scale",
    "judge_choice",
    "read_reason",
    "read_scores",
]

Scale = tuple[float, float]
"""The lowest and the highest score."""
_SCORE = re.compile(r'<score(?: name="([\w-]+)")?>([^<>]*)</score>')
_ANY_SCORE_TAG = re.compile(r"</?\s*score\b", re.IGNORECASE)
_REASON_TAG = re.compile(r"</?reason>")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?")


class Judge:
    """Judge that uses the prompts of `training/prompts`, at temperature 0 and seed 0.

    Its replies are cached on disk, so each question is asked once. The caller must limit the number
    of concurrent questions. A judge that fails raises, and never marks an answer wrong.
    """

    def __init__(self, policy: Policy, cache: Path, max_tokens: int = 1_000) -> None:
        """Prepare the judge without any request or write.

        Args:
            policy: the model; an `HttpPolicy` must be open.
            cache: folder of its replies; it may be shared with other judges and processes.
            max_tokens: of a reply; more for a model that thinks aloud before it marks.
        """
        self._model = AskedModel(policy, cache, max_tokens)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def score(
        self, prompt: str, fields: Mapping[str, str], scale: Scale, *, is_whole: bool = False
    ) -> Marks:
        """Return the single `<score>` of the reply.

        Args:
            prompt: name of the prompt file.
            fields: values for the prompt's fields.
            scale: lowest and highest score.
            is_whole: whether the score must be a whole number.

        Raises:
            NoReplyError: the judge could not be asked, its reply was not a verdict twice, or it
                can't be cached.
            FileNotFoundError: there is no such prompt.
            KeyError: the prompt has a field that `fields` lacks.
        """
        grades = await self.grades(prompt, fields, {"": scale}, is_whole=is_whole)
        return Marks(grades.scores[""], grades.reason, grades.is_cached)

    async def grades(
        self,
        prompt: str,
        fields: Mapping[str, str],
        scales: Mapping[str, Scale],
        *,
        is_whole: bool = False,
    ) -> Grades:
        """Return each `<score name="…">` of the reply: those of `scales`, each once, no other.

        Args:
            prompt: name of the prompt file.
            fields: values for the prompt's fields.
            scales: lowest and highest score of each name.
            is_whole: whether each score must be a whole number.

        Raises:
            NoReplyError: the judge could not be asked, its reply was not a verdict twice, or it
                can't be cached.
            FileNotFoundError: there is no such prompt.
            KeyError: the prompt has a field that `fields` lacks.
        """
        read = partial(read_scores, scales=scales, is_whole=is_whole)
        asked = await self._model.ask(prompt, fields, read)
        return Grades(asked.value, read_reason(asked.reply), asked.is_cached)


@dataclass(frozen=True, slots=True)
class Marks:
    """One score."""

    score: float
    reason: str
    """The judge's text besides the score."""
    is_cached: bool
    """Whether it came without a new request."""


@dataclass(frozen=True, slots=True)
class Grades:
    """Several named scores of one reply."""

    scores: Mapping[str, float]
    reason: str
    """The judge's text besides the scores."""
    is_cached: bool
    """Whether they came without a new request."""


def read_scores(
    reply: str, scales: Mapping[str, Scale], *, is_whole: bool = False
) -> dict[str, float]:
    """Return the score of each name, in the order of `scales`.

    Args:
        reply: the judge's text.
        scales: the range of each name, both ends included; `<score>` alone has the name "".
        is_whole: whether a score must be a whole number.

    Raises:
        UnusableReplyError: a score is missing, appears twice, was not requested, is not a plain
            number, or is out of range.
    """
    found = [(match[1] or "", match[2].strip()) for match in _SCORE.finditer(reply)]
    if len(_ANY_SCORE_TAG.findall(reply)) != 2 * len(found):
        raise UnusableReplyError("a score tag in it is broken")
    said = [name for name, _ in found]
    for name in scales:
        if said.count(name) != 1:
            times = said.count(name)
            raise UnusableReplyError(
                f"{_tag(name)} must stand in it once, and stands {times} times"
            )
    for name in said:
        if name not in scales:
            raise UnusableReplyError(f"nobody asked for {_tag(name)}")
    texts = dict(found)
    return {
        name: _number(name, texts[name], scale, is_whole=is_whole) for name, scale in scales.items()
    }


def read_reason(reply: str) -> str:
    """Return the text of a reply without its scores."""
    return _REASON_TAG.sub("", _SCORE.sub("", reply)).strip()


def _number(name: str, text: str, scale: Scale, *, is_whole: bool) -> float:
    low, high = scale
    if _NUMBER.fullmatch(text) is None:
        raise UnusableReplyError(
            f"{_tag(name)} contains {text[:40]!r}, which is not a plain number"
        )
    number = float(text)
    if not low <= number <= high:
        raise UnusableReplyError(f"{_tag(name)} holds {text}, and must be {low:g} to {high:g}")
    if is_whole and not number.is_integer():
        raise UnusableReplyError(f"{_tag(name)} holds {text}, and must be a whole number")
    return number


def _tag(name: str) -> str:
    return f'<score name="{name}">' if name else "<score>"


def judge_choice(model: str, base_url: str, key_file: Path | None) -> ModelChoice:
    """Return the judge's endpoint, which never receives the agent's key or address.

    Raises:
        UsageError: the key file can't be read or is empty, it is given without an address, or an
            endpoint has no model's name.
    """
    if key_file is None:
        return ModelChoice(model, base_url)
    if not base_url:
        raise UsageError("whose key is that? Name the judge's endpoint, too: --judge-base-url")
    return model_choice(model, base_url, key_file)
