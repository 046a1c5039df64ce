"""InfiAgent's reformat step (arXiv 2401.05507): a model writes an answer anew in the asked form.

It helps models that were never trained on `@name[value]`, and so it measures something else than
the answer itself: its verdict is a column of its own and never replaces the first. Deviates in two
places: an answer that is in form already is not sent, and every number of the new text must stand
in the answer, or the reply is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dm_jupyter.core.closed_form import answer_names, find_answers
from dm_jupyter.core.task import Task
from dm_jupyter.models.protocols import Policy
from training.marking.asking import AskedModel
from training.marking.errors import UnusableReplyError
from training.scoring.short_answer import Token, read_tokens, tokens_equal

__all__ = ["PROMPT", "Reformatter", "read_reformatted"]

PROMPT = "reformat"
_NOTHING = "NONE"


class Reformatter:
    """Writes answers in their form; a value that the answer lacks is left out and never made up."""

    def __init__(self, policy: Policy, cache: Path, max_tokens: int = 1_000) -> None:
        """Prepares the step; nothing is asked or written yet.

        Args:
            policy: the model; an `HttpPolicy` must be open.
            cache: folder of its replies; it may be the judge's.
            max_tokens: of a reply.
        """
        self._model = AskedModel(policy, cache, max_tokens)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def reformat(self, task: Task, answer: str) -> str:
        """Returns the answer in the task's form; empty where it states no value.

        An answer comes back as it is where the task has no form, where the answer names all that
        the form asks for, and where it is blank.

        Raises:
            JudgeError: the model could not be asked, or changed values twice.
        """
        names = answer_names(task.answer_format)
        said = {name for name, _ in find_answers(answer)}
        if not answer.strip() or all(name in said for name in names):
            return answer
        fields = {"question": task.question, "format": task.answer_format, "answer": answer}
        read = partial(read_reformatted, names=names, answer=answer)
        return (await self._model.ask(PROMPT, fields, read)).value


def read_reformatted(reply: str, *, names: Sequence[str], answer: str) -> str:
    """Returns the `@name[value]` lines of a reply; empty for the reply that there is no value.

    Args:
        reply: the model's words.
        names: the names that the form asks for.
        answer: what the values must come from.

    Raises:
        UnusableReplyError: the reply has no line of that kind, a name that nobody asked for, or a
            number that the answer lacks.
    """
    found = find_answers(reply)
    if not found:
        if reply.strip().strip(".").upper() == _NOTHING:
            return ""
        raise UnusableReplyError(f"it has no line of the form @name[value], and is not {_NOTHING}")
    for name, value in found:
        if name not in names:
            raise UnusableReplyError(f"@{name} is not a name of the format")
        if not _is_from(answer, value):
            raise UnusableReplyError(f"@{name}[{value[:60]}] holds a number that the answer lacks")
    return "\n".join(f"@{name}[{value}]" for name, value in found)


def _is_from(answer: str, value: str) -> bool:
    """Whether every number of a value stands in the answer, in either reading of commas."""
    stated = [number for grouped in (True, False) for number in _numbers(answer, grouped)]
    return any(
        all(any(tokens_equal(one, other) for other in stated) for one in _numbers(value, grouped))
        for grouped in (True, False)
    )


def _numbers(text: str, grouped: bool) -> list[Token]:
    return [part for part in read_tokens(text, thousands=grouped) if not isinstance(part, str)]
