"""Workflows told with a question while runs are drawn, and left out of what is learned."""

from __future__ import annotations

from pathlib import Path

import pytest

from dm_jupyter.assist.advice import needs_scipy
from dm_jupyter.core.errors import UsageError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from training.evaluation.knowledge import read_knowledge, without_knowledge
from training.suites.generated.dataset import Plan, generate, write_dataset
from training.suites.generated.suite import GeneratedQuestions
from training.suites.suite import Sample

SHIPPED = Path(__file__).resolve().parents[3] / "training/suites/generated/data/knowledge.toml"
WORKFLOWS = """
[[workflow]]
text = "For all."

[[workflow]]
categories = ["ranking", "counting"]
text = "Of two\\n  categories."

[[workflow]]
when = "SKEW|\\\\.xlsx"
text = "When."
"""


def sample(question: str, category: str, *, file: str = "a.csv", constraints: str = "") -> Sample:
    metadata = {"draw_group": category}
    return Sample(Task("q", question, (Path(file),), constraints, metadata=metadata), None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "knowledge.toml"
    file.write_text(WORKFLOWS)
    return file


def test_a_question_comes_with_the_workflows_that_fit_it(file: Path) -> None:
    knowledge = read_knowledge(file)

    def told(one: Sample) -> str:
        return knowledge.told(one).constraints

    assert told(sample("How many?", "other")) == "For all."
    assert told(sample("How many?", "counting")) == "For all. Of two categories."
    assert told(sample("How skewed?", "other", constraints="Round.")) == "Round.\nFor all. When."
    assert told(sample("How many?", "other", file="b.xlsx")) == "For all. When."
    assert told(sample("How many?", "other", constraints="As skew.")).endswith("For all. When.")


def test_what_is_learned_has_the_question_alone(file: Path) -> None:
    knowledge = read_knowledge(file)
    for constraints in ("", "Round."):
        plain = sample("How skewed?", "ranking", constraints=constraints).task
        told = knowledge.told(Sample(plain, None))
        assert told != plain
        again = Trajectory.from_json(Trajectory(told, "markdown").to_json())
        assert without_knowledge(again).task == plain
        untold = Trajectory(plain, "markdown")
        assert without_knowledge(untold) is untold


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1", r"there is no \[\[workflow\]\]"),
        ("workflow = 3", "not iterable"),
        ("[[workflow]]\nwhen = 'a'", "workflow 1 needs a text"),
        ("[[workflow]]\ntext = 'a'\nif = 'b'", "workflow 1 has an unknown field: if"),
        ("[[workflow]]\ntext = 'a'\nwhen = '('", "workflow 1: `when` is no regular expression"),
        ("[[workflow]]\ntext = 'a'\ncategories = 'b'", "`categories` must be a list of names"),
        ("[[", "knowledge.toml"),
    ],
)
def test_a_wrong_file_is_named(text: str, said: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(UsageError, match=said) as refused:
        read_knowledge(file)
    assert str(file) in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_knowledge(tmp_path / "none.toml")


def test_the_shipped_workflows_fit_generated_questions(tmp_path: Path) -> None:
    write_dataset(generate(Plan(14, 12, 1)), tmp_path / "made")
    samples = GeneratedQuestions().load(tmp_path / "made" / "train")
    knowledge = read_knowledge(SHIPPED)
    told = [knowledge.told(one) for one in samples]
    is_told = [task != one.task for task, one in zip(told, samples, strict=True)]
    assert sum(is_told) > 0.8 * len(samples)
    # The prepared code must be that of the question alone: it is part of what is learned.
    assert [needs_scipy(task) for task in told] == [needs_scipy(one.task) for one in samples]
    categories = {name for one in knowledge.workflows for name in one.categories}
    assert categories <= {one.category for one in samples}
