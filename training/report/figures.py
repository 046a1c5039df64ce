"""The figures of a run as the page needs them; only this module knows the shape of a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.evaluation.summary import summary_of
from training.metrics.accuracy import Rules
from training.metrics.runs import by_group
from training.records.records import EvalRecord

__all__ = ["Figures", "ShownShare", "figures_of"]


@dataclass(frozen=True, slots=True)
class ShownShare:
    """A share between 0 and 1 with its 95 % interval."""

    share: float
    low: float
    high: float
    right: float
    """Number of runs for which the condition is true; 0 if that is not counted."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The summary of one run."""

    name: str
    summary: Mapping[str, Any]
    records: Sequence[EvalRecord]

    @property
    def questions(self) -> int:
        """Questions asked."""
        return int(self.summary["all"]["questions"])

    @property
    def tries(self) -> int:
        """Attempts at all questions together."""
        return int(self.summary["all"]["runs"])

    @property
    def answered(self) -> int:
        """Attempts that gave an answer."""
        return int(self.summary["all"]["answered"])

    @property
    def failures(self) -> Mapping[str, int]:
        """Number of attempts by kind of failure, the most frequent first."""
        found: Mapping[str, int] = self.summary["failures"]
        return found

    @property
    def self_debugging(self) -> ShownShare | None:
        """Of the attempts in which a cell raised, the share that ended with a cell that ran."""
        found = self.summary["self_debugging"]
        return _share(found) if found else None

    @property
    def grades(self) -> Mapping[str, Mapping[str, Any]]:
        """Graded scores by name: `mean`, `interval`, `questions`, `ungraded`."""
        found: Mapping[str, Mapping[str, Any]] = self.summary["grades"]
        return found

    @property
    def costs(self) -> Mapping[str, Mapping[str, float]]:
        """Costs of an attempt by name: `mean`, `median`, `total`."""
        found: Mapping[str, Mapping[str, float]] = self.summary["costs"]
        return found

    def right(self, rules: Rules) -> ShownShare:
        """Return the share of correct answers."""
        return _share(self.summary["all"][rules])

    def group_values(self) -> dict[str, list[str]]:
        """Return the values of each group that has several."""
        groups: Mapping[str, Mapping[str, Any]] = self.summary["groups"]
        return {name: list(values) for name, values in groups.items() if len(values) > 1}

    def group_size(self, name: str, value: str) -> int:
        """Return the number of questions with one value of a group."""
        found = self.summary["groups"].get(name, {}).get(value)
        return int(found["questions"]) if found else 0

    def group_right(self, name: str, value: str, rules: Rules) -> ShownShare | None:
        """Return a group's share of correct answers; `None` if the run has no such question."""
        found = self.summary["groups"].get(name, {}).get(value)
        return _share(found[rules]) if found else None

    def group_failures(self, name: str) -> dict[str, tuple[int, Counter[str]]]:
        """Return the attempts of each value of a group, and how many failed in which way."""
        return {
            value: (len(members), Counter(one.failure for one in members if one.failure))
            for value, members in by_group(self.records, name).items()
        }

    def passes(self, rules: Rules) -> dict[int, ShownShare]:
        """Return pass@k by k; empty if a question has only one attempt."""
        found = self.summary["pass_at"].get(rules, {})
        return {int(k): _share(one) for k, one in found.items()}

    def any_try(self, rules: Rules) -> ShownShare | None:
        """Return the share of questions that any attempt solved; `None` with one attempt each."""
        found = self.summary["any_try"].get(rules)
        return _share(found) if found else None

    @property
    def parts(self) -> Mapping[str, ShownShare]:
        """Share of attempts that meet each part of the verdict; empty if parts are sub-answers."""
        return {name: _share(one) for name, one in self.summary["parts"].items()}

    def sub_answers(self, rules: Rules) -> Mapping[str, Any]:
        """Return `abq`, `pasq`, `uasq` and intervals; empty if no answer has several parts."""
        found: Mapping[str, Any] = self.summary["sub_answers"].get(rules, {})
        return found


def figures_of(name: str, records: Sequence[EvalRecord], kept: Mapping[str, Any]) -> Figures:
    """Return the figures of a run.

    Args:
        name: the name of the run.
        records: the records that the figures are computed from.
        kept: the summary that the run wrote, the only source of what its tokens cost.
    """
    summary = summary_of(records)
    summary["costs"] |= _dollars(kept, summary["costs"])
    return Figures(name, summary, records)


def _dollars(kept: Mapping[str, Any], costs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dollars of a summary of the same records; else nothing."""
    match kept:
        case {
            "costs": {
                "dollars": {"mean": float(), "median": float(), "total": float()} as dollars,
                **others,
            }
        } if others == costs:
            return {"dollars": dollars}
    return {}


def _share(found: Mapping[str, Any]) -> ShownShare:
    low, high = found["interval"]
    return ShownShare(float(found["share"]), float(low), float(high), float(found.get("right", 0)))
