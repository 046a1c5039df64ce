"""Closed-form answers, `@name[value]` (InfiAgent-DABench, arXiv 2401.05507 §3), scored twice.

`strict` is the benchmark's own reading: the pattern stops at the first `]`, of a repeated name the
last one counts, and a value is right when it is the identical string, else a number less than 1e-6
away, else a comma list that is right item by item, in order. Deviates from the published scorer
in two places: it knows no lists, and it drops unanswered questions; here silence is wrong.

`sensible` reads what a person would: brackets balance, and spaces, quotes, case, thousands
separators, a percent sign, brackets around lists, the order of a dict's keys and a midnight after
a date don't matter. Units, expressions, other roundings, other orders and other signs do. No
number is ever let off with a relative tolerance: 34.654 is not the asked 34.65.

Three rules look at the label alone, so that `sensible` is not symmetric there:

- A label that is a non-zero number under 1e-4 needs 1 % of itself, not 1e-6: 0 doesn't answer a
  p-value of 1e-7, while 1.2e-8 does answer `0.0000`.
- A label that says "nothing" (`None`, `[]`, empty) takes any of these; the word `none` in lower
  case is an answer like another (no relationship) and an empty pair of brackets doesn't give it.
- Where a label name stands k times (question 734), the last k different answers to it are
  matched in any order: published labels are a shuffled set, so that an order means nothing.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dm_jupyter.core.closed_form import fold_name, given_answers
from training.scoring.values import Number, equal, fold, parse_number

__all__ = ["ClosedFormScore", "RuleSet", "SubAnswer", "agree", "score", "strictly_equal"]

RuleSet = Literal["strict", "sensible"]

STRICT_TOLERANCE = 1e-6
"""Absolute; the benchmark's own."""
SMALL_LABEL_SHARE = 0.01
"""A non-zero label may be missed by this share of itself at most."""
MAX_AGREEING = 100
"""Answers with more values than this agree only word by word, so that comparing stays quick."""
MAX_VALUE_CHARS = 20_000
"""Longer values agree only word by word, as in `short_answer`."""

_STRICT_TAG = re.compile(r"@(\w+)\[")
_NOTHING_LABELS = frozenset({"", "None", "null", "[]", "()", "{}"})
_NOTHING_ANSWERS = frozenset({"", "none", "null", "[]", "()", "{}", "nan", "nat", "<na>"})


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """One expected value and what was said to it."""

    name: str
    label: str
    answer: str | None
    """The value as written; None where the name was not answered."""
    right: bool


@dataclass(frozen=True, slots=True)
class ClosedFormScore:
    """The verdict on each sub-answer, in the labels' order."""

    parts: tuple[SubAnswer, ...]

    @property
    def all_right(self) -> bool:
        """Whether every sub-answer is right; without labels nothing is right."""
        return bool(self.parts) and all(part.right for part in self.parts)

    @property
    def share_right(self) -> float:
        """The share of sub-answers that are right, 0 to 1."""
        return sum(part.right for part in self.parts) / len(self.parts) if self.parts else 0.0

    @property
    def by_name(self) -> dict[str, bool]:
        """The verdict per name; a repeated name is right where each of its values is."""
        names = dict.fromkeys(part.name for part in self.parts)
        return {n: all(part.right for part in self.parts if part.name == n) for n in names}

    @property
    def numbered(self) -> dict[str, SubAnswer]:
        """The parts by name; one that stands k times has a number from the second on: `c#2`."""
        counts: Counter[str] = Counter()
        parts = {}
        for part in self.parts:
            counts[part.name] += 1
            count = counts[part.name]
            parts[f"{part.name}#{count}" if count > 1 else part.name] = part
        return parts


def score(
    response: str,
    label_pairs: Iterable[tuple[str, str]],
    rules: RuleSet = "sensible",
    *,
    answer_format: str = "",
) -> ClosedFormScore:
    """Returns the verdict on each (name, label) pair; names without a label cost nothing.

    Args:
        response: what was answered.
        label_pairs: the names and what is right; a name may stand several times.
        rules: see the module's docstring.
        answer_format: what was asked for; an echo of it is no answer by the sensible rules.
    """
    pairs = tuple((name, label) for name, label in label_pairs)
    if rules == "strict":
        return _score_strict(response, pairs)
    return _score_sensible(given_answers(response, answer_format), pairs)


def agree(one: str, other: str, names: Iterable[str] = (), *, is_for_each: bool = False) -> bool:
    """Returns whether two responses give the same values by the sensible rules, without a label.

    Each is judged with the other as the label, both ways round. Of a name that was given several
    times the last value counts, as it does in `score`. Without any value nothing agrees.

    Args:
        one: a response.
        other: another response.
        names: the names that count; none given means all.
        is_for_each: whether each name is asked for several times, such as for each group; a name
            then agrees when its different values do, in any order.
    """
    asked = tuple(names)
    pairs, others = (_different_answers(text, asked) for text in (one, other))
    if not is_for_each:
        pairs, others = _last_of_each(pairs), _last_of_each(others)
    if pairs.keys() == others.keys():
        return bool(pairs)
    if max(len(pairs), len(others)) > MAX_AGREEING:
        return False
    return _covers(tuple(pairs.values()), tuple(others.values())) and _covers(
        tuple(others.values()), tuple(pairs.values())
    )


