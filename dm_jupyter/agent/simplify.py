"""Simplification of a long task before a run: one turn of the model, as in Jupiter.

Jupiter (arXiv 2509.09245) simplifies the descriptions of DSBench before its agent works on them.
Deviations: the sentences of the prompt are our own. Constraints and the answer format are not
restated. It is one switch for every suite, off by default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import Policy, SampleRequest

__all__ = ["AS_ASKED", "SIMPLIFY_PROMPT", "Simplified", "simplified"]

SIMPLIFY_PROMPT = "simplify_task"
"""Name of the prompt."""
AS_ASKED = "question_as_asked"
"""Key in a task's `metadata` for the question that was restated."""


@dataclass(frozen=True, slots=True)
class Simplified:
    """A task, restated."""

    task: Task
    """The task with the new question, and the original one in its `metadata`. It is unchanged if
    the model's words are cut or empty."""
    completion: Completion
    """The model's completion, with its cost."""


async def simplified(task: Task, policy: Policy, seed: int = 0) -> Simplified:
    """Return the task in the words of the model, which is asked once.

    Args:
        task: the task; its constraints and its format stay.
        policy: the model.
        seed: seed of the turn.

    Raises:
        PolicyError: the model could not be sampled.
    """
    files = ", ".join(file.name for file in task.files) or "none"
    told = prompts.fill(SIMPLIFY_PROMPT, files=files, question=task.question)
    request = SampleRequest((Message("user", told),), temperature=0.0, seed=seed)
    completion = await policy.sample(request, lambda _: None)
    question = completion.text.strip()
    if not question or completion.finish_reason != "stop":
        return Simplified(task, completion)
    metadata = {**task.metadata, AS_ASKED: task.question}
    return Simplified(replace(task, question=question, metadata=metadata), completion)
