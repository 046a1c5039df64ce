"""Interruptible runs of the same questions in several ways, side by side.

The ways take turns for the free slots, one question each. So an interrupted run has covered nearly
the same questions in all ways. They differ by about as many questions as ran at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dm_jupyter.agent.loop import begin
from dm_jupyter.agent.rollout import Pool
from dm_jupyter.core.errors import DmJupyterError, first_fault
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.protocols import Policy
from kernel_sandbox.errors import SandboxError
from training.evaluation.manifest import Manifest, git_revision, versions
from training.evaluation.run import EvalOptions, evaluate, resume_state_of
from training.records.records import EvalRecord, RecordLog

__all__ = ["Shape", "shape_of", "side_by_side"]

_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Shape:
    """One prompt shape and the location of its records."""

    options: EvalOptions
    manifest: Manifest
    compact: Path | None = None
    """File that receives the outcomes only, from which a run on another machine can resume."""
    label: str = ""
    """Its name; empty for the dialect's name."""

    @property
    def name(self) -> str:
        """The label, or else the dialect's name."""
        return self.label or self.options.dialect

    def claim(self) -> None:
        """Create the folders, and synchronise the records with the compact file.

        Raises:
            ManifestError: a folder contains a run with another model, prompt or setting.
            UsageError: it contains tries that the draw leaves out.
            ValueError: a file of records is broken.
            OSError: a file can't be written.
        """
        resume_state = resume_state_of(self.options)
        resume_state.refuse_others(self.options.out)
        self._claim(self.options.out)
        if self.compact is None:
            return
        self._claim(self.compact.with_suffix(""))
        kept, compact = RecordLog(self.options.out / "records.jsonl"), RecordLog(self.compact)
        here, there = ({record.key: record for record in log.read()} for log in (kept, compact))
        for key, record in there.items():
            if key in resume_state.wanted and key not in here:
                kept.append(record)
        for key, record in here.items():
            if key not in there:
                compact.append(record.compacted())

    def keep(self, record: EvalRecord) -> None:
        """Add a new record to the compact file."""
        if self.compact is not None:
            RecordLog(self.compact).append(record.compacted())

    def _claim(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.manifest.claim(folder)


def shape_of(
    options: EvalOptions, policy: Policy, profile: str, compact: Path | None, label: str = ""
) -> Shape:
    """Return the shape of a run, with the manifest of its settings.

    Args:
        options: of the run.
        policy: the model.
        profile: of the sandbox.
        compact: see `Shape`.
        label: see `Shape`.

    Raises:
        RecordError: the split does not have the form that the suite needs.
    """
    first = begin(Trajectory(Task("", ""), options.dialect), policy, options.run)
    manifest = Manifest(
        suite=options.suite.name,
        split=options.split.resolve().name,
        seed=options.seed,
        limit=options.limit,
        trials=options.trials,
        model=policy.name,
        dialect=options.dialect,
        prompts=dict(first.prompts),
        strategy={"name": options.strategy.name},
        settings=asdict(options.run),
        profile=profile,
        git=git_revision(_CHECKOUT),
        versions=versions(),
        questions=resume_state_of(options).questions,
    )
    return Shape(options, manifest, compact, label)


async def side_by_side(
    shapes: tuple[Shape, ...],
    policy: Policy,
    pool: Pool,
    on_record: Callable[[Shape, EvalRecord], None],
    at_once: int = 1,
) -> Mapping[str, list[EvalRecord]]:
    """Run the shapes and return their records by name, in the order of the draw.

    Args:
        shapes: claimed; they draw the same questions.
        policy: the model.
        pool: where cells run; open.
        on_record: receives each new record.
        at_once: concurrent tries over all shapes.

    Raises:
        RecordError: the split does not have the form that the suite needs.
        PolicyError: the model can't be reached; the records so far are kept.
        SandboxError: no cell can be run; likewise.
        ValueError: a file of records is broken.
        OSError: a file can't be written.
    """
    slots = asyncio.Semaphore(at_once)

    async def answer(shape: Shape, reader: ProfileReader) -> list[EvalRecord]:
        def report(record: EvalRecord) -> None:
            shape.keep(record)
            on_record(shape, record)

        options = replace(shape.options, at_once=at_once, slots=slots, reader=reader)
        return await evaluate(options, policy, pool, report)

    try:
        async with ProfileReader() as reader, asyncio.TaskGroup() as group:
            tasks = {shape.name: group.create_task(answer(shape, reader)) for shape in shapes}
    except* (DmJupyterError, SandboxError, ValueError, OSError) as faults:
        raise first_fault(faults) from faults
    return {name: task.result() for name, task in tasks.items()}
