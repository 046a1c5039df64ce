"""A model that marks answers: any OpenAI-compatible endpoint, or whatever else is a `Policy`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from dm_jupyter.models.protocols import Policy
from training.marking.asking import AskedModel
from training.marking.errors import JudgeError, JudgeUnreachableError
from training.marking.verdict import Grades, Marks, Scale, read_reason, read_scores

__all__ = ["Grades", "Judge", "JudgeError", "JudgeUnreachableError", "Marks", "Scale"]


class Judge:
    """Marks by the prompts of `training/prompts`, at temperature 0 and seed 0.

    What it said is kept on disk, and asked for once. It sends as many questions at a time as it
    is given: the caller bounds them. A judge that fails raises, and never marks an answer wrong.
    """

    def __init__(self, policy: Policy, cache: Path, max_tokens: int = 1_000) -> None:
        """Prepares the judge; nothing is asked or written yet.

        Args:
            policy: the model; an `HttpPolicy` must be open.
            cache: folder of its replies; it may be shared with other judges and processes.
            max_tokens: of a reply; more for a model that thinks aloud before it marks.
        """
        self._model = AskedModel(policy, cache, max_tokens)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def score(
        self, prompt: str, fields: Mapping[str, str], scale: Scale, *, is_whole: bool = False
    ) -> Marks:
        """Returns the one `<score>` of the reply.

        Args:
            prompt: name of the prompt file.
            fields: what the prompt is filled with.
            scale: lowest and highest score.
            is_whole: whether the score must be a whole number.

        Raises:
            JudgeError: the judge could not be asked, its words were no verdict twice, or they
                can't be kept.
            FileNotFoundError: there is no such prompt.
            KeyError: the prompt has a field that `fields` lacks.
        """
        grades = await self.grades(prompt, fields, {"": scale}, is_whole=is_whole)
        return Marks(grades.scores[""], grades.reason, grades.is_cached)

    async def grades(
        self,
        prompt: str,
        fields: Mapping[str, str],
        scales: Mapping[str, Scale],
        *,
        is_whole: bool = False,
    ) -> Grades:
        """Returns every `<score name="…">` of the reply: those of `scales`, each once, no other.

        Args:
            prompt: name of the prompt file.
            fields: what the prompt is filled with.
            scales: lowest and highest score of each name.
            is_whole: whether each score must be a whole number.

        Raises:
            JudgeError: the judge could not be asked, its words were no verdict twice, or they
                can't be kept.
            FileNotFoundError: there is no such prompt.
            KeyError: the prompt has a field that `fields` lacks.
        """
        read = partial(read_scores, scales=scales, is_whole=is_whole)
        asked = await self._model.ask(prompt, fields, read)
        return Grades(asked.value, read_reason(asked.reply), asked.is_cached)
