from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dm_jupyter.agent.simplify import AS_ASKED, simplified
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest
from tests.fakes import ScriptedPolicy

TASK = Task(
    "t", "Once upon a time … mean of a, $5?", (Path("/far/t.csv"),), "Skip gaps.", "@mean[m]"
)


async def test_the_question_alone_is_restated_and_kept_as_asked() -> None:
    policy = ScriptedPolicy(["\nMean of a in t.csv.\n"])
    found = await simplified(replace(TASK, metadata={"suite": "s"}), policy, seed=4)
    assert found.task == replace(
        TASK,
        question="Mean of a in t.csv.",
        metadata={"suite": "s", AS_ASKED: TASK.question},
    )
    (request,) = policy.requests
    assert request.seed == 4
    assert TASK.question in request.messages[0].content
    assert "Files: t.csv" in request.messages[0].content


@dataclass
class Cut:
    name: str
    said: Completion

    async def sample(self, request: SampleRequest, on_text: object) -> Completion:
        return self.said


@pytest.mark.parametrize("said", [Completion("Mean of", finish_reason="length"), Completion(" ")])
async def test_words_that_are_cut_or_missing_leave_the_task_as_it_was(said: Completion) -> None:
    found = await simplified(TASK, Cut("cut", said))
    assert found.task == TASK
    assert found.completion == said
