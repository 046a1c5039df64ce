"""One run of a question, from the person's Enter to the last message of its journal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook_context import ContextPart
from dm_jupyter.agent.observe import shorten
from dm_jupyter.agent.rollout import settings_for
from dm_jupyter.core.absent_data import rests_words
from dm_jupyter.core.errors import DmJupyterError, NotebookError
from dm_jupyter.core.events import (
    CellStarted,
    Event,
    ModelSilent,
    RunFinished,
    StepFinished,
    TextSampled,
)
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.core.readable import shown_answer
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    RunCell,
    Step,
    StopReason,
    Trajectory,
)
from dm_jupyter.data.data_context import data_context_size
from dm_jupyter.models.opening import chosen_dialect, known_context
from dm_jupyter.models.protocols import Policy
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.history.memory import Memory, figures_shown
from dm_jupyter.server.history.summaries import Summary
from dm_jupyter.server.kernels.registry import KernelRegistry
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.notebooks.approvals import Approvals
from dm_jupyter.server.notebooks.live_notebook import LiveNotebook
from dm_jupyter.server.protocol import (
    Ask,
    ContextTold,
    Decide,
    DecideFiles,
    Phase,
    RunClosed,
    RunMessage,
    RunOpened,
    ServerMessage,
    StepClosed,
    StepOpened,
    TextDelta,
)
from dm_jupyter.server.runs.tries import Tries, limits_of_tries
from kernel_sandbox.errors import SandboxError

__all__ = ["Run", "RunContext"]

_REASONING_CHARS = 20_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunContext:
    """The kernel, files, context and settings of a run."""

    kernel_id: str
    is_restricted: bool
    notebook_folder: Path
    files: tuple[Path, ...] = ()
    """The paths of the data files on this machine."""
    told: tuple[ContextPart, ...] = ()
    """What the model is shown besides the files: earlier answers, the notebook around it."""
    settings: RunSettings = field(default_factory=RunSettings)
    file_states: Mapping[str, str] = field(default_factory=dict)
    """States of the data files at the time of the question, for `Memory.files`."""
    root: str = ""
    """The server's folder, for `Summary.root`."""


