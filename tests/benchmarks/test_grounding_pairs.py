"""Floors under what the check of an answer's numbers finds among labelled pairs."""

import json

import pytest

from benchmarks.grounding import FOLDER, HALVES, pairs, score


@pytest.mark.parametrize(
    ("half", "precision", "recall"),
    [pytest.param("building", 0.98, 0.97, marks=pytest.mark.slow), ("held_out", 0.95, 0.95)],
)
def test_faults_are_found_and_what_is_right_is_not_doubted(
    half: str, precision: float, recall: float
) -> None:
    found = score(half)
    assert (found.precision >= precision, found.recall >= recall) == (True, True), found


def test_pairs_are_whole_and_none_is_in_both_halves() -> None:
    seen: set[str] = set()
    for half in HALVES:
        for pair in pairs(half):
            key = json.dumps([pair["outputs"], pair["answer"]])
            assert key not in seen, pair["id"]
            seen.add(key)
            for start, end in [*pair["faults"], *pair["ignored"]]:
                assert any(map(str.isdigit, pair["answer"][start:end]))
    assert {path.name for path in FOLDER.iterdir()} == {f"{half}.jsonl" for half in HALVES}
