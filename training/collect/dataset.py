"""Dataset of a collection: conversations to learn and to hold back, and a card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.collect.examining import CollectedRun
from training.durable.atomic import replaced_folder
from training.export.conversation import conversation

__all__ = ["DatasetFile", "dataset_files", "write_collection"]


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A file of conversations, one JSON object per line."""

    name: str
    rows: int
    turns: int
    """Of the model."""
    learned_turns: int
    """Those that are learned."""
    characters: int
    """Of all messages."""
    learned_characters: int
    content: bytes

    @property
    def sha256(self) -> str:
        """The hash of the content, hex digits."""
        return hashlib.sha256(self.content).hexdigest()


def dataset_files(
    runs: Sequence[CollectedRun], held: set[str], dialects: Sequence[str]
) -> list[DatasetFile]:
    """Return the files of each dialect, with the runs that are written in it, in their order.

    Args:
        runs: that were selected.
        held: ids of the questions that are held back.
        dialects: names.
    """
    learned = [run for run in runs if run.record.id not in held]
    back = [run for run in runs if run.record.id in held]
    return [
        _file(f"{kind}-{dialect}.jsonl", written, dialect)
        for dialect in dialects
        for kind, members in (("conversations", learned), ("held", back))
        if (written := [run for run in members if dialect in run.exported])
    ]


def _file(name: str, runs: Sequence[CollectedRun], dialect: str) -> DatasetFile:
    rows = [_row(run, dialect) for run in runs]
    messages = [message for row in rows for message in row["messages"]]
    said = [message for message in messages if message["role"] == "assistant"]
    learned = [message for message in said if message.get("learn", True)]
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return DatasetFile(
        name,
        len(rows),
        len(said),
        len(learned),
        sum(len(message["content"]) for message in messages),
        sum(len(one["content"]) - len(one.get("prefill", "")) for one in learned),
        lines.encode("utf-8", "replace"),
    )


def _row(run: CollectedRun, dialect: str) -> Mapping[str, Any]:
    return {
        "id": run.record.id,
        "trial": run.trial,
        **({"variant": run.variant} if run.variant else {}),
        "category": run.category,
        "dialect": dialect,
        "messages": conversation(run.exported[dialect], calls_in_words=True),
    }


def write_collection(files: Sequence[DatasetFile], card: str, folder: Path) -> None:
    """Write the files and the card to a folder atomically; it replaces an earlier one.

    Args:
        files: of conversations.
        card: the text of `card.md`.
        folder: unchanged if a write fails.

    Raises:
        OSError: a file can't be written.
    """
    with replaced_folder(folder) as made:
        for file in files:
            (made / file.name).write_bytes(file.content)
        (made / "card.md").write_text(card, encoding="utf-8", newline="\n")
