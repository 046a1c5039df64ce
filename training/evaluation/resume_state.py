"""Where a run stands: which tries its draw has, which are made, and which questions those were."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.core.errors import UsageError
from training.evaluation.data_files import DataHashes, hash_data, known_hashes
from training.evaluation.options import EvalOptions
from training.records.records import EvalRecord, RecordLog
from training.records.salvage import Salvaged, salvage
from training.suites.suite import Sample, draw

__all__ = ["ResumeState", "standing_of"]


@dataclass(frozen=True, slots=True)
class ResumeState:
    """Where a run stands when it begins, or goes on."""

    tries: tuple[tuple[Sample, int], ...]
    """Each item of the draw with the number of a try, all first tries first."""
    done: Mapping[tuple[str, int], EvalRecord]
    """The outcomes that are there already, by id and try."""
    others: int
    """Records of tries that are not in the draw."""
    questions: str
    """Fingerprint of the split's questions, with what is expected."""
    data: DataHashes
    """Hashes of the data files of the draw."""
    salvaged: Salvaged | None = None
    """What was set aside of the records, where that was asked for."""

    def refuse_others(self, folder: Path) -> None:
        """Every record of a folder counts in its report, so none may be of another draw.

        Raises:
            UsageError: there are such records.
        """
        if self.others:
            raise UsageError(
                f"{folder} holds {self.others} tries that this draw leaves out. A smaller --limit "
                "or --k, and of some suites a larger --limit as well, draws other ones: give this "
                "run a folder of its own with --out."
            )

    @property
    def wanted(self) -> set[tuple[str, int]]:
        """The draw, by id and try."""
        return _keys(self.tries)

    @property
    def to_do(self) -> list[tuple[Sample, int]]:
        """The tries that are still to be made."""
        return [one for one in self.tries if (one[0].task.id, one[1]) not in self.done]


def standing_of(options: EvalOptions) -> ResumeState:
    """Returns where a run stands; damaged records are set aside where the options say so.

    Raises:
        RecordError: the split is not as the suite needs it.
        ValueError: the file of records is broken; the message names the line and the way out.
        OSError: the records can't be read, or damaged ones not set aside.
    """
    items = options.suite.load(options.split)
    drawn = draw(items, options.limit, options.seed)
    tries = tuple((item, trial) for trial in range(options.trials) for item in drawn)
    wanted = _keys(tries)
    file = options.out / "records.jsonl"
    salvaged = salvage(file) if options.salvages else None
    found = RecordLog(file).outcomes()
    done = {record.key: record for record in found if record.key in wanted}
    others = sum(record.key not in wanted for record in found)
    data = hash_data(drawn, options.split, known_hashes(options.out))
    return ResumeState(tries, done, others, _fingerprint(items), data, salvaged)


def _keys(tries: Iterable[tuple[Sample, int]]) -> set[tuple[str, int]]:
    return {(item.task.id, trial) for item, trial in tries}


def _fingerprint(items: Sequence[Sample]) -> str:
    asked = [
        (one.task.id, one.task.question, one.task.constraints, one.task.answer_format, one.label)
        for one in items
    ]
    text = json.dumps(asked, default=str).encode()
    return hashlib.sha256(text).hexdigest()[:12]
