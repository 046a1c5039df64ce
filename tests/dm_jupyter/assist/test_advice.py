from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.assist.advice import PROMPTS, advice_on, advised, needs_frames, needs_scipy
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, Trajectory
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised

LOAD = 'import pandas as pd\nimport numpy as np\ndf = pd.read_csv("t.csv")\n'
FULL = DataContext(text="t.csv: 3 rows", preamble=LOAD)
WITH_GAPS = DataContext(text="t.csv: 3 rows", preamble=LOAD, incomplete=("b",))


def _task(question: str, constraints: str = "", answer_format: str = "") -> Task:
    return Task("t", question, (Path("t.csv"),), constraints, answer_format)


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        ("What is the mean of a?", ()),
        ("How many students wrote the test?", ()),
        ("Which shop has the largest distribution centre?", ()),
        ("Do a and b correlate?", ("advice_tests",)),
        ("Is the difference significant?", ("advice_tests",)),
        ("Run a t-test of a by b.", ("advice_tests",)),
        ("Is a normally distributed?", ("advice_tests",)),
        ("Replace the missing values of b by 0.", ()),
        ("Give the z-score of each a.", ()),
        ("What is the population standard deviation of a?", ("advice_population",)),
    ],
)
def test_advice_comes_with_the_questions_that_need_it(
    question: str, advice: tuple[str, ...]
) -> None:
    assert advice_on(_task(question), FULL) == advice
    with_gaps = advice_on(_task(question), WITH_GAPS)
    assert sorted(with_gaps) == sorted((*advice, "advice_missing"))


@pytest.mark.parametrize(
    "question",
    [
        "How many penguins have missing values, and in which columns?",
        "Which columns are incomplete?",
        "Are there any null values?",
        "What is the mean of those whose mass was not recorded?",
    ],
)
def test_a_question_for_gaps_gets_no_advice_to_drop_them(question: str) -> None:
    assert advice_on(_task(question), WITH_GAPS) == ()


@pytest.mark.parametrize(
    "task",
    [
        _task("Compare the two.", constraints="Use Pearson's correlation coefficient."),
        _task("Compare the two.", answer_format="@p_value[number] where ..."),
    ],
)
def test_constraints_and_format_count_as_well(task: Task) -> None:
    assert "advice_tests" in advice_on(task, FULL)
    assert needs_scipy(task)


@pytest.mark.parametrize(
    ("question", "is_needed"),
    [("Which rows have a z-score above 3?", True), ("How skewed is a?", True), ("Sum a.", False)],
)
def test_scipy_is_at_hand_where_it_is_needed(question: str, *, is_needed: bool) -> None:
    assert needs_scipy(_task(question)) is is_needed


WHOLE = LOAD.replace("df = pd.read_csv", "t = read")
DATABASE = DataContext(text="t.sqlite", databases=("t.sqlite",), whole_tables=WHOLE)


@pytest.mark.parametrize(
    ("question", "is_python"),
    [
        ("What is the median of a?", True),
        ("How skewed is a?", True),
        ("Wie hoch ist die Standardabweichung von a?", True),
        ("Which a are outliers?", True),
        ("What is the mean of a?", False),
        ("How many percent are above the average?", False),
        ("Which variant sold best?", False),
    ],
)
def test_what_sqlite_has_no_function_for_begins_with_the_tables(
    question: str, *, is_python: bool
) -> None:
    start = Trajectory(_task(question), "markdown", DATABASE)
    found = advised(replace(start, assistance=Assistance()))
    assert needs_frames(_task(question)) is is_python
    if not is_python:
        assert found.data_context == DATABASE
    elif needs_scipy(_task(question)):
        assert "from scipy import stats" in found.data_context.preamble
    else:
        assert found.data_context.preamble == WHOLE
    opening = dialect_named("markdown").prefill(found)
    assert opening.startswith("```python\n" if is_python else "```sql\n")
    assert advised(found) == found


