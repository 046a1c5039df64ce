"""Without help nothing of ours is in any request: of every dialect, over whole runs."""

from __future__ import annotations

import re
from dataclasses import replace
from string import Template

import pytest

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.observe import describe
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.types import CellResult, CellStatus, Stream
from tests.dm_jupyter.assist.scripted_runs import CSV, LOAD, PEOPLE, SCRIPTS, Script, Turn, played
from tests.fakes import printed, raised

NOISY = CellResult(
    CellStatus.OK,
    (Stream("stdout", "3\n"), Stream("stderr", "/lib/x.py:3: FutureWarning: soon\n  f()\n")),
)
MISSTEPS = Script(
    Task("t", "Does the mean fare differ significantly from 30?", CSV),
    PEOPLE,
    (
        Turn("python", f"{LOAD}df['fare_paid']", raised("KeyError", "'fare_paid'")),
        Turn("python", "np.mean([1])", raised("NameError", "name 'np' is not defined")),
        Turn("python", "x = df.dropna()\nx['Fare Paid'].mean()", NOISY),
        Turn("python", "x = df.dropna()\nx['Fare Paid'].mean()", NOISY),
        Turn("void"),
        Turn("cut", "It is "),
        Turn("answer", "It is 17 years and 29 pounds."),
    ),
    RunSettings(context_tokens=1_000, turn_tokens=300),
)
NO_CHART = Script(
    Task("t", "Draw a histogram of the ages.", CSV),
    PEOPLE,
    (
        Turn("python", "print(df['Age'].describe())", printed("mean 29.7")),
        Turn("answer", "Most people are about 29.7 years old."),
        Turn("answer", "Most people are about 29.7 years old."),
    ),
)
RUNS = {**SCRIPTS, "missteps": MISSTEPS, "no chart": NO_CHART}
OF_A_RULE = frozenset(
    {"advice_tests", "advice_missing", "advice_population", "task_links", "task_so_far",
     "markdown_failed_before", "markdown_nothing_before", "markdown_second_thought",
     "markdown_answer_plot", "advice_plot", "advice_clean", "advice_explain"}
)  # fmt: skip
"""Prompts of a dialect that a rule of the help shows."""


def _pieces(trajectory: Trajectory) -> list[str]:
    """All that may stand in a request: the dialect's own texts and what is told of the run."""
    task, dialect = trajectory.task, dialect_named(trajectory.dialect)
    texts = [prompts.text_of(name) for name in dialect.prompts if name not in OF_A_RULE]
    own = [part for text in texts for part in re.split(Template.pattern, text) if part]
    said = [step.completion.text for step in trajectory.steps]
    said += [text.partition("<tool_call>")[0] for text in said]
    shown = [
        describe(step.result, is_quiet=False)
        for step in trajectory.steps
        if step.result is not None
    ]
    files = ", ".join(file.name for file in task.files)
    names = ["p", "@p[...]", "@p", 'print(f"@p[{p}]")', "query", "python", "sql", "cell"]
    of_task = [task.question, task.constraints, task.answer_format, files, "none", *names]
    labels = ["<interpreter>", "</interpreter>", "Observation:", "</code>", "</answer>", "```"]
    labels += ["<Execute>", "</Execute>", "</Code>", "</Answer>"]
    reasons = [getattr(step.turn.action, "reason", "") for step in trajectory.steps]
    return [*own, *said, *map(str.strip, said), *shown, *of_task, *labels, *reasons]


def _foreign(request: SampleRequest, trajectory: Trajectory) -> str:
    """What is left of a request without all that may stand in it."""
    text = "\n".join(message.content for message in request.messages)
    pieces = {piece.strip() for piece in _pieces(trajectory)} - {""}
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, "\n") if len(piece) > 3 else text
    short = "|".join(re.escape(piece) for piece in pieces if len(piece) <= 3)
    return re.sub(rf"(?m)^\s*(?:{short})?[\s.,]*$", "", text).strip()


@pytest.mark.parametrize("script", RUNS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_without_help_nothing_of_ours_is_in_any_request(dialect: str, script: str) -> None:
    chosen = RUNS[script]
    count = len(chosen.turns)
    settings = replace(chosen.settings, assistance=Assistance.none(), max_turns=count)
    done, requests = await played(chosen, dialect, settings)
    assert done.assistance == Assistance.none()
    assert len(requests) >= 2
    for number, request in enumerate(requests):
        assert _foreign(request, done.before(number)) == ""
        assert request.prefill == ""
        assert request.temperature == settings.temperature
        assert not request.cuts_repetition
    steps = [(step.critique, step.findings, step.written) for step in done.steps]
    assert set(steps) == {("", (), None)}
    assert (done.advice, done.folds) == ((), ())
    answers = [request for request in requests if "17 years" in str(request.messages)]
    assert not answers, "an answer is not sent back"


@pytest.mark.parametrize("dialect", ["jupiter", "react-published", "datamind-published"])
async def test_what_others_published_goes_without_help_by_itself(dialect: str) -> None:
    settings = replace(MISSTEPS.settings, max_turns=len(MISSTEPS.turns))
    none = replace(settings, assistance=Assistance.none())
    asked = await played(MISSTEPS, dialect, settings)
    assert asked == await played(MISSTEPS, dialect, none)
    assert asked[0].stop is StopReason.ANSWERED


@pytest.mark.parametrize("rule", Assistance.names())
async def test_each_rule_alone_changes_something(rule: str) -> None:
    """A rule that is on alone shows itself in a run; else nobody could measure it."""
    changed = []
    for name, script in RUNS.items():
        settings = replace(script.settings, max_turns=len(script.turns))
        if rule == "compaction":
            settings = replace(settings, context_tokens=600)
        asked = []
        for help_given in (Assistance.none(), Assistance.only([rule])):
            given = replace(settings, assistance=help_given)
            done, requests = await played(script, "markdown", given)
            asked.append((requests, done.steps, done.stop))
        changed += [name] if asked[0] != asked[1] else []
    # tests/dm_jupyter/agent/test_ledger_loop.py
    needs_a_kernel = rule == "ledger"
    assert bool(changed) is not needs_a_kernel


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_default_helps_as_the_record_says(dialect: str) -> None:
    done, _ = await played(MISSTEPS, dialect)
    assert done.assistance == Assistance.for_dialect(dialect)
    assert Trajectory.from_json(done.to_json()).assistance == done.assistance
