"""Tiny wheels for a package index that is a folder."""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["index_variables", "make_wheel"]


def index_variables(folder: Path) -> dict[str, str]:
    """The variables that make pip take packages from the folder and nowhere else."""
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_CONFIG_FILE": os.devnull,
    }


def make_wheel(
    folder: Path,
    name: str,
    number: str = "1.0",
    requires: Iterable[str] = (),
    files: Mapping[str, str] | None = None,
) -> Path:
    """A valid wheel of one module that knows its version, or of other files."""
    info = f"{name}-{number}.dist-info"
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    texts = dict(files or {f"{name}/__init__.py": f"version = {number!r}\n"})
    texts[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n{needs}"
    texts[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    lines = []
    for path, text in texts.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(text.encode())}\n")
    texts[f"{info}/RECORD"] = "".join(lines) + f"{info}/RECORD,,\n"
    wheel = folder / f"{name}-{number}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in texts.items():
            archive.writestr(path, text)
    return wheel
