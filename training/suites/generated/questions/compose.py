"""Composition of a question from a template, steps before it, and the values of one table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.suites.generated.programs.frame_program import run_frames
from training.suites.generated.programs.frames import FrameReader
from training.suites.generated.programs.steps import (
    MAX_DEPTH,
    ProgramStep,
    Reading,
    UnfitError,
    depth,
)
from training.suites.generated.questions.slots import Slot, SlotFiller, is_late, late_slot
from training.suites.generated.questions.templates import Prefix, Template, prefixes
from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.files import DataFile

__all__ = ["Composer", "Draft", "level_of"]

_SLOT = re.compile(r"\$(\w+)(?:\.(\w+))?")
_MEDIUM_DEPTH, _HARD_DEPTH = 3, 4
_EXTRA = 0.35
"""Share of questions that get an extra condition, if their level allows it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before its wording."""

    template: Template
    prefixes: tuple[tuple[Prefix, Mapping[str, Slot]], ...]
    slots: Mapping[str, Slot]
    steps: tuple[ProgramStep, ...]
    depth: int
    columns: tuple[str, ...]
    """Columns of both tables that it uses."""
    has_gaps: bool
    """Whether its first step drops rows with missing values."""

    @property
    def level(self) -> int:
        """Level, 1 to 3."""
        return level_of(self.template, self.depth)


def level_of(template: Template, steps: int) -> int:
    """Return the level of a template's question with a number of steps."""
    by_depth = 1 + (steps >= _MEDIUM_DEPTH) + (steps >= _HARD_DEPTH)
    return max(template.level, by_depth)


class Composer:
    """Composer of questions about one file."""

    def __init__(self, file: DataFile, reader: FrameReader) -> None:
        """Prepare to compose questions.

        Args:
            file: the file that the questions are about.
            reader: the reader of the file.
        """
        self._file = file
        self._reader = reader

    def compose(self, template: Template, level: int, chance: Chance) -> Draft:
        """Return a draft of a level.

        Args:
            template: the template of the question.
            level: 1 to 3; at least the template's own.
            chance: the draws of the question.

        Raises:
            UnfitError: nothing in the table fits, or no composition has that level.
        """
        filler = SlotFiller(self._file, chance)
        slots = filler.fill(template.slots)
        chosen = self._prefixes(template, level, filler, chance)
        before = [step for prefix, own in chosen for step in _resolved(prefix.steps, own, {})]
        columns = _columns([*(own for _, own in chosen), slots])
        given = {"all_columns": self._headers()}
        if any(step.args.get("columns") == "$all_columns" for step in template.steps):
            columns = tuple(given["all_columns"])
        gappy = [
            name
            for name in columns
            if name in self._file.dirty.forms and self._file.dirty.forms[name].has_gaps
        ]
        has_gaps = bool(gappy) and not template.handles_gaps
        if has_gaps:
            before.insert(0, ProgramStep("present", {"columns": gappy}))
        slots = self._with_late(template, slots, before, chance)
        steps = (*before, *_resolved(template.steps, slots, given))
        return Draft(template, tuple(chosen), slots, steps, depth(steps), columns, has_gaps)

    def _headers(self) -> dict[str, str]:
        return {name: form.header for name, form in self._file.dirty.forms.items()}

    def _prefixes(
        self, template: Template, level: int, filler: SlotFiller, chance: Chance
    ) -> list[tuple[Prefix, dict[str, Slot]]]:
        """Return prefixes that raise a template to a level, and perhaps one more."""
        own = depth(template.steps)
        if level_of(template, own) > level or own > MAX_DEPTH:
            raise UnfitError("no such level")
        chosen: list[tuple[Prefix, dict[str, Slot]]] = []
        added = 0
        wants_more = template.takes_prefix and chance.happens(_EXTRA)
        while level_of(template, own + added) < level or wants_more:
            room = MAX_DEPTH - own - added
            if not template.takes_prefix or len(chosen) == 2 or room < 1:
                break
            wants_more = False
            prefix = chance.weighted(prefixes(), [one.weight for one in prefixes()])
            more = depth(prefix.steps)
            if more > room or level_of(template, own + added + more) > level:
                continue
            chosen.append((prefix, filler.fill(prefix.slots)))
            added += more
        if level_of(template, own + added) != level:
            raise UnfitError("no such level")
        return chosen

    def _with_late(
        self,
        template: Template,
        slots: Mapping[str, Slot],
        before: Sequence[ProgramStep],
        chance: Chance,
    ) -> dict[str, Slot]:
        """Return the slots, including those that need a value of the steps before them."""
        filled = dict(slots)
        late = {name: spec for name, spec in template.slots.items() if is_late(spec)}
        if not late:
            return filled
        early = []
        for step in template.steps:
            if any(f"${name}" in str(step.args) for name in late):
                break
            early.append(step)
        steps = [*before, *_resolved(early, slots, {})]
        values = run_frames(steps, self._reader, Reading()).values
        for name, spec in late.items():
            labels: Sequence[str] = ()
            if " of " in spec:
                labels = [str(one) for one in self._file.dirty.table.present(
                    slots[spec.split()[-1]].raw
                )]  # fmt: skip
            filled[name] = late_slot(spec, values, labels, chance)
        return filled


def _columns(filled: Sequence[Mapping[str, Slot]]) -> tuple[str, ...]:
    names = [name for slots in filled for slot in slots.values() for name in slot.columns]
    return tuple(dict.fromkeys(names))


def _resolved(
    steps: Sequence[ProgramStep], slots: Mapping[str, Slot], given: Mapping[str, Any]
) -> list[ProgramStep]:
    """Return the steps with the values of their slots."""

    def value(found: re.Match[str]) -> Any:
        if found[1] in given:
            return given[found[1]]
        slot = slots[found[1]]
        return slot.parts[found[2]] if found[2] else slot.raw

    def resolve(one: Any) -> Any:
        if isinstance(one, str):
            whole = _SLOT.fullmatch(one)
            return value(whole) if whole else _SLOT.sub(lambda found: str(value(found)), one)
        if isinstance(one, Mapping):
            return {key: resolve(inner) for key, inner in one.items()}
        if isinstance(one, list):
            return [resolve(inner) for inner in one]
        return one

    return [ProgramStep(step.do, resolve(step.args)) for step in steps]
