"""Names from data that Rich would read as its markup."""

from __future__ import annotations

import pytest

from tests.training.outcomes import tried
from training.evaluate import RunProgress
from training.evaluation.summary import print_summary

NAMES = ("[/x]", "[draft] b", ":car:", "[red", "c\\")


def test_a_name_stands_in_each_table_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(
        [
            tried(
                name,
                False,
                groups={"[/b]": [name]},
                parts=dict.fromkeys(NAMES, False),
                has_sub_answers=False,
                grades={name: 1.0},
                failure=name,
            )
            for name in NAMES
        ]
    )
    printed = capsys.readouterr().out
    assert printed.count(" [/b] ") == 1
    tables = ("groups", "parts", "grades", "failures")
    assert {name: printed.count(f" {name} ") for name in NAMES} == dict.fromkeys(NAMES, len(tables))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_shows_its_suite_and_its_ids_as_they_are(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # for the bar, which a terminal alone shows
    with RunProgress(f"suite {name}") as progress:
        progress.begin(1, 0)
        progress.show(tried(name, True))
    shown = capsys.readouterr().err
    assert f"1/1  {name} " in shown
    assert f"suite {name} " in shown
