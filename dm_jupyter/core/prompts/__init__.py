"""Prompts, stored as files beside this module, loaded by name, with `$name` placeholders.

Another package may keep its own prompts beside its module and load them through this one.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template

__all__ = ["fill", "fingerprint", "text_of"]


@cache
def text_of(name: str, package: str = __name__) -> str:
    """Return the prompt `name`, without the newline at its end.

    Args:
        name: name of the file, without its suffix.
        package: the package that contains the file.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return files(package).joinpath(f"{name}.md").read_text("utf-8").rstrip("\n")


def fill(name: str, **values: str) -> str:
    """Return the prompt `name` with every `$placeholder` replaced.

    Raises:
        FileNotFoundError: there is no such prompt.
        KeyError: the prompt has a placeholder that `values` lacks.
    """
    return Template(text_of(name)).substitute(values)


def fingerprint(name: str, package: str = __name__) -> str:
    """Return the first 12 hex digits of the prompt's sha256, which its results record.

    Args:
        name: name of the file, without its suffix.
        package: the package that contains the file.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return sha256(text_of(name, package).encode()).hexdigest()[:12]
