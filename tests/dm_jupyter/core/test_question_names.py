"""What a question names and the data call otherwise, or do not have."""

import pytest

from dm_jupyter.core.question_names import (
    idle_limit_words,
    missing_name_words,
    respelt_words,
    unused_limit_words,
    unused_name_words,
)
from dm_jupyter.core.trajectory import Completion, RunCell, Step, Turn
from kernel_sandbox.ledger.facts import Fact
from kernel_sandbox.types import CellResult, CellStatus


def _pandas(*conditions: str, after: int = 3, status: CellStatus = CellStatus.OK) -> Step:
    facts = [
        Fact("kept", operation="[]", before=9, after=after, condition=one) for one in conditions
    ]
    return _step("df[...]", "python", facts, status)


def _sql(source: str) -> Step:
    return _step(source, "sql", [], CellStatus.OK)


def _step(source: str, language: str, facts: list[Fact], status: CellStatus) -> Step:
    turn = Turn("", RunCell(source, language))
    return Step(Completion(source), turn, CellResult(status, facts=tuple(facts)))


@pytest.mark.parametrize(
    ("question", "step", "told"),
    [
        ("How heavy are Gento penguins?", _pandas("species == 'Gentoo'"), ("Gento", "Gentoo")),
        ("Days with drizzzle?", _pandas("weather == 'drizzle'"), ("drizzzle", "drizzle")),
        ("Days with drozzle?", _pandas("weather == 'drizzle'"), ("drozzle", "drizzle")),
        ("Sales of Chinstarp?", _pandas("species == 'Chinstrap'"), ("Chinstarp", "Chinstrap")),
        ("Days with drizle?", _pandas("weather == 'drizzle'"), ("drizle", "drizzle")),
        (
            "How many albums has Iron Maden?",
            _sql("SELECT count(*) FROM a WHERE Name = 'Iron Maiden'"),
            ("Iron Maden", "Iron Maiden"),
        ),
        ("Sales in Brasil?", _sql("select 1 where c like '%Brazil%'"), ("Brasil", "Brazil")),
        ("O'Brian's orders?", _sql("select 1 where n = 'O''Brien'"), ("O'Brian", "O'Brien")),
    ],
)
def test_another_spelling_is_told(question: str, step: Step, told: tuple[str, str]) -> None:
    line = f'The question says "{told[0]}"; the cells select "{told[1]}".'
    assert respelt_words(question, [step, step]) == (line,)


@pytest.mark.parametrize(
    ("question", "step"),
    [
        ("How heavy are GENTOO penguins?", _pandas("species == 'Gentoo'")),
        ("Mean on rainy days?", _pandas("weather == 'rain'")),
        ("Do Adelies weigh more?", _pandas("species == 'Adelie'")),
        ("Sales in São Paulo?", _pandas("city == 'Sao Paulo'")),
        ("E-mail or post?", _pandas("kind == 'email'")),
        ("Male or the other sex?", _pandas("sex == 'male'", "sex == 'female'")),
        ("How many in code A123?", _pandas("code == 'A124'")),
        ("Days with dryzzel?", _pandas("weather == 'drizzle'")),
        ("Sales of Chinytarp?", _pandas("species == 'Chinstrap'")),
        ("Was it hot?", _pandas("weather == 'hat'")),
        ("Gento?", _pandas("species == 'Gentoo'", after=0)),
        ("Gento?", _pandas("species == 'Gentoo'", status=CellStatus.ERROR)),
        ("Gento?", _step("df[df.species == 'Gentoo']", "python", [], CellStatus.OK)),
        ("The north of the land?", _pandas("part == 'south'")),
        ("", _pandas("species == 'Gentoo'")),
    ],
)
def test_the_same_word_and_other_words_are_not_told(question: str, step: Step) -> None:
    assert respelt_words(question, [step]) == ()


def test_a_cell_with_a_thousand_values_is_looked_at_only_so_far() -> None:
    values = ", ".join(f"'value{'x' * n}'" for n in range(70))
    steps = [_pandas(f"name in [{values}]") for _ in range(500)]
    assert len(respelt_words("valuexxxxxy and valuexxy", steps)) <= 3


LARGEST = "Which island has the largest land area?"


def _unknown(name: str, near: int = 0) -> Step:
    fact = Fact("unknown", "[]", before=3, after=near, condition=f"'{name}'", result="'latitude'")
    return _step("df[...]", "python", [fact], CellStatus.ERROR)


