"""Errors of the analyst. A mistake of a model or a cell is a value, never an exception.

DmJupyterError
├── DataFileError        a data file can't be read; the message says why and how to fix it
├── PolicyError          the model's endpoint failed
│   ├── EndpointUnreachableError   nothing listens, or the connection broke before an answer began
│   ├── EndpointBlockedError       a proxy, a certificate or a redirect is in the way
│   ├── EndpointRefusedError       it answered with an error that a retry won't fix
│   ├── ContextFullError           the conversation is longer than the model can read
│   └── StreamBrokenError          it died in the middle of an answer
├── LocalModelError      the local model can't be fetched, checked or started
├── NotebookError        the notebook can't be written
├── TrajectoryError      a stored trajectory is of an unknown version or incomplete
├── UnrenderableTurnError   a dialect has no form for a turn
└── UsageError           an option or argument makes no sense
"""

from __future__ import annotations

from typing import TypeVar

__all__ = [
    "ContextFullError",
    "DataFileError",
    "DmJupyterError",
    "EndpointBlockedError",
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
    """Base class of the analyst's errors; its text is written for the person who reads it."""


class DataFileError(DmJupyterError):
    """A data file is missing, empty, damaged, locked, or not what its name says."""


class PolicyError(DmJupyterError):
    """The model could not be sampled."""


class EndpointUnreachableError(PolicyError):
    """No connection to the endpoint, after all retries."""


class EndpointBlockedError(PolicyError):
    """No connection to the endpoint, because of a proxy, a certificate or a redirect."""


class EndpointRefusedError(PolicyError):
    """The endpoint answered with an error: a wrong key, model or request."""

    def __init__(self, message: str, status: int = 0, body: object = None) -> None:
        """Create the error.

        Args:
            message: text for a person.
            status: HTTP status; 0 if unknown.
            body: the refusal as parsed from JSON, or its text; never shown, as it may have the key.
        """
        super().__init__(message)
        self.status, self.body = status, body


class ContextFullError(PolicyError):
    """The conversation is longer than the model's context; the run ends as out of budget."""

    def __init__(self, message: str, *, is_refusal: bool = False) -> None:
        """Create the error.

        Args:
            message: text for a person.
            is_refusal: whether the request was refused, so that no answer had begun.
        """
        super().__init__(message)
        self.is_refusal = is_refusal


class StreamBrokenError(PolicyError):
    """The endpoint's answer was cut off before its end."""


class LocalModelError(DmJupyterError):
    """The local model's file or server is missing, damaged or can't start."""


class NotebookError(DmJupyterError):
    """The notebook can't be written to the requested path."""


class TrajectoryError(DmJupyterError):
    """A stored trajectory has another schema version, or lacks a field."""


class UnrenderableTurnError(DmJupyterError):
    """A dialect can't write a turn in a form that it parses back to the same turn."""


class UsageError(DmJupyterError):
    """An option or argument that makes no sense; the message names it."""


def first_fault(group: BaseExceptionGroup[Fault]) -> Fault:
    """Return the first error of a group of failed tasks; the others followed from it."""
    fault = group.exceptions[0]
    return first_fault(fault) if isinstance(fault, BaseExceptionGroup) else fault
