"""Commands that messages ask a person to run, ready to paste into a terminal.

The name `dm-jupyter` is on no package index, so `pip install 'dm-jupyter[ray]'` would fail. The
requirements of an extra are on one: these commands name them, whatever this distribution was
installed from.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["ensure_pip", "install_extra", "own_command", "pip_install"]

_DISTRIBUTION = "dm-jupyter"


def install_extra(extra: str) -> str:
    """Return the command that installs what an extra of this distribution needs.

    Args:
        extra: its name in `pyproject.toml`.
    """
    needs = map(Requirement, requires(_DISTRIBUTION) or ())
    return pip_install(*(f"{x.name}{x.specifier}" for x in needs if _belongs(x, extra)))


def pip_install(*requirements: str) -> str:
    """Return the command that installs packages into the environment of this process.

    Args:
        requirements: as pip reads them.
    """
    wanted = " ".join(map(shlex.quote, requirements))
    if _is_ours("pip"):
        return f"pip install {wanted}"
    command = f"{_python()} -m pip install {wanted}"
    return command if find_spec("pip") else f"{ensure_pip()} && {command}"


def ensure_pip() -> str:
    """Return the command that adds pip to an environment created without it."""
    return f"{_python()} -m ensurepip"


def own_command(*words: str) -> str:
    """Return a command line of `dm-jupyter`.

    Args:
        words: what follows the program's name.
    """
    script = Path(sys.executable).with_name(_DISTRIBUTION)
    is_found = _is_ours(_DISTRIBUTION) or not script.exists()
    return shlex.join([_DISTRIBUTION if is_found else str(script), *words])


def _belongs(need: Requirement, extra: str) -> bool:
    marker = need.marker
    return marker is not None and marker.evaluate({"extra": extra}) > marker.evaluate({"extra": ""})


def _is_ours(program: str) -> bool:
    """Return whether a shell with this process's PATH finds the program of this environment."""
    found = shutil.which(program)
    return found is not None and Path(found) == Path(sys.executable).with_name(program)


def _python() -> str:
    return shlex.quote(sys.executable)