@pytest.mark.parametrize("name", ["area", "Area", "land_area"])
def test_a_name_that_was_looked_for_in_vain_is_told(name: str) -> None:
    told = f'Nothing in the data is called "{name}". Look at what the cells take for it.'
    assert missing_name_words(LARGEST, [_unknown(name)] * 2) == (told,)


def test_a_name_that_has_found_rows_is_not_missing() -> None:
    steps = [_unknown("snow"), _kept("weather == 'snow'", 1_461, 23)]
    assert missing_name_words("How many days of snow?", steps) == ()
    assert missing_name_words("How many days of snow?", steps[:1]) != ()


@pytest.mark.parametrize("step", [_unknown("area", near=1), _unknown("are"), _unknown("height")])
def test_another_name_is_not_told(step: Step) -> None:
    assert missing_name_words(LARGEST, [step]) == ()


def _kept(condition: str, before: int, after: int, status: CellStatus = CellStatus.OK) -> Step:
    fact = Fact("kept", operation="[]", before=before, after=after, condition=condition)
    return _step("df[...]", "python", [fact], status)


def test_a_limit_that_every_row_passes_is_told() -> None:
    steps = [_kept("body_mass_g > 10", 342, 342)] * 2
    told = ("Every row has body_mass_g > 10. Look at its unit.",)
    assert idle_limit_words("How long are the flippers of those over 10 kg?", steps) == told
    assert idle_limit_words("Over 1,000?", [_kept("total <= 1000", 9, 9)]) != ()


@pytest.mark.parametrize(
    ("question", "step"),
    [
        ("Over 10 kg?", _kept("body_mass_g > 10", 342, 341)),
        ("Over 10 kg?", _kept("body_mass_g > 10000", 342, 342)),
        ("In 2012?", _kept("year == 2012", 9, 9)),
        ("Over 10 kg?", _kept("mass > 10 and size > 3", 9, 9)),
        ("Over 10 kg?", _kept("mass > 10", 1, 1)),
        ("Over 10 kg?", _kept("mass > 10", 9, 9, CellStatus.ERROR)),
        ("Over x10 kg?", _kept("mass > 10", 9, 9)),
    ],
)
def test_other_selections_are_not_told(question: str, step: Step) -> None:
    assert idle_limit_words(question, [step]) == ()


HEAVY = "How long are the flippers of the penguins over 10 kg?"


def _cell(code: str, status: CellStatus = CellStatus.OK) -> Step:
    return _step(code, "python", [], status)


def test_a_limit_that_no_cell_uses_is_told_once() -> None:
    steps = [_cell("df['flipper'].mean()"), _cell("df[df.mass > 10_000]", CellStatus.ERROR)]
    assert unused_limit_words(HEAVY, steps) == (
        'No cell uses the limit "over 10" of the question.',
    )
    twice = "Count those at least $1,250.50, then name those at least $1,250.50."
    assert len(unused_limit_words(twice, steps)) == 1
    assert unused_limit_words(HEAVY, steps[1:]) == ()


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (HEAVY, "df[df.mass > 10]"),
        (HEAVY, "df[df.mass > 10_000]"),
        (HEAVY, "df[df.mass > 1e4]"),
        ("Who has more than 3 orders?", "orders[orders >= 4]"),
        ("How many are longer than 2 hours?", "df[df.minutes > 120]"),
        ("Is it at most 5 percent more than 200?", "total <= 1.05 * 200"),
        ("What grew by at least 15 %?", "growth[growth >= 0.15]"),
        ("What sold after 2015, and over 2015?", "df['total'].sum()"),
        ("Is the p-value of the test below 0.05?", "print(test.pvalue)"),
        ("Which is over the mean?", "df[df.a > df.a.mean()]"),
    ],
)
def test_a_limit_in_another_unit_or_form_is_used(question: str, code: str) -> None:
    assert unused_limit_words(question, [_cell(code)]) == ()


ISLAND = "How many penguins live on Deception Island?"


def test_a_name_that_no_cell_uses_is_told_with_what_they_select_instead() -> None:
    told = 'No cell uses the name "Deception Island" of the question'
    names, step = ["Deception Island"], _kept("island == 'Biscoe'", 344, 168)
    instead = (f'{told}; the cells select "Biscoe".',)
    assert unused_name_words(names, ISLAND, [step]) == instead
    assert unused_name_words(names * 2, ISLAND, [step, step]) == instead
    assert unused_name_words([], ISLAND, [step]) == ()
    for other in (_kept("flag == 'yes'", 9, 4), _kept("mass > 10", 9, 4), _cell("df.size")):
        assert unused_name_words(names, ISLAND, [other]) == (f"{told}.",)
