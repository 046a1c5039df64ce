"""Endpoints by name: the address of each, the variable with its key, its known capabilities."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["Preset", "preset_at", "presets"]

_BLANK = "RESOURCE"


@dataclass(frozen=True, slots=True)
class Preset:
    """One endpoint that many people use."""

    name: str
    title: str
    base_url: str
    key_variable: str = ""
    """Environment variable in which its own tools look for the key; empty if there is none."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """Input of `Capabilities.from_json`; missing values are learned."""

    @property
    def blank(self) -> str:
        """The part of the address that each account replaces; empty if there is none."""
        return _BLANK if _BLANK in self.base_url else ""


@cache
def presets() -> Mapping[str, Preset]:
    """Return the presets by name."""
    raw = tomllib.loads(files(__package__).joinpath("presets.toml").read_text("utf-8"))
    return {name: Preset(name, **fields) for name, fields in raw.items()}


def preset_at(base_url: str) -> Preset | None:
    """Return the preset with this address; `None` if no preset has it.

    Args:
        base_url: an endpoint's address.
    """
    for preset in presets().values():
        # Match exactly one word, so that the key goes to no other host.
        pattern = re.escape(preset.base_url).replace(_BLANK, "[A-Za-z0-9-]+")
        if re.fullmatch(pattern, base_url.rstrip("/")):
            return preset
    return None
