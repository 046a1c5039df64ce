"""Errors of the sandbox; a cell's own failure is a `CellResult`, never an exception.

SandboxError
├── KernelStartError        the kernel did not start
├── ContainmentError        a required layer is not active (strict), or a limit is not possible here
├── NodeLostError           the node of a trajectory is gone, or no node is left
├── PackageError            a package can't be installed, or the package list or lock is invalid
├── RayMissingError         Ray is not installed; also an ImportError
├── SessionClosedError      the session was closed, or used before it was started
└── WorkspaceError          an input or the working folder can't be used
    └── FilesTooLargeError  the files that the code created exceed what may be kept
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
    """Any error of the sandbox itself."""


class KernelStartError(SandboxError):
    """The kernel process did not become ready; the message contains the end of its output."""


class ContainmentError(SandboxError):
    """A layer that the caller requires is not active; the message names it and the remedy."""


class NodeLostError(SandboxError):
    """The node of a trajectory is gone or no node is left, so its state is lost."""


class PackageError(SandboxError):
    """A package was not installed; the overlay is unchanged, the message says what to do."""


class RayMissingError(SandboxError, ImportError):
    """Ray is not installed; the message says how to install it."""


class SessionClosedError(SandboxError):
    """The session has been closed, or was never started."""


class WorkspaceError(SandboxError):
    """An input file or the working folder is missing, not readable or not writable."""


class FilesTooLargeError(WorkspaceError):
    """The files that the code created exceed what may be kept, so none was kept."""
