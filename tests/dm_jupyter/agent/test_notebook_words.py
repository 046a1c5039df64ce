"""The words below a run's cells."""

from dataclasses import replace

import pytest

from dm_jupyter.agent.notebook_words import closing_words
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory

ENDED = Trajectory(Task("t", "How much?"), "tools", stop=StopReason.ANSWERED)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("They spent $49.62 and $47.62.", r"They spent \$49.62 and \$47.62."),
        (r"It cost \$5.", r"It cost \$5."),
        ("The slope $r = 0.87$ is steep.", "The slope $r = 0.87$ is steep."),
        ("`$5` and\n```\n$6\n```\nbut $7", "`$5` and\n```\n$6\n```\nbut \\$7"),
        ("US$ 5, $$x$$ and $$5$$", "US$ 5, $$x$$ and $$5$$"),
    ],
)
def test_amounts_of_money_are_no_formula(answer: str, shown: str) -> None:
    assert closing_words(replace(ENDED, answer=answer)) == f"## Answer\n\n{shown}"
