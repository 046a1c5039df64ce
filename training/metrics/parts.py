"""Parts of a verdict that are looked at one by one: other rules, other ways to be right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from training.metrics.questions import Share, share_of
from training.records.records import EvalRecord

__all__ = ["part_shares"]


def part_shares(records: Sequence[EvalRecord]) -> dict[str, Share]:
    """Returns of how many runs each part is so, such as a published rule beside ours.

    Parts that only some questions have are left out; a run without any verdict counts as wrong.
    """
    judged = [list(record.parts) for record in records if record.parts]
    common = [name for name in judged[0] if all(name in one for one in judged)] if judged else []
    return {name: share_of(records, partial(_is_so, name)) for name in common}


def _is_so(name: str, record: EvalRecord) -> bool:
    return record.parts.get(name, False)
