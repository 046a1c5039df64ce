"""What the model is shown of what its cells did to the data, and answers that rest on nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from dm_jupyter.agent import turns
from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.notebook_words import closing_words
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.events import Event
from dm_jupyter.core.grounded import Grounded
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, StopReason, Trajectory
from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellResult, CellStatus, Limits, Stream
from tests.fakes import ScriptedNotebook, ScriptedPolicy, raised

QUESTION = "Why did sales drop in November 2012?"
FREE = Trajectory(Task("t", QUESTION), "markdown", DataContext("f", "df = 1\n"))
CLOSED = Trajectory(
    Task("t", QUESTION, answer_format="@n[n]"), "markdown", DataContext("f", "df = 1\n")
)
NONE = Fact(
    "kept", "query", before=9_000, after=0, condition="year == 2012",
    coverage=(Coverage("year == 2012", 0, "year", low="2021", high="2025"),), line=2,
)  # fmt: skip
SUM = Fact("nothing", "sum", 0, 0, condition="year == 2012", result="0.0")
WORDS = "no row has year == 2012 (of 9,000); year runs from 2021 to 2025"
CODE = "print(1)\n```"
WRONG = "Total sales were $0.00, a significant drop."
HONEST = "The data have no rows of 2012: they run from 2021 to 2025."
LIVE = """import pandas as pd
sales = pd.DataFrame({
    'day': pd.date_range('2021-01-03', '2025-06-30', freq='W'), 'total': 5.0,
})
chosen = sales[(sales.day >= '2012-11-01') & (sales.day < '2012-12-01')]
print(f'{chosen.total.sum():.2f}')
```"""


def ignore(event: Event) -> None:
    pass


def came_to_nothing(text: str = "0.0\n") -> CellResult:
    outputs = (Stream("stdout", text),) if text else ()
    return CellResult(CellStatus.OK, outputs, execution_count=1, facts=(NONE, SUM))


async def _run(
    start: Trajectory, texts: list[str], result: CellResult, settings: RunSettings | None = None
) -> tuple[Trajectory, ScriptedPolicy]:
    policy = ScriptedPolicy(texts)
    notebook = ScriptedNotebook([result])
    return await run(start, policy, notebook, settings or RunSettings(), ignore), policy


async def test_the_facts_stand_below_the_output() -> None:
    _, policy = await _run(FREE, [CODE, HONEST], came_to_nothing())
    told = policy.requests[1].messages[-1].content
    assert f"0.0\n\nWhat happened to the data:\n- {WORDS}\n- sum of 0 rows" in told


async def test_a_cell_that_shows_nothing_is_told_so_and_its_facts() -> None:
    _, policy = await _run(FREE, [CODE, CODE, HONEST], came_to_nothing(""))
    told = policy.requests[1].messages[-1].content
    plain, _ = await _run(FREE, [CODE, CODE, HONEST], replace(came_to_nothing(""), facts=()))
    assert told.startswith(plain.steps[0].observation)
    assert told.endswith("(year == 2012) gave 0.0")


@pytest.mark.parametrize("is_told", [True, False])
async def test_the_next_cell_begins_with_what_is_called_nearly_so(*, is_told: bool) -> None:
    fact = Fact("unknown", "[]", 2, 1, condition="'goals'", result="'League Goals'")
    failed = replace(raised("KeyError", "'goals'"), facts=(fact,))
    help_given = Assistance() if is_told else Assistance().without("ledger")
    settings = RunSettings(assistance=help_given, max_turns=2)
    _, policy = await _run(FREE, [CODE, CODE], failed, settings)
    words = "not found: 'goals'; nearest: 'League Goals'"
    asked = policy.requests[1]
    assert (words in asked.messages[-1].content) is is_told
    assert (f"# KeyError: 'goals'\n# {words}\n" in asked.prefill) is is_told


async def test_an_answer_that_rests_on_no_rows_is_sent_back_once_with_the_fact() -> None:
    done, policy = await _run(FREE, [CODE, WRONG, HONEST], came_to_nothing())
    assert WORDS in done.steps[1].observation
    assert WORDS in policy.requests[2].messages[-1].content
    assert (done.answer, done.rests_on, done.stop) == (HONEST, (), StopReason.ANSWERED)
    assert "answer_absent" in done.prompts
    assert done.ending == ()  # the answer has it
    short = "The data contain no rows for 2012."
    done, _ = await _run(FREE, [CODE, WRONG, short], came_to_nothing())
    assert (done.answer, done.ending) == (short, ("year runs from 2021 to 2025.",))


async def test_a_cell_that_fails_because_no_row_has_what_is_asked_for_may_be_answered() -> None:
    failed = replace(raised("IndexError", "index 0 is out of bounds"), facts=(NONE,))
    done, policy = await _run(FREE, [CODE, HONEST], failed)
    asked = policy.requests[1]
    assert asked.prefill == ""
    assert WORDS in asked.messages[-1].content
    assert "The data contain no rows for" in asked.messages[-1].content
    assert (done.answer, done.rests_on, done.unsupported) == (HONEST, (), ())
    done, policy = await _run(FREE, [CODE, CODE, HONEST], failed, RunSettings(max_turns=3))
    assert policy.requests[2].prefill.startswith("```python")  # it would only write it again
    other = replace(FREE, task=replace(FREE.task, question="Why did sales drop?"))
    without = RunSettings(assistance=Assistance().without("ledger"), max_turns=2)
    for start, settings in ((CLOSED, None), (other, None), (FREE, without)):
        _, policy = await _run(start, [CODE, CODE, CODE], failed, settings)
        assert policy.requests[1].prefill.startswith("```python")
        assert "contain no rows" not in policy.requests[1].messages[-1].content


