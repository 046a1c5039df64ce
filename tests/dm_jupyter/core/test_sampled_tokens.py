from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dm_jupyter.core.sampled_tokens import SampledTokens, TurnEnd, float_array, id_array
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Answer, Completion, Step, Trajectory, Turn

END = TurnEnd.of("so far, far", "far", "", "", is_closed=False)
TOKENS = SampledTokens(id_array([1, 2]), id_array([3]), float_array([-0.5]), 1.0, 1.0, END)


def test_ids_are_kept_in_32_bits() -> None:
    assert (TOKENS.ids.itemsize, TOKENS.logprobs.itemsize) == (4, 4)
    assert TOKENS.ids.tolist() == [1, 2, 3]


def test_each_sampled_id_needs_a_log_probability() -> None:
    with pytest.raises(ValueError, match="2 ids were sampled, with 1 log-prob"):
        replace(TOKENS, sampled=id_array([3, 4]))


def test_a_prompt_continues_the_ids_of_the_turn_before() -> None:
    assert replace(TOKENS, prompt=id_array([1, 2, 3, 9])).continues(TOKENS)
    assert replace(TOKENS, prompt=id_array([1, 2, 3])).continues(TOKENS)
    assert not replace(TOKENS, prompt=id_array([1, 2])).continues(TOKENS)
    assert not replace(TOKENS, prompt=id_array([1, 2, 4, 9])).continues(TOKENS)


def test_the_end_of_a_turn_knows_what_begins_with_it() -> None:
    assert END.begins("so far, far")
    assert END.begins("so far, far and more")
    assert not END.begins("so far, fa")
    assert not END.begins("so FAR, far and more")
    assert TurnEnd.of("half \ud83e", "x", "", "", is_closed=False).begins("half \ud83e")


def test_json_tells_how_many_ids_there_are_and_none_of_them() -> None:
    steps = (Step(Completion("far", tokens=TOKENS), Turn("", Answer("1"))),)
    ended = Trajectory(Task("t", "n?"), "datamind", steps=steps)
    raw = json.loads(json.dumps(ended.to_json()))
    assert raw["steps"][0]["completion"]["token_counts"] == {"prompt": 2, "sampled": 1}
    assert "tokens" not in raw["steps"][0]["completion"]
    read = Trajectory.from_json(raw)
    assert read == ended
    assert read.steps[0].completion.tokens is None
    without = replace(ended, steps=(Step(Completion("far"), Turn("", Answer("1"))),))
    assert "token_counts" not in without.to_json()["steps"][0]["completion"]
