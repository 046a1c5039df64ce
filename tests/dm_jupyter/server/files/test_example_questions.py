"""The questions that the first screen offers."""

from pathlib import Path

from dm_jupyter.data.profile import profile_file
from dm_jupyter.data.profile.model import FileProfile
from dm_jupyter.server.files.example_questions import questions_about

EXAMPLES = Path("examples")


def test_they_name_real_columns_of_the_file() -> None:
    path = EXAMPLES / "penguins.csv"
    header = path.read_text().splitlines()[0].split(",")
    questions = questions_about(profile_file(path))
    assert len(questions) == 3
    assert all("penguins.csv" in question for question in questions)
    assert all(any(name in question for name in header) for question in questions)
    assert "Which species in penguins.csv has the highest average" in questions[0]


def test_keys_of_a_database_are_no_amounts() -> None:
    questions = questions_about(profile_file(EXAMPLES / "chinook.sqlite"))
    assert len(questions) == 3
    assert not any(word in " ".join(questions) for word in ("Id ", "Id?", "ReportsTo"))


def test_a_column_of_dates_is_asked_about_over_time() -> None:
    questions = questions_about(profile_file(EXAMPLES / "seattle-weather.csv"))
    assert any("change over date" in question for question in questions)


def test_a_file_without_usable_columns_still_gets_questions(tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text("id\n1\n2\n3\n")
    questions = questions_about(profile_file(path))
    assert len(questions) == 2
    assert all("ids.csv" in question for question in questions)
    nothing = FileProfile("empty.sqlite", "sqlite", 0)
    assert questions_about(nothing) == ("What is in empty.sqlite?",)
