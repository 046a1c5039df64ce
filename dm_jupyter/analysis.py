"""One question from start to end: profile the files, start a kernel, run the loop, keep it all."""

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

if TYPE_CHECKING:  # the pool and its zygote: most questions are tried once
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
    """Everything about an analysis but the question and the model."""

    run: RunSettings = field(default_factory=RunSettings)
    limits: Limits = field(default_factory=Limits)
    dialect: str = AUTO
    """Of the model; `auto` for the one that suits it."""
    require: tuple[str, ...] = ()
    """Layers of containment without which the kernel must not start."""
    tries: int = 1
    """Tries of which the best is chosen; more than one are first made in fresh kernels, which with
    `require` must be confined in full."""
    notebook: Path | None = None
    """Where the notebook is written; files that the code makes are put beside it."""
    names_from: Path | None = None
    """Folder from which the code names its files; `None` means the notebook's, or bare names."""
    endpoint: str = ""
    """Where the model answers, as it may be shown, for the record; empty for this machine."""
    surroundings: Surroundings | None = None
    """What the question stands in, as the notebook at `notebook`; `None` for the data alone."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis leaves."""

    trajectory: Trajectory
    notebook: HeadlessNotebook
    files: tuple[Path, ...] = ()
    """Files that the code made, where they lie now."""
    fault: Exception | None = None
    """What broke, when the run ended in a fault."""
    best_of_n: BestOfN | None = None
    """What the tries in fresh kernels gave; `None` where there was one try."""


def task_about(
    files: Iterable[str | Path],
    question: str,
    answer_format: str = "",
    *,
    needs_files: bool = True,
) -> Task:
    """Returns the task that a person's words make, after a look at what they name.

    Args:
        files: the data files.
        question: as the person wrote it.
        answer_format: of the answer.
        needs_files: whether a question about no file means nothing.

    Raises:
        UsageError: there is no file, or the question is empty.
        DataFileError: a file is missing, or plainly none that can be read.
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
    """Looks into the archives among a task's files, before a model is started for them.

    Args:
        task: as `task_about` makes it.

    Raises:
        DataFileError: one holds no table, or several files.
        SandboxError: no worker can be started to read it.
    """
    archives = [path for path in task.files if path.suffix.lower() == ".zip"]
    if archives:
        async with ProfileReader() as reader:
            for path in archives:
                await reader.profile(path.resolve(), str(path))


def _head(path: Path) -> bytes:
    """The first bytes of a file; none of what can't be opened, which is told when it is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(HEAD_BYTES) or b""
    except OSError:
        return b""


def warnings_of(trajectory: Trajectory) -> tuple[str, ...]:
    """Returns what a person should know before the first cell: what its kernel is not kept from."""
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
    """Answers one task and returns what it left.

    Args:
        task: what is asked.
        policy: the model.
        settings: everything else.
        emit: gets each event of the run.
        install: installs the packages that a cell lacks before it runs; `None` for nobody.

    Raises:
        DataFileError: a file can't be read.
        PolicyError: an endpoint that nobody knows does not answer.
        SandboxError: the kernel can't start, or a required layer is not active.
        NotebookError: the notebook can't be written; the run up to there is kept elsewhere.
        asyncio.CancelledError: cancelled; the notebook so far is kept.
    """
    folder = settings.notebook.parent if settings.notebook else None
    names = names_for(task.files, settings.names_from or folder)
    async with ProfileReader() as reader:
        for (
            name,
            path,
        ) in names.items():  # a file that can't be read is told before a model is asked
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
    """Runs the loop; what broke in it is part of what it leaves."""
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
    """Writes the notebook's end; a fault there is returned, for an observer may not raise."""
    try:
        notebook.finish(trajectory)
    except NotebookError as error:
        return error
    return None


def _carry_out(
    files: tuple[Path, ...], workspace: Path, folder: Path | None
) -> tuple[tuple[Path, ...], NotebookError | None]:
    """Copies what the code made beside the notebook, and never over a file that was there."""
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
