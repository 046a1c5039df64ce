"""Questions of one's own: read and scored as those of DABench, and free to be learned from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from training.suites.records import RecordError
from training.suites.registry import find_suite
from training.suites.suite import Outcome

QUESTION = {
    "id": "rain", "question": "What is the mean?", "file": "t.csv",
    "format": "@mean[two decimals]", "label_pairs": [["mean", "3.37"]],
}  # fmt: skip


def test_own_questions_need_five_fields_and_may_be_learned_from(
    write_questions: Callable[..., Path],
) -> None:
    split = write_questions(QUESTION)
    (split / "t.csv").write_text("a\n1\n")
    suite = find_suite("own")
    (item,) = suite.load(split)
    assert not item.task.metadata["evaluation_only"]
    assert item.task.metadata["suite"] == "own"
    assert suite.score(item, Outcome("@mean[3.37]", split)).correct
    assert not suite.score(item, Outcome("@mean[3.30]", split)).correct


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label_pairs": [["average", "3.37"]]}, "names mean, and `label_pairs` average"),
        (
            {"label_pairs": [["mean", "3,37"]]},
            "3,37, the value of mean, has a decimal comma: write 3.37",
        ),
        ({"label_pairs": [["mean", "-1.234,5"]]}, "write -1234.5"),
        ({"label_pairs": [["mean", "1,234"]]}, ""),
        ({"label_pairs": [["mean", "1, 2"]]}, ""),
    ],
)
def test_a_label_that_no_answer_could_have_is_named(
    change: dict[str, object], said: str, write_questions: Callable[..., Path]
) -> None:
    split = write_questions({**QUESTION, **change})
    (split / "t.csv").write_text("a\n1\n")
    with pytest.raises(RecordError, match=f"question rain: .*{said}") if said else nullcontext():
        find_suite("own").load(split)


def test_a_question_without_its_answer_is_named(write_questions: Callable[..., Path]) -> None:
    split = write_questions({name: QUESTION[name] for name in QUESTION if name != "label_pairs"})
    (split / "t.csv").write_text("a\n1\n")
    with pytest.raises(RecordError, match="row 1, field 'label_pairs'"):
        find_suite("own").load(split)