@pytest.mark.parametrize(
    ("data_context", "assistance"),
    [
        (replace(DATABASE, whole_tables=""), Assistance()),
        (DATABASE, replace(Assistance(), advice=False)),
    ],
)
def test_a_large_database_is_queried_and_so_is_every_one_without_advice(
    data_context: DataContext, assistance: Assistance
) -> None:
    start = Trajectory(_task("What is the median of a?"), "markdown", data_context)
    assert advised(replace(start, assistance=assistance)).data_context == data_context


@pytest.mark.parametrize(("data_context", "speaks_of_gaps"), [(FULL, False), (WITH_GAPS, True)])
def test_a_plain_question_is_told_of_missing_values_where_there_are_any_and_of_no_tests(
    data_context: DataContext, *, speaks_of_gaps: bool
) -> None:
    dialect = dialect_named("markdown")
    plain = advised(Trajectory(_task("What is the mean of a?"), "markdown", data_context))
    said = "\n".join(message.content for message in dialect.messages(plain))
    assert ("dropna" in said) is speaks_of_gaps
    assert "stats" not in said
    assert "stats" not in dialect.prefill(plain)


def test_a_test_is_told_how_and_finds_its_module_loaded() -> None:
    dialect = dialect_named("markdown")
    asked = advised(Trajectory(_task("Do a and b correlate?"), "markdown", WITH_GAPS))
    system, first = dialect.messages(asked)
    assert "stats.pearsonr" in first.content
    assert "dropna(subset=[...])" in first.content
    assert dialect.prefill(asked).startswith(
        "```python\nimport pandas as pd\nimport numpy as np\nfrom scipy import stats\ndf ="
    )
    # What all questions about a file have in common comes first, so that it is read once.
    plain = advised(Trajectory(_task("What is the mean of a?"), "markdown", WITH_GAPS))
    assert dialect.messages(plain)[0] == system


def test_a_query_needs_no_such_advice() -> None:
    data_context = DataContext(text="shop.db", databases=("shop.db",), incomplete=("b",))
    asked = advised(Trajectory(_task("Do a and b correlate?"), "markdown", data_context))
    said = "\n".join(message.content for message in dialect_named("markdown").messages(asked))
    assert "pearsonr" not in said


@pytest.mark.parametrize("question", ["Do a and b correlate?", "What is the mean of a?"])
async def test_no_advice_is_in_the_prompt_of_a_turn_that_may_answer(question: str) -> None:
    start = Trajectory(_task(question), "markdown", WITH_GAPS)
    turns = ["print(df.a.mean())\n```", "print(df.a.mean())\n```", "It is 3.", "It is 2."]
    policy = ScriptedPolicy(turns)
    notebook = ScriptedNotebook([raised("ValueError", "x"), printed("2")])
    await run(start, policy, notebook, RunSettings(), lambda _: None)
    advice = [prompts.text_of(name) for name in PROMPTS]
    asked = [
        any(text in one.content for one in request.messages for text in advice)
        for request in policy.requests
    ]
    assert asked == [True, True, False, False]


def test_scipy_is_not_imported_over_a_table_of_that_name() -> None:
    data_context = replace(FULL, variables=("stats",))
    asked = Trajectory(_task("Do a and b correlate?"), "markdown", data_context)
    assert "from scipy" not in advised(asked).data_context.preamble
    assert advised(advised(asked)) == advised(asked)


@pytest.mark.parametrize(
    ("variables", "is_imported"), [((), True), (("plt",), False), (("stats",), True)]
)
def test_a_chart_finds_its_module_loaded(variables: tuple[str, ...], *, is_imported: bool) -> None:
    data_context = replace(FULL, variables=variables)
    asked = advised(Trajectory(_task("Draw a histogram of a."), "markdown", data_context))
    line = "import numpy as np\nimport matplotlib.pyplot as plt\n"
    assert (line in dialect_named("markdown").prefill(asked)) is is_imported
    bare = Trajectory(
        _task("Draw a histogram of a."),
        "markdown",
        data_context,
        assistance=Assistance().without("ending"),
    )
    assert advised(bare).data_context == data_context


def test_a_dialect_that_shows_no_advice_has_none() -> None:
    for dialect in ("react", "tools", "jupiter"):
        asked = Trajectory(_task("Do a and b correlate?"), dialect, WITH_GAPS)
        assert advised(asked) == asked
