from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from training.scoring.metrics_table import METRICS, MetricError, score_columns

pytest.importorskip("sklearn")

ZEROS_AND_ONES = ["0", "1", "1", "0"]
WITHOUT_BINARY = sorted(set(METRICS) - {"auc", "gini", "logloss", "f1"})
CELLS = st.one_of(st.text(max_size=8), st.integers(-9, 9).map(str), st.floats().map(str))


def score(metric: str, truth: list[str], said: list[str]) -> float:
    return score_columns(metric, [truth], [said])


@pytest.mark.parametrize(
    ("metric", "truth", "said", "expected"),
    [
        ("accuracy", ["a", "1", "True"], ["A ", "1.0", "no"], 2 / 3),
        ("accuracy", ["1000001"], ["1000002"], 0.0),
        ("auc", ZEROS_AND_ONES, ["0.1", "0.9", "0.4", "0.5"], 0.75),
        ("gini", ZEROS_AND_ONES, ["0.1", "0.9", "0.4", "0.5"], 0.5),
        ("f1", ZEROS_AND_ONES, ["0", "1", "0", "0"], 2 / 3),  # precision 1, recall 1/2
        ("f1_macro", ["a", "a", "b", "b"], ["a", "a", "a", "b"], (0.8 + 2 / 3) / 2),
        ("f1_micro", ["a", "a", "b", "b"], ["a", "a", "a", "b"], 0.75),
        ("logloss", ["1", "0"], ["0.5", "0.5"], math.log(2)),
        ("mae", ["1", "2"], ["2", "4"], 1.5),
        ("medae", ["0", "0", "0"], ["1", "2", "30"], 2.0),
        ("mse", ["1", "2"], ["2", "4"], 2.5),
        ("rmse", ["1", "2"], ["2", "4"], math.sqrt(2.5)),
        ("rmsle", ["0", "0"], ["1", "1"], math.log(2)),
        ("r2", ["1", "2", "3"], ["2", "2", "2"], 0.0),
        ("qwk", ["1", "2", "3"], ["3", "2", "1"], -1.0),
        ("qwk", ["4", "4"], ["4", "4"], 1.0),
        ("smape", ["1", "0"], ["3", "0"], 50.0),  # 200 * 2 / 4 and nothing
        ("pearson", ["1", "2", "3"], ["1", "3", "2"], 0.5),
        ("spearman", ["1", "2", "3"], ["1", "10", "100"], 1.0),
        ("spearman", ["1", "2", "2", "3"], ["1", "3", "2", "4"], 4.5 / math.sqrt(4.5 * 5)),
    ],
)
def test_metrics_by_hand(metric: str, truth: list[str], said: list[str], expected: float) -> None:
    assert score(metric, truth, said) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "truth", "said", "message"),
    [
        ("rmse", ["1", "2"], ["1"], "expected 2 rows, found 1"),
        ("rmse", ["1"], ["x"], "'x' is no number"),
        ("rmse", ["1"], ["nan"], "'nan' is no number"),
        ("rmse", ["1"], ["1" * 310], "is no number"),
        ("rmsle", ["1"], ["-2"], "a logarithm is asked of a negative number"),
        ("rmsle", ["-1"], ["2"], "a logarithm is asked of a negative number"),
        ("rmsle", ["1", "1"], ["-0.5", "2"], "a logarithm is asked of a negative number"),
        ("rmsle", ["-0.5", "1"], ["2", "2"], "a logarithm is asked of a negative number"),
        ("auc", ["1", "1"], ["0.1", "0.2"], "needs both classes"),
        ("logloss", ["0", "1"], ["0.1", "1.2"], "lies outside 0 to 1"),
        ("qwk", ["1"], ["1.5"], "expected whole numbers"),
        ("qwk", ["1"], ["9999"], "span more than 1000"),
        ("r2", ["1", "1"], ["1", "1"], "two different values"),
        ("spearman", ["1", "2"], ["1", "1"], "two different values"),
        ("mae", [], [], "expected 0 rows, found 0"),
    ],
)
def test_predictions_that_can_not_be_scored_are_named(
    metric: str, truth: list[str], said: list[str], message: str
) -> None:
    with pytest.raises(MetricError, match=message):
        score(metric, truth, said)


def test_the_widest_ratings_and_numbers_that_count_are_scored() -> None:
    assert score("qwk", ["1", "1001"], ["1", "1001"]) == 1.0
    assert score("mae", ["1e100"], ["1e100"]) == 0.0
    with pytest.raises(MetricError, match="'1e101' is no number"):
        score("mae", ["1e101"], ["1e101"])


def test_several_columns_count_by_their_mean() -> None:
    assert score_columns("rmse", [["0"], ["0"]], [["1"], ["3"]]) == 2.0
    with pytest.raises(MetricError, match="expected 2 columns, found 1"):
        score_columns("rmse", [["0"], ["0"]], [["1"]])
    with pytest.raises(KeyError):
        score_columns("charm", [["0"]], [["0"]])


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_the_truth_itself_has_the_best_score(metric: str) -> None:
    best = score(metric, ZEROS_AND_ONES, ZEROS_AND_ONES)
    worst = score(metric, ZEROS_AND_ONES, ["1", "0", "0", "1"])
    is_loss = metric in {"logloss", "mae", "medae", "mse", "rmse", "rmsle", "smape"}
    assert best == pytest.approx(0.0 if is_loss else 1.0)
    assert (worst > best) is is_loss


def test_a_score_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(MetricError, match="r2 is not defined for these values"):
        score("r2", ["0", "1e-150", "0"], ["1e15", "0", "0"])


@pytest.mark.parametrize("metric", sorted(METRICS))
@examples(20)
@given(st.lists(CELLS, min_size=3, max_size=3), st.lists(CELLS, min_size=3, max_size=3))
def test_no_text_breaks_a_metric(metric: str, truth: list[str], said: list[str]) -> None:
    for column in (truth, ["0", "1", "1"]):
        with contextlib.suppress(MetricError):
            assert math.isfinite(score(metric, column, said))


@pytest.mark.parametrize("metric", sorted(set(WITHOUT_BINARY) - {"r2", "f1_macro"}))
@examples(15)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=4, max_size=12))
def test_symmetric_metrics_are_symmetric(metric: str, pairs: list[tuple[int, int]]) -> None:
    one, other = ([str(pair[side]) for pair in pairs] for side in (0, 1))
    results = []
    for truth, said in ((one, other), (other, one)):
        try:
            results.append(score(metric, truth, said))
        except MetricError:
            results.append(math.inf)
    assert results[0] == pytest.approx(results[1])
