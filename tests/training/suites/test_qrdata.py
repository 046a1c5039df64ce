from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.task import Task
from training.scoring.values import first_number, is_within, read_number
from training.suites.qrdata import QRData, QRLabel
from training.suites.records import RecordError
from training.suites.suite import ItemScore, Outcome, Sample

Write = Callable[..., Path]

NUMERICAL: dict[str, Any] = {
    "id": "n",
    "context": "The file trial.csv holds a trial.",
    "question": "What share was cured?",
    "answer": "0.50",
    "files": ["trial.csv", "more.csv"],
    "keywords": ["Statistics"],
    "question_type": "numerical",
}
CHOICE = {
    **NUMERICAL,
    "id": "c",
    "answer": "No",
    "question_type": "multiple_choice",
    "multiple_choices": ["yes", "no", "no idea"],
}


@pytest.fixture
def load(write_questions: Write) -> Callable[..., Sample]:
    def loaded(record: dict[str, Any], **changes: Any) -> Sample:
        split = write_questions({**record, **changes})
        for name in ("trial.csv", "more.csv"):
            (split / name).write_text("cured\n1\n0\n")
        (item,) = QRData().load(split)
        return item

    return loaded


def test_a_task_holds_context_question_and_all_files(load: Callable[..., Sample]) -> None:
    task = load(NUMERICAL).task
    assert task.question == "The file trial.csv holds a trial.\n\nWhat share was cured?"
    assert [file.name for file in task.files] == ["trial.csv", "more.csv"]
    assert task.metadata["format"] == "number"
    assert "0.50" not in str(task)
    assert load(NUMERICAL, context="").task.question == "What share was cured?"


def test_a_choice_is_offered_in_the_format(load: Callable[..., Sample]) -> None:
    item = load(CHOICE)
    assert item.task.answer_format.endswith("one of: yes, no, no idea.")
    assert item.task.metadata["format"] == "choice"
    assert item.label == QRLabel("No", ("yes", "no", "no idea"))


@pytest.mark.parametrize(
    ("label", "answer", "right", "strict", "exact"),
    [
        ("0.50", "@answer[0.5]", True, True, True),
        ("0.50", "@answer[0.514]", True, True, False),
        ("0.50", "0.515", True, False, False),  # 3 % to the digit: the script leaves it out
        ("0.50", "@answer[0.516]", False, False, False),
        ("0.50", "@answer[51 %]", True, False, False),  # the script wants no space
        ("0.50", "@answer[51%]", True, True, False),
        ("0.50", "@answer[0.5 of 2]", False, True, False),  # the script takes the first number
        ("0.50", "@answer[-0.5]", False, False, False),
        ("-2", "@answer[\u22122.03]", True, False, False),
        ("5.36%", "@answer[5.36%]", True, True, True),
        ("5.36%", "@answer[5.36]", True, False, True),
        ("5.36%", "@answer[0.0536]", True, True, False),
        ("5.36%", "@answer[536%]", False, False, False),
        ("1691", "@answer[1,691]", True, False, True),
        ("0", "@answer[0]", True, False, True),  # nothing is within 3 % of 0 for the script
        ("0", "@answer[0.001]", False, False, False),
        ("0.50", "@answer[half]", False, False, False),
        ("0.50", "", False, False, False),
    ],
)
def test_numbers(
    label: str, answer: str, right: bool, strict: bool, exact: bool, load: Callable[..., Sample]
) -> None:
    score = QRData().score(load(NUMERICAL, answer=label), Outcome(answer, Path()))
    parts = {"answer": right, "exact": exact}
    assert score == ItemScore(right, strict, parts, {"answer": strict})


@pytest.mark.parametrize(
    ("answer", "right", "strict"),
    [
        ("@answer[no]", True, True),
        ("@answer[No, it is not]", True, True),
        ("@answer[(no)]", True, False),
        ("@answer[No idea]", False, True),
        ("@answer[nothing]", False, True),
        ("@answer[yes]", False, False),
        ("", False, False),
    ],
)
def test_choices(answer: str, right: bool, strict: bool, load: Callable[..., Sample]) -> None:
    score = QRData().score(load(CHOICE), Outcome(answer, Path()))
    assert (score.correct, score.strict_correct, score.parts["exact"]) == (right, strict, right)


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("A", "a"),
        ("(A)", "a"),
        ("**A**, since it is the mean.", "a"),
        ("A or B", None),
        ("A, B or C", None),
        ("A is wrong, B is right", None),
        ("B is right and A is wrong", None),
        ("B or a", None),
        ("b: a paired test", "b"),
        ("B, not A.", None),
        ("Ab", None),
    ],
)
def test_a_choice_beside_another_one_is_none(
    answer: str, chosen: str | None, load: Callable[..., Sample]
) -> None:
    for label in "abc":
        item = load(CHOICE, answer=label.upper(), multiple_choices=["A", "b", "C"])
        outcome = Outcome(f"@answer[{answer}]", Path())
        assert QRData().score(item, outcome).correct is (label == chosen)
        assert QRData().agree(item, outcome, outcome) is (chosen is not None)


