"""Token ids on disk: one file per trajectory, next to the trajectory's JSON.

A prompt mostly repeats the ids of the turn before. The file stores only the new ones, so its size
grows linearly with the conversation and not quadratically.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from array import array
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.sampled_tokens import SampledTokens, TurnEnd
from dm_jupyter.core.trajectory import Trajectory
from training.durable.atomic import write_whole

__all__ = ["StoredTokens", "TokenStore"]

_VERSION: Final = 1
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """Reference to a file of the store, kept in the record of the trajectory."""

    key: str
    """The trajectory's key."""
    sha256: str
    """Of the entire file, hexadecimal."""
    turns: int
    """Steps that have ids."""
    prompt: int
    """Ids that the model was given at its last turn."""
    sampled: int
    """Ids that it sampled in all turns."""

    def to_json(self) -> dict[str, Any]:
        """Return the reference as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> StoredTokens:
        """Return the reference from JSON values; the inverse of `to_json`.

        Raises:
            TrajectoryError: A field is missing.
        """
        try:
            return cls(**raw)
        except TypeError as error:
            raise TrajectoryError(f"this is no reference to stored tokens: {error}") from error


class TokenStore:
    """Folder with one npz file per trajectory."""

    def __init__(self, folder: Path) -> None:
        """Use a folder; the first write creates it.

        Args:
            folder: Location of the files.
        """
        self._folder = folder

    def file_of(self, key: str) -> Path:
        """Return the file that contains the ids of a trajectory.

        Raises:
            ValueError: The key is empty, or too long for a file name.
        """
        name = quote(key, safe="")
        if not name or len(name) > _LONGEST_NAME:
            raise ValueError(f"{key!r} can't name a file of tokens")
        return self._folder / f"{name}.npz"

    def write(self, key: str, trajectory: Trajectory) -> StoredTokens | None:
        """Write the ids of a trajectory atomically; return the reference to them.

        Returns:
            The reference; `None`, without a file, if no step has ids.

        Raises:
            OSError: The file can't be written; an old one is then unchanged.
        """
        tokens = [step.completion.tokens for step in trajectory.steps]
        known = [one for one in tokens if one is not None]
        if not known:
            return None
        content = _packed(tokens)
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(content, self.file_of(key))
        return StoredTokens(
            key=key,
            sha256=hashlib.sha256(content).hexdigest(),
            turns=len(known),
            prompt=len(known[-1].prompt),
            sampled=sum(len(one.sampled) for one in known),
        )

    def read(self, stored: StoredTokens) -> tuple[SampledTokens | None, ...]:
        """Return the ids of each step; `None` for a step without ids.

        Raises:
            TrajectoryError: The file is missing, or not the one that was written.
        """
        file = self.file_of(stored.key)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise TrajectoryError(
                f"the tokens of {stored.key!r} can't be read: {error.strerror} ({file})"
            ) from error
        if hashlib.sha256(content).hexdigest() != stored.sha256:
            raise TrajectoryError(f"{file} is not the file that the record of its run names")
        try:
            return _unpacked(content)
        except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise TrajectoryError(f"{file} is no file of tokens: {error!r}") from error

    def restored(self, trajectory: Trajectory, stored: StoredTokens) -> Trajectory:
        """Return a trajectory that was read from JSON, with its ids.

        Raises:
            TrajectoryError: The file is missing, changed, or that of another trajectory.
        """
        tokens = self.read(stored)
        if len(tokens) != len(trajectory.steps):
            raise TrajectoryError(
                f"the tokens of {stored.key!r} are of {len(tokens)} steps, its trajectory has "
                f"{len(trajectory.steps)}"
            )
        steps = (
            replace(step, completion=replace(step.completion, tokens=one))
            for step, one in zip(trajectory.steps, tokens, strict=True)
        )
        return replace(trajectory, steps=tuple(steps))


def _packed(tokens: list[SampledTokens | None]) -> bytes:
    """Return the bytes of a file; the same for the same tokens."""
    turns: list[dict[str, Any] | None] = []
    new = array("i")
    logprobs = array("f")
    before = array("i")
    for one in tokens:
        if one is None:
            turns.append(None)
            continue
        shared = _shared(before, one.prompt)
        new += one.prompt[shared:] + one.sampled
        logprobs += one.logprobs
        turns.append(
            {
                "shared": shared,
                "prompt": len(one.prompt),
                "sampled": len(one.sampled),
                "temperature": one.temperature,
                "top_p": one.top_p,
                "weight_version": one.weight_version,
                "is_forked": one.is_forked,
                "end": asdict(one.end),
            }
        )
        before = one.ids
    about = json.dumps({"version": _VERSION, "turns": turns}).encode()
    written = io.BytesIO()
    np.savez_compressed(
        written,
        about=np.frombuffer(about, np.uint8),
        ids=np.array(new, np.int32),
        logprobs=np.array(logprobs, np.float32),
    )
    return written.getvalue()


def _unpacked(content: bytes) -> tuple[SampledTokens | None, ...]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        about = json.loads(arrays["about"].tobytes())
        ids = _array("i", arrays["ids"].astype(np.int32))
        logprobs = _array("f", arrays["logprobs"].astype(np.float32))
    if about["version"] != _VERSION:
        raise ValueError(f"version {about['version']!r}; this release reads version {_VERSION}")
    found: list[SampledTokens | None] = []
    before = array("i")
    at_id = at_logprob = 0
    for turn in about["turns"]:
        if turn is None:
            found.append(None)
            continue
        new, sampled = turn["prompt"] - turn["shared"], turn["sampled"]
        one = SampledTokens(
            prompt=before[: turn["shared"]] + ids[at_id : at_id + new],
            sampled=ids[at_id + new : at_id + new + sampled],
            logprobs=logprobs[at_logprob : at_logprob + sampled],
            temperature=turn["temperature"],
            top_p=turn["top_p"],
            end=TurnEnd(**turn["end"]),
            weight_version=turn["weight_version"],
            is_forked=turn["is_forked"],
        )
        found.append(one)
        before = one.ids
        at_id += new + sampled
        at_logprob += sampled
    return tuple(found)


def _shared(before: array[int], prompt: array[int]) -> int:
    """Return the length of the common prefix of a prompt and the turn before."""
    length = min(len(before), len(prompt))
    differ = np.flatnonzero(
        np.array(before[:length], np.int32) != np.array(prompt[:length], np.int32)
    )
    return int(differ[0]) if len(differ) else length


def _array(kind: str, values: NDArray[Any]) -> array[Any]:
    filled = array(kind)
    filled.frombytes(values.tobytes())
    return filled
