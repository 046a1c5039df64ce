"""Prompts are files beside this module, loaded by name and filled with `$name` placeholders.

Another package keeps prompts of its own beside its module and loads them from here, too.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template

__all__ = ["fill", "fingerprint", "text_of"]


@cache
def text_of(name: str, package: str = __name__) -> str:
    """Returns the prompt `name`, without the newline at its end.

    Args:
        name: of the file, without its ending.
        package: beside whose module it lies.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return files(package).joinpath(f"{name}.md").read_text("utf-8").rstrip("\n")


def fill(name: str, **values: str) -> str:
    """Returns the prompt `name` with every `$placeholder` replaced.

    Raises:
        FileNotFoundError: there is no such prompt.
        KeyError: the prompt has a placeholder that `values` lacks.
    """
    return Template(text_of(name)).substitute(values)


def fingerprint(name: str, package: str = __name__) -> str:
    """Returns the first 12 hex digits of the prompt's sha256, recorded with whatever came of it.

    Args:
        name: of the file, without its ending.
        package: beside whose module it lies.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return sha256(text_of(name, package).encode()).hexdigest()[:12]
