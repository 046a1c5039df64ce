"""Paraphrases of questions by a model, kept only if they mean the same.

Two checks protect the meaning. Every number, every quoted text and every name of the question must
occur in the new wording, with no further number. Then the model is asked, in a new conversation,
whether both versions ask the same. A question that fails keeps its original wording.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dm_jupyter.models.protocols import Policy
from training.durable.at_once import each_at_once
from training.marking.asking import (
    AskedModel,
    ModelUnreachableError,
    NoReplyError,
    UnusableReplyError,
)
from training.marking.judge import Judge
from training.suites.generated.dataset import Entry
from training.suites.generated.questions.templates import categories

__all__ = ["Paraphraser", "read_paraphrase"]

WORDS, CHECK = "paraphrase", "paraphrase_check"
_REPLY = re.compile(r"<question>(.*?)</question>", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_QUOTED = re.compile(r'"[^"]*"')


class Paraphraser:
    """Paraphrasing of questions, with counts of the outcomes."""

    def __init__(self, policy: Policy, replies: Path, max_tokens: int = 600) -> None:
        """Prepare without asking or writing anything.

        Args:
            policy: the model; an `HttpPolicy` must be open.
            replies: the folder in which replies are kept, so that none is paid for twice.
            max_tokens: the most tokens of a reply.
        """
        self._model = AskedModel(policy, replies, max_tokens)
        self._judge = Judge(policy, replies, max_tokens)
        self.outcomes: Counter[str] = Counter()

    async def rewrite(self, entries: Sequence[Entry], at_once: int = 4) -> None:
        """Replace the text of each entry for which the model gives a valid paraphrase.

        Args:
            entries: the entries of a data set.
            at_once: questions that are asked about at the same time.

        Raises:
            ModelUnreachableError: the model can't be asked, or its replies can't be kept.
        """
        await each_at_once(entries, at_once, self._rewrite)

    async def _rewrite(self, entry: Entry) -> None:
        text = entry.question.text
        category = next(one for one in categories() if one.name == entry.question.template.category)
        examples = "\n".join(f"- {exemplar}" for exemplar in category.exemplars)
        read = partial(read_paraphrase, text=text, kept=entry.question.kept)
        try:
            asked = await self._model.ask(WORDS, {"question": text, "examples": examples}, read)
            marks = await self._judge.score(
                CHECK, {"one": text, "other": asked.value}, (0, 1), is_whole=True
            )
        except ModelUnreachableError:
            raise
        except NoReplyError:
            self.outcomes["refused: a name or number changed, or no usable reply"] += 1
            return
        if marks.score != 1:
            self.outcomes["refused: the model says that the meaning changed"] += 1
        elif asked.value == text:
            self.outcomes["unchanged"] += 1
        else:
            entry.text = asked.value
            self.outcomes["replaced"] += 1


def read_paraphrase(reply: str, *, text: str, kept: Sequence[str]) -> str:
    """Return the paraphrase in a reply.

    Args:
        reply: the model's reply.
        text: the question.
        kept: the names that the paraphrase must contain.

    Raises:
        UnusableReplyError: the reply does not have exactly one question in its tags, lacks a name
            or number of the text, or has a number that the text lacks.
    """
    found = _REPLY.findall(reply)
    if len(found) != 1 or not found[0].strip():
        raise UnusableReplyError("it must have one question between <question> and </question>")
    new = " ".join(found[0].split())
    for name in (*kept, *_QUOTED.findall(text)):
        if name.casefold() not in new.casefold():
            raise UnusableReplyError(f"the new version lacks {name}")
    before, after = Counter(_NUMBER.findall(text)), Counter(_NUMBER.findall(new))
    if before.keys() != after.keys():
        differing = sorted(before.keys() ^ after.keys())
        raise UnusableReplyError(f"both versions must hold the same numbers, also {differing[0]}")
    return new
