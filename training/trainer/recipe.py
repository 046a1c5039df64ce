"""Recipe of a training, one TOML file: which model learns from which rows, and how.

Each table of the file is one of the dataclasses below, and each key one of its fields. A path is
relative to the folder in which the command runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from training.trainer.dialect_tokens import TokenSettings
from training.trainer.model import AdapterSettings, ModelSettings
from training.trainer.rows import TrainerError
from training.trainer.schedule import Schedule

__all__ = ["DataSettings", "NotebookSettings", "Recipe", "TrainingSettings", "read_recipe"]

Table = TypeVar("Table")


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Files of rows to train on and to evaluate."""

    rows: tuple[str, ...] = ()
    """Files of rows to learn from: one path, or a list. Their sizes determine the mix."""
    held: tuple[str, ...] = ()
    """Files of rows that are only evaluated; if empty, the training never stops early."""
    max_tokens: int | None = None
    """Longer rows are left out entirely; `None` takes all."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Optimizer settings, and how often the model is evaluated and saved."""

    learning_rate: float
    """At the end of the warm-up."""
    epochs: int = 3
    batch_rows: int = 16
    """Rows that one update learns from."""
    batch_alike: int = 1
    """Rows about the same data that come into a batch together; their prompts are forwarded once
    where they are in one pack."""
    pack_tokens: int = 512
    """Tokens in one forward pass; affects memory and speed, not the result."""
    warmup_share: float = 0.1
    """Of all updates."""
    shape: str = "cosine"
    """`cosine` to 0, or `constant`, after the warm-up."""
    weight_decay: float = 0.0
    clip: float = 1.0
    """Largest norm of all gradients combined."""
    seed: int = 1
    evaluate_every: int = 20
    """Updates between two evaluations of the held rows; each also saves a checkpoint."""
    patience: int = 3
    """Consecutive evaluations without a new smallest held loss after which training ends."""
    samples: int = 2
    """Held rows whose first turn the model writes at each evaluation."""
    sample_tokens: int = 200
    """Longest of these turns, in tokens."""

    def __post_init__(self) -> None:
        least = dict.fromkeys(("weight_decay", "seed", "samples"), 0) | dict.fromkeys(
            ("epochs", "batch_rows", "batch_alike", "pack_tokens", "evaluate_every", "patience",
             "sample_tokens"), 1,
        )  # fmt: skip
        for name, smallest in least.items():
            if not getattr(self, name) >= smallest:
                raise TrainerError(f"{name} = {getattr(self, name)} is not at least {smallest}")
        if not 0 <= self.warmup_share <= 1 or self.clip <= 0:
            raise TrainerError("warmup_share must be from 0 to 1, and clip above 0")
        self.schedule(1)  # raises for a rate or shape that makes no sense

    def schedule(self, steps: int) -> Schedule:
        """Return the learning rates of a training with that many updates."""
        return Schedule(self.learning_rate, steps, round(self.warmup_share * steps), self.shape)


@dataclass(frozen=True, slots=True)
class NotebookSettings:
    """Questions that the model answers in whole runs at each evaluation."""

    evaluate: str
    """The suite and its options, as after `python -m training.train evaluate MODEL`."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Complete description of a training."""

    model: ModelSettings
    training: TrainingSettings
    data: DataSettings = field(default_factory=DataSettings)
    adapter: AdapterSettings | None = None
    """`None`, for a recipe without this table, trains all weights."""
    tokens: TokenSettings | None = None
    """Added to the model's own; `None` adds none."""
    notebooks: NotebookSettings | None = None
    """`None` asks no question."""

    def with_files(
        self, base: str = "", rows: Sequence[str] = (), held: Sequence[str] = ()
    ) -> Recipe:
        """Return the recipe with the model and files replaced by those that are given."""
        return replace(
            self,
            model=replace(self.model, base=base or self.model.base),
            data=replace(
                self.data,
                rows=tuple(rows) or self.data.rows,
                held=tuple(held) or self.data.held,
            ),
        )


def read_recipe(file: Path) -> Recipe:
    """Return the recipe in a TOML file.

    Raises:
        TrainerError: the file can't be read, or a table or key is unknown, missing or invalid.
    """
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainerError(f"{file} can't be read: {error}") from error
    kinds: dict[str, type[Any]] = {
        "model": ModelSettings,
        "training": TrainingSettings,
        "data": DataSettings,
        "adapter": AdapterSettings,
        "tokens": TokenSettings,
        "notebooks": NotebookSettings,
    }
    try:
        for name in ("model", "training"):
            if name not in raw:
                raise TrainerError(f"the table [{name}] is missing")
        for name in raw:
            if name not in kinds:
                raise TrainerError(f"unknown table [{name}]; known: {', '.join(kinds)}")
        return Recipe(**{name: _read_table(kinds[name], raw[name], name) for name in raw})
    except TrainerError as error:
        raise TrainerError(f"{file}: {error}") from error


def _read_table(kind: type[Table], raw: Any, name: str) -> Table:
    if not isinstance(raw, Mapping):
        raise TrainerError(f"{name} must be a table, [{name}]")
    hints = get_type_hints(kind)
    values = {}
    for key, value in raw.items():
        if key not in hints:
            raise TrainerError(f"[{name}] has no key {key!r}; known: {', '.join(hints)}")
        values[key] = _checked(value, hints[key], f"[{name}] {key}")
    for one in fields(kind):  # type: ignore[arg-type]
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        if not has_default and one.name not in values:
            raise TrainerError(f"[{name}] lacks {one.name}")
    return kind(**values)


def _checked(value: Any, hint: Any, where: str) -> Any:
    if get_origin(hint) is tuple:
        given = value if isinstance(value, list) else [value]
        return tuple(_checked(one, get_args(hint)[0], where) for one in given)
    wanted = next(one for one in (get_args(hint) or (hint,)) if one is not type(None))
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise TrainerError(f"{where} = {value!r} is not of the type {wanted.__name__}")
    return value
