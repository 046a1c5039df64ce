"""Faults of the sandbox. What a cell does wrong is a `CellResult`, never an exception.

SandboxError
├── KernelStartError        the kernel did not come up
├── ContainmentError        a required layer is not active (strict), or a limit is not possible here
├── NodeLostError           the machine of a trajectory is gone, or none is left
├── PackageError            a package can't be installed, or the list or lock of packages is wrong
├── RayMissingError         Ray is not installed; an ImportError, too
├── SessionClosedError      the session was closed, or used before it was started
└── WorkspaceError          an input or the working folder can't be used
    └── FilesTooLargeError  what the code has made is too much to be kept
"""

from __future__ import annotations

__all__ = [
    "ContainmentError",
    "FilesTooLargeError",
    "KernelStartError",
    "NodeLostError",
    "PackageError",
    "RayMissingError",
    "SandboxError",
    "SessionClosedError",
    "WorkspaceError",
]


class SandboxError(Exception):
    """Any fault of the sandbox itself."""


class KernelStartError(SandboxError):
    """The kernel process did not become ready; the message holds the tail of what it printed."""


class ContainmentError(SandboxError):
    """A layer that the caller requires is not active; the message names it and the remedy."""


class NodeLostError(SandboxError):
    """The node of a trajectory is gone, or there is none left: its state is lost."""


class PackageError(SandboxError):
    """A package was not installed; the overlay is as it was, the message says what to do."""


class RayMissingError(SandboxError, ImportError):
    """Ray is not installed; the message says how to."""


class SessionClosedError(SandboxError):
    """The session has been closed, or was never started."""


class WorkspaceError(SandboxError):
    """An input file or the working folder is missing, not readable or not writable."""


class FilesTooLargeError(WorkspaceError):
    """The files that code has made take more than may be kept of them: none was."""
