"""One question from start to end: profile the files, start a kernel, run the loop, save it all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.agent.continued import Surroundings
from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.rollout import settings_for
from dm_jupyter.core.errors import DataFileError, NotebookError, UsageError
from dm_jupyter.core.events import Emit, Event, RunFinished
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, Trajectory
from dm_jupyter.data.data_context import build_data_context, data_context_size, names_for
from dm_jupyter.data.profile import HEAD_BYTES, check_head
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.opening import AUTO, chosen_dialect
from dm_jupyter.models.protocols import Policy
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.strictness import Strictness, weaknesses
from kernel_sandbox.files.workspace import Workspace
from kernel_sandbox.packages.packages import PackageInstaller, WithPackages
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import Limits

if TYPE_CHECKING:  # loads the pool and its zygote, which a single attempt does not need
    from dm_jupyter.agent.rollout import Pool, RolloutContext
    from dm_jupyter.search.best_of_n import BestOfN

__all__ = [
    "Analysis",
    "AnalysisSettings",
    "analyze",
    "refuse_archives",
    "task_about",
    "warnings_of",
]


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """Settings of an analysis: everything except the question and the model."""

    run: RunSettings = field(default_factory=RunSettings)
    limits: Limits = field(default_factory=Limits)
    dialect: str = AUTO
    """Dialect in which the model is asked; `auto` for the one that suits it."""
    require: tuple[str, ...] = ()
    """Containment layers without which the kernel must not start."""
    tries: int = 1
    """Number of attempts, of which the best is chosen. More than one run first in fresh kernels,
    which must be fully confined if `require` is set."""
    notebook: Path | None = None
    """Path of the notebook to write; files that the code creates are copied beside it."""
    names_from: Path | None = None
    """Folder that file names in the code are relative to; `None` means the notebook's folder, or
    bare names without a notebook."""
    endpoint: str = ""
    """Address of the model, safe to show, for the record; empty for this machine."""
    surroundings: Surroundings | None = None
    """Context of the question, such as the notebook at `notebook`; `None` for the data alone."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """Result of an analysis."""

    trajectory: Trajectory
    notebook: HeadlessNotebook
    files: tuple[Path, ...] = ()
    """Files that the code created, at their final paths."""
    fault: Exception | None = None
    """First fault of the run, of its notebook or of its files; `None` if there was none."""
    best_of_n: BestOfN | None = None
    """Result of the attempts in fresh kernels; `None` if there was only one attempt."""


def task_about(
    files: Iterable[str | Path],
    question: str,
    answer_format: str = "",
    *,
    needs_files: bool = True,
) -> Task:
    """Return the task for a person's question, after a check of its files.

    Args:
        files: the data files.
        question: the question as the person wrote it.
        answer_format: the format of the answer.
        needs_files: whether a question without a file is an error.

    Raises:
        UsageError: there is no file, or the question is empty.
        DataFileError: a file is missing, or is plainly not one that can be read.
    """
    paths = tuple(Path(name) for name in files)
    if needs_files and not paths:
        raise UsageError("give at least one data file")
    if not question.strip():
        raise UsageError("the question is empty")
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110  (unlike Path.exists, takes any length)
            raise DataFileError(f"{path}: there is no such file; check the name and the folder")
        check_head(str(path), _head(path))
    name = paths[0].stem if paths else "question"
    return Task(id=name, question=question, files=paths, answer_format=answer_format)


async def refuse_archives(task: Task) -> None:
    """Check the archives among a task's files, before a model is started for them.

    Args:
        task: the task, as `task_about` returns it.

    Raises:
        DataFileError: an archive contains no table, or several files.
        SandboxError: no worker can be started to read an archive.
    """
    archives = [path for path in task.files if path.suffix.lower() == ".zip"]
    if archives:
        async with ProfileReader() as reader:
            for path in archives:
                await reader.profile(path.resolve(), str(path))


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, or none if it can't be opened; reading it reports why."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(HEAD_BYTES) or b""
    except OSError:
        return b""


def warnings_of(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the warnings to show before the first cell: what its kernel is not kept from."""
    if not trajectory.containment:
        return ()
    found = weaknesses(Containment.from_json(trajectory.containment))
    return tuple(f"{weakness.text} {weakness.remedy}" for weakness in found if weakness.is_grave)


