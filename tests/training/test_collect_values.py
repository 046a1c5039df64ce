"""The value-training set from trees: which paths are taken, and what they are worth."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.outcomes import tried, write_run
from training.collect_values import CollectError, ValueExample, examples_of, main
from training.records.records import EvalRecord


def _node(number: int, parent: int | None, reward: float | None, **changes: Any) -> dict[str, Any]:
    node = {
        "id": number, "parent": parent, "depth": 0 if parent is None else 1, "visits": 1,
        "value_sum": reward or 0.0, "prior": 1.0, "reward": reward,
        "terminal": reward is not None, "stop": None if reward is None else "answered",
        "answer": None, "errors": 0, "messages": [{"role": "assistant", "content": str(number)}],
    }  # fmt: skip
    return node | {"state": (node | changes)["messages"]} | changes


def _record(*nodes: dict[str, Any], **metadata: Any) -> EvalRecord:
    trajectory = {"task": {"metadata": metadata}}
    search = {"kind": "search", "nodes": list(nodes), "chosen": 0, "collected": True}
    return replace(tried("q1", True), trajectory=trajectory, search=search)


def test_a_path_gives_each_of_its_states_with_the_mean_of_its_rewards() -> None:
    root = _node(0, None, None, visits=3, value_sum=1.0)
    middle = _node(1, 0, None, visits=2, value_sum=0.0)
    shown = [{"role": "user", "content": "all but the turn that failed"}]
    right = _node(2, 1, 1.0, state=shown)
    examples = list(examples_of([_record(root, middle, right, _node(3, 1, -1.0))]))
    assert [(one.node, one.value, one.reward) for one in examples] == [
        (0, pytest.approx(1 / 3), None), (1, 0.0, None), (2, 1.0, 1.0), (3, -1.0, -1.0),
    ]  # fmt: skip
    assert examples[2].messages == shown
    rewards = [(one.reward_sum, one.reward_count) for one in examples]
    assert rewards == [(0.0, 2), (0.0, 2), (1.0, 1), (-1.0, 1)]


def test_rewards_are_counted_without_what_expansions_count() -> None:
    root = _node(0, None, None, visits=5, value_sum=1.0)  # two zeros of expansions among them
    ends = [_node(1, 0, 1.0), _node(2, 0, 1.0), _node(3, 0, -1.0)]
    first = next(examples_of([_record(root, *ends)]))
    assert first.value == pytest.approx(1 / 5)
    assert first.reward_sum / first.reward_count == pytest.approx(1 / 3)


def test_at_most_four_right_and_four_wrong_paths_are_taken() -> None:
    ends = [_node(number, 0, 1.0 if number % 2 else -1.0) for number in range(1, 21)]
    record = _record(_node(0, None, None), *ends)
    examples = list(examples_of([record]))
    rewards = [one.reward for one in examples if one.reward is not None]
    assert sorted(rewards) == [-1.0] * 4 + [1.0] * 4
    assert examples == list(examples_of([record]))


def test_wrong_paths_that_a_limit_ended_and_repeated_ones_are_left_out() -> None:
    words = [{"role": "assistant", "content": "the same"}]
    nodes = [
        _node(0, None, None),
        _node(1, 0, 1.0, messages=words),
        _node(2, 0, 1.0, messages=words),
        _node(3, 0, None, status="timeout"),
        _node(4, 3, -1.0),
        _node(5, 3, 1.0),
        _node(6, 0, -1.0, status="memory"),
        _node(7, 0, -1.0, status="error"),
    ]
    examples = list(examples_of([_record(*nodes)]))
    assert [one.node for one in examples] == [0, 1, 3, 5, 7]


def test_four_of_each_kind_is_for_all_trees_of_a_task() -> None:
    def tree(shift: int) -> EvalRecord:
        ends = [_node(number, 0, 1.0, messages=_said(number + shift)) for number in range(1, 4)]
        return _record(_node(0, None, None), *ends)

    def _said(number: int) -> list[dict[str, str]]:
        return [{"role": "assistant", "content": str(number)}]

    examples = list(examples_of([tree(0), tree(2)]))  # 1 2 3 and 3 4 5: five wordings
    ends = [one for one in examples if one.reward is not None]
    assert len(ends) == 4
    assert len({one.messages[-1]["content"] for one in ends}) == 4
    assert {one.tree for one in ends} == {0, 1}


def test_a_search_that_was_not_told_what_is_right_is_refused() -> None:
    given_up = _record(_node(0, None, None), _node(1, 0, -1.0, stop="void"))
    search = {**given_up.search, "collected": False}
    with pytest.raises(CollectError, match="again with --collect"):
        list(examples_of([replace(given_up, search=search)]))


def test_records_without_a_tree_and_questions_for_evaluation_are_refused() -> None:
    with pytest.raises(CollectError, match="q1: the record holds no tree"):
        list(examples_of([tried("q1", True, trajectory={"task": {}})]))
    with pytest.raises(CollectError, match="compact records hold no tree: give the run's own"):
        list(examples_of([tried("q1", True)]))
    assert not list(examples_of([tried("q1", False, failure="fault")]))
    with pytest.raises(CollectError, match="q1: its licence"):
        list(examples_of([_record(_node(0, None, None), evaluation_only=True)]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"search": {"kind": "search", "collected": True}}, "KeyError: 'nodes'"),
        ({"trajectory": {"steps": []}}, "KeyError: 'task'"),
        ({"trajectory": {"task": [1]}}, "TypeError"),
        ({"search": {"kind": "search", "collected": True, "nodes": [1]}}, "TypeError"),
        (
            {"search": {"kind": "search", "collected": True, "nodes": [{"id": 0, "reward": 1.0}]}},
            "KeyError: 'parent'",
        ),
    ],
)
def test_a_damaged_tree_is_named(change: dict[str, Any], told: str) -> None:
    record = replace(_record(_node(0, None, None), _node(1, 0, 1.0)), **change)
    with pytest.raises(CollectError, match=rf"q1: a stored tree is damaged \({told}"):
        list(examples_of([record]))


def test_other_questions_with_the_same_id_are_refused() -> None:
    first = _record(_node(0, None, None), _node(1, 0, 1.0))
    one, other = (
        replace(first, trajectory={"task": {"question": text, "metadata": {}}})
        for text in ("How many?", "How few?")
    )
    assert len(list(examples_of([one, one]))) == 2
    with pytest.raises(CollectError, match="q1 has another question in two of the runs"):
        list(examples_of([one, other]))


def test_the_command_writes_one_line_a_state_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [_record(_node(0, None, None), _node(1, 0, 1.0))])
    out = tmp_path / "values.jsonl"
    monkeypatch.setattr(sys, "argv", ["collect_values", str(run), "--out", str(out)])
    assert main() == 0
    assert "2 states of 1 searches, 1 right and 0 wrong" in capsys.readouterr().out
    rows = [ValueExample(**json.loads(line)) for line in out.read_text().splitlines()]
    assert [row.node for row in rows] == [0, 1]
    empty = write_run(tmp_path / "none", [tried("q2", True)])
    monkeypatch.setattr(sys, "argv", ["collect_values", str(empty), "--out", str(out)])
    assert main() == 1
    assert "q2" in capsys.readouterr().err
    unread = write_run(tmp_path / "unread", [tried("q3", False, failure="fault")])
    monkeypatch.setattr(sys, "argv", ["collect_values", str(unread), "--out", str(out)])
    assert main() == 1
    assert "there is no example" in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == 2
