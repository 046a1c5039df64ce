"""Questions people would ask of the example files: ten with one right answer, twelve as they come.

No model and no pandas here: `csv`, `sqlite3` and arithmetic, so that a right answer of the agent
can't be an echo of its own tools. The twelve are in `questions.toml`.
"""

from __future__ import annotations

import csv
import sqlite3
import statistics
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.assist.grounding import unsupported_numbers

__all__ = ["DEMO", "QUESTIONS", "FreeQuestion", "PersonsQuestion", "persons_questions"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class FreeQuestion:
    """A question without an answer format, and what a right answer must state."""

    file: str
    text: str
    expected: Callable[[], Sequence[float | str]]

    @property
    def path(self) -> Path:
        """Where the data file lies."""
        return FOLDER / self.file

    def missing(self, answer: str) -> list[float | str]:
        """Returns the expected values that the answer does not state; numbers may be rounded.

        A number counts as stated when a number of the answer with at least two significant
        digits, or all of its own, is that number rounded.
        """
        return [value for value in self.expected() if not _states(answer, value)]


@dataclass(frozen=True)
class PersonsQuestion:
    """One question of `questions.toml`, which says what the fields are."""

    files: tuple[str, ...]
    ask: str
    states: tuple[float | str, ...]
    one_of: tuple[str, ...] = ()
    after: str = ""
    figure: bool = False
    makes: str = ""

    def missing(self, answer: str) -> list[float | str]:
        """Returns what a right answer states and this one does not."""
        missing = [value for value in self.states if not _states(answer, value)]
        if self.one_of and not any(_states(answer, word) for word in self.one_of):
            missing.append(" or ".join(self.one_of))
        return missing


def persons_questions() -> dict[str, PersonsQuestion]:
    """Returns the questions of `questions.toml` by their names, in order."""
    raw = tomllib.loads((FOLDER / "questions.toml").read_text("utf-8"))
    lists = ("files", "states", "one_of")
    return {
        name: PersonsQuestion(**{key: tuple(v) if key in lists else v for key, v in one.items()})
        for name, one in raw.items()
    }


_OTHER_NAMES = {"USA": ("USA", "United States")}
"""What else an answer may call a value of the data."""


def _states(answer: str, value: float | str) -> bool:
    if isinstance(value, str):
        names = _OTHER_NAMES.get(value, (value,))
        return any(name.lower() in answer.lower() for name in names)
    words = answer.replace("*", " ").replace("$", " ").replace("`", " ").split()
    numbers = [word.strip(".,;:()") for word in words]
    precise = [n for n in numbers if sum(c.isdigit() for c in n) >= min(2, _digits(value))]
    return any(n and not unsupported_numbers(n, [repr(value)]) for n in precise if _has_digit(n))


def _digits(value: float) -> int:
    return sum(c.isdigit() for c in f"{value:g}")


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _rows(file: str) -> list[dict[str, str]]:
    with (FOLDER / file).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _query(sql: str) -> list[tuple[float | str, ...]]:
    address = (FOLDER / "chinook.sqlite").as_uri() + "?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        return connection.execute(sql).fetchall()


def _weather(column: str, keep: Callable[[dict[str, str]], bool]) -> list[float]:
    return [float(row[column]) for row in _rows("seattle-weather.csv") if keep(row)]


def _penguins(column: str, **where: str) -> list[float]:
    rows = _rows("penguins.csv")
    kept = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return [float(row[column]) for row in kept if row[column] not in ("", "NA")]


QUESTIONS: tuple[FreeQuestion, ...] = (
    FreeQuestion(
        "seattle-weather.csv",
        "How many days of each weather type are there, and which type is the most common?",
        lambda: Counter(row["weather"] for row in _rows("seattle-weather.csv")).most_common(1)[0],
    ),
    FreeQuestion(
        "seattle-weather.csv",
        "What was the highest temp_max?",
        lambda: (max(_weather("temp_max", lambda _: True)),),
    ),
    FreeQuestion(
        "seattle-weather.csv",
        "What is the average wind on days with snow?",
        lambda: (statistics.mean(_weather("wind", lambda row: row["weather"] == "snow")),),
    ),
    FreeQuestion(
        "seattle-weather.csv",
        "What was the total precipitation in the year 2014?",
        lambda: (sum(_weather("precipitation", lambda row: row["date"].startswith("2014"))),),
    ),
    FreeQuestion(
        "penguins.csv",
        "What is the mean body mass of each species, in grams?",
        lambda: tuple(
            statistics.mean(_penguins("body_mass_g", species=species))
            for species in ("Adelie", "Chinstrap", "Gentoo")
        ),
    ),
    FreeQuestion(
        "penguins.csv",
        "How many penguins live on each island?",
        lambda: tuple(Counter(row["island"] for row in _rows("penguins.csv")).values()),
    ),
    FreeQuestion(
        "penguins.csv",
        "What is the correlation between flipper length and body mass?",
        lambda: (_flipper_mass_correlation(),),
    ),
    FreeQuestion(
        "chinook.sqlite",
        "Which country spent the most money on invoices, and how much?",
        lambda: _query(
            "SELECT BillingCountry, round(sum(Total), 2) FROM Invoice GROUP BY 1 "
            "ORDER BY 2 DESC LIMIT 1"
        )[0],
    ),
    FreeQuestion(
        "chinook.sqlite",
        "Which artist has the most albums, and how many?",
        lambda: _query(
            "SELECT a.Name, count(*) FROM Album b JOIN Artist a ON a.ArtistId = b.ArtistId "
            "GROUP BY a.ArtistId ORDER BY 2 DESC LIMIT 1"
        )[0],
    ),
    FreeQuestion(
        "chinook.sqlite",
        "How many tracks are longer than five minutes?",
        lambda: _query("SELECT count(*) FROM Track WHERE Milliseconds > 300000")[0],
    ),
)

DEMO: tuple[FreeQuestion, FreeQuestion] = (QUESTIONS[4], QUESTIONS[7])
"""The two that `make demo` asks: one of a csv file, one of a database."""


def _flipper_mass_correlation() -> float:
    rows = [row for row in _rows("penguins.csv") if row["body_mass_g"] not in ("", "NA")]
    flippers = [float(row["flipper_length_mm"]) for row in rows]
    return statistics.correlation(flippers, [float(row["body_mass_g"]) for row in rows])
