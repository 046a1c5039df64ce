"""Assembly of the page.

*Covered*: output of cells and models appears in the page only as text, as pictures, or as tags
from a short list (`words`, `outputs`). The page's own policy, in its head, names the hashes of one
script and one style sheet. A browser may use only these, load nothing else, send nothing and follow
no `<base>`. Notebooks are stored in `<template>` elements, which are inert until they are opened. A
page that a server keeps up to date may send requests to that server alone.
*Not covered*: faults of the browser itself, and text that pretends to be the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from training.compare import RUNS, comparison_of, verdict_lines
from training.durable.atomic import write_whole
from training.durable.data_files import data_fingerprint
from training.records.records import RunError
from training.report import plots, tables
from training.report.entries import PageEntry, entries_of, filters_of
from training.report.figures import Figures, figures_of
from training.report.judges import judge_table
from training.report.notebooks import sandbox_words
from training.report.pictures import Pictures
from training.report.source import MAX_NOTE_CHARS, ReportRun, read_report_runs, title_of
from training.report.words import plain

__all__ = ["inline_hash", "page_of", "templates", "write_page"]

_FOLDER = Path(__file__).parent
_STYLES = ("page.css", "plots.css", "notebook.css")
_FACT_CHARS = 1_000


def write_page(runs: Sequence[Path], file: Path, title: str | None = None) -> int:
    """Write the page atomically and return its size in bytes.

    Args:
        runs: folders of the runs, in the order in which they are shown.
        file: the path of the page.
        title: the title of the page; `None` names the runs.

    Raises:
        RunError: a run can't be read; the message names the file, and the line if there is one.
        OSError: the page can't be written; an existing one is unchanged.
    """
    read = read_report_runs(runs)
    # A model may write half of a surrogate pair, which is not a character and can't be encoded.
    page = page_of(read, title or title_of(read)).encode("utf-8", "replace")
    write_whole(page, file)
    return len(page)


def page_of(runs: Sequence[ReportRun], title: str, version: str = "") -> str:
    """Return the complete page.

    Args:
        runs: one run or more.
        title: the title of the page.
        version: the version of the data if a server follows the runs and keeps notes; else empty.
    """
    style = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _STYLES)
    names = ("page.js", "live.js") if version else ("page.js",)
    script = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)
    figures = [figures_of(run.name, run.records, run.summary) for run in runs]
    pictures = Pictures()
    difference, are_paired = _difference(runs)
    entries = entries_of(runs, pictures, are_paired=are_paired)
    return (
        templates(_FOLDER / "templates")
        .get_template("page.html")
        .render(
            title=title,
            policy=_policy(style, script, is_live=bool(version)),
            version=version,
            max_note_chars=MAX_NOTE_CHARS,
            style=Markup(style),  # noqa: S704  (our own file)
            script=Markup(script),  # noqa: S704  (our own file)
            runs=figures,
            facts=_facts(runs),
            sections=_sections(figures, judge_table(runs), difference),
            entries=entries,
            failed=sum(not entry.record.strict_correct for entry in entries),
            filters=filters_of(runs, are_paired=are_paired, can_note=bool(version)),
            has_notebooks=any(entry.notebook for entry in entries),
            several_tries=_has_several_tries(entries),
            pictures=pictures,
        )
    )


def templates(folder: Path) -> Environment:
    """Return the page templates in a folder; they escape all text."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _policy(style: str, script: str, *, is_live: bool) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{inline_hash(script)}'",
            f"style-src '{inline_hash(style)}'",
            "img-src data:",
            *(["connect-src 'self'"] if is_live else []),
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def inline_hash(text: str) -> str:
    """Return the hash by which a page's policy admits an inline style or script."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _has_several_tries(entries: Sequence[PageEntry]) -> bool:
    return any(entry.record.trial for entry in entries)


def _difference(runs: Sequence[ReportRun]) -> tuple[list[str], bool]:
    """Return the words of `training.compare` on two runs, and whether they can be compared.

    There are no words for another number of runs.
    """
    if len(runs) != len(RUNS):
        return [], False
    first, second = runs
    names = f"A is {first.name}, B is {second.name}"
    try:
        manifests = first.manifest, second.manifest
        found = comparison_of(first.records, second.records, manifests=manifests)
    except RunError as why:
        return [f"{names}; not compared by question: {why}"], False
    return [f"{names}; right by the benchmark's rules.", *verdict_lines(found)], True


def _sections(
    figures: Sequence[Figures], judged: tables.FigureTable, notes: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the sections with figures: name, heading, notes, plots and tables."""
    parts: list[tuple[str, str, list[plots.Plot | None], list[tables.FigureTable]]] = [
        ("overall", "Overall", [plots.pass_plot(figures)], [tables.overall(figures), judged]),
        ("groups", "By group", [plots.accuracy_plot(figures)], [tables.groups(figures)]),
        ("failures", "Failures", [plots.failure_plot(figures)], [tables.failures(figures)]),
        ("costs", "Costs", [plots.token_plot(figures)], [tables.costs(figures)]),
    ]
    return [
        {
            "name": name,
            "heading": heading,
            "notes": notes if name == "overall" else [],
            "plots": [plot for plot in drawn if plot],
            "tables": [table for table in shown if table.rows],
        }
        for name, heading, drawn, shown in parts
    ]


def _facts(runs: Sequence[ReportRun]) -> list[tuple[str, list[str], bool]]:
    """Return the settings of the runs: name, a value for each run, and whether these differ."""
    found = [dict(_flat(_shown(run.manifest))) for run in runs]
    for one, run in zip(found, runs, strict=True):
        one |= {name: words for name, words in _seen(run) if name not in one}
    names = dict.fromkeys(name for one in found for name in one)
    rows = []
    for name in names:
        values = [plain(one.get(name, tables.NOTHING), _FACT_CHARS) for one in found]
        rows.append((name, values, len(set(values)) > 1))
    return rows


def _shown(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the manifest with all data files on one line; runs that differ still differ in it."""
    data = manifest.get("data")
    if not isinstance(data, Mapping):
        return manifest
    return {**manifest, "data": f"{len(data)} files, sha256 of all {data_fingerprint(data)}"}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of nested objects, each with its path."""
    for name, one in value.items():
        if isinstance(one, Mapping):
            yield from _flat(one, f"{prefix}{name}.")
        elif isinstance(one, str):
            yield f"{prefix}{name}", one
        else:
            yield f"{prefix}{name}", json.dumps(one, ensure_ascii=False)


def _seen(run: ReportRun) -> Iterator[tuple[str, str]]:
    """Yield the facts in the first trajectory, which supplement or replace the manifest."""
    trajectory = next((one.trajectory for one in run.tries if one.trajectory), None)
    if trajectory is not None:
        yield "model", trajectory.policy
        yield "dialect", trajectory.dialect
        yield from _flat(trajectory.prompts, "prompts.")
        yield "sandbox of the first try", sandbox_words(trajectory)
