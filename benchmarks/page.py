"""Page of headline results, `docs/benchmarks.md`, written from `benchmarks/results.toml`.

`python -m benchmarks.page` writes the page. `--check` writes nothing and exits with 1 if the page
is stale, or if a result names an entry that `docs/experiments.md` does not have.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.toml"
PAGE = ROOT / "docs" / "benchmarks.md"
LOG = ROOT / "docs" / "experiments.md"

_COLUMNS = ("measured", "figure", "aim", "compared with", "when, where, command")
_INTRO = """\
# Benchmarks

The headline results of this project. The date of each links to its entry in the \
[experiments log](experiments.md), which has the full tables, the setup and the negative results.

`python -m benchmarks.page` writes this page from `benchmarks/results.toml`.
"""
_HOW_TO_READ = """\
## How to read the table

- Figures are medians unless the entry says otherwise. `95 %` is an interval or a percentile, as \
the entry says.
- *Processor time* is that of all processes involved. The cores are shared with other machines, so \
ratios and processor time say more than clock time.
- An aim is what the project set itself. A missed aim is bold.
- A ratio compares our figure with the peer's. With an `x`, ours is so many times better.
- *Strict* is the strict rule of each suite, which its [page](evaluation.md#suites) states. That \
of DABench lets numbers differ by less than 1e-6.
- *The 40 questions* are those that `--limit 40 --seed 7` selects.
- The local model is Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, without an adapter. Since 2026-11-28 the \
default model has one. So an earlier command that names no model, or `local`, means \
`--model qwen2.5-coder-1.5b` today.
- `DIR` is a folder with a suite's data, which is not in this repository \
([suites](evaluation.md#suites)).
- `make bench` measures the layout of the code (`benchmarks.structure`). It then runs the \
benchmarks of profile, help, server start, ledger and sandbox. The options of the sandbox are in \
the [log](experiments.md#how-to-read-an-entry). The mutation test (`benchmarks.mutants`) comes \
last and takes long.
"""

_Row = TypeVar("_Row", "Result", "Experiment")


@dataclass(frozen=True)
class Result:
    """A figure of an experiment."""

    id: str
    """Its anchor on the page."""
    what: str
    figure: str
    aim: str = ""
    met: bool | None = None
    """Whether the figure meets the aim; `None` exactly if there is no aim."""
    peer: str = ""
    """What the figure is compared with, and the peer's own figure."""
    ratio: str = ""

    def __post_init__(self) -> None:
        """Raise `ValueError` if only one of `aim` and `met` is given."""
        if (self.met is None) == bool(self.aim):
            raise ValueError(f"result {self.id}: `aim` and `met` come together")


@dataclass(frozen=True)
class Experiment:
    """Figures of one entry of the log, measured with one command."""

    area: str
    log: str
    """The anchor of the entry in `docs/experiments.md`."""
    date: date
    machine: str
    results: tuple[Result, ...]
    command: str = ""
    conditions: str = ""


@dataclass(frozen=True)
class Results:
    """The content of `benchmarks/results.toml`."""

    machines: Mapping[str, str]
    areas: Mapping[str, str]
    """The name of each area by its anchor, in the order of the page."""
    experiments: tuple[Experiment, ...]

    def __post_init__(self) -> None:
        """Raise `ValueError` for an unknown area or machine, or for a duplicate anchor."""
        anchors = list(self.areas)
        for experiment in self.experiments:
            if experiment.area not in self.areas:
                raise ValueError(f"{experiment.log}: there is no area {experiment.area!r}")
            if experiment.machine not in self.machines:
                raise ValueError(f"{experiment.log}: there is no machine {experiment.machine!r}")
            anchors += [result.id for result in experiment.results]
        twice = {anchor for anchor in anchors if anchors.count(anchor) > 1}
        if twice:
            raise ValueError(f"two results or areas share an id: {', '.join(sorted(twice))}")


def read_results(text: str) -> Results:
    """Return the results of a TOML text.

    Raises:
        ValueError: a field is missing, unknown or contradicts another, or the text is not TOML.
    """
    content = tomllib.loads(text)
    experiments = []
    for row in content.pop("experiments"):
        row["results"] = tuple(_row(Result, result) for result in row["results"])
        experiments.append(_row(Experiment, row))
    return Results(content.pop("machines"), content.pop("areas"), tuple(experiments))


def _row(kind: type[_Row], row: dict[str, Any]) -> _Row:
    unknown = row.keys() - {field.name for field in fields(kind)}
    if unknown:
        raise ValueError(f"unknown fields {', '.join(sorted(unknown))} in {row}")
    try:
        return kind(**row)
    except TypeError as error:
        raise ValueError(f"{error} in {row}") from None


def render(results: Results) -> str:
    """Return the page's Markdown."""
    table = [_line(_COLUMNS), "|---" * len(_COLUMNS) + "|"]
    for area, name in results.areas.items():
        table.append(_line([f"{_anchor(area)}**{name}**", *[""] * (len(_COLUMNS) - 1)]))
        for experiment in results.experiments:
            if experiment.area == area:
                table += [_line(_cells(experiment, result)) for result in experiment.results]
    machines = [f"- **{name}**: {text}." for name, text in results.machines.items()]
    parts = [_INTRO, "## Results\n", "\n".join(table) + "\n", _HOW_TO_READ, "## Machines\n"]
    return "\n".join([*parts, "\n".join(machines) + "\n"])


def _cells(experiment: Experiment, result: Result) -> list[str]:
    aim = result.aim and f"{result.aim}, {'met' if result.met else '**missed**'}"
    peer = ", ratio ".join(filter(None, (result.peer, result.ratio)))
    entry = f"[{experiment.date.isoformat()}](experiments.md#{experiment.log})"
    where = ", ".join(filter(None, (entry, experiment.machine, experiment.conditions)))
    how = f"{where}<br>`{experiment.command}`" if experiment.command else where
    return [f"{_anchor(result.id)}{result.what}", result.figure, aim, peer, how]


def _anchor(name: str) -> str:
    return f'<a id="{name}"></a>'


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return re.sub(r" +\|", " |", f"| {' | '.join(escaped)} |")


def page_anchors(markdown: str) -> list[set[str]]:
    """Return the anchors of a Markdown page, as GitHub and as Python-Markdown create them.

    Anchors are those of headings, and the `id` of `<a>` elements. The two programs differ on
    headings with two marks between words, and on headings that appear twice.
    """
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    headings = [
        "".join(part.content for part in inline.children or ())
        for opening, inline in pairwise(tokens)
        if opening.type == "heading_open"
    ]
    explicit = {
        name
        for token in tokens
        for part in token.children or (token,)
        if part.type in ("html_inline", "html_block")
        for name in re.findall(r'<a id="([^"]+)">', part.content)
    }
    return [_slugs(headings, " ", "-") | explicit, _slugs(headings, r"[\s-]+", "_") | explicit]


def _slugs(headings: Sequence[str], spaces: str, separator: str) -> set[str]:
    """Return the anchors of headings: `spaces` become a hyphen, and duplicates get a number."""
    found: set[str] = set()
    for heading in headings:
        slug = re.sub(spaces, "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
        number = 1
        while (numbered := slug if number == 1 else f"{slug}{separator}{number - 1}") in found:
            number += 1
        found.add(numbered)
    return found


def find_faults(results: Results, page: str, log: str) -> list[str]:
    """Return the faults that `--check` reports: links without an entry, and a stale page."""
    anchors = set.intersection(*page_anchors(log))
    faults = [
        f"{LOG.name} has no entry #{experiment.log}"
        for experiment in results.experiments
        if experiment.log not in anchors
    ]
    if page != render(results):
        faults.append(f"{PAGE.name} is stale. Run: python -m benchmarks.page")
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page or check it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it is stale")
    results = read_results(RESULTS.read_text(encoding="utf-8"))
    if parser.parse_args(arguments).check:
        page, log = PAGE.read_text(encoding="utf-8"), LOG.read_text(encoding="utf-8")
        faults = find_faults(results, page, log)
        print("\n".join(faults) or "up to date")
        return 1 if faults else 0
    PAGE.write_text(render(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
