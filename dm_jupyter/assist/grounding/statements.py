"""The statement about each number of an answer: the words of its clause, its unit, its hedge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dm_jupyter.assist.grounding.names import Vocabulary, label_numbers
from dm_jupyter.assist.grounding.numbers import StatedNumber, claimed, numbers_in
from dm_jupyter.assist.grounding.words import HIGHEST, LOWEST, Unit, content_words, unit_after

__all__ = ["Statement", "WordScope", "scopes", "statements"]

_SENTENCE_END = re.compile(r"(?<=[.!?])[*_)]*\s+(?=[A-Z*\"'(\[—])|\n+")
_BOUNDARY = re.compile(
    r"[;)\]|—]|,(?!\s(?:for|in|by|from|of)\s)|\.\s|\s(?:while|whereas|but|and|compared|versus|"
    r"vs\.?|followed|against|than|or|to|twice|half|double|triple|"
    r"(?:two|three|four|five|six|ten) times)\s"
)
_BETWEEN = re.compile(r"\bbetween\s[^.,;()]{1,40}?\sand\s")
_WEAK_BOUNDARY = re.compile(r"\s(?:with|is|was|has|had|were|are|have|at|among|of)\s")
_OF_NEXT = re.compile(
    r"\s(?:on|with|from|at|for|against|by)\s(?:an?|the|its|their)\s[\w ]{1,30}\sof\s[$€£]?\Z"
)
"""Words that introduce the next number: `on a budget of`."""
_JOINED = re.compile(
    r"(?:\s*(?:[,/&→]|->|and|or|to|vs\.?|versus|against|compared (?:with|to)|%"
    r"|(?:[kmc]?m|[kmµ]?g|m?s|h|°?[CF]|pp|bn|k)\b))*\s*[$€£]?\s*\Z"
)
"""Text between two numbers of one list, as in `3, 4 and 5`."""
_SPREAD = re.compile(r"\W{0,3}(?:±|\+/-|\bSD\b|\bstd\b)\s?")
_PER = re.compile(r"\bper\s([^\W\d]+)")
_WEEKEND = frozenset(("saturday", "sunday"))
_JOINT = re.compile(r"\s?(?:to|and|-|–)\s?[$€£]?")
_JOINT_OR_COMMA = re.compile(rf",?{_JOINT.pattern}|,\s?[$€£]?")
_HEDGES = {
    "about": r"about|around|roughly|approximately|approx\.?|some|circa|ca\.|close to|~|≈|or so",
    "over": r"(?:just |slightly |well )?(?:over|more than|above|exceed(?:s|ing)?|at least)",
    "under": r"nearly|almost|(?:just |slightly )?(?:under|less than|below|up to|at most)",
}
_HEDGE = {
    name: re.compile(rf"(?:(?<!\w)(?:{words})|{'[~≈]' if name == 'about' else '(?!)'})"
                     r"\s*(?:a\s)?\**[$€£]?\s*\Z", re.IGNORECASE)
    for name, words in _HEDGES.items()
}  # fmt: skip
_BULLET = re.compile(r"\s*(?:[-*•+]\s|\d{1,2}[.)]\s|\|)")
_HEADING = re.compile(r"\s*(?:#+\s.*|\*\*[^*]+\*\*:?|.*:)\s*\Z")
_PRONOUN = re.compile(r"\W*(?:its?|their|they|this|these|that|he|she|his|her)\b", re.IGNORECASE)
_RATIO = re.compile(r"\s?(?:times|x\b|×|points|percentage)")
_BELONGS = re.compile(r"\W{0,3}(?:\w+\s)?(?:for|in|at|by|from|of|among)\b|\s?\w*\s?\(")
_PART_OF = re.compile(r"\s(?:out\s)?of\s(?:the\s|all\s|its\s|their\s)?\s*")
_PART = re.compile(r"\bof\b")
_SPAN = re.compile(r".*(?:\bto|→|->)\s*[$€£]?", re.DOTALL)
_AGAINST = re.compile(r"\b(?:vs|versus|against|compared)\b")
_OPPOSED = re.compile(
    r"\b(?:vs\.?|versus|against|compared (?:with|to)|instead of|rather than)\s*[$€£]?\Z"
    r"|(?:±|\+/-)\s?\Z"
    r"|\b(?:as|than)\s(?:that of\s|the\s)?[\w ]{1,25}\s?\(\Z"
)
"""Text before a number that is about another thing than the previous one."""
_MOVES_ON = re.compile(r"\b(?:then|afterwards|later|finally|thereafter)\b")
"""Words before a number that is of a later time than the previous one."""
_OUT_OF = re.compile(r"\b(?:of|among)\s+(?:the\s|all\s|a total of\s)*\Z")
_NOUN = re.compile(r"\W{0,3}\w+")
_PREPOSITION = re.compile(r"\s(?:for|from|in|over|across|on|by|at)\s")
_TURN = re.compile(r";|\.\s|\s(?:while|whereas|but)\s")
_SHORT_CHARS = (3, 4)
_LONG_SENTENCE, _LONG_ANSWER = 1_500, 12_000
"""Limits in characters; of numbers beyond the second, only the sizes are checked."""
_STATISTICS = frozenset(("mean", "median", "max", "min", "std", "count", "sum", "25%", "75%"))
"""Labels that do not carry over to the next clause."""
_OTHERS = frozenset(content_words("other remaining rest next remainder"))


@dataclass(frozen=True, slots=True)
class WordScope:
    """Positions of the words that belong to a number, before and after it."""

    before: tuple[int, int]
    after: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Statement:
    """A number of an answer, and the words about it."""

    number: StatedNumber
    before: str
    since: str
    """Text between the previous number and it."""
    after: str
    sentence: str
    near: frozenset[str]
    """Words of its own clause."""
    wide: frozenset[str]
    """Words of the sentence, and of the context that it continues."""
    unit: Unit | None
    hedge: str
    is_label: bool = False
    """Whether it is a label: a year, a class, a part of a longer label."""
    behind: str = ""
    """Text between it and the next number."""

    @property
    def tight(self) -> str:
        """The text directly before it, for words that introduce it."""
        return max(self.since, self.before, key=len)[-60:]


def scopes(start: int, end: int, text: str, numbers: Sequence[StatedNumber]) -> list[WordScope]:
    """Return, for each number of a sentence, the words that are about it.

    Args:
        start: of the sentence in the text.
        end: of the sentence.
        text: the entire text.
        numbers: those of the sentence, in order.
    """
    found: list[WordScope] = []
    before = start
    for at, number in enumerate(numbers):
        until = numbers[at + 1].start if at + 1 < len(numbers) else end
        after, next_before = _cut(text, number.end, until, is_last=at + 1 == len(numbers))
        found.append(WordScope((before, number.start), (number.end, after)))
        before = next_before
    return found


def _cut(text: str, start: int, end: int, *, is_last: bool) -> tuple[int, int]:
    """Return where the words after one number end, and where those before the next one begin."""
    between = text[start:end]
    after, before = _turns(between) if is_last else _turns_between(between)
    return start + after, start + before


def _turns_between(between: str) -> tuple[int, int]:
    """Return the same, within the text between two numbers."""
    opened = between.find("(")
    if opened >= 0 and ")" not in between[opened:]:
        turns = [match.start() for match in _boundaries(between[:opened])]
        return (turns[0], turns[-1]) if turns else (opened, opened)
    if following := _OF_NEXT.search(between):
        return following.start(), following.start()
    if any(True for _ in _boundaries(between)):
        return _turns(between)
    if weak := _WEAK_BOUNDARY.search(between):
        return weak.start(), weak.start()
    turn, noun = _PREPOSITION.search(between), _NOUN.match(between)
    return len(between), turn.start() if turn else noun.end() if noun else 0


def _boundaries(text: str) -> Iterator[re.Match[str]]:
    """Yield where clauses may end, except within `between May and June`."""
    spans = [match.span() for match in _BETWEEN.finditer(text)]
    for match in _BOUNDARY.finditer(text):
        if not any(start <= match.start() < end for start, end in spans):
            yield match


def _turns(between: str) -> tuple[int, int]:
    """Return where the first clause of a text ends, and where the last one begins."""
    match = next(_boundaries(between), None)
    if not match:
        return len(between), len(between)
    opened = between.find("(")
    closed = between.find(")", opened) if 0 <= opened < match.start() else -1
    if closed >= 0:
        return closed, closed + 1
    turns = [turn.start() for turn in _TURN.finditer(between, match.start())]
    return match.start(), turns[-1] if turns else match.start()


def statements(answer: str, vocabulary: Vocabulary) -> list[Statement]:
    """Return what an answer says of each number that it states, in order.

    Args:
        answer: the answer of the model.
        vocabulary: the labels of the outputs that it is about.
    """
    tokens = label_numbers(answer[:_LONG_ANSWER], vocabulary)
    found: list[Statement] = []
    reader = _Reader(answer, vocabulary, tokens)
    numbers = list(claimed(answer))
    at = 0
    for start, end in _sentences(answer[:_LONG_ANSWER]):
        inside = []
        while at < len(numbers) and numbers[at].start < end:
            inside.append(numbers[at])
            at += 1
        found += reader.sentence(start, end, inside)
    nothing: frozenset[str] = frozenset()
    found += [
        Statement(number, "", "", "", "", nothing, nothing, None, "") for number in numbers[at:]
    ]
    return found


@dataclass(frozen=True, slots=True)
class _Whose:
    """The subjects of the numbers of one list."""

    words: list[str]
    names: list[tuple[str, ...]]
    """Labels among the words."""
    leading: list[tuple[str, ...]]
    """Labels before the first number."""
    own: list[frozenset[str]]
    """The words of each number."""
    is_assigned: bool = False
    """Whether each number has its own name."""


class _Reader:
    """A reader of an answer's sentences that keeps the context which a later one continues."""

    def __init__(self, answer: str, vocabulary: Vocabulary, tokens: dict[int, str]) -> None:
        self._answer, self._vocabulary, self._tokens = answer, vocabulary, tokens
        self._heading: frozenset[str] = frozenset()
        self._previous: frozenset[str] = frozenset()
        self._columns: list[str] = []

    def sentence(self, start: int, end: int, numbers: list[StatedNumber]) -> list[Statement]:
        text = self._answer[start:end]
        is_bullet = bool(_BULLET.match(text))
        if not is_bullet:
            self._heading = frozenset()
            self._columns = []
        if text.lstrip().startswith("|"):
            return self._table_row(start, text, numbers)
        values = [number for number in numbers if number.start not in self._tokens]
        values = _with_spread(values, self._answer)
        found = self._clauses(start, end, values)
        found += [self._statement(number, start, end, is_label=True)
                  for number in numbers if number.start in self._tokens]  # fmt: skip
        words = self._words(start, end)
        named = self._vocabulary.labels_in(words)
        if not values and _HEADING.fullmatch(text):
            self._heading = frozenset(words)
        self._previous = frozenset(named[0]) if len(set(named)) == 1 else frozenset()
        return sorted(found, key=lambda one: one.number.start)

    def _clauses(self, start: int, end: int, numbers: list[StatedNumber]) -> list[Statement]:
        found: list[Statement] = []
        whole = frozenset(self._words(start, end))
        following = dict(pairwise([*(number.start for number in numbers), end]))
        is_going_on = bool(_PRONOUN.match(self._answer, start))
        subject = self._heading | (self._previous if is_going_on else frozenset())
        earlier = since = start
        for group in self._groups(start, end, numbers):
            first, first_start = group[0][1], group[0][0].start
            whose = self._whose(group, since)
            lead = self._answer[max(start, first_start - 30) : first_start]
            if _MOVES_ON.search(self._answer[first.before[0] : first_start]):
                subject = frozenset()
            is_other = len(group) > 1 or _OUT_OF.search(lead) or _OPPOSED.search(lead)
            has_name = bool(whose.names or is_other or _OTHERS & set(whose.words))
            for (number, scope), own in zip(group, whose.own, strict=True):
                near = own if has_name else own | subject
                if "weekend" in near and self._vocabulary.words >= _WEEKEND:
                    near |= _WEEKEND
                found.append(
                    Statement(
                        number,
                        self._answer[first.before[0] : number.start],
                        self._answer[earlier : number.start],
                        self._answer[number.end : max(scope.after[1], number.end)],
                        self._answer[start:end],
                        near,
                        near | (frozenset() if whose.is_assigned else whole) | self._heading,
                        unit_after(self._answer, number.start, number.end)
                        or unit_after(self._answer, group[-1][0].start, group[-1][0].end),
                        _hedge(self._answer[max(start, number.start - 30) : number.start]),
                        behind=self._answer[number.end : following[number.start]],
                    )
                )
            earlier = group[-1][0].end
            is_ratio = group[-1][0].is_percentage or _RATIO.match(self._answer, earlier)
            since = since if is_ratio else earlier
            leading = whose.leading
            if not leading and _BELONGS.match(self._answer, earlier):
                leading = whose.names
            leading = [name for name in leading if not _STATISTICS.issuperset(name)]
            if leading:
                subject = frozenset(leading[0])
        return found

    def _whose(self, group: list[tuple[StatedNumber, WordScope]], since: int) -> _Whose:
        """Return the words of the clause around numbers of one list, and those of each number."""
        first, last = group[0][1], group[-1][1]
        before = self._words(*first.before)
        words = [*before, *self._words(*last.after)]
        leading = self._vocabulary.labels_in(before)
        if len(group) == 1:
            names = self._vocabulary.labels_in(words)
            return _Whose(words, names, leading, [frozenset(words)])
        between = [self._answer[one.end : other.start] for (one, _), (other, _) in pairwise(group)]
        is_set_against = any(map(_AGAINST.search, between))
        names = self._names(words, group, since, is_set_against=is_set_against)
        is_part = any(map(_PART.search, between))
        is_span = is_part or any(map(_SPAN.fullmatch, between))
        every = {word for name in names for word in name}
        if not is_span and len(names) == len(group):
            own = [(frozenset(words) | set(name)) - (every - set(name)) for name in names]
            return _Whose(words, names, leading, own, is_assigned=True)
        of_names = frozenset(word for name in (leading if is_part else names) for word in name)
        own = [frozenset(words)] * len(group)
        if is_part:
            own = [own[0] - set(self._words(*last.after)[:1]), *[of_names] * (len(group) - 1)]
        elif is_span:
            own = [of_names] * len(group)
        elif is_set_against:
            own[1:] = [frozenset()] * (len(group) - 1)
        return _Whose(words, names, leading, own)

    def _names(
        self,
        words: list[str],
        group: list[tuple[StatedNumber, WordScope]],
        since: int,
        *,
        is_set_against: bool,
    ) -> list[tuple[str, ...]]:
        """Return the labels in a clause with several numbers, or in the text before it."""
        names = self._vocabulary.labels_in(words)
        if not names or (is_set_against and len(names) != len(group)):
            earlier = self._vocabulary.labels_in(self._words(since, group[0][0].start))
            names = earlier if len(earlier) == len(group) else names
        return names

    def _groups(
        self, start: int, end: int, numbers: list[StatedNumber]
    ) -> list[list[tuple[StatedNumber, WordScope]]]:
        """Return the numbers, grouped by list."""
        groups: list[list[tuple[StatedNumber, WordScope]]] = []
        for number, scope in zip(numbers, scopes(start, end, self._answer, numbers), strict=True):
            last = groups[-1][-1][0].end if groups else 0
            between = self._answer[last : number.start]
            if groups and (_JOINED.fullmatch(between) or _PART_OF.fullmatch(between)):
                groups[-1].append((number, scope))
            else:
                groups.append([(number, scope)])
        return [part for group in groups for part in self._listed(group)]

    def _listed(
        self, group: list[tuple[StatedNumber, WordScope]]
    ) -> list[list[tuple[StatedNumber, WordScope]]]:
        """Return a list of numbers as one group; numbers joined only by commas are not a list."""
        between = [self._answer[one.end : other.start] for (one, _), (other, _) in pairwise(group)]
        is_list = len(group) == 1 or any(re.search(r"[^\s,]", text) for text in between)
        return [_of_one_scale(group, between)] if is_list else [[one] for one in group]

    def _table_row(self, start: int, text: str, numbers: list[StatedNumber]) -> list[Statement]:
        """Return the numbers of a Markdown table with the words of their row and column."""
        cells = text.strip().strip("|").split("|")
        if not self._columns:
            self._columns = cells
        texts = " ".join(cell for cell in cells if not any(True for _ in numbers_in(cell)))
        texts += " " + (cells[0] if cells else "")
        found = []
        for number in numbers:
            at = max(0, text.lstrip()[: number.start - start].count("|") - 1)
            column = self._columns[at] if at < len(self._columns) else ""
            row = f"{texts} {column}"
            near = frozenset(content_words(row)) | self._heading
            unit = unit_after(self._answer, number.start, number.end)
            is_label = number.start in self._tokens
            found.append(Statement(number, texts, "", column, row, near, near, unit, "", is_label))
        return found

    def _statement(
        self, number: StatedNumber, start: int, end: int, *, is_label: bool
    ) -> Statement:
        words = frozenset(self._words(start, end))
        return Statement(
            number, self._answer[start : number.start], "", self._answer[number.end : end],
            self._answer[start:end], words, words, None, "", is_label,
        )  # fmt: skip

    def _words(self, start: int, end: int) -> list[str]:
        """Return the words of a part of the answer; a numeric label appears by its name."""
        text, found = self._answer[start:end], []
        at = start
        for place, token in self._tokens.items():
            if start <= place < end and token:
                found += [*content_words(self._answer[at:place]), token]
                at = place + 1
        found += content_words(self._answer[at:end])
        found += [
            word[:size]
            for word in found
            for size in _SHORT_CHARS
            if word[:size] in self._vocabulary.short and len(word) > size + 2
        ]
        for match in _PER.finditer(text):  # the base of a figure, not its owner
            word = next(iter(content_words(match[1])), "")
            if (word,) in self._vocabulary.phrases.get(word, ()) and word in found:
                found.remove(word)
        if "max" in self._vocabulary.words and HIGHEST.search(text):
            found.append("max")
        if "min" in self._vocabulary.words and LOWEST.search(text):
            found.append("min")
        return found


