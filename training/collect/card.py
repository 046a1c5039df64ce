"""Card of a dataset: the sources of its conversations, and what was left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from training.collect.dataset import DatasetFile
from training.collect.examining import STAGES, CollectedRun, Funnel, Variant
from training.collect.selecting import Selection
from training.durable.data_files import data_fingerprint

__all__ = ["CollectedEvaluation", "card_of", "print_funnel", "read_source"]

_SHOWN = 12
"""Digits of a hash shown in a table."""
_ADDED: Mapping[Variant, str] = {
    "corrected": "Corrections added: {}. Each is a right run that begins with the failed cell of "
    "another try at the question. It was run again with that cell, and only what follows it is "
    "learned.",
    "in words": "Answers in words added: {}. Each is a right run without the form of the answer. "
    "Its cells, changed to print the values by name, were run again. A sentence that the model, "
    "without an adapter of its own, wrote from question and values states each value and no other "
    "number.",
}


@dataclass(frozen=True, slots=True)
class CollectedEvaluation:
    """An evaluation whose runs were collected."""

    run: Path
    """Its folder."""
    first_trial: int
    """Number of its first try among those of all sources, from 0."""
    tries: int
    """Per question."""
    manifest: Mapping[str, Any]
    """Its `run.json`; empty if there is none."""


def read_source(run: Path, first_trial: int, tries: int) -> CollectedEvaluation:
    """Return an evaluation as a source of runs.

    Args:
        run: its folder.
        first_trial: number of its first try among those of all sources, from 0.
        tries: per question.

    Raises:
        ValueError: its `run.json` is not a JSON object.
        OSError: it can't be read.
    """
    file = run / "run.json"
    found = dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}
    return CollectedEvaluation(run, first_trial, tries, found)


@dataclass(frozen=True, slots=True)
class _Part:
    """A heading, and the lines below it."""

    title: str
    lines: Sequence[str]

    def __str__(self) -> str:
        return "\n".join([f"## {self.title}", "", *self.lines])


def card_of(
    command: str,
    sources: Sequence[CollectedEvaluation],
    licences: Mapping[str, int],
    funnel: Funnel,
    selection: Selection,
    files: Sequence[DatasetFile],
) -> str:
    """Return the text of the card, in Markdown.

    Args:
        command: that created the dataset.
        sources: of its runs.
        licences: of the questions in the dataset, with the number of runs of each.
        funnel: how many runs met each condition.
        selection: the selected runs.
        files: of the dataset.
    """
    balance, held = selection.balance, selection.held
    runs = balance.runs
    questions = len({run.record.id for run in runs})
    models = ", ".join(sorted({str(one.manifest.get("model", "unknown")) for one in sources}))
    intro = (
        f"{len(runs)} right runs of {models} at {questions} questions, as conversations. Each was "
        "run again in a fresh sandbox and gave the same outputs and the same answer."
    )
    limit = (
        f"The limit of a category is {balance.limit} runs: the largest number that is at most "
        f"{balance.share:.0%} of all that stay."
    )
    counts = Counter(run.variant for run in selection.variants)
    told = [
        line
        for variant, meaning in _ADDED.items()
        if counts[variant]
        for line in ("", meaning.format(counts[variant]))
    ]
    parts = (
        _Part("Command", ("```", command, "```")),
        _Part("Runs", _source_lines(sources)),
        _Part("Licence of the questions", _licence_lines(licences)),
        _Part("Funnel", (*_funnel_lines(funnel), "", limit, *told)),
        _Part("Funnel by category", _category_lines(funnel)),
        _Part("Length of the runs", _length_lines(runs)),
        _Part("Files", _file_lines(files, held, runs)),
        _Part("Settings", _setting_lines(sources)),
    )
    return "\n\n".join(["# Dataset card", intro, *map(str, parts)]) + "\n"


def print_funnel(funnel: Funnel) -> None:
    """Print how many runs met each condition."""
    for stage, meaning in STAGES.items():
        print(f"{funnel.total(stage):>7}  {stage:<13} {meaning}")


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    cells = [[str(value).replace("|", "\\|") for value in row] for row in rows]
    lines = [list(header), ["---"] * len(header), *cells]
    return [f"| {' | '.join(line)} |" for line in lines]


def _source_lines(sources: Sequence[CollectedEvaluation]) -> list[str]:
    names = ("suite", "split", "questions", "model", "dialect", "seed", "levels", "limit", "git")
    rows: list[list[object]] = []
    for one in sources:
        first, last = one.first_trial + 1, one.first_trial + one.tries
        known = [one.manifest.get(name, "unknown") for name in names]
        known[names.index("levels")] = ", ".join(one.manifest.get("levels", ())) or "all"
        known[names.index("limit")] = one.manifest.get("limit") or "all"
        knowledge = str(one.manifest.get("knowledge") or "none")[:_SHOWN]
        data = data_fingerprint(one.manifest.get("data", {})) or "none"
        rows.append([f"{first} to {last}", *known, knowledge, data])
    header = ("tries", *names[:2], "hash of the questions", *names[3:], "hash of the knowledge",
              "hash of the data files")  # fmt: skip
    return _table(header, rows)


def _licence_lines(licences: Mapping[str, int]) -> list[str]:
    return _table(("licence", "runs"), sorted(licences.items()))


def _funnel_lines(funnel: Funnel) -> list[str]:
    rows = [(stage, funnel.total(stage), meaning) for stage, meaning in STAGES.items()]
    lines = _table(("stage", "runs", "condition"), rows)
    if funnel.timed_out:
        lines += [
            "",
            f"Timed out: {funnel.timed_out}. A cell of such a run ran out of time in its replay, "
            "which the recorded one did not. The run is left out, and the same command replays it "
            "again.",
        ]
    return lines


def _category_lines(funnel: Funnel) -> list[str]:
    rows = [
        (category, *(funnel.counts[stage][category] for stage in STAGES))
        for category in funnel.categories
    ]
    return _table(("category", *STAGES), rows)


def _length_lines(runs: Sequence[CollectedRun]) -> list[str]:
    figures: Mapping[str, Sequence[int]] = {
        "turns": [run.record.turns for run in runs],
        "cells": [run.record.cells for run in runs],
        "sampled tokens": [run.tokens for run in runs],
    }
    rows = [
        (name, f"{mean(found):.1f}", f"{median(found):g}", max(found), sum(found))
        for name, found in figures.items()
    ]
    turns = Counter(figures["turns"])
    by_turns = ", ".join(f"{count} with {number}" for number, count in sorted(turns.items()))
    return [*_table(("of a run", "mean", "median", "most", "all"), rows), "", f"Turns: {by_turns}."]


def _file_lines(
    files: Sequence[DatasetFile], held: set[str], runs: Sequence[CollectedRun]
) -> list[str]:
    header = ("file", "rows", "turns", "learned turns", "characters", "learned characters",
              "bytes", "sha256")  # fmt: skip
    rows = [
        (
            f"`{one.name}`", one.rows, one.turns, one.learned_turns, one.characters,
            one.learned_characters, len(one.content), f"`{one.sha256}`",
        )
        for one in files
    ]  # fmt: skip
    back = [run for run in runs if run.record.id in held]
    learned = {file for run in runs if run.record.id not in held for file in run.tables}
    is_apart = all(learned.isdisjoint(run.tables) for run in back)
    whole = "questions about their data files" if is_apart else "tries at their questions"
    told = f"Held back: {len(back)} of the {len(runs)} runs, with all {whole}."
    return [*_table(header, rows), "", told]


def _setting_lines(sources: Sequence[CollectedEvaluation]) -> list[str]:
    names = ("strategy", "settings", "profile", "installs", "prompts", "versions", "judge")
    lines = []
    for one in sources:
        told = {name: one.manifest[name] for name in names if one.manifest.get(name)}
        lines += ["```json", json.dumps(told, indent=1, ensure_ascii=False), "```"]
    return lines
