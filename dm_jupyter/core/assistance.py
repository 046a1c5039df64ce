"""Which help a model is given, as one value, and what a rule of that help has found.

Help is whatever a published prompt does not have: what we show of the data, what we put into the
model's mouth, what we say after a mistake, what we change in a cell and how often we ask again. A
dialect without help is its system prompt, the task with the names of its files, the model's own
turns, the outputs of its cells and the words for a turn that held nothing.

Not help, and so in no rule: how a dialect splits a turn and names its parts; a reminder after a
void turn, without which there would be nothing to ask; that half a cell, cut at its limit of
length, does not run; that the model learns of what a person changed; the limits of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

__all__ = ["Assistance", "Confidence", "Finding"]

Confidence = Literal["certain", "likely"]
"""Whether the finding follows from what was seen, or, in older records, from what such code usually
means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule has noticed about a cell. It changes nothing by itself."""

    rule: str
    """The field of `Assistance` that switches it."""
    evidence: str
    """What was seen, such as the error's words."""
    confidence: Confidence
    suggestion: str
    """What to do, in the words that the model or the person gets."""


@dataclass(frozen=True, slots=True)
class Assistance:
    """Each rule of the help, on or off. Recorded in every trajectory."""

    profile: bool = True
    """The data is shown as a profile of its files; else only the files are named."""
    links: bool = True
    """The question's words are compared with the columns and values of the data."""
    opening: bool = True
    """A turn begins inside a block that loads the data, where the dialect opens turns."""
    advice: bool = True
    """Questions and files that need it get advice on pandas and scipy while code is written."""
    answer_form: bool = True
    """A cell that prints another kind of value than the format asks for is sent back once."""
    ledger: bool = True
    """The model is shown what its cell did to the data, and an answer that rests on data that are
    not there is sent back once."""
    grounding: bool = True
    """A free answer with numbers that no output holds is sent back once."""
    ending: bool = True
    """A question for a chart, a cleaned file or an explanation gets advice on how it ends; an
    answer without its chart or its file is sent back once."""
    retry_temperature: bool = True
    """The turn after one that was not good enough is sampled hotter."""
    second_thought: bool = True
    """The next cell opens with comments on what was wrong with the last one."""
    forgetting: bool = True
    """Failed attempts that a later one has replaced are not shown again."""
    said_again: bool = True
    """The words before a cell that only comes again are taken for the answer."""
    repetition: bool = True
    """A turn that goes round in circles is cut."""
    quiet_output: bool = True
    """Named noise of libraries is left out of what the model is told of a cell."""
    cut_reminder: bool = True
    """After a turn that was cut, the model is told to do less at once."""
    compaction: bool = True
    """A full context is made shorter, with a digest of its first turns; else the run ends."""

    @classmethod
    def none(cls) -> Assistance:
        """No help at all, for comparisons with what others published."""
        return cls.only(())

    @classmethod
    def only(cls, names: Iterable[str]) -> Assistance:
        """The rules of these names and no other.

        Raises:
            ValueError: there is no rule of a name; the message lists those there are.
        """
        wanted = set(names)
        if unknown := sorted(wanted - set(cls.names())):
            raise ValueError(
                f"there is no rule {unknown[0]!r}; the rules are {', '.join(cls.names())}"
            )
        return cls(**{name: name in wanted for name in cls.names()})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all rules, in their order."""
        return tuple(one.name for one in fields(cls))

    @classmethod
    def for_dialect(cls, dialect: str) -> Assistance:
        """The default of a dialect; of one that is not known, all of the help.

        Prompts that others published go without. A model that calls tools is a larger one: it gets
        the data and no lessons.
        """
        return _DEFAULTS.get(dialect, _ALL)

    def without(self, name: str) -> Assistance:
        """The same with one rule off.

        Raises:
            ValueError: there is no rule of that name.
        """
        return Assistance.only(self.on() - Assistance.only({name}).on())

    def on(self) -> frozenset[str]:
        """The names of the rules that are on."""
        return frozenset(name for name, is_on in self.to_json().items() if is_on)

    def to_json(self) -> dict[str, bool]:
        """Each rule's name, to whether it is on."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Assistance:
        """The inverse of `to_json`; a rule that the record does not know was off."""
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
