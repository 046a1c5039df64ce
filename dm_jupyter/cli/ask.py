"""`dm-jupyter ask`: one question, with its progress shown."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dm_jupyter.agent.continued import Continued, open_notebook, refuse_open_elsewhere
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook import empty_notebook
from dm_jupyter.agent.notebook_context import context_chars
from dm_jupyter.agent.notebook_file import write_new
from dm_jupyter.agent.notebook_words import why_no_answer
from dm_jupyter.analysis import (
    Analysis,
    AnalysisSettings,
    analyze,
    refuse_archives,
    task_about,
    warnings_of,
)
from dm_jupyter.cli.exits import Exit, exit_of, reporting, terminate_as_interrupt
from dm_jupyter.cli.show import Screen, Silent, Watcher
from dm_jupyter.config import ModelChoice, model_choice, packages_folder
from dm_jupyter.core.absent_data import rests_words
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import NotebookError, UsageError
from dm_jupyter.core.events import CellStarted, Event, RunStarted
from dm_jupyter.core.grounded import doubt_words
from dm_jupyter.core.plain_text import harmless_text, shown_address
from dm_jupyter.core.readable import shown_answer
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from dm_jupyter.models.opening import AUTO, open_policy
from kernel_sandbox.packages.commands import own_command
from kernel_sandbox.packages.overlay import Overlay
from kernel_sandbox.packages.packages import AllowList, PackageInstaller
from kernel_sandbox.types import MIB, Limits

if TYPE_CHECKING:  # loads the pool, which a single attempt does not need
    from dm_jupyter.search.best_of_n import BestOfN

__all__ = ["AskOptions", "ask_files"]

_WHY_NOT = {
    "--out": "the answer is added to the notebook itself",
    "--tries": "fresh kernels have none of the notebook's variables",
}


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The options of the command, as given."""

    arguments: tuple[str, ...]
    continued: Path | None
    out: Path | None
    pictures: bool
    model: str | None
    adapter: Path | None
    base_url: str | None
    api_key_file: Path | None
    max_turns: int
    max_seconds: float
    answer_format: str
    dialect: str
    memory_mb: int
    cell_seconds: float
    strict: tuple[str, ...]
    install_packages: bool
    turn_tokens: int
    temperature: float
    seed: int
    tries: int
    as_json: bool


def ask_files(options: AskOptions) -> int:
    """Answer the question and return the exit code."""
    with reporting() as outcome:
        outcome.code = asyncio.run(_ask(options))
    return outcome.code


async def _ask(options: AskOptions) -> int:
    task = _task(options)
    await refuse_archives(task)
    if options.dialect != AUTO:
        dialect_named(options.dialect)
    choice = model_choice(options.model, options.base_url, options.api_key_file, options.adapter)
    quiet = options.as_json or not sys.stdout.isatty()
    watcher: Watcher = Silent() if quiet else Screen()
    settings = await _settings_for(task, options, choice, watcher)
    installer = _installer(watcher.progress) if options.install_packages else None
    has_cells = False

    def show(event: Event) -> None:
        nonlocal has_cells
        has_cells |= isinstance(event, CellStarted)
        if isinstance(event, RunStarted):
            for warning in warnings_of(event.trajectory):
                print(f"warning: {warning}", file=sys.stderr)
        watcher.show(event)

    with terminate_as_interrupt(), watcher, _claimed(settings, options) as settings:
        try:
            async with open_policy(choice, watcher.progress) as policy:
                if options.tries > 1:
                    watcher.progress(f"trying {options.tries} times in fresh kernels")
                analysis = await analyze(task, policy, settings, show, installer)
        except asyncio.CancelledError:
            if has_cells:
                print(f"notebook so far: {settings.notebook}", file=sys.stderr)
            raise
    if isinstance(settings.surroundings, Continued):
        for line in settings.surroundings.left_out:
            _tell(line)
    _print_outcome(analysis, options)
    return _exit_code(analysis)


def _task(options: AskOptions) -> Task:
    """Return the task: the question and its files.

    Raises:
        UsageError: there is no file, or the question is empty or looks like a file.
        DataFileError: a file is missing.
    """
    *files, question = options.arguments
    if options.continued is not None:
        for name, is_given in (("--out", options.out is not None), ("--tries", options.tries > 1)):
            if is_given:
                raise UsageError(f"{name} can't go with --continue: {_WHY_NOT[name]}")
        return task_about(files, question, options.answer_format, needs_files=False)
    if os.path.isfile(question):  # noqa: PTH113  (unlike Path.is_file, takes any length)
        example = own_command("ask", question, "How many rows are there?")
        raise UsageError(f"the question is missing: it comes last, in quotes, as in `{example}`")
    if not files:
        example = own_command("ask", "sales.csv", question)
        raise UsageError(f"the data file is missing: it comes before the question: `{example}`")
    return task_about(files, question, options.answer_format)


def _notebook_path(out: Path | None, task: Task) -> Path:
    """Return the notebook's path: the requested one, else a name in the current folder.

    Raises:
        NotebookError: the folder is not writable.
        UsageError: the folder does not exist, or the name does not end in .ipynb.
    """
    if out is not None:
        if out.suffix != ".ipynb":
            raise UsageError(f"--out {out}: the name of a notebook ends in .ipynb")
        if not out.parent.is_dir():
            raise UsageError(f"--out {out}: there is no folder {out.parent}")
    folder = out.parent.resolve() if out else Path.cwd()
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NotebookError(f"the notebook can't be written into {folder}; name a file with --out")
    if out is not None:
        return out.resolve()
    return folder / f"{task.files[0].stem}-analysis.ipynb"


