"""Runs the same questions with one prompt shape after another, so that it can be stopped.

All shapes answer a question before the next one is begun: whatever a run that was stopped has
done, it has done for all of them, but for the last question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dm_jupyter.agent.episodes import Pool
from dm_jupyter.agent.protocols import Policy
from training.evaluation.manifest import Manifest
from training.evaluation.options import EvalOptions
from training.evaluation.records import EvalRecord, RecordLog
from training.evaluation.run import evaluate
from training.evaluation.standing import standing_of
from training.tasks.suite import EvalItem, ItemScore, Outcome, Suite

__all__ = ["Shape", "side_by_side"]


@dataclass(frozen=True, slots=True)
class Shape:
    """One prompt shape and where its records are kept."""

    options: EvalOptions
    manifest: Manifest
    compact: Path | None = None
    """A file that gets the outcomes alone, and that a run on another machine goes on from."""

    @property
    def name(self) -> str:
        """The dialect's name."""
        return self.options.dialect

    def claim(self) -> None:
        """Makes the folders; takes over the outcomes that the compact file holds, and adds to it.

        Raises:
            ManifestError: a folder holds a run with another model, prompt or setting.
            ValueError: a file of records is broken.
            OSError: a file can't be written.
        """
        self._claim(self.options.out)
        if self.compact is None:
            return
        self._claim(self.compact.with_suffix(""))
        kept, compact = RecordLog(self.options.out / "records.jsonl"), RecordLog(self.compact)
        here, there = ({record.key: record for record in log.read()} for log in (kept, compact))
        for key, record in there.items():
            if key not in here:
                kept.append(record)
        for key, record in here.items():
            if key not in there:
                compact.append(record.compacted())

    def keep(self, record: EvalRecord) -> None:
        """Adds a new record to the compact file."""
        if self.compact is not None:
            RecordLog(self.compact).append(record.compacted())

    def _claim(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.manifest.claim(folder)


@dataclass(frozen=True, slots=True)
class _One:
    """A suite of a single question; implements `Suite`."""

    whole: Suite
    item: EvalItem

    @property
    def name(self) -> str:
        """The name of the whole."""
        return self.whole.name

    def load(self, split: Path) -> list[EvalItem]:  # noqa: ARG002  (the protocol's)
        """Returns the question; nothing is read."""
        return [self.item]

    def score(self, item: EvalItem, outcome: Outcome) -> ItemScore:
        """Returns the verdict of the whole suite."""
        return self.whole.score(item, outcome)

    def agree(self, item: EvalItem, one: Outcome, other: Outcome) -> bool:
        """Returns what the whole suite says."""
        return self.whole.agree(item, one, other)


async def side_by_side(
    shapes: tuple[Shape, ...],
    policy: Policy,
    pool: Pool,
    on_record: Callable[[Shape, EvalRecord], None],
) -> Mapping[str, list[EvalRecord]]:
    """Returns the records of each shape by its name, in the order of the draw.

    Args:
        shapes: claimed; they draw the same questions.
        policy: the model.
        pool: where cells run; open.
        on_record: gets each record that is new.

    Raises:
        RecordError: the split is not as the suite needs it.
        PolicyError: the model can't be reached; what is done so far is kept.
        SandboxError: no cell can be run; likewise.
        ValueError: a file of records is broken.
        OSError: a file can't be written.
    """
    records: dict[str, list[EvalRecord]] = {shape.name: [] for shape in shapes}
    for item, _ in standing_of(shapes[0].options).tries:
        for shape in shapes:

            def report(record: EvalRecord, shape: Shape = shape) -> None:
                shape.keep(record)
                on_record(shape, record)

            one = replace(shape.options, suite=_One(shape.options.suite, item), limit=None)
            records[shape.name] += await evaluate(one, policy, pool, report)
    return records
