"""Batches and packs: which rows one update learns from, and how they go through the model.

A batch contains the rows of one weight update. It is split into packs, and each pack is one forward
pass. A pack contains complete rows one after the other, without padding. An attention mask lets a
token see only the earlier tokens of its own row, and positions count from the start of the row. So
a row's numbers do not depend on its neighbours.

Rows of a pack with a common prefix share its tokens: the pack contains them once. With causal
attention, the activations of a prefix depend on nothing after it. So values and gradients equal
those of rows that are forwarded alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from training.trainer.rows import Row, Rows

__all__ = ["Pack", "batches", "make_packs", "pack_rows", "rows_alike"]

MIN_SHARED = 16
"""Shortest common prefix, in tokens, that is worth a mask."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Rows of a batch as one model input: N tokens, of which T are learned."""

    rows: tuple[Row, ...]
    ids_1_N: torch.Tensor
    """(1, N) int64."""
    position_1_N: torch.Tensor
    """(1, N) int64: each token's position in its row."""
    slots: tuple[NDArray[np.int64], ...]
    """For each row, the index in the pack of each of its tokens."""
    source_T: torch.Tensor
    """(T,) int64: the index in the pack of the token before each learned one."""
    target_T: torch.Tensor
    """(T,) int64: the learned ids, row by row."""
    row_T: torch.Tensor
    """(T,) int64: which of `rows` each learned id belongs to."""

    @property
    def tokens(self) -> int:
        """N, the number of tokens that go through the model."""
        return int(self.ids_1_N.shape[1])

    def attention_mask(self) -> torch.Tensor | None:
        """Return what each token (second to last axis) sees; `None` means plain causal.

        Returns:
            (1, 1, N, N) bool: a byte for each pair of tokens, so it is made for one pass at a time.
        """
        if len(self.rows) == 1:
            return None
        mask = np.zeros((self.tokens, self.tokens), dtype=np.bool_)
        for places in self.slots:
            mask[np.ix_(places, places)] = np.tri(len(places), dtype=np.bool_)
        return torch.from_numpy(mask)[None, None].to(self.ids_1_N.device)

    def to(self, device: torch.device) -> Pack:
        """Return the pack on a device."""
        return Pack(
            self.rows,
            self.ids_1_N.to(device),
            self.position_1_N.to(device),
            self.slots,
            self.source_T.to(device),
            self.target_T.to(device),
            self.row_T.to(device),
        )


def rows_alike(rows: Rows) -> list[NDArray[np.int64]]:
    """Return the numbers of rows in groups whose prompts begin alike.

    Neighbours in a group share at least half of the tokens before their first learned one, such as
    the description of one data file. Each row is in exactly one group.
    """
    order = np.array(
        sorted(range(len(rows)), key=lambda at: (rows[at].ids.astype(">i4").tobytes(), rows[at].id))
    )
    starts = [
        at for at in range(1, len(order)) if not _begin_alike(rows[order[at - 1]], rows[order[at]])
    ]
    return np.split(order, starts)


def _begin_alike(one: Row, other: Row) -> bool:
    return 2 * _shared(one, other) >= min(int(one.learned[0]), int(other.learned[0]))


def batches(
    groups: Sequence[NDArray[np.int64]], batch_rows: int, together: int, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Return the row numbers of each batch of an epoch; the last may be smaller.

    The order is random, and the same arguments give the same one on any machine.

    Args:
        groups: from `rows_alike`.
        batch_rows: rows of a batch.
        together: rows of a group that stay next to each other; 1 leaves every row to chance.
        seed: of the training.
        epoch: from 0.
    """
    chance = np.random.default_rng((seed, epoch))
    chunks = [
        mixed[at : at + together]
        for mixed in (chance.permutation(group) for group in groups)
        for at in range(0, len(mixed), together)
    ]
    order = np.concatenate([chunks[at] for at in chance.permutation(len(chunks))])
    return [order[at : at + batch_rows] for at in range(0, len(order), batch_rows)]


def pack_rows(rows: Sequence[Row], *, share: bool = True) -> Pack:
    """Return rows as one pack.

    Args:
        rows: at least one; the pack orders them by their ids.
        share: whether rows share the tokens of a common prefix.
    """
    ordered = _sorted(rows)
    slots = _slots(ordered, share=share)
    total = int(slots[-1][-1]) + 1
    ids = np.zeros(total, dtype=np.int64)
    positions = np.zeros(total, dtype=np.int64)
    for row, places in zip(ordered, slots, strict=True):
        ids[places] = row.ids
        positions[places] = np.arange(len(places))
    sources = [places[row.learned - 1] for row, places in zip(ordered, slots, strict=True)]
    counts = [len(one) for one in sources]
    return Pack(
        rows=tuple(ordered),
        ids_1_N=torch.from_numpy(ids)[None],
        position_1_N=torch.from_numpy(positions)[None],
        slots=tuple(slots),
        source_T=torch.from_numpy(np.concatenate(sources)),
        target_T=torch.from_numpy(np.concatenate([row.ids[row.mask] for row in ordered])),
        row_T=torch.from_numpy(np.repeat(np.arange(len(ordered)), counts)),
    )


def make_packs(rows: Sequence[Row], pack_tokens: int, *, share: bool = True) -> list[Pack]:
    """Return a batch as packs of limited size; a row above the limit is a pack of its own.

    Args:
        rows: of the batch.
        pack_tokens: the largest N; 1 makes each row a pack.
        share: as in `pack_rows`.
    """
    return [pack_rows(group, share=share) for group in _groups(rows, pack_tokens, share=share)]


def _groups(rows: Sequence[Row], pack_tokens: int, *, share: bool) -> Iterator[list[Row]]:
    group: list[Row] = []
    used = 0
    for row in _sorted(rows):
        more = len(row.ids) - (_shared(group[-1], row) if share and group else 0)
        if group and used + more > pack_tokens:
            yield group
            group, more, used = [], len(row.ids), 0
        group.append(row)
        used += more
    if group:
        yield group


def _sorted(rows: Sequence[Row]) -> list[Row]:
    """Sort rows by their ids, so that each shares its longest prefix with the row before it."""
    return sorted(rows, key=lambda row: (row.ids.tolist(), row.id))


def _shared(one: Row, other: Row) -> int:
    """Return the length of the rows' common prefix, or 0 if it isn't worth sharing."""
    length = min(len(one.ids), len(other.ids))
    differs = np.flatnonzero(one.ids[:length] != other.ids[:length])
    shared = int(differs[0]) if len(differs) else length
    return shared if shared >= MIN_SHARED else 0


def _slots(rows: Sequence[Row], *, share: bool) -> list[NDArray[np.int64]]:
    """Return, for each row, the index in the pack of each of its tokens."""
    slots: list[NDArray[np.int64]] = []
    used = 0
    for number, row in enumerate(rows):
        shared = _shared(rows[number - 1], row) if share and number else 0
        fresh = np.arange(used, used + len(row.ids) - shared)
        slots.append(np.concatenate([slots[-1][:shared], fresh]) if shared else fresh)
        used += len(fresh)
    return slots
