"""Log of a training: JSON lines, event files for TensorBoard, and the page of its curves."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tensorboardX import SummaryWriter

from training.durable.atomic import write_whole
from training.durable.json_lines import numbered_lines, write_lines
from training.trainer.curves import curves_page

__all__ = ["TrainingJournal", "read_log"]

_CURVES: Final = {
    "update": ("loss", "rate", "norm", "tokens_per_s"),
    "evaluation": ("held_loss",),
    "notebooks": ("right",),
}
"""Fields that become curves, by the kind of record."""

_SHOW_EVERY_S: Final = 60.0


class TrainingJournal:
    """Log in the folder of a training."""

    def __init__(self, folder: Path, title: str) -> None:
        """Create the log.

        Args:
            folder: receives `log.jsonl`, `tensorboard/` and `curves.html`.
            title: of the page.
        """
        self._folder = folder
        self._title = title
        self._file = folder / "log.jsonl"
        self._records: list[dict[str, Any]] = []
        self._board: Any = None
        self._shown = 0.0

    def begin(self, step: int) -> None:
        """Drop the records of later updates and start to log; called once, before any record.

        Args:
            step: updates made before the checkpoint that the training resumes from; -1 without one.
        """
        self._records = [one for one in read_log(self._file) if one["step"] <= step]
        write_lines(self._records, self._file)
        self._board = SummaryWriter(str(self._folder / "tensorboard"), purge_step=step + 1)

    def add(self, kind: str, record: Mapping[str, Any]) -> None:
        """Write a record; one of an evaluation also rewrites the page, and others once a minute.

        Called before the checkpoint of the same step, except for `notebooks`.

        Args:
            kind: `update`, `evaluation`, `notebooks` or `sample`.
            record: with the field `step`.
        """
        whole = {"kind": kind, **record}
        self._records.append(whole)
        with self._file.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(whole, ensure_ascii=False) + "\n")
        for name in _CURVES.get(kind, ()):
            if name in whole:
                self._board.add_scalar(f"{kind}/{name}", whole[name], whole["step"])
        if kind in ("evaluation", "notebooks") or time.monotonic() > self._shown + _SHOW_EVERY_S:
            self._show()

    def has(self, kind: str, step: int) -> bool:
        """Return whether there is such a record of a step."""
        return any(one["kind"] == kind and one["step"] == step for one in self._records)

    def close(self) -> None:
        """Rewrite the page and close the event file."""
        self._show()
        if self._board is not None:
            self._board.close()

    def _show(self) -> None:
        self._shown = time.monotonic()
        page = curves_page(self._records, self._title)
        write_whole(page.encode("utf-8", "replace"), self._folder / "curves.html")
        if self._board is not None:
            self._board.flush()


def read_log(file: Path) -> list[dict[str, Any]]:
    """Return a log's records up to a line cut by a crash; empty without a file."""
    records = []
    with suppress(FileNotFoundError, ValueError):
        for _, line in numbered_lines(file):
            records.append(json.loads(line))
    return records