async def analyze(
    task: Task,
    policy: Policy,
    settings: AnalysisSettings,
    emit: Emit,
    install: PackageInstaller | None = None,
) -> Analysis:
    """Answer one task and return the result.

    Args:
        task: the question and its files.
        policy: the model.
        settings: everything else.
        emit: called with each event of the run.
        install: installs the packages that a cell lacks before it runs; `None` installs none.

    Raises:
        DataFileError: a file can't be read.
        PolicyError: an endpoint whose capabilities are unknown does not answer.
        SandboxError: the kernel can't start, or a required layer is not active.
        NotebookError: the notebook can't be written; the run so far is saved elsewhere.
        asyncio.CancelledError: the analysis was cancelled; the notebook so far is kept.
    """
    folder = settings.notebook.parent if settings.notebook else None
    names = names_for(task.files, settings.names_from or folder)
    async with ProfileReader() as reader:
        for (
            name,
            path,
        ) in names.items():  # a file that can't be read is reported before a model is asked
            await reader.profile(path, name)
        dialect = await chosen_dialect(settings.dialect, policy)
        settings = replace(settings, dialect=dialect, run=settings_for(policy, settings.run))
        room = data_context_size(settings.run.context_tokens)
        data_context = await build_data_context(names, reader, task.question, room)
    best_of_n = None
    if settings.tries > 1:
        best_of_n = await _with_best_of_n(task, data_context, names, policy, settings)
        policy = best_of_n.policy
    continued = settings.surroundings
    session = KernelSession(
        settings.limits,
        inputs={**(continued.inputs if continued else {}), **names},
        require=settings.require,
        overlay=install.site if install else None,
    )
    async with session as kernel:
        if continued is not None:
            around = await continued.revive(kernel)
            data_context = replace(
                data_context, text="\n\n".join(filter(None, (data_context.text, around)))
            )
        runner = WithPackages(kernel, install, kernel.workspace.path) if install else kernel
        notebook = HeadlessNotebook(runner, data_context.databases, settings.notebook, continued)
        notebook.ask(task)
        trajectory = Trajectory(
            task,
            settings.dialect,
            data_context,
            endpoint=settings.endpoint,
            containment=kernel.containment.to_json(),
        )
        analysis = await _worked(trajectory, policy, settings, emit, notebook, kernel.workspace)
    return replace(analysis, best_of_n=best_of_n)


async def _worked(
    trajectory: Trajectory,
    policy: Policy,
    settings: AnalysisSettings,
    emit: Emit,
    notebook: HeadlessNotebook,
    workspace: Workspace,
) -> Analysis:
    """Run the loop and return its result, with the first fault in it."""
    faults: list[Exception] = []

    def keep(event: Event) -> None:
        if isinstance(event, RunFinished):
            faults.extend(filter(None, (event.fault, _finish(notebook, event.trajectory))))
        emit(event)

    folder = settings.notebook.parent if settings.notebook else None
    try:
        trajectory = await run(trajectory, policy, notebook, settings.run, keep)
    finally:
        made, fault = _carry_out(workspace.new_files(), workspace.path, folder)
    faults.extend(filter(None, (fault,)))
    return Analysis(trajectory, notebook, made, faults[0] if faults else None)


async def _with_best_of_n(
    task: Task,
    data_context: DataContext,
    names: Mapping[str, Path],
    policy: Policy,
    settings: AnalysisSettings,
) -> BestOfN:
    from dm_jupyter.agent.rollout import RolloutContext  # noqa: PLC0415
    from dm_jupyter.search.best_of_n import run_best_of_n  # noqa: PLC0415

    def context_in(pool: Pool, folder: Path) -> RolloutContext:
        return RolloutContext(
            task, pool, folder, names, data_context, run=settings.run, dialect=settings.dialect
        )

    profile = Strictness.ROLLOUT if settings.require else Strictness.INTERACTIVE
    return await run_best_of_n(context_in, policy, settings.tries, settings.limits, profile)


def _finish(notebook: HeadlessNotebook, trajectory: Trajectory) -> NotebookError | None:
    """Write the notebook's end; return a fault, because an observer must not raise."""
    try:
        notebook.finish(trajectory)
    except NotebookError as error:
        return error
    return None


def _carry_out(
    files: tuple[Path, ...], workspace: Path, folder: Path | None
) -> tuple[tuple[Path, ...], NotebookError | None]:
    """Copy files that the code created beside the notebook, never over an existing file."""
    if folder is None:
        return (), None
    carried: list[Path] = []
    for file in files:
        target = _free_name(folder / file.relative_to(workspace))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        except OSError as error:
            fault = NotebookError(f"{target} can't be written: {error.strerror}")
            return tuple(carried), fault
        carried.append(target)
    return tuple(carried), None


def _free_name(path: Path) -> Path:
    number = 2
    free = path
    while free.exists():
        free = path.with_name(f"{path.stem} ({number}){path.suffix}")
        number += 1
    return free
