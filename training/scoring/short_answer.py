"""Short answers in words and numbers, compared by meaning and not by notation.

Two answers are equal if `values` finds them equal under the policy `SHORT_ANSWER`. Otherwise an
answer is read as a sequence of words and numbers. Words are compared without case, punctuation,
`the`, and a leading `a` or `an`; numbers as everywhere. The order of items matters, and a date or
time is never split. Deviates from TableBench's published normaliser (arXiv 2408.09174), which also
strips points and signs, so that 10.6 equals 106 and -3 equals 3. Here the point inside a number and
the sign before it stay. A different rounding is a different number.

`states` decides whether an answer in words states one value, and is not a list of guesses, a denial
or a mere mention. It accepts the bare value, and plain statements that need no grammar. The rules:

- Words, and values of several parts such as a date, come last ("The genre is Rock."), except for
  an aside (", which …"). A verb, a preposition or a word of the question precedes them. There may
  be no denial ("not", "no"), choice ("or", "either"), other sentence, or number that is not in the
  question.
- A number may be anywhere ("There are 347 albums."), but must be the only one, except for numbers
  of the question ("after 1990"). No denial directly precedes it, and no "or" is next to it.
- A value in the question ("the top 5", "Rock or Jazz") is only repeated, unless a verb or "answer:"
  directly precedes it, or a number occurs more often than in the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from dm_jupyter.core.closed_form import given_answers, outside_thought
from training.scoring.moments import read_moment
from training.scoring.reader import (
    IDENTIFIER_DIGITS,
    SHORT_ANSWER,
    is_identifier,
    numbers_equal,
    read_written,
    straight,
)
from training.scoring.values import MAX_VALUE_CHARS, is_nothing, values_equal

__all__ = [
    "SHORT_ANSWER_FORMAT",
    "Token",
    "answers_equal",
    "final_answer",
    "final_answers_agree",
    "is_stated",
    "read_tokens",
    "states",
    "tokens_equal",
    "words_before",
]

SHORT_ANSWER_FORMAT = (
    '@answer[value] where "value" is the short answer alone: a number, a name, or several of them '
    "separated by commas in the order asked for."
)
"""The format that a suite asks for, if it reads answers by `final_answer`."""
Token = Decimal | str
_CURRENCY = re.compile(r"(?<!\w)[$€£¥](?=[-+.\d])")
_NUMBER = (
    r"(?:(?<![\w.)%])[+-])?(?<!\w)"  # a sign, but not the dash of a range such as 2011-12
    r"(?:{digits}(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?(?!\w)"
)
_WORD = r"\w[\w']*[+#]*"
_GROUPED = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?!,?[0-9])|[0-9]+)"
_TOKENS = {
    thousands: re.compile(f"(?P<number>{_NUMBER.format(digits=digits)})|{_WORD}")
    for thousands, digits in ((True, _GROUPED), (False, "[0-9]+"))
}


def read_tokens(text: str, *, thousands: bool = True) -> tuple[Token, ...]:
    """Return the words (folded) and numbers of a text, in order.

    Args:
        text: any text.
        thousands: whether `314,577` is one number or two.
    """
    tokens = [_token(match) for match in _TOKENS[thousands].finditer(_plain(text))]
    kept = tuple(part for part in tokens if part != "the")
    if len(kept) > 1 and kept[0] in {"a", "an"}:
        kept = kept[1:]
    return kept or tuple(tokens)


def _plain(text: str) -> str:
    return _CURRENCY.sub("", straight(text).replace("_", " "))


def _token(match: re.Match[str]) -> Token:
    found = read_written(match[0]) if match["number"] is not None else None
    is_code = found is not None and found.is_code and len(found.code) >= IDENTIFIER_DIGITS
    if found is None or is_code:
        return match[0].replace("'", "").casefold()
    return found.value


def final_answer(text: str) -> str:
    """Return the last `@answer[…]` of a text, or the entire text if it has none."""
    values = [value for name, value in given_answers(text) if name.casefold() == "answer"]
    return values[-1] if values else outside_thought(text).strip()


def final_answers_agree(one: str, other: str) -> bool:
    """Return whether the final answers of two texts say the same; empty ones never do."""
    said = final_answer(one)
    return bool(said) and answers_equal(said, final_answer(other))


def answers_equal(label: str, answer: str) -> bool:
    """Return whether two short answers say the same, regardless of which is the label."""
    if values_equal(label, answer, SHORT_ANSWER) or is_nothing(answer, label):
        return True
    if max(len(label), len(answer)) > MAX_VALUE_CHARS or is_identifier(label, answer):
        return False
    if read_moment(label) is not None or read_moment(answer) is not None:
        return False
    expected, said = _readings(label), _readings(answer)
    return any(_sequences_equal(one, other) for one in expected for other in said)


def is_stated(value: str, answer: str) -> bool:
    """Return whether a sentence contains the value: its words and numbers, complete and in a row.

    A comma between digits separates two numbers only if the value itself has several items, so that
    `1,347` does not state `347`.
    """
    for thousands in (True, False):
        wanted = read_tokens(value, thousands=thousands)
        said = read_tokens(answer, thousands=thousands)
        starts = range(len(said) - len(wanted) + 1) if len(wanted) > (not thousands) else ()
        if any(_sequences_equal(wanted, said[at : at + len(wanted)]) for at in starts):
            return True
    return False


def words_before(value: str, answer: str) -> str | None:
    """Return the text before the value that ends a sentence; `None` if it does not end it."""
    wanted, plain = read_tokens(value), _plain(answer)
    starts = [match.start() for match in _TOKENS[True].finditer(plain)]
    longest = sum(1 for _ in _TOKENS[True].finditer(_plain(value)))
    for start in reversed(starts[-longest:]):
        if _sequences_equal(wanted, read_tokens(plain[start:])):
            return plain[:start]
    return None


def _readings(text: str) -> set[tuple[Token, ...]]:
    """Return the possible token sequences of a text; none if it has no words and numbers."""
    return {read_tokens(text, thousands=grouped) for grouped in (True, False)} - {()}


def _sequences_equal(one: tuple[Token, ...], other: tuple[Token, ...]) -> bool:
    return len(one) == len(other) and all(map(tokens_equal, one, other))


def tokens_equal(one: Token, other: Token) -> bool:
    """Return whether two tokens are the same word or the same number."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return numbers_equal(one, other, SHORT_ANSWER)


