"""Profiles of data files: contents and load code, shown to a model before it writes code.

`profile_file` reads a file. `render` returns the bounded text for a prompt, `profile_to_json` plain
data. Nothing here loads pandas until a file is profiled, so a command line's help stays fast. Only
`entry` imports the modules that need pandas, inside its functions.
"""

from __future__ import annotations

from dm_jupyter.data.profile.entry import check_file, profile_file
from dm_jupyter.data.profile.model import (
    ColumnProfile,
    FileProfile,
    ForeignKey,
    TableProfile,
    profile_from_json,
    profile_to_json,
)
from dm_jupyter.data.profile.render import render
from dm_jupyter.data.profile.signatures import DATA_SUFFIXES, check_head
from dm_jupyter.data.profile.sniff import HEAD_BYTES

__all__ = [
    "DATA_SUFFIXES",
    "HEAD_BYTES",
    "ColumnProfile",
    "FileProfile",
    "ForeignKey",
    "TableProfile",
    "check_file",
    "check_head",
    "profile_file",
    "profile_from_json",
    "profile_to_json",
    "render",
]