class Run:
    """The loop for one question; everything it does goes through its journal."""

    def __init__(
        self,
        ask: Ask,
        context: RunContext,
        journal: Journal,
        kernels: KernelRegistry,
        models: ModelPool,
        publish: Callable[[ServerMessage], None],
    ) -> None:
        """Prepare the run; `start` starts it.

        Args:
            ask: the question.
            context: the run's kernel, files, context and settings.
            journal: a new journal, whose listeners follow the run.
            kernels: the kernels of open notebooks.
            models: the models that answer.
            publish: sends ephemeral messages, such as pieces of text.
        """
        self.ask = ask
        self.journal = journal
        self._choice = models.choice(ask.model)
        """The model, chosen once: the default endpoint may change before the run is ready."""
        self._context = replace(context, settings=_settings_of(ask, context.settings))
        self._kernels = kernels
        self._models = models
        self._approvals = Approvals(ask.approval, is_restricted=context.is_restricted)
        self._notebook = LiveNotebook(
            journal,
            kernels,
            context.kernel_id,
            self._approvals,
            lambda text: publish(Phase(journal.run_id, 0, text)),
        )
        self._progress = _Progress(journal, self._notebook, publish)
        self._tries = Tries(ask.tries, self._context.settings)
        self._names: dict[str, Path] = {}
        """Each data file's name in code, with its path."""
        self.task: asyncio.Task[None] | None = None
        """The task of the run, which never raises."""
        self.summary = Summary(
            run_id=journal.run_id,
            notebook_path=ask.notebook_path,
            question=ask.question,
            files=ask.files,
            at=time.time(),
            model=self._choice.model,
            endpoint=shown_address(self._choice.base_url),
            root=context.root,
        )
        """The current summary of the run, for a list."""
        self._why_stopped = ""

    def start(self) -> asyncio.Task[None]:
        """Announce the run and start it; the task ends with the run and never raises.

        Raises:
            NotebookError: the journal can't be written.
        """
        settings = self._context.settings
        self.journal.listen(self._on_message)
        self.journal.add(
            RunOpened,
            request_id=self.ask.request_id,
            notebook_path=self.ask.notebook_path,
            question=self.ask.question,
            files=self.ask.files,
            model=self.summary.model,
            approval=self.ask.approval,
            kernel="restricted" if self._context.is_restricted else "own",
            max_turns=settings.max_turns,
            max_tokens=self._tries.max_tokens,
            max_seconds=settings.max_seconds,
            max_cells=settings.max_cells,
            tries=self.ask.tries,
            variables=self.ask.variables,
            endpoint=self.summary.endpoint,
        )
        self.task = asyncio.create_task(self._main())
        return self.task

    def rename(self, notebook_path: str) -> None:
        """Move the run to its notebook's new path."""
        self.ask = self.ask.replaced(notebook_path=notebook_path)
        self.summary = replace(self.summary, notebook_path=notebook_path)

    def stop(self, why: str = "") -> None:
        """End the run: stop sampling at once, and a running cell by interrupt, then by force."""
        self._why_stopped = why
        if self.task is not None:
            self.task.cancel()

    def abandon(self, why: str) -> None:
        """End a run that can't be kept, before its first turn, and tell the tabs why."""
        if self.task is not None:
            self.task.cancel()
        begun = Trajectory(self._task_of(()), "markdown")
        self._close(replace(begun, stop=StopReason.FAULT, stop_detail=why), seconds=0.0)

    def decide(self, decision: Decide) -> bool:
        """Apply the person's decision on a waiting cell, and return whether one waited."""
        return self._approvals.decide(decision)

    def decide_files(self, decision: DecideFiles) -> None:
        """Apply the person's decision on a cell's changes of files."""
        self._approvals.decide_files(decision)

    @property
    def written(self) -> tuple[str, ...]:
        """The ids of the cells that it has inserted into the notebook, the last first."""
        return self._notebook.written

    @property
    def trajectory(self) -> Trajectory | None:
        """The turns so far, and the run's end; `None` before the files are read."""
        return self._progress.trajectory

    @property
    def ephemeral(self) -> TextDelta | None:
        """The text of the turn that is being sampled, for a tab that has just attached."""
        return self._progress.ephemeral

    @property
    def memory(self) -> Memory:
        """What is kept of the run for later questions, once it has ended."""
        return Memory(
            cells=self._notebook.code_cells,
            figures=figures_shown(self.trajectory) if self.trajectory is not None else (),
            kernel=self._kernels.directory.process_of(self._context.kernel_id),
            files=self._context.file_states,
        )

    async def _main(self) -> None:
        """Run to the end; any fault ends this run, and no other."""
        started = asyncio.get_running_loop().time()
        where = self.summary.endpoint
        trajectory = Trajectory(self._task_of(()), "markdown", endpoint=where)
        try:
            trajectory = await self._answered()
        except asyncio.CancelledError:
            stopped = self.trajectory or trajectory
            trajectory = replace(stopped, stop=StopReason.CANCELLED, stop_detail=self._why_stopped)
        except (DmJupyterError, SandboxError) as error:
            ended = self.trajectory or trajectory
            trajectory = replace(ended, stop=StopReason.FAULT, stop_detail=str(error))
        except Exception as error:  # noqa: BLE001  (the boundary)
            _log.exception("run %s broke", self.journal.run_id)
            ended = self.trajectory or trajectory
            detail = f"{type(error).__name__}: a fault of this program; the server's log has more"
            trajectory = replace(ended, stop=StopReason.FAULT, stop_detail=detail)
        self._progress.trajectory = trajectory
        try:
            await self._notebook.close()
        except asyncio.CancelledError:
            pass  # it ends all the same
        except Exception:  # noqa: BLE001  (the boundary: else every tab would wait for the end)
            _log.exception("run %s did not clean up", self.journal.run_id)
        self._close(trajectory, asyncio.get_running_loop().time() - started)

    async def _answered(self) -> Trajectory:
        trajectory = await self._prepared()
        self._progress.phase("loading the model")
        async with self._models.use(self._choice, self._progress.phase) as model:
            dialect = await chosen_dialect(self.ask.dialect, model)
            self._progress.trajectory = trajectory = replace(trajectory, dialect=dialect)
            self._context = replace(
                self._context, settings=settings_for(model, self._context.settings)
            )
            policy, settings = await self._chosen(trajectory, model)
            self._progress.phase("thinking")
            trajectory = await run(
                trajectory, policy, self._notebook, settings, self._progress.on_event
            )
            fault = self._progress.fault
            if fault is not None:
                raise fault  # through the model pool, which must notice when a model is gone
            return trajectory

    async def _chosen(self, start: Trajectory, model: Policy) -> tuple[Policy, RunSettings]:
        """Return the policy for the notebook: the model, or a replay of the best attempt."""
        context, settings = self._context, self._context.settings
        if self._tries.count == 1:
            return model, settings
        trying = f"trying {self._tries.count} times in fresh kernels"
        self._progress.phase(trying)
        self._tries.on_ended = lambda ended: self._progress.phase(f"{trying}: {ended} ended")
        clock = asyncio.get_running_loop().time
        began = clock()
        limits = await limits_of_tries(self._kernels, context.kernel_id, self.ask.notebook_path)
        packages = self._kernels.directory.packages(context.kernel_id)
        overlay = Path(packages.site) if packages is not None else None
        policy = await self._tries.chosen(start, self._names, model, limits, overlay)
        left_s = max(1.0, settings.max_seconds - (clock() - began))
        return policy, replace(settings, max_seconds=left_s)

    async def _prepared(self) -> Trajectory:
        context = self._context
        self._progress.phase("reading the files")
        context_tokens = await asyncio.to_thread(known_context, self._choice)
        self._names, data_context = await self._kernels.data.data_context_of(
            context.kernel_id,
            context.files,
            context.notebook_folder,
            self.ask.question,
            data_context_size(context.settings.context_tokens or context_tokens),
        )
        task = self._task_of(tuple(self._names.values()))
        workspace = self._kernels.directory.workspace(context.kernel_id, context.notebook_folder)
        self._notebook.begin(task, data_context.databases, self.ask.after, workspace)
        # The files come first: the common start of a notebook's prompts is read only once.
        parts = tuple(
            part for part in (ContextPart("data", data_context.text), *context.told) if part.text
        )
        links = (ContextPart("links", data_context.links),) if data_context.links else ()
        self.journal.add(ContextTold, parts=(*parts, *links))
        text = "\n\n".join(part.text for part in parts)
        containment = self._kernels.directory.containment(context.kernel_id).to_json()
        data_context = replace(data_context, text=text, variables=self.ask.variables)
        where = self.summary.endpoint
        return Trajectory(task, "markdown", data_context, containment=containment, endpoint=where)

    def _task_of(self, files: tuple[Path, ...]) -> Task:
        return Task(id=self.journal.run_id, question=self.ask.question, files=files)

    def _on_message(self, message: RunMessage) -> None:
        if isinstance(message, RunClosed):
            self.summary = self.summary.closed(message)

    def _close(self, trajectory: Trajectory, seconds: float) -> None:
        self._progress.is_sampling = False
        self._progress.keep(lambda: self._notebook.finish(trajectory))
        self._progress.keep(
            lambda: self.journal.add(
                RunClosed,
                stop=(trajectory.stop or StopReason.FAULT).value,
                detail=trajectory.stop_detail,
                answer=trajectory.answer,
                unsupported=trajectory.unsupported,
                numbers=self._notebook.numbers(trajectory),
                turns=trajectory.turns,
                cells=trajectory.cells,
                tokens=self._tries.tokens(trajectory),
                seconds=seconds,
                agreeing=self._tries.agreeing(trajectory),
                tries=self._tries.ran,
                others=self._tries.others(trajectory),
                rests_on=rests_words(trajectory.rests_on),
                shown=_shown(trajectory),
                ending=trajectory.ending,
            )
        )


