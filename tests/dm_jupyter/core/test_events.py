"""What whoever waits for a model reads."""

import pytest

from dm_jupyter.core.events import ModelSilent


@pytest.mark.parametrize(
    ("silent", "words"),
    [
        (ModelSilent("m", 0), "m is reading the question"),
        (ModelSilent("m", 20), "still waiting for m (no reply for 20 s)"),
        (ModelSilent("m", 20, before=1), "waiting for m: 1 question before yours"),
        (ModelSilent("m", 0, before=3), "waiting for m: 3 questions before yours"),
    ],
)
def test_a_silent_model_is_explained(silent: ModelSilent, words: str) -> None:
    assert silent.words == words
