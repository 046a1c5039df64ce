"""Faults of the analyst. What a model or a cell does wrong is a value, never an exception.

DmJupyterError
├── DataFileError        a data file can't be read; the message says why and the way out
├── PolicyError          the model's endpoint failed
│   ├── EndpointUnreachableError   nothing listens, or the line broke before an answer began
│   ├── EndpointRefusedError       it answered, with an error that a retry won't mend
│   ├── ContextFullError           the conversation is longer than the model can read
│   └── StreamBrokenError          it died in the middle of an answer
├── LocalModelError      the local model can't be fetched, checked or started
├── NotebookError        the notebook can't be written
├── TrajectoryError      a stored trajectory is of an unknown version or not whole
├── UnrenderableTurnError   a dialect has no form for a turn
└── UsageError           an option or argument makes no sense
"""

from __future__ import annotations

from typing import TypeVar

__all__ = [
    "ContextFullError",
    "DataFileError",
    "DmJupyterError",
    "EndpointRefusedError",
    "EndpointUnreachableError",
    "LocalModelError",
    "NotebookError",
    "PolicyError",
    "StreamBrokenError",
    "TrajectoryError",
    "UnrenderableTurnError",
    "UsageError",
    "first_fault",
]


Fault = TypeVar("Fault", bound=Exception)


class DmJupyterError(Exception):
    """Any fault of the analyst; its text is written for the person who reads it."""


class DataFileError(DmJupyterError):
    """A data file is missing, empty, damaged, locked, or not what its name says."""


class PolicyError(DmJupyterError):
    """The model could not be sampled."""


class EndpointUnreachableError(PolicyError):
    """No connection to the endpoint, after all retries."""


class EndpointRefusedError(PolicyError):
    """The endpoint answered with an error: a wrong key, model or request."""

    def __init__(self, message: str, status: int = 0) -> None:
        """Makes the error.

        Args:
            message: for a person.
            status: of HTTP; 0 where it is not known.
        """
        super().__init__(message)
        self.status = status


class ContextFullError(PolicyError):
    """The conversation is longer than the model's context; a run ends there as out of budget."""


class StreamBrokenError(PolicyError):
    """The endpoint's answer broke off before its end."""


class LocalModelError(DmJupyterError):
    """The local model's file or server is missing, damaged or can't start."""


class NotebookError(DmJupyterError):
    """The notebook can't be written where it was asked for."""


class TrajectoryError(DmJupyterError):
    """A stored trajectory has another schema version, or lacks a field."""


class UnrenderableTurnError(DmJupyterError):
    """A dialect can't write a turn so that it reads the same turn back."""


class UsageError(DmJupyterError):
    """An option or argument that makes no sense; the message names it."""


def first_fault(group: BaseExceptionGroup[Fault]) -> Fault:
    """Returns one fault of several tasks that broke together: the first, for the rest followed."""
    fault = group.exceptions[0]
    return first_fault(fault) if isinstance(fault, BaseExceptionGroup) else fault
