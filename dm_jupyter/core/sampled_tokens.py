"""The token ids of one turn: what the model was given, what it sampled, and how likely that was.

Text is not enough to learn from a turn: tokenized again, it may give other ids than the model
sampled. A policy that works on ids keeps them here, beside the text of the completion.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["SampledTokens", "TurnEnd", "float_array", "id_array"]

if TYPE_CHECKING:
    _Ids = array[int]
    _Floats = array[float]
else:  # the codec reads the types of fields, and accepts no parametrized array
    _Ids = _Floats = array


def id_array(ids: Iterable[int] = ()) -> array[int]:
    """Return token ids as 32-bit integers. Nobody changes the array afterwards."""
    return array("i", ids)


def float_array(values: Iterable[float] = ()) -> array[float]:
    """Return numbers as 32-bit floats. Nobody changes the array afterwards."""
    return array("f", values)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """Where a turn ended in the text of its conversation, so that the next prompt continues there.

    The text itself is not kept: its length and its hash show whether a later conversation still
    begins with it.
    """

    chars: int
    """Length of the conversation's text, from its first character to the end of the turn."""
    sha256: str
    """Of that text in UTF-8, hexadecimal."""
    turn_chars: int
    """Length of the turn, its opening included: the last part of that text."""
    beyond: str = ""
    """The text of the sampled ids after the turn's text: the stop string with the rest of the last
    token, or the token with which the model closed its turn."""
    stop: str = ""
    """The stop string that ended the turn, with which `beyond` begins. Empty for another end."""
    is_closed: bool = False
    """Whether the model closed the turn itself: `beyond` is the text of its last id."""

    @classmethod
    def of(cls, text: str, turn: str, beyond: str, stop: str, *, is_closed: bool) -> TurnEnd:
        """Return the end of a turn.

        Args:
            text: The conversation, with the turn as its last part.
            turn: The turn, its opening included.
            beyond: The text of the sampled ids after it.
            stop: The stop string that ended it.
            is_closed: Whether the model closed it.
        """
        return cls(len(text), _digest(text), len(turn), beyond, stop, is_closed)

    def begins(self, text: str) -> bool:
        """Return whether a conversation begins with the one that this turn ended."""
        return len(text) >= self.chars and _digest(text[: self.chars]) == self.sha256


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """One turn as the model sampled it. A trainer builds its rows from these, never from text."""

    prompt: _Ids
    """Ids that the model was given, the opening of the turn included. Shape: (P,)."""
    sampled: _Ids
    """All ids that it sampled, including those of a stop string and of the token that closes a
    turn. Shape: (S,)."""
    logprobs: _Floats
    """Natural logarithm of the probability that the model gave to each sampled id, before
    temperature and top-p are applied. Shape: (S,)."""
    temperature: float
    top_p: float
    end: TurnEnd
    weight_version: str = ""
    """Which weights sampled the turn; empty if there is only one version."""
    is_forked: bool = False
    """Whether the prompt does not continue the ids of the turn before: the history was rewritten,
    or that turn has no ids. A new row for a trainer then begins."""

    def __post_init__(self) -> None:
        """Check the lengths.

        Raises:
            ValueError: The counts of sampled ids and log-probabilities differ.
        """
        if len(self.logprobs) != len(self.sampled):
            raise ValueError(
                f"{len(self.sampled)} ids were sampled, with {len(self.logprobs)} log-probabilities"
            )

    @property
    def ids(self) -> array[int]:
        """The ids of the prompt and of the sample. Shape: (P + S,)."""
        return self.prompt + self.sampled

    def to_json(self) -> dict[str, Any]:
        """Return the turn as plain JSON values."""
        arrays = {name: list(getattr(self, name)) for name in ("prompt", "sampled", "logprobs")}
        return {**asdict(self), **arrays}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> SampledTokens:
        """Return the turn from the output of `to_json`.

        Raises:
            KeyError: An array or the end is missing.
            TypeError: A field is missing or of another type.
            ValueError: The lengths do not match.
        """
        arrays = {
            "prompt": id_array(raw["prompt"]),
            "sampled": id_array(raw["sampled"]),
            "logprobs": float_array(raw["logprobs"]),
        }
        return cls(**{**raw, **arrays, "end": TurnEnd(**raw["end"])})

    def continues(self, before: SampledTokens) -> bool:
        """Return whether the prompt begins with all ids of the turn before."""
        return self.prompt[: len(before.ids)] == before.ids


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