_Answers = dict[tuple[str, Number | str | None], tuple[str, str]]


def _different_answers(text: str, names: Sequence[str]) -> _Answers:
    """Each different (name, value) by what it says, the last said last; the name as asked for."""
    spelled = {fold_name(name): name for name in reversed(names)}
    found: _Answers = {}
    for said, value in given_answers(text):
        name = said if said in names else spelled.get(fold_name(said))
        if name is None and not names:
            name = fold_name(said)
        if name is not None:
            number = parse_number(value)
            is_plain = number is not None and math.isfinite(number)
            key = name, number if is_plain else fold(value)
            found.pop(key, None)
            found[key] = (name, value)
    return found


def _last_of_each(answers: _Answers) -> _Answers:
    last = {name: key for key, (name, _) in answers.items()}
    return {key: answers[key] for key in last.values()}


def _covers(labels: Sequence[tuple[str, str]], answers: Sequence[tuple[str, str]]) -> bool:
    return _score_sensible(answers, labels).all_right


def _score_strict(response: str, pairs: Sequence[tuple[str, str]]) -> ClosedFormScore:
    answers = dict(_strict_answers(response))
    parts = []
    for name, label in dict(pairs).items():  # of repeated label names the last one counts
        answer = answers.get(name)
        right = answer is not None and strictly_equal(label, answer)
        parts.append(SubAnswer(name, label, answer, right))
    return ClosedFormScore(tuple(parts))


def _strict_answers(text: str) -> Iterator[tuple[str, str]]:
    """What the benchmark's pattern finds, `@` word `[` rest of line up to the first `]`."""
    position = 0
    while tag := _STRICT_TAG.search(text, position):
        position = tag.end()
        end = text.find("]", position)
        if end < 0:
            return
        if text.find("\n", position, end) < 0:
            yield tag[1], text[position:end]
            position = end + 1


def strictly_equal(label: str, answer: str) -> bool:
    """Returns whether a value is right by the narrow rule of the benchmark, given above."""
    if label == answer or _strictly_close(label, answer):
        return True
    items, others = label.split(","), answer.split(",")
    return 1 < len(items) == len(others) and all(
        one.strip() == other.strip() or _strictly_close(one, other)
        for one, other in zip(items, others, strict=True)
    )


def _strictly_close(label: str, answer: str) -> bool:
    try:
        return abs(float(label) - float(answer)) < STRICT_TOLERANCE
    except ValueError:
        return False


def _score_sensible(
    answers: Sequence[tuple[str, str]], pairs: Sequence[tuple[str, str]]
) -> ClosedFormScore:
    names = [name for name, _ in pairs]
    pool = {
        name: _last_answers(_answers_to(name, answers, frozenset(names)), names.count(name))
        for name in dict.fromkeys(names)
    }
    found: dict[int, str] = {}
    for index, (name, label) in enumerate(pairs):
        match = next((answer for answer in pool[name] if _is_right(label, answer)), None)
        if match is not None:
            pool[name].remove(match)
            found[index] = match
    parts = []
    for index, (name, label) in enumerate(pairs):
        wrong = pool[name].pop(0) if index not in found and pool[name] else None
        parts.append(SubAnswer(name, label, found.get(index, wrong), index in found))
    return ClosedFormScore(tuple(parts))


def _answers_to(name: str, answers: Sequence[tuple[str, str]], names: frozenset[str]) -> list[str]:
    """The values given to a name: its own spelling, or one that no other label claims."""
    return [
        value
        for said, value in answers
        if said == name or (said not in names and fold_name(said) == fold_name(name))
    ]


def _last_answers(values: list[str], count: int) -> list[str]:
    """The last answers, as many as there are labels; repeats give way to different ones."""
    if len(values) > count > 1:
        values = list(dict.fromkeys(reversed(values)))[::-1]
    return values[-count:]


def _is_right(label: str, answer: str) -> bool:
    if label.strip() in _NOTHING_LABELS and answer.strip().casefold() in _NOTHING_ANSWERS:
        return True
    if max(len(label), len(answer)) > MAX_VALUE_CHARS:
        return label.split() == answer.split()
    return equal(label, answer, _is_close)


def _is_close(label: Number, answer: Number) -> bool:
    if isinstance(label, int) and isinstance(answer, int):
        return label == answer
    try:
        expected, said = float(label), float(answer)
    except OverflowError:
        return False
    if math.isnan(expected) or math.isinf(expected):
        return expected == said or (math.isnan(expected) and math.isnan(said))
    limit = STRICT_TOLERANCE
    if expected != 0:
        limit = min(limit, SMALL_LABEL_SHARE * abs(expected))
    return abs(expected - said) < limit


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints how the two rule sets agree with recorded verdicts.

    Returns the exit status: 0, or 1 where the verdicts can't be read, which is printed.
    """
    from training.scoring.vectors import report  # noqa: PLC0415  (it imports this module)

    parser = argparse.ArgumentParser(prog="python -m training.scoring.closed_form")
    parser.add_argument("--vectors", type=Path, required=True, help="scorer vectors, JSON lines")
    file = parser.parse_args(arguments).vectors
    try:
        lines = report(file)
    except (KeyError, OSError, TypeError, ValueError) as fault:
        why = f"{type(fault).__name__}: {fault}"
        print(f"closed_form: {file} can't be read as scorer vectors ({why})", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