def _listed(words: str) -> frozenset[Token]:
    return frozenset(words.casefold().split())


_VERBS = _listed(
    "is are was were be been equals totals called named has have had found "
    "ist sind war waren beträgt betragen lautet lauten heißt heißen hat haben gibt"
)
_PREPOSITIONS = _listed("in on at by to of for as with von im am auf aus zu bei")
_ANSWERS = _listed("answer result value antwort ergebnis wert")
_DENIALS = _listed(
    "no not nor non none never neither nothing nobody cannot cant dont doesnt didnt isnt arent "
    "wasnt werent wont couldnt wouldnt shouldnt hasnt havent hadnt without unlikely hardly unknown "
    "unclear unable fails failed wrong false "
    "nicht nichts nie niemals kein keine keinen keinem keiner weder noch ohne unbekannt"
)
_CHOICES = _listed(
    "or either but except instead rather than unlike versus vs between whether if perhaps "
    "oder entweder aber sondern außer statt als zwischen ob"
)
_AND, _OR = _listed("and und"), _listed("or oder")
_ARTICLES = _listed("a an der die das dem den des ein eine einen einem einer")
_ASIDE = re.compile(r",\s(?:which|who|der|die|das)\s[^,;.\n]*(?:\.\s*)?$")
"""A clause after the value that comments on it."""
_BREAK = re.compile(r"[.!?;](?:\s|$)|[\n;?]")
"""The end of a sentence."""
_QUOTES = " \n\t\"'*`_\u201c\u201e\u2018\u00ab"
"""Characters that may directly precede a value."""


def states(value: str, answer: str, question: str) -> bool:
    """Return whether an answer states the value.

    Args:
        value: the value as text; no answer states an empty one.
        answer: a sentence, or the value alone.
        question: the question.
    """
    tokens = read_tokens(value)
    if not tokens or not is_stated(value, answer):
        return False
    if answers_equal(value, answer):
        return True
    if len(tokens) == 1 and not isinstance(tokens[0], str):
        return _states_number(tokens[0], answer, question)
    return _ends_with(value, answer, question)


def _states_number(value: Token, answer: str, question: str) -> bool:
    said, asked = read_tokens(answer), read_tokens(question)
    if not _numbers_are_among(said, (value, *asked)):
        return False
    places = [place for place, token in enumerate(said) if tokens_equal(value, token)]
    before = [_word_before(said[max(0, place - 3) : place]) for place in places]
    if any(word in _DENIALS | _OR for word in before):
        return False
    if any(said[place + 1] in _OR for place in places if place + 1 < len(said)):
        return False
    in_question = sum(tokens_equal(value, token) for token in asked)
    if not in_question:
        return True
    is_new = len(places) > in_question or any(word in _VERBS for word in before)
    return is_new and _DENIALS.isdisjoint(_words(said))


def _ends_with(value: str, answer: str, question: str) -> bool:
    aside = _ASIDE.search(answer)
    if aside is not None and _words(read_tokens(aside[0])).isdisjoint(_DENIALS | _CHOICES):
        answer = answer[: aside.start()]
    before = words_before(value, answer)
    if before is None or _BREAK.search(before.strip()):
        return False
    words, asked = read_tokens(before), read_tokens(question)
    if not _numbers_are_among(words, asked) or not _words(words).isdisjoint(_DENIALS | _CHOICES):
        return False
    mark, last = before.rstrip(_QUOTES)[-1:], _word_before(words)
    if mark and mark in ",/&+":
        return False
    if is_stated(value, question):
        return last in _VERBS or (mark == ":" and last in _ANSWERS)
    linking = _VERBS | _ANSWERS if mark == ":" else _VERBS | _PREPOSITIONS
    return last in linking or _singular(last) in {*map(_singular, asked)} - _AND


def _singular(word: Token) -> Token:
    return word.removesuffix("s") if isinstance(word, str) else word


def _word_before(tokens: Sequence[Token]) -> Token:
    """Return the last token that is not an article; empty if there is none."""
    return next((token for token in reversed(tokens) if token not in _ARTICLES), "")


def _words(tokens: Sequence[Token]) -> set[Token]:
    return {token for token in tokens if isinstance(token, str)}


def _numbers_are_among(tokens: Sequence[Token], allowed: Sequence[Token]) -> bool:
    numbers = [token for token in tokens if not isinstance(token, str)]
    return all(any(tokens_equal(one, number) for one in allowed) for number in numbers)
