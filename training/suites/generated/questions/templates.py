"""Templates, prefixes and categories of `data`, read once and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from training.suites.generated.data import folder, read_data_file
from training.suites.generated.programs.steps import ProgramStep, StepError, make_step

__all__ = [
    "LEVELS",
    "AnswerForm",
    "Category",
    "Prefix",
    "TableForm",
    "Template",
    "TemplateError",
    "categories",
    "prefixes",
    "templates",
]

LEVELS = ("easy", "medium", "hard")
KINDS = frozenset(
    "number label header id list month day weekday word letters".split()  # noqa: SIM905
)


class TemplateError(ValueError):
    """A template is invalid; the message names it."""


@dataclass(frozen=True, slots=True)
class Category:
    """One of the task categories of DataMind (arXiv 2509.25084)."""

    name: str
    title: str
    about: str
    exemplars: tuple[str, ...]
    inferred: bool = False
    """Whether the category is missing in the published list."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """One value of an answer; its texts may contain `{slot}`."""

    name: str
    source: str
    """Name of the program's value that it shows."""
    about: str
    kind: str = "number"
    decimals: int | str = 2
    """Decimals of a number; `own` for those of the column `like`."""
    like: str = ""
    """Slot whose unit the number has."""
    unit: str = ""
    words: Any = ()
    """Choices of a `word`, or a slot's list of them."""


@dataclass(frozen=True, slots=True)
class TableForm:
    """A result table."""

    columns: tuple[str, ...]
    titles: tuple[str, ...]
    decimals: int
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A question without its values."""

    name: str
    category: str
    level: int
    """Lowest level of its questions, 1 to 3."""
    slots: Mapping[str, str]
    steps: tuple[ProgramStep, ...]
    say: tuple[str, ...]
    notes: tuple[str, ...] = ()
    says: frozenset[str] = frozenset()
    """Fields of `Reading` that its words decide."""
    answers: tuple[AnswerForm, ...] = ()
    table: TableForm | None = None
    takes_prefix: bool = True
    handles_gaps: bool = False
    """Whether its steps, and not a condition before them, handle missing values."""
    format: str = ""
    """The only file format that it applies to; empty for all."""

    @property
    def full_name(self) -> str:
        """Unique name: the category and the name."""
        return f"{self.category}/{self.name}"


@dataclass(frozen=True, slots=True)
class Prefix:
    """Steps that may come before those of a template."""

    name: str
    weight: float
    slots: Mapping[str, str]
    steps: tuple[ProgramStep, ...]
    say: tuple[str, ...]
    then: tuple[str, ...]
    clause: str = ""
    """The condition as words after the plural of the row; empty if it needs a sentence."""
    notes: tuple[str, ...] = ()
    says: frozenset[str] = frozenset()


@cache
def categories() -> tuple[Category, ...]:
    """Return the categories in the order of the paper."""
    return tuple(
        Category(**{**raw, "exemplars": tuple(raw["exemplars"])})
        for raw in read_data_file("categories.toml")["category"]
    )


@cache
def templates() -> tuple[Template, ...]:
    """Return all templates, by category.

    Raises:
        TemplateError: a template is invalid.
    """
    known = {category.name for category in categories()}
    found = []
    for file in folder("templates"):
        category = file["category"]
        if category not in known:
            raise TemplateError(f"there is no category {category!r}")
        found += [_template(category, raw) for raw in file["template"]]
    names = [one.full_name for one in found]
    if len({*names}) < len(names):
        raise TemplateError("two templates have one name")
    return tuple(found)


@cache
def prefixes() -> tuple[Prefix, ...]:
    """Return all prefixes.

    Raises:
        TemplateError: a prefix is invalid.
    """
    return tuple(
        Prefix(
            name=raw["name"],
            weight=raw["weight"],
            slots=raw["slots"],
            steps=_steps(f"prefix {raw['name']}", raw["steps"]),
            say=tuple(raw["say"]),
            then=tuple(raw["then"]),
            clause=raw.get("clause", ""),
            notes=tuple(raw.get("notes", ())),
            says=frozenset(raw.get("says", ())),
        )
        for raw in read_data_file("prefixes.toml")["prefix"]
    )


def _steps(name: str, raw: Sequence[Mapping[str, Any]]) -> tuple[ProgramStep, ...]:
    try:
        return tuple(make_step(one) for one in raw)
    except StepError as error:
        raise TemplateError(f"{name}: {error}") from error


def _template(category: str, raw: Mapping[str, Any]) -> Template:
    name = f"template {category}/{raw['name']}"
    known = {"name", "level", "slots", "steps", "say", "notes", "says", "answers", "table"}
    if unknown := sorted(raw.keys() - known - {"scope", "gaps", "format"}):
        raise TemplateError(f"{name}: there is no field {', '.join(unknown)}")
    table = raw.get("table")
    if table is not None:
        lists = {one: tuple(table[one]) for one in ("columns", "titles")}
        table = TableForm(**{**table, **lists})
    answers = tuple(_answer(name, one) for one in raw.get("answers", ()))
    if bool(answers) == (table is not None):
        raise TemplateError(f"{name}: it needs either answers or a table")
    return Template(
        name=raw["name"],
        category=category,
        level=raw["level"],
        slots=raw["slots"],
        steps=_steps(name, raw["steps"]),
        say=tuple(raw["say"]),
        notes=tuple(raw.get("notes", ())),
        says=frozenset(raw.get("says", ())),
        answers=answers,
        table=table,
        takes_prefix=raw.get("scope", True),
        handles_gaps=raw.get("gaps") == "own",
        format=raw.get("format", ""),
    )


def _answer(name: str, raw: Mapping[str, Any]) -> AnswerForm:
    fields = {("source" if key == "from" else key): value for key, value in raw.items()}
    try:
        form = AnswerForm(**fields)
    except TypeError as error:
        raise TemplateError(f"{name}: {error}") from error
    if form.kind not in KINDS:
        raise TemplateError(f"{name}: there is no answer of kind {form.kind!r}")
    return form
