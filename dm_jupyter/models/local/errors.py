"""Faults of the local model: its file, and the server that runs it.

LocalModelError              (dm_jupyter.core.errors)
├── NoSpaceError             the disk is too full for the file
├── NoSourceError            neither the model hub nor the package index gave the file
├── WrongFileError           what came is not the file that was asked for; it was deleted
├── PullCancelledError       stopped by the person; the next pull goes on where this one stopped
├── NotReadyError            something is missing that one command brings
│   ├── EngineMissingError   the package that runs the model is not installed
│   ├── ModelMissingError    there is no such model, or its file is not on this machine
│   └── AdapterError         an adapter's file is missing, holds none, or is for another model
└── ServerStartError         the server did not come up; the message ends with its log
"""

from __future__ import annotations

from dm_jupyter.core.errors import LocalModelError

__all__ = [
    "AdapterError",
    "EngineMissingError",
    "LocalModelError",
    "ModelMissingError",
    "NoSourceError",
    "NoSpaceError",
    "NotReadyError",
    "PullCancelledError",
    "ServerStartError",
    "WrongFileError",
]


class NoSpaceError(LocalModelError):
    """The disk that holds the cache has less free space than the file needs."""


class NoSourceError(LocalModelError):
    """No source could be reached; the message gives the reason for each of them."""


class WrongFileError(LocalModelError):
    """Size or hash differ from the pinned ones. The bytes were deleted, nothing was kept."""


class PullCancelledError(LocalModelError):
    """The pull was stopped on request; what had arrived stays for the next one."""


class NotReadyError(LocalModelError):
    """Something is missing that a person can bring with one command."""

    def __init__(self, text: str, command: str) -> None:
        """Make the error.

        Args:
            text: What is missing, for a person.
            command: What brings it, as it can be pasted into a terminal.
        """
        super().__init__(f"{text} Run `{command}`.")
        self.text = text
        self.command = command


class ModelMissingError(NotReadyError):
    """There is no such model, or its file is not where it was looked for."""


class AdapterError(NotReadyError):
    """An adapter's file is not there, holds no adapter, or was made for another model."""


class EngineMissingError(NotReadyError):
    """The optional package that runs GGUF files is not installed."""


class ServerStartError(LocalModelError):
    """The model's server ended, or never answered, before it was ready."""
