"""What a model is told of the notebook around a question, within a budget of characters.

In this order: the selected cell and what it showed, the variables that are alive, the cells nearest
to it, the headings of the rest, the data files near by.

Covered: texts that look like keys, and texts assigned to names that say so, are left out. Not
covered: secrets that look like nothing, and whatever the data itself contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dm_jupyter.agent.figures.figure_words import (
    figure_mark,
    figure_of_text,
    figure_words,
    is_figure,
)
from dm_jupyter.agent.observe import shorten

__all__ = [
    "TOLD",
    "ContextPart",
    "NotebookCell",
    "NotebookView",
    "PartKind",
    "cells_of_document",
    "context_chars",
    "item_count",
    "notebook_context",
    "without_secrets",
]

PartKind = Literal["selection", "variables", "cells", "files", "earlier"]
"""What of a notebook the model is told, and each can be switched off; the last are its runs."""
_LOCAL_CHARS = 1_600
"""Of what a model on this machine is told of the notebook: it reads some 40 tokens a second."""
_ENDPOINT_CHARS = 12_000
_SHARES = {"selection": 0.4, "variables": 0.35, "cells": 0.8, "files": 0.2}
"""Of what the parts before it have left; the cells are given room for the files after them."""
_CELL_SHARE = 0.5
"""Of one cell's room, for what it showed."""
_CUT_WORDS = 60
"""Characters of the line that says how much was cut, and of what stands around a cell."""
_CELL_CHARS = 1_200
"""The most of a cell that is not selected."""
_LEAST_CHARS = 80
"""Of a cell less would tell nothing."""
TOLD = "told"
"""The role of a cell that the model is told of elsewhere."""
_OWN_ROLES = frozenset({"question", "thought", "answer", TOLD})
"""Cells that repeat what the model is told of the runs before."""
_HEADINGS = 20
_KEY_LIKE = re.compile(
    r"""(?x)
    \b(?:sk|pk|rk)-[\w-]{16,} | \bgh[pousr]_\w{20,} | \bAKIA[0-9A-Z]{16}\b | \bxox[abprs]-[\w-]{10,}
    | (?<=://)[^/\s:@]+:[^/\s:@]+(?=@)
    """
)
_ASSIGNED = re.compile(
    r"""(?ix)
    ((?:key|token|secret|passw|pwd|credential)\w{0,60}["']?\]?\s{0,20}[=:]\s{0,20}["'])
    ([^"'\n]{4,}) (["'])
    """
)
"""Every repetition before the sign has a bound: a text of a kernel may be made to take long."""


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell as a person sees it."""

    kind: str
    """`code` or `markdown`."""
    source: str
    output: str = ""
    """What it shows, as text."""
    count: int | None = None
    """The number left of a code cell that ran."""
    role: str = ""
    """What it is to an earlier run of the analyst: `cell`, `answer`, …; empty for the person's."""
    id: str = ""
    figures: tuple[str, ...] = ()
    """Its figures that are no pictures: each a bundle of media types as JSON, in no words yet."""


