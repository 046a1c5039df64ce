"""Whether an answer in words states one value, and no list of guesses, no denial, no mere mention.

Only plain statements are taken, those that no grammar is needed for; the bare value always is. Told
apart here:

- Words, and what has several parts such as a date, come last ("The genre is Rock."), but for
  an aside (", which …"). In front of them stands a verb, a preposition or a word of the question,
  and nowhere a denial ("not", "no"), a choice ("or", "either"), another sentence or a number that
  is not the question's.
- A number may stand anywhere ("There are 347 albums."), but is the only one: beside it stand
  numbers of the question alone ("after 1990"), right before it no denial, next to it no "or".
- What the question says already ("the top 5", "Rock or Jazz") is only repeated, unless a verb or
  "answer:" stands right in front of it, or a number is there more often than in the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from training.scoring.short_answer import (
    Token,
    answers_equal,
    is_stated,
    read_tokens,
    tokens_equal,
    words_before,
)

__all__ = ["states"]


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
"""A clause about the value behind it."""
_BREAK = re.compile(r"[.!?;](?:\s|$)|[\n;?]")
"""Where a sentence ends."""
_QUOTES = " \n\t\"'*`_\u201c\u201e\u2018\u00ab"
"""What may stand right in front of a value."""


def states(value: str, answer: str, question: str) -> bool:
    """Returns whether an answer says that the value is so.

    Args:
        value: the value as text; nothing states an empty one.
        answer: a sentence, or the value alone.
        question: what was asked.
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
    """The last word that is no article; empty where there is none."""
    return next((token for token in reversed(tokens) if token not in _ARTICLES), "")


def _words(tokens: Sequence[Token]) -> set[Token]:
    return {token for token in tokens if isinstance(token, str)}


def _numbers_are_among(tokens: Sequence[Token], allowed: Sequence[Token]) -> bool:
    numbers = [token for token in tokens if not isinstance(token, str)]
    return all(any(tokens_equal(one, number) for one in allowed) for number in numbers)
