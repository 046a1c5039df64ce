from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.task import Task
from training.suites.dsbench_modeling import DSBenchModeling, ModelingLabel
from training.suites.records import RecordError
from training.suites.suite import Outcome, Sample

pytest.importorskip("sklearn")

Write = Callable[..., Path]

HOUSES: dict[str, Any] = {
    "id": "houses",
    "question": "Predict the price of each house.",
    "metric": "mae",
    "key": "id",
    "targets": ["price"],
    "baseline": 20.0,
    "best": 0.0,
}


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def split(write_questions: Write) -> Path:
    folder = write_questions(HOUSES)
    data = folder / "data" / "houses"
    write_table(data / "train.csv", ["id", "rooms", "price"], [[1, 2, 100], [2, 3, 150]])
    write_table(data / "test.csv", ["id", "rooms"], [[3, 2], [4, 3]])
    write_table(data / "answer.csv", ["id", "price"], [[3, 100], [4, 150]])
    return folder


@pytest.fixture
def item(split: Path) -> Sample:
    (loaded,) = DSBenchModeling().load(split)
    return loaded


@pytest.fixture
def submit(tmp_path: Path) -> Callable[[str], Outcome]:
    def write(text: str) -> Outcome:
        folder = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        folder.mkdir()
        (folder / "submission.csv").write_text(text, encoding="utf-8")
        return Outcome("done", folder)

    return write


def test_the_agent_gets_train_and_test_and_not_the_answer(item: Sample) -> None:
    assert [file.name for file in item.task.files] == ["train.csv", "test.csv"]
    assert "the columns id, price," in item.task.constraints
    assert "scored by mae" in item.task.constraints
    assert item.task.metadata["format"] == "mae"
    assert item.label.truth == ({"id": "3", "price": "100"}, {"id": "4", "price": "150"})


@pytest.mark.parametrize(
    ("text", "score", "gap", "strict_gap"),
    [
        ("id,price\n3,100\n4,150\n", 0.0, 1.0, 1.0),
        ("id,price\n3,95\n4,160\n", 7.5, 0.625, 0.625),
        ("id,price\n4,150\n3,100\n", 0.0, 1.0, 0.0),  # other rows: the scripts read 50 off
        ("id,price\n3,0\n4,0\n", 125.0, 0.0, 0.0),
        ("price\n100\n150\n", None, 0.0, 1.0),
        ("id,price\n3,100\n3,150\n", None, 0.0, 1.0),
        ("id,price\n3,100\n", None, 0.0, 0.0),
        ("id,price\n3,x\n4,150\n", None, 0.0, 0.0),
        ("id,price\n3,nan\n4,150\n", None, 0.0, 0.0),
        ("id,price,price\n3,1,1\n4,1,1\n", None, 0.0, 0.0),
        ("id,price\n3\n4,150\n", None, 0.0, 0.0),
        ("", None, 0.0, 0.0),
        ("id,cost\n3,100\n4,150\n", None, 0.0, 0.0),
        ("id,price\n4.0,150\n3.0,100\n", 0.0, 1.0, 0.0),
        ("id,price\n 3,100\n4,150\n", 0.0, 1.0, 1.0),
        ("id,price\n3,100\n3.0,150\n", None, 0.0, 1.0),
    ],
)
def test_a_submission_is_scored_by_its_way_from_the_baseline(
    text: str,
    score: float | None,
    gap: float,
    strict_gap: float,
    item: Sample,
    submit: Callable[[str], Outcome],
) -> None:
    verdict = DSBenchModeling().score(item, submit(text))
    assert verdict.grades.get("score") == score
    assert verdict.grades["gap"] == pytest.approx(gap)
    assert verdict.grades["strict_gap"] == pytest.approx(strict_gap)
    assert verdict.parts == {"submitted": score is not None, "above_baseline": gap > 0}
    assert (verdict.correct, verdict.strict_correct) == (gap > 0, strict_gap > 0)


def test_a_submission_without_the_class_column_is_none(
    item: Sample, submit: Callable[[str], Outcome]
) -> None:
    truth = ({"id": "0", "price": "a"}, {"id": "1", "price": "b"})
    label = ModelingLabel("accuracy", "id", ("price",), truth, baseline=0.5, best=1.0)
    verdict = DSBenchModeling().score(Sample(item.task, label), submit("id\n0\n1\n"))
    assert not any((*verdict.parts.values(), *verdict.strict_parts.values()))
    assert "score" not in verdict.grades
    said = submit("id,price\n1.0,b\n0.0,a\n")
    assert DSBenchModeling().score(Sample(item.task, label), said).grades["score"] == 1.0


def test_keys_with_zeros_in_front_stay_apart(
    item: Sample, submit: Callable[[str], Outcome]
) -> None:
    truth = ({"id": "007", "price": "100"}, {"id": "7", "price": "150"})
    label = ModelingLabel("mae", "id", ("price",), truth, baseline=20.0, best=0.0)
    said = submit("id,price\n7,150\n007,100\n")
    assert DSBenchModeling().score(Sample(item.task, label), said).grades["gap"] == 1.0
    same = submit("id,price\n7,150\n7.0,100\n")
    assert not DSBenchModeling().score(Sample(item.task, label), same).parts["submitted"]


def test_no_submission_and_no_folder_are_a_score(item: Sample, tmp_path: Path) -> None:
    verdict = DSBenchModeling().score(item, Outcome("I would use a forest", tmp_path / "none"))
    assert verdict.grades == {"gap": 0.0, "strict_gap": 0.0}
    assert not any(verdict.parts.values())