@dataclass(frozen=True, slots=True)
class NotebookView:
    """The notebook at the moment of a question."""

    cells: Sequence[NotebookCell] = ()
    selected: int = -1
    """Place of the selected cell; -1 for none."""
    tables: Sequence[Mapping[str, Any]] = ()
    """DataFrames alive in the kernel, each with `name`, `kind`, `shape` and `columns`."""
    values: Sequence[Mapping[str, str]] = ()
    """Other variables, each with `name`, `kind` and `text`."""
    files: Sequence[tuple[str, int]] = ()
    """Data files near by: name, size in bytes."""


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A piece of what the model is told, which a person can look at and switch off."""

    kind: str
    """One of `PartKind`; of a run also `data`, `links` and `changes`."""
    text: str


def context_chars(*, is_local: bool) -> int:
    """Returns the most that a model is told of a notebook.

    Args:
        is_local: whether the model runs on this machine, started by us.
    """
    return _LOCAL_CHARS if is_local else _ENDPOINT_CHARS


def notebook_context(
    view: NotebookView, chars: int, withheld: Iterable[str] = ()
) -> tuple[ContextPart, ...]:
    """Returns what the model is told, most important first; no empty parts.

    Args:
        view: the notebook.
        chars: the most of all parts together.
        withheld: kinds of parts that the person has switched off.
    """
    makers = {"selection": _selection, "variables": _variables, "cells": _cells, "files": _files}
    off = frozenset(withheld)
    parts: list[ContextPart] = []
    left = chars
    for kind, make in makers.items():
        room = int(left * _SHARES[kind])
        text = "" if kind in off else make(view, room)
        if text and len(text) <= room:
            parts.append(ContextPart(kind, text))
            left -= len(text)
    return tuple(parts)


def item_count(part: ContextPart) -> int:
    """Returns how many cells, variables or files a part tells of; 1 for one of another kind."""
    sign = {"cells": r"^\[(?:\d+|not run)\]$", "variables": "^- ", "files": "^- "}.get(part.kind)
    return len(re.findall(sign, part.text, re.MULTILINE)) if sign else 1


def cells_of_document(document: Mapping[str, Any]) -> list[NotebookCell]:
    """Returns the cells of a notebook's file.

    Args:
        document: as nbformat 4 has it.
    """
    return [
        NotebookCell(
            kind=str(cell.get("cell_type", "")),
            source=_joined(cell.get("source")),
            output="\n".join(filter(None, map(_output_text, cell.get("outputs") or ()))),
            count=cell.get("execution_count"),
            role=str((cell.get("metadata") or {}).get("dm_jupyter", {}).get("role", "")),
            id=str(cell.get("id", "")),
        )
        for cell in document.get("cells") or ()
    ]


def _selection(view: NotebookView, chars: int) -> str:
    if not 0 <= view.selected < len(view.cells):
        return ""
    cell = view.cells[view.selected]
    title = "The selected cell:\n"
    text = _cell_text(_cleaned(cell), chars - len(title)) if cell.source.strip() else ""
    return text and title + text


def _variables(view: NotebookView, chars: int) -> str:
    lines = ["Alive in the kernel; use these variables as they are:"]
    lines += [_table_line(table) for table in reversed(view.tables)]
    lines += [f"- {one['name']} ({one['kind']}): {one['text']}" for one in reversed(view.values)]
    return "\n".join(_fitting(lines, chars)) if len(lines) > 1 else ""


def _cells(view: NotebookView, chars: int) -> str:
    """The cells around the selected one, as many as fit, in their order; headings of the rest."""
    middle = view.selected if 0 <= view.selected < len(view.cells) else len(view.cells)
    near = sorted(
        (place for place, cell in enumerate(view.cells) if _is_told(cell) and place != middle),
        key=lambda place: (abs(place - middle), place > middle),
    )
    headings = _headings(view)
    room = chars - sum(len(line) + 1 for line in headings)
    shown: dict[int, str] = {}
    for place in near:
        if room < _LEAST_CHARS:
            break
        text = _cell_text(_cleaned(view.cells[place]), min(_CELL_CHARS, room))
        if len(text) > room or not text:
            break
        shown[place] = text
        room -= len(text) + 2
    parts = [shown[place] for place in sorted(shown)]
    told = ["Cells near it, in their order:", *parts] if parts else []
    return "\n\n".join([*told, *(["\n".join(headings)] if headings else [])])


def _files(view: NotebookView, chars: int) -> str:
    lines = ["Data files near by (look at one before you use it):"]
    # A name is whatever made the file: it stays on its line.
    lines += [f"- {' '.join(name.split())} ({size / 1e3:,.1f} kB)" for name, size in view.files]
    return "\n".join(_fitting(lines, chars)) if len(lines) > 1 else ""


def _is_told(cell: NotebookCell) -> bool:
    return cell.role not in _OWN_ROLES and bool(cell.source.strip()) and cell.kind == "code"


def _headings(view: NotebookView) -> list[str]:
    found = [
        without_secrets(line.strip())
        for cell in view.cells
        if cell.kind == "markdown" and cell.role not in _OWN_ROLES
        for line in cell.source.splitlines()
        if re.match(r"#{1,6} \S", line)
    ]
    return ["Headings of the notebook:", *found[:_HEADINGS]] if found else []


def _cell_text(cell: NotebookCell, chars: int) -> str:
    """The cell's source and what it showed, cut in the middle where they are too long."""
    if chars < _LEAST_CHARS:
        return ""
    output = cell.output.strip()
    room = int(chars * (1 - _CELL_SHARE)) if output else chars - 20
    name = f"[{cell.count}]" if cell.count is not None else "[not run]"
    text = f"{name if cell.kind == 'code' else '[text]'}\n{_cut(cell.source.strip(), room)}"
    return f"{text}\nshowed:\n{_cut(output, chars - len(text))}" if output else text


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else shorten(text, max(0, chars - _CUT_WORDS))


def _table_line(table: Mapping[str, Any]) -> str:
    shape = " x ".join(f"{size:,}" for size in table["shape"])
    columns = ", ".join(
        f"{column['name']} ({column['dtype']}, e.g. {column['samples'][0]})"
        if column["samples"]
        else f"{column['name']} ({column['dtype']})"
        for column in table["columns"]
    )
    return f"- {table['name']} ({table['kind']}, {shape}): {columns}"


def _fitting(lines: list[str], chars: int) -> list[str]:
    """The first lines, as many as fit; the last one says how many are left out.

    The head alone says nothing: then there is no line at all.
    """
    if sum(len(line) + 1 for line in lines) <= chars + 1:
        return lines
    kept: list[str] = []
    for line in lines:
        chars -= len(line) + 1
        if chars < len(_more(len(lines) - len(kept))):
            break
        kept.append(line)
    return [*kept, _more(len(lines) - len(kept))] if len(kept) > 1 else []


def _more(count: int) -> str:
    return f"… and {count} more"


def _output_text(output: Mapping[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    data = output.get("data") or {}
    words = figure_words(data)
    if words or is_figure(data):
        return figure_mark(words)
    return _joined(output.get("text") or data.get("text/plain"))


def _joined(text: object) -> str:
    if isinstance(text, list):
        return "".join(piece for piece in text if isinstance(piece, str))
    return text if isinstance(text, str) else ""


def _cleaned(cell: NotebookCell) -> NotebookCell:
    words = map(figure_of_text, cell.figures)
    shown = "\n".join([*filter(None, [cell.output]), *words])
    source, output = without_secrets(cell.source), without_secrets(shown)
    return replace(cell, source=source, output=output, figures=())


def without_secrets(text: str) -> str:
    """Returns the text without what looks like a key, or is assigned to a name that says so."""
    return _KEY_LIKE.sub("[secret]", _ASSIGNED.sub(r"\1[secret]\3", text))
