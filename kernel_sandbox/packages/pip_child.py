"""Script for the interpreter of a kernel's environment: its packages, and pip without programs.

Started as `python -I pip_child.py COMMAND ...`. All commands but `pip` print JSON:

    name                    what sets the environment apart from others
    versions                the versions of its packages
    find SITE NAME...       which modules can be imported, from the environment or the folder SITE
    pip PARENT ARGUMENT...  run pip

Standard library only: the interpreter need not have this package.

Covered: `--only-binary` does not apply to a source archive that a wheel names by its address as a
dependency: pip would build it. Here pip can start no program, so nothing is ever built. It also
dies with its parent. Not covered: pip's keyring in `subprocess` mode, which is a program too.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import platform
import runpy
import signal
import sys
import sysconfig

__all__ = ["environment_name", "main"]

NO_PROGRAM = "pip may start no program here"
_PR_SET_PDEATHSIG = 1
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn")


def main(arguments: list[str]) -> None:  # pragma: no cover (runs in the child)
    """Run one command.

    Args:
        arguments: the command and its arguments.
    """
    command, *rest = arguments
    if command == "pip":
        _run_pip(int(rest[0]), rest[1:])
    else:
        json.dump(_answer(command, rest), sys.stdout)


def environment_name() -> str:
    """Return a folder name that no other environment on this machine has."""
    identity = (platform.python_version(), sysconfig.get_platform(), sys.prefix)
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()
    return f"{sys.implementation.cache_tag}-{digest[:12]}"


def _answer(command: str, rest: list[str]) -> object:  # pragma: no cover
    match command:
        case "name":
            return environment_name()
        case "versions":
            return _versions()
        case _:
            return _find(rest[0], rest[1:])


def _versions() -> dict[str, str]:  # pragma: no cover
    versions: dict[str, str] = {}
    for found in importlib.metadata.distributions():
        name = found.metadata["Name"]
        if name:  # the first on the path is the one that is imported
            versions.setdefault(name, found.version)
    return versions


def _find(site: str, names: list[str]) -> list[str]:  # pragma: no cover
    return [name for name in names if _is_found(site, name)]


def _is_found(site: str, name: str) -> bool:  # pragma: no cover
    if importlib.machinery.PathFinder.find_spec(name, [site]) is not None:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # it exists and is odd: nothing to install
        return True


def _run_pip(parent: int, arguments: list[str]) -> None:  # pragma: no cover
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it died before the call: no signal would ever come
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(_refuse_programs)
    sys.argv = ["pip", *arguments]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


def _refuse_programs(event: str, _: tuple[object, ...]) -> None:  # pragma: no cover
    if event.startswith(_STARTS):
        # An OSError: pip then does without the programs that only describe the machine.
        raise PermissionError(NO_PROGRAM)


if __name__ == "__main__":
    main(sys.argv[1:])
