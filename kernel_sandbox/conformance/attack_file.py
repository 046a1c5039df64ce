"""Files of hostile code: one attack per line, as JSON.

A line has `id`, `name`, `code`, `wrapped`, `expect`, `wall_s`; it may have `then`, `restart`,
`given`, `fast`, `needs` and `why` (see `Attack`).
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_sandbox.confine.layers import LAYER_NAMES

__all__ = ["OUTCOMES", "Attack", "load_attacks"]

OUTCOMES = ("BLOCKED", "KILLED", "INTERRUPTED", "TRUNC", "DIED", "NOSURVIVOR")
"""How a contained attack may end; the last one fits any end."""
_FAST_WALL_S = 6.0
_REQUIRED: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "name": str,
    "code": str,
    "wrapped": bool,
    "expect": list,
    "wall_s": (int, float),
}
_OPTIONAL: Mapping[str, type | tuple[type, ...]] = {
    "then": str,
    "restart": bool,
    "given": bool,
    "fast": bool,
    "needs": str,
    "why": str,
}


@dataclass(frozen=True, slots=True)
class Attack:
    """One attempt to get out of a runner, to break it, or to use more than the limits."""

    id: str
    name: str
    code: str
    """Prints ESCAPED if it got through."""
    wrapped: bool
    """Whether an exception of the code is caught and prints BLOCKED."""
    expect: tuple[str, ...]
    """The outcomes that are containment, each of `OUTCOMES`; of the last cell if there are two."""
    wall_s: float
    """Clock time of each of its cells, seconds."""
    then: str = ""
    """A second cell, in the same runner; none if empty."""
    restart: bool = False
    """Whether the runner is restarted between the two."""
    given: bool = False
    """Whether it works in a user's folder instead of a private one."""
    fast: bool = True
    """Whether it takes about two seconds at most."""
    needs: str = ""
    """The one layer that stops it: if that is declared missing, nothing is claimed."""
    why: str = ""
    """The idea behind it, for a person."""


def load_attacks(path: Path) -> tuple[Attack, ...]:
    """Return the attacks of a file, in its order; empty lines are skipped.

    Args:
        path: the file, JSON lines in UTF-8.

    Raises:
        OSError: the file can't be read.
        ValueError: a line is malformed, an id appears twice, or there is no attack; the message
            names the file, and the line if one is at fault.
    """
    attacks: dict[str, Attack] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            attack = _parse(json.loads(line))
            if attack.id in attacks:
                raise ValueError(f"duplicate id {attack.id!r}")
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
        attacks[attack.id] = attack
    if not attacks:
        raise ValueError(f"{path} contains no attacks")
    return tuple(attacks.values())


def _parse(raw: object) -> Attack:
    if not isinstance(raw, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 (a line of a file, not an argument)
    _check_fields(raw)
    if raw["wall_s"] <= 0:
        raise ValueError(f"wall_s must be positive, got {raw['wall_s']}")
    unknown = [word for word in raw["expect"] if word not in OUTCOMES]
    if unknown or not raw["expect"]:
        raise ValueError(f"expect must list some of {', '.join(OUTCOMES)}, got {raw['expect']}")
    if raw.get("needs", LAYER_NAMES[0]) not in LAYER_NAMES:
        raise ValueError(f"needs must be one of {', '.join(LAYER_NAMES)}, got {raw['needs']!r}")
    for name in ("code", "then"):
        _check_code(name, raw.get(name, ""))
    fields: dict[str, Any] = {"fast": _is_fast(raw), **raw, "expect": tuple(raw["expect"])}
    return Attack(**fields)


def _check_fields(raw: Mapping[str, Any]) -> None:
    known = {**_REQUIRED, **_OPTIONAL}
    missing = [name for name in _REQUIRED if name not in raw]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing")
    for name, value in raw.items():
        if name not in known:
            raise ValueError(f"unknown key {name!r}")
        kind = known[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{name} is of the wrong type: {value!r}")


def _check_code(name: str, code: str) -> None:
    with warnings.catch_warnings():  # about an invalid escape in a string
        warnings.simplefilter("ignore")
        try:
            ast.parse(code)
        except SyntaxError as error:
            raise ValueError(f"{name} is not valid Python: {error}") from error


def _is_fast(raw: Mapping[str, Any]) -> bool:
    """Return a guess for files that do not say: what is refused at once takes no time."""
    return bool(raw["expect"] == ["BLOCKED"] and raw["wall_s"] <= _FAST_WALL_S)