def _of_one_scale(
    group: list[tuple[StatedNumber, WordScope]], between: list[str]
) -> list[tuple[StatedNumber, WordScope]]:
    """Return the numbers of a list, each with the scale of the last one: `3, 5 and 8 million`."""
    scale = group[-1][0].exponent
    is_shared = scale and all(one.exponent == 0 for one, _ in group[:-1])
    joint = _JOINT_OR_COMMA if scale > 0 else _JOINT
    is_joint = all(map(joint.fullmatch, between)) and any(map(_JOINT.search, between[-1:]))
    if not is_shared or not is_joint:
        return group
    return [(replace(number, exponent=scale), scope) for number, scope in group]


def _with_spread(numbers: list[StatedNumber], text: str) -> list[StatedNumber]:
    """Return the numbers; one after `±` is a percentage if the one before is: `82.4 % (± 1.8)`."""
    return [
        replace(number, exponent=-2)
        if at
        and numbers[at - 1].is_percentage
        and _SPREAD.fullmatch(text, numbers[at - 1].end, number.start)
        else number
        for at, number in enumerate(numbers)
    ]


def _sentences(text: str) -> Iterable[tuple[int, int]]:
    """Yield where each sentence begins and ends; a very long one is cut."""
    start = 0
    ends = [(match.start(), match.end()) for match in _SENTENCE_END.finditer(text)]
    for end, following in [*ends, (len(text), len(text))]:
        while end - start > _LONG_SENTENCE:
            yield start, start + _LONG_SENTENCE
            start += _LONG_SENTENCE
        yield start, end
        start = following


def _hedge(before: str) -> str:
    return next((name for name, pattern in _HEDGE.items() if pattern.search(before)), "")
