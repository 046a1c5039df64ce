"""The benchmark of answers about absent data: its judgement, and a few questions run for real."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.absent_data.__main__ import main, measure, parsed
from benchmarks.absent_data.judged import Asked, Verdict, judged
from benchmarks.absent_data.questions import FOLDER, AbsentData, asked_of, scripts
from benchmarks.absent_data.scripted import ScriptedAnalyst
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool

RAIN = Asked("How much did it rain in June 2019?", "period", is_absent=True)
EMPEROR = Asked("What is the mean mass of the Emperor penguins?", "category", is_absent=True)
UNWEIGHED = Asked(
    "What is the mean bill of the penguins whose mass was not recorded?", "missing", is_absent=True
)
HEAVY = Asked("How many weigh over 10 kg?", "threshold", False, is_zero=True, states=(0,))
GENTOO = Asked("What is the mean mass of the Gentoos?", "category", False, states=(5076.0,))
MARK = ("no row has year == 2019",)


@pytest.mark.parametrize(
    ("asked", "answer", "rests_on", "verdict"),
    [
        (RAIN, "The data do not cover June 2019.", (), Verdict.SAID),
        (RAIN, "The data only run from 2012 to 2015.", MARK, Verdict.SAID),
        (RAIN, "There are no records for June 2019.", (), Verdict.SAID),
        (RAIN, "The data contain no June of 2019.", (), Verdict.SAID),
        (RAIN, "The data have none and run from 2012 to 2015.", (), Verdict.SAID),
        (RAIN, "It rained 0.0 mm in June 2019.", (), Verdict.UNSAID),
        (RAIN, "It rained 0.0 mm in June 2019.", MARK, Verdict.MARKED),
        (RAIN, "There was no rain in June 2019.", (), Verdict.UNSAID),  # a claim about the weather
        (RAIN, None, MARK, Verdict.UNSAID),
        (EMPEROR, "There are no Emperor penguins.", (), Verdict.SAID),
        (EMPEROR, "The mean is nan.", (), Verdict.UNSAID),
        (UNWEIGHED, "It is nan for penguins whose mass was not recorded.", (), Verdict.UNSAID),
        (UNWEIGHED, "All their bill lengths are missing.", (), Verdict.SAID),
        (HEAVY, "No penguins weigh over 10 kg.", (), Verdict.CLEAN),
        (HEAVY, "0 penguins weigh over 10 kg.", MARK, Verdict.FALSE_MARK),
        (HEAVY, "The data do not cover such weights.", (), Verdict.FALSE_WORDS),
        (HEAVY, "None does: the data range from 2,700 g to 6,300 g.", (), Verdict.CLEAN),
        (GENTOO, "It is 5,076 g.", (), Verdict.CLEAN),
        (GENTOO, "The data contain no Gentoos, no rows at all.", (), Verdict.FALSE_WORDS),
    ],
)
def test_an_answer_is_judged_by_its_words_and_its_mark(
    asked: Asked, answer: str | None, rests_on: tuple[str, ...], verdict: Verdict
) -> None:
    assert judged(answer, rests_on, asked) is verdict


def test_a_word_for_none_states_a_zero_and_a_number_must_be_the_right_one() -> None:
    assert HEAVY.is_stated("None of them.")
    assert HEAVY.is_stated("0 penguins")
    assert not HEAVY.is_stated("12 penguins")
    assert GENTOO.is_stated("5,076.0 g")
    assert not GENTOO.is_stated("3,700 g")


def test_there_are_forty_of_each_over_files_of_the_repository() -> None:
    items = AbsentData().load(FOLDER)
    asked = [asked_of(item) for item in items]
    assert Counter(one.is_absent for one in asked) == {True: 40, False: 40}
    assert len({file for item in items for file in item.task.files}) >= 5
    assert all(one.states for one in asked if not one.is_absent)
    assert len({one.question for one in asked}) == 80
    assert set(scripts()) == {item.task.id for item in items}


async def test_the_loop_says_what_a_naive_analyst_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", "scripted", "--out", str(tmp_path / "out"), "--limit", "6"]
    words += ["--compact", str(tmp_path / "kept")]
    async with SandboxPool(PoolSettings(cells_at_once=1, modules=("pandas",))) as pool:
        records = await measure(parsed(words), ScriptedAnalyst(scripts()), pool)
    asked = {item.task.id: asked_of(item) for item in AbsentData().load(FOLDER)}
    found = {judged(one.answer, one.rests_on, asked[one.id]) for one in records}
    assert len(records) == 6
    assert found == {Verdict.SAID, Verdict.CLEAN}

    assert main([*words, "--no-run"]) == 0
    table = capsys.readouterr().out
    elsewhere = [*words, "--out", str(tmp_path / "elsewhere"), "--no-run"]
    assert main(elsewhere) == 0  # from the outcomes alone
    assert capsys.readouterr().out == table
