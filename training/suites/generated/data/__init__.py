"""Domains, templates, categories, phrases and workflows, as TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["folder", "read_data_file"]


@cache
def read_data_file(name: str) -> Mapping[str, Any]:
    """Return one data file.

    Args:
        name: the path below this folder, such as `phrases.toml`.

    Raises:
        FileNotFoundError: there is no such file.
        tomllib.TOMLDecodeError: the file is not TOML.
    """
    return tomllib.loads(files(__name__).joinpath(name).read_text("utf-8"))


def folder(name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the data files of a folder, sorted by their names."""
    found = files(__name__).joinpath(name).iterdir()
    for file in sorted(one.name for one in found if one.name.endswith(".toml")):
        yield read_data_file(f"{name}/{file}")
