"""What really confines a kernel: one layer per mechanism, each active, absent, refused or off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["LAYER_NAMES", "Containment", "Layer", "LayerState"]

LAYER_NAMES = (
    "environment",
    "private_workspace",
    "workspace_layer",
    "read_only_view",
    "network_namespace",
    "pid_namespace",
    "rlimits",
    "pid_limit",
    "capabilities",
    "no_new_privs",
    "landlock",
    "seccomp",
    "late_seccomp",
    "cgroup",
    "memory_watchdog",
    "disk_watchdog",
    "wall_clock",
    "output_limit",
    "screen",
)
"""The names of all layers, outermost first: `require` may name these and no others."""


class LayerState(StrEnum):
    """State of one layer."""

    ACTIVE = "active"
    """It was applied and then seen to work."""
    ABSENT = "absent"
    """This machine lacks the mechanism, or nothing was there to apply it."""
    REFUSED = "refused"
    """The machine has the mechanism and did not grant it."""
    OFF = "off"
    """The caller that started the kernel switched it off."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One mechanism and its state."""

    name: str
    state: LayerState
    reason: str = ""
    """What the layer does here; if it is not active, why not, and the remedy."""

    def to_json(self) -> dict[str, str]:
        """Return the layer as plain JSON values."""
        return {"name": self.name, "state": self.state.value, "reason": self.reason}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Layer:
        """Decode what `to_json` returned.

        Raises:
            KeyError: a field is missing.
            ValueError: the state is unknown, or a field is not a string.
        """
        if not isinstance(raw, Mapping):
            raise ValueError("a layer that is no object")  # noqa: TRY004  (a fault of the text)
        name, state, reason = raw["name"], raw["state"], raw["reason"]
        if not all(isinstance(value, str) for value in (name, state, reason)):
            raise ValueError("a layer with a field that is no text")
        return cls(name, LayerState(state), reason)


@dataclass(frozen=True, slots=True)
class Containment:
    """The layers around one kernel, as verified and not as requested."""

    layers: tuple[Layer, ...] = ()

    def get(self, name: str) -> Layer:
        """Return the layer of that name; a layer that nobody reported is absent."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        return Layer(name, LayerState.ABSENT, "nothing reported it")

    def is_active(self, name: str) -> bool:
        """Whether the layer of that name is active."""
        return self.get(name).state is LayerState.ACTIVE

    def missing(self, names: Iterable[str]) -> tuple[Layer, ...]:
        """Return the named layers that are not active, in the order of `names`."""
        return tuple(self.get(name) for name in names if not self.is_active(name))

    def with_layers(self, layers: Iterable[Layer]) -> Containment:
        """Return the containment with these layers added, replacing those of the same name."""
        merged = {layer.name: layer for layer in (*self.layers, *layers)}
        known = [merged.pop(name) for name in LAYER_NAMES if name in merged]
        return Containment((*known, *merged.values()))

    def summary(self) -> str:
        """Return one line for a person: how many layers are active, and which are not."""
        active = sum(layer.state is LayerState.ACTIVE for layer in self.layers)
        line = f"{active} of {len(self.layers)} layers active"
        weak = [f"{x.name} {x.state}" for x in self.layers if x.state is not LayerState.ACTIVE]
        return f"{line} ({', '.join(weak)})" if weak else line

    def to_json(self) -> dict[str, Any]:
        """Return the containment as plain JSON values."""
        return {"layers": [layer.to_json() for layer in self.layers]}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Containment:
        """Decode what `to_json` returned.

        Raises:
            KeyError: a field is missing.
            ValueError: a state is unknown, or there is no list of layers.
        """
        if not isinstance(raw["layers"], list):
            raise ValueError("layers that are no list")  # noqa: TRY004  (a fault of the text)
        return cls(tuple(Layer.from_json(layer) for layer in raw["layers"]))
