"""Closed-form answers, `@name[value]` (InfiAgent-DABench, arXiv 2401.05507 §3), scored twice.

`strict` is the benchmark's own reading. The pattern stops at the first `]`, and the last answer to
a repeated name counts. A value is correct if it is the identical string, else a number less than
1e-6 away, else a comma list that is correct item by item, in order. Deviates from the published
scorer in two points: that one reads no lists, and drops unanswered questions; here, no answer is
wrong.

`sensible` reads what a person would, with the reader that all suites share (`values`) under the
policy `CLOSED_FORM`. Brackets balance. Spaces, quotes, case, thousands separators, a percent sign,
the form of a list or date and the order of a dict's keys don't matter. Units, expressions, other
roundings, other orders and other signs do. Lists may come in any order if the format of the answer
says so. No number gets a relative tolerance: 34.654 does not answer 34.65.

`sensible` accepts every value that `strict` accepts, with these exceptions (`is_exception`):

- *Codes.* 2139 doesn't answer `02139`, and `02139` doesn't answer 2139; see `reader`.
- *Small labels.* A label that is a non-zero number under 1e-4 allows 1 % of itself, not 1e-6. So 0
  doesn't answer a p-value of 1e-7, while 1.2e-8 does answer `0.0000`.
- *Long whole numbers.* 9007199254740993 is not 9007199254740992, though both are the same float.

In an entire response, brackets balance, and text inside `<think>` and an echo of the format are not
answers. The last answer to a name counts even if the name is spelled in another case. Two rules
look at the label alone:

- A label that says "nothing" (`None`, `[]`, empty) accepts any word for it. The word `none` in
  lower case is an answer like any other (no relationship), and empty brackets don't match it.
- If a label name occurs k times (question 734), the last k different answers to it are matched in
  any order: published labels are a shuffled set, so their order means nothing.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dm_jupyter.core.closed_form import fold_name, given_answers
from training.scoring.lists import folded_text
from training.scoring.reader import (
    CLOSED_FORM,
    Number,
    ReadingPolicy,
    exact_number,
    is_identifier,
    is_whole,
    numbers_equal,
    read_written,
)
from training.scoring.values import values_equal

__all__ = [
    "ClosedFormScore",
    "RuleSet",
    "SubAnswer",
    "agree",
    "is_exception",
    "score",
    "strictly_equal",
]

RuleSet = Literal["strict", "sensible"]

STRICT_TOLERANCE = 1e-6
"""Absolute tolerance, the benchmark's own."""
MAX_AGREEING = 100
"""Answers with more values than this agree only word by word, so that comparison stays fast."""

