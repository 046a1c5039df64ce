"""Faults of the local model: its file, and the server that runs it.

LocalModelError              (dm_jupyter.core.errors)
├── NoSpaceError             the disk is too full for the file
├── NoSourceError            neither the model hub nor the package index provided the file
├── WrongFileError           the fetched file is not the requested one; it was deleted
├── PullCancelledError       stopped by the person; the next pull resumes where this one stopped
├── NotReadyError            something is missing that one command installs or fetches
│   ├── EngineMissingError   the package that runs the model is not installed
│   ├── ModelMissingError    there is no such model, or its file is not on this machine
│   └── AdapterError         a file is missing, contains no adapter, or is for another model
└── ServerStartError         the server did not start; the message ends with its log
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
    """The disk of the cache has less free space than the file needs."""


class NoSourceError(LocalModelError):
    """No source could be reached; the message gives the reason for each of them."""


class WrongFileError(LocalModelError):
    """Size or hash differ from the pinned ones; the file was deleted."""


class PullCancelledError(LocalModelError):
    """The pull was stopped on request; the bytes received so far are kept for the next one."""


class NotReadyError(LocalModelError):
    """Something is missing that a person can install or fetch with one command."""

    def __init__(self, text: str, command: str) -> None:
        """Create the error.

        Args:
            text: What is missing, for a person.
            command: The command that helps, ready to paste into a terminal.
        """
        super().__init__(f"{text} Run `{command}`.")
        self.text = text
        self.command = command


class ModelMissingError(NotReadyError):
    """There is no such model, or its file is not at the expected path."""


class AdapterError(NotReadyError):
    """A file is missing, contains no adapter, or is an adapter for another model."""


class EngineMissingError(NotReadyError):
    """The optional package that runs GGUF files is not installed."""


class ServerStartError(LocalModelError):
    """The model's server ended, or never answered, before it was ready."""
