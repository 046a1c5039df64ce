"""Who has a notebook open: its tabs, the one of them that writes it, and what each was told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dm_jupyter.agent.notebook_context import PartKind
from dm_jupyter.server.protocol import ServerMessage

__all__ = ["OpenNotebook", "Tab"]


@dataclass(slots=True)
class Tab:
    """One browser tab that has the notebook open; it may lose its connection and come back."""

    client_id: str
    send: Callable[[ServerMessage], None]
    seen: dict[str, int] = field(default_factory=dict)
    """Run id to the last `seq` it has."""
    withheld: tuple[PartKind, ...] | None = None
    """What its settings keep from the model; `None` before it has said so."""


class OpenNotebook:
    """One notebook and the tabs on it. The first to come owns it: it applies and saves."""

    def __init__(self, notebook_path: str) -> None:
        """Begins with no tab.

        Args:
            notebook_path: below the server's root, as the contents API names it.
        """
        self.notebook_path = notebook_path
        self.tabs: dict[str, Tab] = {}
        self.owner: str | None = None
        """The client id of the owner; `None` when no tab is there to write."""
        self.last_owner: str | None = None
        """Who owned it last, for a tab that comes back."""

    def enter(self, tab: Tab) -> bool:
        """Takes a tab in, or back; returns whether it owns the notebook now."""
        self.tabs[tab.client_id] = tab
        if self.owner is None:
            self.own(tab.client_id)
        return self.owner == tab.client_id

    def own(self, client_id: str) -> None:
        """Makes a tab the owner."""
        self.owner = self.last_owner = client_id

    def leave(self, client_id: str) -> Tab | None:
        """Lets a tab go; returns the one that owns the notebook in its stead, if it owned it."""
        self.tabs.pop(client_id, None)
        if self.owner != client_id:
            return None
        self.owner = None
        new_owner = next(iter(self.tabs.values()), None)
        if new_owner is not None:
            self.own(new_owner.client_id)
        return new_owner

    def publish(self, message: ServerMessage) -> None:
        """Sends a message to every tab."""
        for tab in list(self.tabs.values()):
            tab.send(message)
