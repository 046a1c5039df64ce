"""Which log-probabilities of a llama.cpp reply can be told apart."""

from __future__ import annotations

import pytest

from training.tokens.llama_cpp import _places


@pytest.mark.parametrize(
    ("told", "ids", "places"),
    [
        ([1, 2, 3], [1, 2, 3], {0: 0, 1: 1, 2: 2}),
        ([1, 2], [1, 2, 7, 8], {0: 0, 1: 1}),
        ([3, 4], [1, 2, 3, 1, 2, 4], {2: 0, 5: 1}),
        # Either of two equal ids may be the one that is missing.
        ([5], [5, 5], {}),
        ([5, 6], [5, 9, 5, 6], {3: 1}),
        ([1, 5], [1, 5, 8, 5], {0: 0}),
        ([], [1], {}),
        # What is told is not of these ids.
        ([9], [1, 2], {}),
    ],
)
def test_only_what_is_beyond_doubt_is_taken(
    told: list[int], ids: list[int], places: dict[int, int]
) -> None:
    assert _places(told, ids) == places