def test_a_link_to_the_answer_is_no_submission(item: Sample, split: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "submission.csv").symlink_to(split / "data" / "houses" / "answer.csv")
    assert not DSBenchModeling().score(item, Outcome("", work)).parts["submitted"]


def test_runs_agree_where_they_predict_the_same(
    item: Sample, submit: Callable[[str], Outcome], tmp_path: Path
) -> None:
    suite = DSBenchModeling()
    one = submit("id,price\n3,95\n4,160\n")
    assert suite.agree(item, one, submit("price,id,note\n160.0,4,x\n95,3,y\n"))
    assert not suite.agree(item, one, submit("id,price\n3,95\n4,161\n"))
    assert not suite.agree(item, one, submit("key,price\n3,95\n4,160\n"))
    assert not suite.agree(item, Outcome("", tmp_path), Outcome("", tmp_path))


@given(text=st.text())
def test_no_text_breaks_the_scorer(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "submission.csv").write_bytes(text.encode("utf-8", "surrogatepass"))
    truth = ({"id": "3", "price": "100"}, {"id": "4", "price": "150"})
    label = ModelingLabel("mae", "id", ("price",), truth, baseline=20.0, best=0.0)
    outcome = Outcome("", folder)
    assert not DSBenchModeling().score(Sample(Task("t", "?"), label), outcome).correct


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "charm"}, "field 'metric': 'charm' is none of: accuracy, auc, f1"),
        ({"best": 20.0}, "field 'best': is the baseline"),
        ({"best": 30.0}, "field 'best': .*swapped"),
        ({"baseline": "x"}, "field 'baseline': expected a number, found str"),
        ({"targets": []}, "field 'targets': expected a list with at least one column name"),
        ({"targets": ["rent"]}, "has no rows with the columns id, rent"),
        ({"key": "name"}, "has no rows with the columns name, price"),
        ({"id": "../houses"}, "field 'id': '../houses' is no folder name"),
        ({"id": "flats"}, "there is no file 'data/flats/answer.csv'"),
    ],
)
def test_a_bad_record_is_named(
    change: dict[str, Any], message: str, split: Path, write_questions: Write
) -> None:
    write_questions({**HOUSES, **change})
    with pytest.raises(RecordError, match=message):
        DSBenchModeling().load(split)


def test_a_bad_answer_file_is_named(split: Path) -> None:
    answer = split / "data" / "houses" / "answer.csv"
    write_table(answer, ["id", "price"], [[3, 100], [3, 150]])
    with pytest.raises(RecordError, match="names a row twice"):
        DSBenchModeling().load(split)
    answer.write_bytes(b"\xff\xfe")
    with pytest.raises(RecordError, match="can't be read"):
        DSBenchModeling().load(split)


@pytest.mark.parametrize(
    ("metric", "truth", "problem"),
    [
        ("rmse", ["low", "high"], "'low' is no number"),
        ("mae", ["1", "nan"], "'nan' is no number"),
        ("auc", ["1", "1"], "the truth needs both classes"),
        ("r2", ["2", "2"], "r2 needs two different values"),
    ],
)
def test_an_answer_that_nothing_can_meet_is_refused(
    metric: str, truth: list[str], problem: str, split: Path, write_questions: Write
) -> None:
    write_questions({**HOUSES, "metric": metric})
    write_table(split / "data/houses/answer.csv", ["id", "price"], zip("34", truth, strict=True))
    wanted = f"row 1, field 'metric': {metric} can't score data/houses/answer.csv .*: {problem}"
    with pytest.raises(RecordError, match=wanted):
        DSBenchModeling().load(split)


def test_a_missing_scorer_is_named_before_anything_runs(
    split: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(RecordError, match=r"'metric': mae can't score .* pip install"):
        DSBenchModeling().load(split)


def test_a_real_model_on_real_data_beats_the_baseline(
    write_questions: Write, submit: Callable[[str], Outcome]
) -> None:
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    columns = [f"x{number}" for number in range(x.shape[1])]
    split = write_questions(
        {**HOUSES, "id": "cancer", "metric": "auc", "targets": ["benign"], "baseline": 0.5,
         "best": 1.0}
    )  # fmt: skip
    rows = [[number, *x[number], y[number]] for number in range(len(y))]
    data = split / "data" / "cancer"
    write_table(data / "train.csv", ["id", *columns, "benign"], rows[:400])
    write_table(data / "test.csv", ["id", *columns], [row[:-1] for row in rows[400:]])
    write_table(data / "answer.csv", ["id", "benign"], [[row[0], row[-1]] for row in rows[400:]])
    (item,) = DSBenchModeling().load(split)

    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x[:400], y[:400])
    said = model.predict_proba(x[400:])[:, 1]
    lines = [f"{number},{share}" for number, share in zip(range(400, len(y)), said, strict=True)]
    verdict = DSBenchModeling().score(item, submit("id,benign\n" + "\n".join(lines) + "\n"))
    assert verdict.correct
    assert verdict.grades["score"] > 0.98
    assert verdict.grades["gap"] == pytest.approx(2 * verdict.grades["score"] - 1)
    guess = "".join(f"{number},0.5\n" for number in range(400, len(y)))
    assert DSBenchModeling().score(item, submit("id,benign\n" + guess)).grades["gap"] == 0