@contextmanager
def _claimed(settings: AnalysisSettings, options: AskOptions) -> Iterator[AnalysisSettings]:
    """Yield the settings with a name for the notebook that no other command takes meanwhile.

    An empty notebook has the name until the first cell; it is removed if none ran.

    Raises:
        NotebookError: it can't be written.
    """
    if settings.notebook is None or options.continued or options.out:
        yield settings
        return
    empty = empty_notebook()
    try:
        path = write_new(settings.notebook, empty)
    except OSError as error:
        raise NotebookError(f"{settings.notebook} can't be written ({error.strerror})") from error
    try:
        yield replace(settings, notebook=path)
    finally:
        with suppress(OSError):
            if path.read_text("utf-8") == empty:
                path.unlink()


async def _settings_for(
    task: Task, options: AskOptions, choice: ModelChoice, watcher: Watcher
) -> AnalysisSettings:
    """Return the settings, with the notebook that is started or continued.

    Raises:
        NotebookError: the notebook can't be read or written, or is open elsewhere.
        UsageError: the options name no notebook that can be written.
    """
    where = shown_address(choice.base_url)
    if options.continued is None:
        return replace(_settings(options, _notebook_path(options.out, task)), endpoint=where)
    chars = context_chars(is_local=choice.is_local)
    continued = open_notebook(options.continued, chars, watcher.progress)
    await asyncio.to_thread(refuse_open_elsewhere, continued.path)
    settings = _settings(options, continued.path)
    return replace(settings, endpoint=where, surroundings=continued)


def _settings(options: AskOptions, notebook: Path) -> AnalysisSettings:
    return AnalysisSettings(
        run=RunSettings(
            max_turns=options.max_turns,
            max_cells=options.max_turns,
            max_seconds=options.max_seconds,
            turn_tokens=options.turn_tokens,
            temperature=options.temperature,
            seed=options.seed,
            shows_pictures=options.pictures,
        ),
        limits=Limits(memory_bytes=options.memory_mb * MIB, wall_s=options.cell_seconds),
        dialect=options.dialect,
        require=options.strict,
        tries=options.tries,
        notebook=notebook,
    )


def _installer(on_progress: Callable[[str], None]) -> PackageInstaller:
    """Return the installer for missing packages; the option agrees to every listed one."""

    async def agree(_: Sequence[str]) -> bool:
        return True

    return PackageInstaller(Overlay(packages_folder()), AllowList.load(), agree, on_progress)


def _print_outcome(analysis: Analysis, options: AskOptions) -> None:
    if options.as_json:
        print(json.dumps(_as_json(analysis), ensure_ascii=False, indent=2))
        if analysis.fault is not None:
            _tell(str(analysis.fault))
        return
    _print_answer(analysis)
    if analysis.best_of_n is not None:
        _print_agreement(analysis.best_of_n, analysis.trajectory)
    if analysis.notebook.is_written:
        print(f"notebook: {analysis.notebook.path}")
    elif analysis.fault is None:
        _tell("no cell ran, so there is no notebook")
    for file in analysis.files:
        print(harmless_text(f"file: {file}"))


def _print_answer(analysis: Analysis) -> None:
    trajectory = analysis.trajectory
    if trajectory.answer is not None:
        print(harmless_text(shown_answer(trajectory).text))
        for line in trajectory.ending:
            print(harmless_text(f"- {line}"))
    for line in doubt_words(trajectory.unsupported, trajectory.grounding):
        _tell(f"{line[:1].lower()}{line[1:]}")
    if trajectory.rests_on:
        _tell(rests_words(trajectory.rests_on))
    if analysis.fault is not None:
        _tell(str(analysis.fault))
    elif trajectory.stop is not StopReason.ANSWERED:
        _tell(f"no answer: {why_no_answer(trajectory)}")


def _print_agreement(best_of_n: BestOfN, ended: Trajectory) -> None:
    agreeing = best_of_n.agreeing_with(ended)
    print(f"attempts that agree: {agreeing} of {best_of_n.tries}")
    if agreeing > 1 or ended.answer is None:
        return
    for other in best_of_n.differing_from(ended):
        print(harmless_text(f"another attempt answered: {' '.join(other.split())}"))
    _tell("no two attempts agree: check the answer, or say in the question what is meant")


def _tell(text: str) -> None:
    print(f"dm-jupyter: {harmless_text(text)}", file=sys.stderr)


def _as_json(analysis: Analysis) -> dict[str, Any]:
    trajectory = analysis.trajectory
    return {
        "answer": trajectory.answer,
        "unsupported": list(trajectory.unsupported),
        "rests_on": list(trajectory.rests_on),
        "ending": list(trajectory.ending),
        "numbers": [asdict(one) for one in trajectory.grounding],
        "stop": trajectory.stop,
        "stop_detail": trajectory.stop_detail,
        "notebook": str(analysis.notebook.path) if analysis.notebook.is_written else None,
        "files": [str(file) for file in analysis.files],
        "model": trajectory.policy,
        "endpoint": trajectory.endpoint or None,
        "turns": trajectory.turns,
        "cells": trajectory.cells,
        "tokens": trajectory.tokens,
        "tries": _tries(analysis),
        "seconds": round(trajectory.seconds, 1),
    }


def _tries(analysis: Analysis) -> dict[str, Any] | None:
    if analysis.best_of_n is None:
        return None
    best_of_n = analysis.best_of_n
    return {
        "tries": best_of_n.tries,
        "agreeing": best_of_n.agreeing_with(analysis.trajectory),
        "others": list(best_of_n.differing_from(analysis.trajectory)),
        "tokens": best_of_n.tokens,
    }


def _exit_code(analysis: Analysis) -> int:
    if analysis.fault is not None:
        return exit_of(analysis.fault)
    answered = analysis.trajectory.stop is StopReason.ANSWERED
    return Exit.ANSWERED if answered else Exit.NO_ANSWER