_STRICT_TAG = re.compile(r"@(\w+)\[")
_ANY_ORDER = re.compile(
    r"\b(?:in any order|in no particular order|regardless of (?:the |their )?order"
    r"|order (?:does not|doesn't|doesn\u2019t) matter)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """One expected value and the answer to it."""

    name: str
    label: str
    answer: str | None
    """The value as written; `None` if the name was not answered."""
    right: bool


@dataclass(frozen=True, slots=True)
class ClosedFormScore:
    """Verdicts on the sub-answers, in the labels' order."""

    parts: tuple[SubAnswer, ...]

    @property
    def all_right(self) -> bool:
        """Whether every sub-answer is correct; without labels nothing is correct."""
        return bool(self.parts) and all(part.right for part in self.parts)

    @property
    def by_name(self) -> dict[str, bool]:
        """Verdict per name; a repeated name is correct if each of its values is."""
        names = dict.fromkeys(part.name for part in self.parts)
        return {n: all(part.right for part in self.parts if part.name == n) for n in names}

    @property
    def numbered(self) -> dict[str, SubAnswer]:
        """Parts by name; a repeated name is numbered from its second value on: `c#2`."""
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
    """Return the verdict on each (name, label) pair; names without a label cost nothing.

    Args:
        response: the text of the answer.
        label_pairs: the names and expected values; a name may occur several times.
        rules: see the module's docstring.
        answer_format: the requested format. By the sensible rules, an echo of it is not an answer.
            "In any order" in it allows any order of lists.
    """
    pairs = tuple((name, label) for name, label in label_pairs)
    if rules == "strict":
        return _score_strict(response, pairs)
    is_free = _ANY_ORDER.search(answer_format) is not None
    policy = replace(CLOSED_FORM, is_order_free=True) if is_free else CLOSED_FORM
    return _score_sensible(given_answers(response, answer_format), pairs, policy)


def agree(one: str, other: str, names: Iterable[str] = (), *, is_for_each: bool = False) -> bool:
    """Return whether two responses give the same values by the sensible rules, without a label.

    Each is judged with the other as the label, in both directions. If a name was given several
    times, the last value counts, as in `score`. Without any value nothing agrees.

    Args:
        one: a response.
        other: another response.
        names: the names that count; empty means all.
        is_for_each: whether each name is asked for several times, such as for each group; a name
            then agrees if its different values do, in any order.
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
    """Return each distinct (name, value) by its meaning, the latest last, under the asked name."""
    spelled = {fold_name(name): name for name in reversed(names)}
    found: _Answers = {}
    for said, value in given_answers(text):
        name = said if said in names else spelled.get(fold_name(said))
        if name is None and not names:
            name = fold_name(said)
        if name is not None:
            number = exact_number(value)
            key = name, number if _is_finite(number) else folded_text(value)
            found.pop(key, None)
            found[key] = (name, value)
    return found


def _is_finite(number: Number | None) -> bool:
    """Whether there is a finite number; an int is, even if no float is as large."""
    return isinstance(number, int) or (number is not None and math.isfinite(number))


def _last_of_each(answers: _Answers) -> _Answers:
    last = {name: key for key, (name, _) in answers.items()}
    return {key: answers[key] for key in last.values()}


def _covers(labels: Sequence[tuple[str, str]], answers: Sequence[tuple[str, str]]) -> bool:
    return _score_sensible(answers, labels, CLOSED_FORM).all_right


def _score_strict(response: str, pairs: Sequence[tuple[str, str]]) -> ClosedFormScore:
    answers = dict(_strict_answers(response))
    parts = []
    for name, label in dict(pairs).items():  # the last of repeated label names counts
        answer = answers.get(name)
        right = answer is not None and strictly_equal(label, answer)
        parts.append(SubAnswer(name, label, answer, right))
    return ClosedFormScore(tuple(parts))


def _strict_answers(text: str) -> Iterator[tuple[str, str]]:
    """Yield the benchmark's matches: `@` word `[` rest of line up to the first `]`."""
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
    """Return whether a value is correct by the benchmark's strict rule, given above."""
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
    answers: Sequence[tuple[str, str]],
    pairs: Sequence[tuple[str, str]],
    policy: ReadingPolicy,
) -> ClosedFormScore:
    names = [name for name, _ in pairs]
    pool = {
        name: _last_answers(_answers_to(name, answers, frozenset(names)), names.count(name))
        for name in dict.fromkeys(names)
    }
    found: dict[int, str] = {}
    for index, (name, label) in enumerate(pairs):
        match = next((answer for answer in pool[name] if _is_right(label, answer, policy)), None)
        if match is not None:
            pool[name].remove(match)
            found[index] = match
    parts = []
    for index, (name, label) in enumerate(pairs):
        wrong = pool[name].pop(0) if index not in found and pool[name] else None
        parts.append(SubAnswer(name, label, found.get(index, wrong), index in found))
    return ClosedFormScore(tuple(parts))


def _answers_to(name: str, answers: Sequence[tuple[str, str]], names: frozenset[str]) -> list[str]:
    """Return the values given to a name, in its own spelling or one that no other label claims."""
    return [
        value
        for said, value in answers
        if said == name or (said not in names and fold_name(said) == fold_name(name))
    ]


def _last_answers(values: list[str], count: int) -> list[str]:
    """Return the last answers, as many as there are labels; different answers before repeats."""
    if len(values) > count > 1:
        values = list(dict.fromkeys(reversed(values)))[::-1]
    return values[-count:]


def _is_right(label: str, answer: str, policy: ReadingPolicy) -> bool:
    if values_equal(label, answer, policy):
        return True
    return strictly_equal(label, answer) and not is_exception(label, answer)


def is_exception(label: str, answer: str) -> bool:
    """Return whether strict rules accept a value, or an item of a list, that ours must not."""
    items, others = label.split(","), answer.split(",")
    pairs = [(label, answer)]
    if len(items) == len(others):
        pairs += zip(items, others, strict=True)
    return any(_is_other_value(one, other) for one, other in pairs)


def _is_other_value(label: str, answer: str) -> bool:
    first, second = read_written(label), read_written(answer)
    if first is None or second is None:
        return False
    if is_identifier(label, answer):
        return True
    is_small = 0 < first.value.copy_abs() < STRICT_TOLERANCE / CLOSED_FORM.largest_miss
    if is_small or (is_whole(first.value) and is_whole(second.value)):
        return not numbers_equal(first.value, second.value, CLOSED_FORM)
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how the two rule sets agree with recorded verdicts.

    Return the exit status: 0, or 1 if the verdicts can't be read, which is printed.
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