async def test_nothing_in_a_year_without_data_is_sent_back_even_if_no_selection_was_seen() -> None:
    missed = "2012 lies outside of 'year' (2021 … 2025)"
    context = replace(FREE.data_context, years_missed=(missed,))
    blind = replace(came_to_nothing("0.0\n"), facts=())
    done, policy = await _run(replace(FREE, data_context=context), [CODE, WRONG, HONEST], blind)
    assert missed in policy.requests[2].messages[-1].content
    assert (done.answer, done.rests_on) == (HONEST, ())


async def test_an_answer_that_stays_is_marked() -> None:
    done, policy = await _run(FREE, [CODE, WRONG], came_to_nothing())
    assert (done.answer, done.rests_on) == (WRONG, (WORDS,))
    assert len(policy.requests) == 3
    assert f"> This answer rests on a selection without rows or values: {WORDS}." in closing_words(
        done
    )
    assert Trajectory.from_json(done.to_json()) == done


async def test_an_answer_without_a_name_or_limit_of_the_question_is_sent_back_once() -> None:
    result = CellResult(CellStatus.OK, (Stream("stdout", "168\n"),))
    for question, line in (
        ("How many live on Deception?", 'No cell uses the name "Deception" of the question.'),
        ("How many weigh over 90 kg?", 'No cell uses the limit "over 90" of the question.'),
    ):
        start = replace(FREE, task=replace(FREE.task, question=question))
        done, policy = await _run(start, [CODE, "There are 168."], result)
        assert policy.requests[2].messages[-1].content.startswith(f"{line} Write one more")
        assert (done.answer, done.ending) == ("There are 168.", (line,))
        assert len(policy.requests) == 3
        absent = "The data contain no rows for it."
        done, policy = await _run(start, [CODE, absent], result)
        assert (done.answer, done.ending, len(policy.requests)) == (absent, (), 2)


async def test_an_answer_that_was_sent_back_is_not_lost_at_a_limit() -> None:
    done, _ = await _run(FREE, [CODE, WRONG], came_to_nothing(), RunSettings(max_turns=2))
    assert (done.answer, done.stop, done.rests_on) == (WRONG, StopReason.ANSWERED, (WORDS,))
    texts = [CODE, WRONG, f"```python\n{CODE}"]  # the cell may have found something else
    done, _ = await _run(FREE, texts, came_to_nothing(), RunSettings(max_turns=3))
    assert (done.answer, done.stop) == (None, StopReason.TURN_LIMIT)


