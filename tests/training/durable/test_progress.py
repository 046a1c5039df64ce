"""How far work is, on a terminal and without one."""

from __future__ import annotations

import pytest

from training.durable import progress as progress_module
from training.durable.progress import WorkProgress, words_for


def test_each_plain_line_says_how_long_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    with WorkProgress("work") as progress:
        assert progress.left_s is None
        progress.begin(12, 2, "0 right")
        for _ in range(2):
            now[0] += 90
            progress.add("[b]piece[/b]", "1 right")
        assert progress.left_s == 8 * 90
        now[0] += 90 * 8
        for _ in range(8):
            progress.add("piece")
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "4/12  [b]piece[/b]   1 right   about 12 min left"
    assert lines[-1] == "12/12  piece"


def test_a_terminal_shows_a_bar_with_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with WorkProgress("work") as progress:
        progress.begin(3, 1)
        progress.add("piece", "1 right")
    shown = capsys.readouterr().err
    assert "2/3  piece\n" in shown.replace("\r", "")
    assert "work" in shown
    assert "1 right" not in shown.splitlines()[0]
    assert "1 right" in shown


def test_an_estimate_is_in_words() -> None:
    assert [words_for(seconds) for seconds in (None, 0, 0.2, 100, 130, 9_000)] == [
        "", "", "about 1 s left", "about 100 s left", "about 2 min left", "about 2 h left",
    ]  # fmt: skip
