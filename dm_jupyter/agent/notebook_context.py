"""The context that a model gets from the notebook around a question, within a character budget.

The order is: the selected cell and its output, the live variables, the cells nearest to it, the
headings of the rest, and the data files nearby.

Covered: texts that look like keys, and texts assigned to names that suggest one, are left out. Not
covered: secrets that look like ordinary text, and whatever the data itself contains.
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
"""Parts of a notebook that the model is shown, each with a switch; `earlier` is its runs."""
_LOCAL_CHARS = 1_600
"""Budget for a model on this machine, which reads some 40 tokens a second."""
_ENDPOINT_CHARS = 12_000
_SHARES = {"selection": 0.4, "variables": 0.35, "cells": 0.8, "files": 0.2}
"""Share of what the parts before it have left; cells leave room for the files after them."""
_CELL_SHARE = 0.5
"""Share of a cell's room for its output."""
_CUT_WORDS = 60
"""Characters of the line that says how much was cut, and of the text around a cell."""
_CELL_CHARS = 1_200
"""Most characters of a cell that is not selected."""
_LEAST_CHARS = 80
"""Fewest characters of a cell; fewer would say nothing."""
TOLD = "told"
"""The role of a cell that the model is shown elsewhere."""
_OWN_ROLES = frozenset({"question", "thought", "answer", TOLD})
"""Roles of cells that repeat what the model is shown of earlier runs."""
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
"""A pattern whose repetitions before the sign are bounded, against hostile text of a kernel."""


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell as a person sees it."""

    kind: str
    """`code` or `markdown`."""
    source: str
    output: str = ""
    """The output as text."""
    count: int | None = None
    """The execution count of a code cell that ran."""
    role: str = ""
    """Its role in an earlier run of the analyst: `cell`, `answer`, …; empty for the person's."""
    id: str = ""
    figures: tuple[str, ...] = ()
    """Figures that are not pictures, each a bundle of media types as JSON, not yet in words."""


@dataclass(frozen=True, slots=True)
class NotebookView:
    """The notebook at the moment of a question."""

    cells: Sequence[NotebookCell] = ()
    selected: int = -1
    """Index of the selected cell; -1 for none."""
    tables: Sequence[Mapping[str, Any]] = ()
    """DataFrames alive in the kernel, each with `name`, `kind`, `shape` and `columns`."""
    values: Sequence[Mapping[str, str]] = ()
    """Other variables, each with `name`, `kind` and `text`."""
    files: Sequence[tuple[str, int]] = ()
    """Data files nearby: name, size in bytes."""


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A part of the context, which a person can view and switch off."""

    kind: str
    """One of `PartKind`; a run also has `data`, `links` and `changes`."""
    text: str


def context_chars(*, is_local: bool) -> int:
    """Return the most characters of a notebook that a model is shown.

    Args:
        is_local: whether the model runs on this machine, started by us.
    """
    return _LOCAL_CHARS if is_local else _ENDPOINT_CHARS


def notebook_context(
    view: NotebookView, chars: int, withheld: Iterable[str] = ()
) -> tuple[ContextPart, ...]:
    """Return the parts that the model is shown, most important first, without empty ones.

    Args:
        view: the notebook.
        chars: most characters of all parts together.
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
    """Return how many cells, variables or files a part lists; 1 for a part of another kind."""
    sign = {"cells": r"^\[(?:\d+|not run)\]$", "variables": "^- ", "files": "^- "}.get(part.kind)
    return len(re.findall(sign, part.text, re.MULTILINE)) if sign else 1


def cells_of_document(document: Mapping[str, Any]) -> list[NotebookCell]:
    """Return the cells of a notebook file.

    Args:
        document: the notebook in nbformat 4.
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
    """Return as many cells around the selected one as fit, in order, and the headings."""
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
    # A file name may contain anything: it is kept on one line.
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
    """Return the cell's source and output, cut in the middle if they are too long."""
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
    """Return as many lines as fit; the last one says how many are left out.

    Return no line if only the heading fits, since it says nothing.
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
    """Return the text without apparent keys, and texts assigned to names that suggest one."""
    return _KEY_LIKE.sub("[secret]", _ASSIGNED.sub(r"\1[secret]\3", text))