async def test_numbers_from_nowhere_do_not_hide_that_there_are_no_rows() -> None:
    said = "Total sales were $0.00, which is 48.5 less than before."
    done, _ = await _run(FREE, [CODE, said, HONEST], came_to_nothing())
    assert WORDS in done.steps[1].observation
    assert "48.5" in done.steps[1].observation
    assert done.answer == HONEST


async def test_a_closed_form_answer_is_not_sent_back_but_marked() -> None:
    done, policy = await _run(CLOSED, [CODE], came_to_nothing("@n[0.0]\n"))
    assert (done.answer, done.rests_on) == ("@n[0.0]", (WORDS,))
    assert len(policy.requests) == 1


async def test_without_the_ledger_nothing_is_told_and_nothing_is_sent_back() -> None:
    settings = RunSettings(assistance=Assistance().without("ledger"))
    done, policy = await _run(FREE, [CODE, WRONG], came_to_nothing(), settings)
    assert "What happened" not in policy.requests[1].messages[-1].content
    assert (done.turns, done.answer, done.rests_on) == (2, WRONG, (WORDS,))  # marked all the same


async def test_the_published_form_of_a_dialect_is_left_as_it_is() -> None:
    start = replace(FREE, dialect="react-published")
    text = "Thought: x\nAction: python\nAction Input: ```python\nprint(1)\n```"
    _, policy = await _run(start, [text, "Final Answer: no rows"], came_to_nothing())
    assert "What happened" not in policy.requests[-1].messages[-1].content


async def test_numbers_of_the_facts_are_borne_out() -> None:
    done, _ = await _run(
        FREE, [CODE, "The 9,000 rows run from 2021 to 2025; none has 2012."], came_to_nothing()
    )
    assert (done.turns, done.unsupported, done.rests_on) == (2, (), ())


async def test_a_fact_does_not_bear_out_a_number_that_is_another_rows() -> None:
    table = "species\nAdelie       3700.66\nGentoo       5076.02\nName: mass, dtype: float64\n"
    kept = Fact("kept", "[]", before=9_000, after=5_076, condition="mass > 0")
    result = replace(came_to_nothing(table), facts=(kept,))
    said = "The Adelie has a mean mass of 5,076."
    done, policy = await _run(FREE, [CODE, said, said], result)
    assert len(policy.requests) == 3  # it was sent back
    assert done.unsupported == ("5,076",)


async def test_an_answer_is_checked_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    checked = turns.ground

    def noting(*about: Any) -> tuple[Grounded, ...]:
        threads.append(threading.get_ident())
        return checked(*about)

    monkeypatch.setattr(turns, "ground", noting)
    await _run(FREE, [CODE, HONEST], came_to_nothing())
    assert threads
    assert threading.get_ident() not in threads


async def test_a_real_kernel_notices_what_a_real_cell_came_to(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    start = replace(FREE, data_context=DataContext("f", ""))
    async with KernelSession(Limits()) as kernel:
        notebook = HeadlessNotebook(kernel, path=path)
        notebook.ask(start.task)
        policy = ScriptedPolicy([LIVE, WRONG])
        done = await run(start, policy, notebook, RunSettings(), ignore)
        notebook.finish(done)
    (absent,) = done.rests_on
    assert absent.startswith("no row has day >= '2012-11-01' and day < '2012-12-01' (of 235)")
    assert "day runs from 2021-01-03 to 2025-06-29" in absent
    saved = nbformat.read(path, as_version=4)
    code = next(cell for cell in saved.cells if cell.cell_type == "code")
    assert code.metadata["dm_jupyter"]["facts"][0]["after"] == 0
    assert absent.split("'")[0] in saved.cells[-1].source
    nbformat.validate(saved)