@pytest.mark.parametrize("answer", ["(a) foo", "a) foo", "(A) Foo.", '"(a) foo"'])
def test_a_choice_may_have_brackets_of_its_own(answer: str, load: Callable[..., Sample]) -> None:
    item = load(CHOICE, answer="(a) foo", multiple_choices=["(a) foo", "(b) [bar]"])
    assert QRData().score(item, Outcome(answer, Path())).correct
    other = load(CHOICE, answer="(b) [bar]", multiple_choices=["(a) foo", "(b) [bar]"])
    assert QRData().score(other, Outcome("@answer[(b) [bar]]", Path())).correct
    assert not QRData().score(other, Outcome(answer, Path())).correct


def test_runs_agree_where_each_would_answer_the_other(load: Callable[..., Sample]) -> None:
    number, choice, suite = load(NUMERICAL), load(CHOICE), QRData()

    def agree(item: Sample, one: str, other: str) -> bool:
        answers = Outcome(one, Path()), Outcome(other, Path())
        assert suite.agree(item, *answers) == suite.agree(item, *reversed(answers))
        return suite.agree(item, *answers)

    assert agree(number, "@answer[100]", "@answer[102]")
    assert not agree(number, "@answer[100]", "@answer[103.05]")  # 3 % of one and not of the other
    assert agree(number, "@answer[5.36]", "@answer[5.36%]")
    assert agree(number, "@answer[0.0536]", "@answer[5.36%]")
    assert not agree(number, "@answer[0.0536]", "@answer[5.36]")
    assert not agree(number, "", "")
    assert not agree(number, "many", "many")
    assert agree(choice, "@answer[No.]", "@answer[no]")
    assert not agree(choice, "@answer[maybe]", "@answer[maybe]")
    assert not agree(choice, "@answer[no]", "@answer[no idea]")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "many"}, "row 1, field 'answer': 'many' is no finite number"),
        ({"answer": "nan"}, "field 'answer': 'nan' is no finite number"),
        ({"answer": "-inf"}, "field 'answer': '-inf' is no finite number"),
        ({"answer": "1e999"}, "field 'answer': '1e999' is no finite number"),
        ({"question_type": "essay"}, "field 'question_type': expected numerical or multiple_"),
        ({"files": []}, "field 'files': expected a list with at least one file name"),
        ({"question_type": "multiple_choice"}, "field 'multiple_choices': the answer '0.50' is"),
    ],
)
def test_a_bad_record_is_named(
    change: dict[str, Any], message: str, load: Callable[..., Sample]
) -> None:
    with pytest.raises(RecordError, match=message):
        load(NUMERICAL, **change)


@pytest.mark.parametrize(
    ("text", "whole", "first"),
    [
        ("12.5%", 0.125, 0.125),
        ("$1,234.5", 1234.5, 1.0),
        ("p = -0.3.", None, -0.3),
        ("none", None, None),
        ("1e3", 1000.0, 1.0),
    ],
)
def test_a_number_is_read_whole_or_first(
    text: str, whole: float | None, first: float | None
) -> None:
    assert read_number(text) == whole
    assert first_number(text) == first


@given(st.text(), st.text())
def test_no_text_raises_and_agreement_is_symmetric(one: str, other: str) -> None:
    first_number(one)
    for label in (QRLabel(one), QRLabel("no", ("yes", "no"))):
        item = Sample(Task("t", "?"), label)
        outcomes = Outcome(one, Path()), Outcome(other, Path())
        QRData().score(item, outcomes[1])
        assert QRData().agree(item, *outcomes) == QRData().agree(item, *reversed(outcomes))


@given(st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 1))
def test_a_finite_number_is_within_any_share_of_itself(number: float, share: float) -> None:
    assert is_within(number, number, share) is (abs(number) < float("inf"))


def test_the_shared_questions_load_and_their_answers_are_right(shared_data: Path) -> None:
    items = QRData().load(shared_data / "qrdata")
    assert len(items) == 70
    for item in items:
        outcome = Outcome(f"@answer[{item.label.answer}]", Path())
        score = QRData().score(item, outcome)
        assert (score.correct, score.strict_correct, score.parts["exact"]) == (True, True, True)
        assert QRData().agree(item, outcome, outcome)
