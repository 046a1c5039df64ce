"""The help that a model gets, as one value, and the findings of its rules.

Help is whatever a published prompt does not have: what we show of the data and how we open the
model's turn. It is also what we say after a mistake, what we change in a cell and how often we ask
again. A dialect without help has its system prompt, the task with its file names, the model's own
turns, the outputs of its cells and the reminder after a void turn.

These are not help, and so no rule switches them:

- how a dialect splits a turn and names its parts
- a reminder after a void turn, without which there would be nothing to ask
- that half a cell, cut at its length limit, does not run
- that the model is shown what a person changed
- the limits of a run
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

__all__ = ["Assistance", "Confidence", "Finding"]

Confidence = Literal["certain", "likely"]
"""Whether a finding follows from what was observed.

In older records, `likely` findings follow from what such code usually means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation of a rule about a cell. It changes nothing by itself."""

    rule: str
    """The field of `Assistance` that switches the rule."""
    evidence: str
    """What was observed, such as the error message."""
    confidence: Confidence
    suggestion: str
    """What to do, in the words shown to the model or the person."""


@dataclass(frozen=True, slots=True)
class Assistance:
    """Each rule of the help, on or off. Recorded in every trajectory."""

    profile: bool = True
    """The prompt shows a profile of the data files; otherwise it only names them."""
    links: bool = True
    """The question's words are compared with the columns and values of the data."""
    opening: bool = True
    """A turn begins inside a block that loads the data, if the dialect opens turns."""
    advice: bool = True
    """Questions and files that need it get advice on pandas and scipy while code is written."""
    answer_form: bool = True
    """A cell that prints another kind of value than the format asks for is sent back once."""
    ledger: bool = True
    """The model is shown what its cell did to the data.

    An answer that rests on absent data is sent back once."""
    grounding: bool = True
    """A free answer with numbers that appear in no output is sent back once."""
    ending: bool = True
    """A request for a chart, a cleaned file or an explanation gets advice on how it ends.

    An answer without its chart or its file is sent back once."""
    retry_temperature: bool = True
    """The turn after one that was not good enough is sampled at a higher temperature."""
    second_thought: bool = True
    """The next cell opens with comments on what was wrong with the last one."""
    forgetting: bool = True
    """Failed attempts that a later one has replaced are not shown again.

    If the dialect only appends and the model copies its last turn, all turns become a digest."""
    said_again: bool = True
    """If the model repeats its last cell, the words before it become the answer."""
    repetition: bool = True
    """A turn that repeats itself is cut."""
    quiet_output: bool = True
    """Known noise of libraries is removed from the output shown to the model."""
    cut_reminder: bool = True
    """After a turn that was cut, the prompt asks the model to do less at once."""
    compaction: bool = True
    """A full context is shortened with a digest of its first turns; otherwise the run ends."""

    @classmethod
    def none(cls) -> Assistance:
        """Return no help at all, for comparisons with what others published."""
        return cls.only(())

    @classmethod
    def only(cls, names: Iterable[str]) -> Assistance:
        """Return the help with only the rules of these names on.

        Raises:
            ValueError: no rule has one of the names; the message lists the rules.
        """
        wanted = set(names)
        if unknown := sorted(wanted - set(cls.names())):
            raise ValueError(
                f"there is no rule {unknown[0]!r}; the rules are {', '.join(cls.names())}"
            )
        return cls(**{name: name in wanted for name in cls.names()})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all rules, in their order."""
        return tuple(one.name for one in fields(cls))

    @classmethod
    def for_dialect(cls, dialect: str) -> Assistance:
        """Return the default of a dialect; an unknown dialect gets all of the help.

        Prompts that others published get none. A model that calls tools is a larger one: it gets
        the data but no lessons.
        """
        return _DEFAULTS.get(dialect, _ALL)

    def without(self, name: str) -> Assistance:
        """Return the same help with one rule off.

        Raises:
            ValueError: no rule has that name.
        """
        return Assistance.only(self.on() - Assistance.only({name}).on())

    def on(self) -> frozenset[str]:
        """Return the names of the rules that are on."""
        return frozenset(name for name, is_on in self.to_json().items() if is_on)

    def to_json(self) -> dict[str, bool]:
        """Return a mapping from each rule's name to whether it is on."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Assistance:
        """Return the help from the output of `to_json`; rules that the record lacks were off."""
        return cls(**{name: bool(raw.get(name, False)) for name in cls.names()})


_ALL: Final = Assistance()
_NONE: Final = Assistance.none()
_FOR_TOOLS: Final = Assistance.only(
    (
        *("profile", "links", "ledger", "grounding", "ending"),
        *("repetition", "quiet_output", "cut_reminder", "compaction"),
    )
)
_DEFAULTS: Final = {
    "tools": _FOR_TOOLS,
    "jupiter": _NONE,
    "react-published": _NONE,
    "datamind-published": _NONE,
}
