from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.sampled_tokens import SampledTokens, TurnEnd, float_array, id_array
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Answer, Completion, Step, Trajectory, Turn
from training.tokens.store import StoredTokens, TokenStore

RNG = random.Random(5)
END = TurnEnd.of("all so far", "far", "</code>\n", "</code>", is_closed=False)


def tokens(prompt: list[int], sampled: list[int], **fields: object) -> SampledTokens:
    logprobs = float_array(RNG.uniform(-9, 0) for _ in sampled)
    made = SampledTokens(id_array(prompt), id_array(sampled), logprobs, 1.0, 0.9, END, "w2")
    return replace(made, **fields)  # type: ignore[arg-type]


def trajectory(*turns: SampledTokens | None) -> Trajectory:
    steps = tuple(
        Step(Completion(f"turn {number}", tokens=one), Turn("", Answer("1")))
        for number, one in enumerate(turns)
    )
    return Trajectory(Task("t", "n?"), "datamind", steps=steps)


FIRST = tokens([5, 6, 7], [8, 9])
SECOND = tokens([*FIRST.ids, 1, 2], [3])
FORKED = tokens([5, 6, 70_000], [8, 2_000_000_000], is_forked=True)


def held(ended: Trajectory) -> list[SampledTokens | None]:
    return [step.completion.tokens for step in ended.steps]


def test_ids_come_back_beside_the_json(tmp_path: Path) -> None:
    ended = trajectory(FIRST, SECOND, None, FORKED)
    store = TokenStore(tmp_path / "tokens")
    stored = store.write("split/7:2", ended)
    assert stored is not None
    assert (stored.turns, stored.prompt, stored.sampled) == (3, 3, 5)
    stored = StoredTokens.from_json(json.loads(json.dumps(stored.to_json())))
    read = Trajectory.from_json(json.loads(json.dumps(ended.to_json())))
    assert held(read) == [None] * 4
    assert held(store.restored(read, stored)) == [FIRST, SECOND, None, FORKED]
    assert [path.name for path in (tmp_path / "tokens").iterdir()] == ["split%2F7%3A2.npz"]


def test_same_ids_make_the_same_file(tmp_path: Path) -> None:
    written = [TokenStore(tmp_path / name).write("t", trajectory(FIRST, SECOND)) for name in "ab"]
    assert written[0] == written[1]


def test_a_turn_adds_to_the_file_what_is_new(tmp_path: Path) -> None:
    turns = [tokens(RNG.sample(range(100_000), 2_000), [1])]
    for _ in range(9):
        turns.append(tokens([*turns[-1].ids, 2, 3], [1]))
    store = TokenStore(tmp_path)
    store.write("one", trajectory(*turns[:1]))
    store.write("ten", trajectory(*turns))
    one, ten = (store.file_of(key).stat().st_size for key in ("one", "ten"))
    assert ten < 1.5 * one


def test_without_ids_nothing_is_written(tmp_path: Path) -> None:
    assert TokenStore(tmp_path / "tokens").write("t", trajectory(None)) is None
    assert not (tmp_path / "tokens").exists()


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    stored = store.write("t", trajectory(FIRST))
    assert stored is not None
    store.write("t", trajectory(SECOND))
    with pytest.raises(TrajectoryError, match="not the file that the record of its run names"):
        store.read(stored)
    store.file_of("t").unlink()
    with pytest.raises(TrajectoryError, match="No such file"):
        store.read(stored)


def test_the_ids_of_another_trajectory_are_refused(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    stored = store.write("t", trajectory(FIRST))
    assert stored is not None
    with pytest.raises(TrajectoryError, match="1 steps, its trajectory has 2"):
        store.restored(trajectory(None, None), stored)


@pytest.mark.parametrize("key", ["", "x" * 300])
def test_a_key_that_names_no_file_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="can't name a file"):
        TokenStore(tmp_path).file_of(key)


def test_a_key_stays_inside_the_folder(tmp_path: Path) -> None:
    assert TokenStore(tmp_path).file_of("../../etc/x").parent == tmp_path
    assert TokenStore(tmp_path).file_of("..").parent == tmp_path