class _Progress:
    """The progress of a run's loop, sent to the tabs and kept in the journal."""

    def __init__(
        self, journal: Journal, notebook: LiveNotebook, publish: Callable[[ServerMessage], None]
    ) -> None:
        self._journal = journal
        self._notebook = notebook
        self._publish = publish
        self.trajectory: Trajectory | None = None
        self.fault: Exception | None = None
        """The fault that ended the loop, if there was one."""
        self.is_sampling = False
        self._step = 0
        """Number of the turn that is being sampled; 0 before the first."""
        self._text: list[str] = []

    @property
    def ephemeral(self) -> TextDelta | None:
        """The text of the turn that is being sampled, for a tab that has just attached."""
        if not self.is_sampling:
            return None
        return TextDelta(self._journal.run_id, 0, self._step, "".join(self._text), is_whole=True)

    def phase(self, text: str) -> None:
        """Show the tabs what the run does now."""
        self._publish(Phase(self._journal.run_id, 0, text))

    def keep(self, write: Callable[[], object]) -> None:
        """Write without raising a `NotebookError`; a full disk ends the run at its next cell."""
        with contextlib.suppress(NotebookError):
            write()

    def on_event(self, event: Event) -> None:
        """Handle one event of the loop."""
        match event:
            case TextSampled(text):
                self._sampled(text)
            case ModelSilent():
                self.phase(event.words)
            case CellStarted():
                self.is_sampling = False
            case StepFinished(step, trajectory):
                self.is_sampling = False
                self.trajectory = trajectory
                self._close_step(step)
                if trajectory.folds and trajectory.folds[-1].at == trajectory.turns:
                    self.phase(
                        f"{trajectory.folds[-1].why}: it sees turns 1 to {trajectory.folded} "
                        "shortened from now on"
                    )
            case RunFinished(trajectory, fault):
                self.trajectory = trajectory
                self.fault = fault
            case _:
                pass

    def _sampled(self, text: str) -> None:
        if not self.is_sampling:
            self.is_sampling = True
            self._step += 1
            self._notebook.step = self._step
            self._text = []
            self.keep(lambda: self._journal.add(StepOpened, step=self._step))
        self._text.append(text)
        self._publish(TextDelta(self._journal.run_id, 0, self._step, text))

    def _close_step(self, step: Step) -> None:
        action = step.turn.action
        kind = "cell" if isinstance(action, RunCell) else "void"
        self.keep(
            lambda: self._journal.add(
                StepClosed,
                step=self._step,
                action="answer" if isinstance(action, Answer) else kind,
                thought=step.turn.thought,
                tokens=step.completion.completion_tokens,
                seconds=step.completion.seconds,
                reasoning=shorten(step.completion.reasoning, _REASONING_CHARS),
            )
        )


def _shown(trajectory: Trajectory) -> str | None:
    """Return the answer as people read it; `None` if that is what the model stated."""
    shown = shown_answer(trajectory).text
    return None if shown == (trajectory.answer or "") else shown


def _settings_of(ask: Ask, settings: RunSettings) -> RunSettings:
    """Return the server's settings with the person's own choices."""
    settings = replace(settings, shows_pictures=ask.pictures)
    if ask.turn_tokens:
        settings = replace(settings, turn_tokens=ask.turn_tokens)
    if ask.temperature is not None:
        settings = replace(settings, temperature=ask.temperature)
    return settings
