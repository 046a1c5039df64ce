"""Wording of a filled template: the question, its constraints and its answer format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from training.suites.generated.data import read_data_file
from training.suites.generated.questions.slots import Slot
from training.suites.generated.questions.templates import AnswerForm, TableForm, TemplateError
from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.dirt import Form
from training.suites.generated.tables.domains import Domain
from training.suites.generated.tables.files import DataFile

__all__ = ["FactSheet", "Scope", "answer_format", "fill_wording", "finished", "table_constraint"]

_FIELD = re.compile(r"\{(\w+)(?:\.(\w+))?\}")
_MENTION = re.compile(r"\x02(\w+)\x03")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeio]|u(?!ni|se)|[AEIOU](?![a-z]?ni)|NO)")
_SHOWN = 0.25
"""Share of columns whose header is named although it equals the noun."""
_NUMBERS = ("no", "one", "two", "three", "four", "five")


class Scope:
    """Rows that a question is about, in words."""

    def __init__(self, domain: Domain, clause: str = "", *, is_narrowed: bool = False) -> None:
        """Describe the rows.

        Args:
            domain: the domain of the rows.
            clause: the clause of a prefix that is stated within the question.
            is_narrowed: whether sentences before the question narrowed the rows.
        """
        rows = domain.rows
        behind = f" {clause}" if clause else ""
        self._first = {
            "the_rows": f"the remaining {rows}" if is_narrowed else f"the {rows}{behind}",
            "all_rows": f"all remaining {rows}" if is_narrowed else f"all {rows}{behind}",
            "many_rows": f"remaining {rows}" if is_narrowed else f"{rows}{behind}",
        }
        self._later = self._first
        if clause:
            self._later = {
                "the_rows": f"these {rows}",
                "all_rows": f"all of these {rows}",
                "many_rows": f"of these {rows}",
            }
        self._fixed = {"row": domain.row, "rows": rows}
        self._is_first = True

    def word(self, name: str) -> str | None:
        """Return the words for a field of a text; `None` for a field that is not about rows."""
        if name in self._first:
            words = self._first if self._is_first else self._later
            self._is_first = False
            return words[name]
        return self._fixed.get(name)

    def settle(self) -> None:
        """Omit the clause from now on, because later text refers to known rows."""
        self._is_first = False


def fill_wording(text: str, slots: Mapping[str, Slot], scope: Scope) -> str:
    """Return a text of a template with its fields filled.

    Raises:
        TemplateError: the text has a field that nothing fills.
    """

    def fill(found: re.Match[str]) -> str:
        name, word = found[1], found[2] or ""
        if name in slots:
            if word not in slots[name].words:
                raise TemplateError(f"slot {name} has no word {word!r}: {text}")
            return slots[name].words[word]
        if name == "rows" and word == "slug":
            return re.sub(r"\W+", "_", scope.word("rows") or "")
        words = scope.word(name)
        if words is None or word:
            raise TemplateError(f"nothing fills {found[0]}: {text}")
        return words

    return _FIELD.sub(fill, text)


def finished(text: str, file: DataFile, chance: Chance | None = None) -> str:
    """Return a text with nouns for the marks of columns and with corrected articles.

    Args:
        text: the text, as `fill_wording` returns it.
        file: the file that the question is about.
        chance: the draws of the question; without it no header is named.
    """
    domain = file.dirty.table.domain
    seen: set[str] = set()

    def name(found: re.Match[str]) -> str:
        noun = domain.column(found[1]).noun
        if found[1] in seen or chance is None:
            return noun
        seen.add(found[1])
        header = _header(file, found[1])
        if _folded(header) == _folded(noun) and not chance.happens(_SHOWN):
            return noun
        return f'{noun} ("{header}")'

    return _ARTICLE.sub(r"\1n ", _MENTION.sub(name, text))


def _header(file: DataFile, column: str) -> str:
    forms = file.dirty.forms
    return forms[column].header if column in forms else file.lookup_header(column)


def _folded(text: str) -> str:
    return re.sub(r"\(.*\)|\W|_", "", text.lower())


class FactSheet:
    """Facts about a file that a question about some of its columns must state."""

    def __init__(self, file: DataFile, columns: Sequence[str], chance: Chance) -> None:
        """Collect the forms of the columns.

        Args:
            file: the file that the question is about.
            columns: the columns that the question uses.
            chance: the draws of the question.
        """
        self._file = file
        self._chance = chance
        table = file.dirty.table
        self._forms = {
            column.name: file.dirty.forms[column.name]
            for column in table.columns
            if column.name in columns
        }
        self._uses_lookup = any(
            name in table.lookup and name not in table.values for name in columns
        )

    def always(self) -> list[str]:
        """Return the facts that the cells alone do not show."""
        domain = self._file.dirty.table.domain
        said = []
        if len(self._file.sheets) > 1:
            sheets = " and ".join(f'"{sheet}"' for sheet in self._file.sheets)
            said.append(self._say("years", rows=domain.rows, sheets=sheets))
        elif self._file.sheets:
            said.append(self._say("sheet", rows=domain.rows, sheet=f'"{self._file.sheets[0]}"'))
        if self._uses_lookup:
            kind = "sheet" if self._file.sheets else "table"
            said.append(
                self._say(
                    "beside",
                    key=domain.column(domain.lookup.key).noun,
                    kind=kind,
                    lookup=f'"{self._file.lookup_name}"',
                )
            )
        forms = list(self._forms.values())
        if any(form.is_comma for form in forms):
            grouped = any(form.is_comma and form.is_grouped for form in forms)
            said.append(self._say("comma" if grouped else "plain_comma"))
        for form in forms:
            said += self._of_form(form)
        return said

    def _of_form(self, form: Form) -> list[str]:
        column = f'"{form.header}"'
        said = []
        if marks := [f'"{mark}"' for mark in form.marks if mark]:
            blank = ["an empty cell"] if len(marks) < len(form.marks) else []
            listed = " or ".join([*marks, *blank])
            said.append(self._say("marks", column=column, marks=listed))
        if form.words:
            said.append(self._say("words", column=column))
        if form.sentinel is not None:
            said.append(self._say("sentinel", column=column, sentinel=str(form.sentinel)))
        if form.other_sign:
            said.append(self._say("others", column=column, other=form.other_sign, sign=form.sign))
        if "dotted" in form.dates:
            said.append(self._say("dates"))
        return said

    def matters(self, reading: str) -> str:
        """Return the sentence that decides a reading: `repeats`, `gaps` or `labels`."""
        domain = self._file.dirty.table.domain
        if reading == "repeats":
            return self._say("repeats")
        if reading == "labels":
            varied = [form for form in self._forms.values() if form.is_varied]
            return " ".join(self._say("labels", column=f'"{form.header}"') for form in varied)
        gappy = [name for name, form in self._forms.items() if form.has_gaps]
        nouns = [domain.column(name).noun for name in gappy]
        kind = "gap" if len(nouns) == 1 else "gaps"
        return self._say(kind, rows=domain.rows, columns=", ".join(nouns))

    def _say(self, fact: str, **fields: str) -> str:
        text: str = self._chance.choose(read_data_file("phrases.toml")["facts"][fact])
        return text.format(**fields)


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def answer_format(forms: Sequence[tuple[AnswerForm, str, str]], slots: Mapping[str, Slot]) -> str:
    """Return the answer format, in the style of DABench.

    Args:
        forms: the form, name and description of each value.
        slots: the slots of the question.
    """
    tags = " ".join(f"@{name}[{name}]" for _, name, _ in forms)
    parts = [f'"{name}" is {about}{_form(form, about, slots)}' for form, name, about in forms]
    return f"{tags} where {'; '.join(parts)}."


def _form(form: AnswerForm, about: str, slots: Mapping[str, Slot]) -> str:
    phrases = read_data_file("phrases.toml")["forms"]
    if form.kind != "number":
        words = _choices(form.words, slots)
        listed = f"{', '.join(words[:-1])} or {words[-1]}" if words else ""
        return f", {phrases[form.kind][0].format(words=listed)}"
    decimals = decimals_of(form, slots)
    unit = unit_of(form, slots)
    is_said = not unit or unit in about or (unit == "percent" and "percentage" in about)
    behind = "" if is_said else f" in {unit}"
    if decimals == 0:
        return f"{behind}, {phrases['whole'][0]}"
    if decimals == 1:
        return f"{behind}, {phrases['one_decimal'][0]}"
    return f"{behind}, {phrases['number'][0].format(decimals=decimals)}"


def _choices(words: Any, slots: Mapping[str, Slot]) -> list[str]:
    if isinstance(words, str):
        name, _, part = words.removeprefix("$").partition(".")
        words = slots[name].parts[part]
    return [f'"{word}"' for word in words]


def unit_of(form: AnswerForm, slots: Mapping[str, Slot]) -> str:
    """Return the unit of an answer; empty if it has none."""
    if form.unit:
        found = _FIELD.fullmatch(form.unit)
        return slots[found[1]].words[found[2]] if found else form.unit
    return slots[form.like].words["unit"] if form.like else ""


def decimals_of(form: AnswerForm, slots: Mapping[str, Slot]) -> int:
    """Return the number of decimals of a number in an answer."""
    if form.decimals == "own":
        return int(slots[form.like].words["decimals"])
    return int(form.decimals)


def table_constraint(form: TableForm, titles: Sequence[str]) -> str:
    """Return the sentence about the columns of a result table."""
    number = _NUMBERS[len(titles)]
    text = f"The result has {number} columns: {_listed(titles)}"
    if form.decimals:
        return f"{text}. Numbers with a fraction are rounded to {form.decimals} decimal places."
    return f"{text}."
