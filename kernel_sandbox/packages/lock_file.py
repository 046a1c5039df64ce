"""A lock file of pip: which version of each package may be installed, and with which hashes.

Covered: a package that the file does not name, or names without a hash, is refused by name, its
dependencies alike; so is a file with another hash. Not covered: whether the locked ones are good.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages.pip_process import Wheel, canonical

__all__ = ["LockFile"]

_LINE = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*==\s*([A-Za-z0-9.!+_-]+)(\s.*|;.*)?")
_HASH = re.compile(r"--hash[= ]sha256:([0-9a-f]{64})(?=\s|$)")


class LockFile:
    """What `pip-compile --generate-hashes`, `uv export` and `pip freeze` with hashes write."""

    def __init__(self, path: Path) -> None:
        """Reads the file.

        Args:
            path: lines of the form `name==version --hash=sha256:...`.

        Raises:
            PackageError: it can't be read, or a line has another form.
        """
        self._path = path
        self.versions: dict[str, str] = {}
        """The version of each package, by its canonical name."""
        self._hashes: dict[str, set[str]] = {}
        for line in _logical_lines(path):
            self._add(line)

    def _add(self, line: str) -> None:
        match = _LINE.fullmatch(line)
        if match is None:
            raise PackageError(f"{self._path}: not `name==version --hash=sha256:...`: {line}")
        name, version = canonical(match[1]), match[2]
        if self.versions.setdefault(name, version) != version:
            raise PackageError(f"{self._path}: two versions of {name}; lock for one Python")
        self._hashes.setdefault(name, set()).update(_HASH.findall(match[3] or ""))

    def check(self, wheels: Iterable[Wheel]) -> None:
        """Lets the wheels pass when the file holds the hash of each.

        Args:
            wheels: what would be installed.

        Raises:
            PackageError: names the wheels that the file does not hold.
        """
        for wheel in wheels:
            hashes = self._hashes.get(canonical(wheel.name))
            if not hashes:
                raise PackageError(f"{wheel.name} has no hash in the lock file {self._path}")
            if wheel.sha256 not in hashes:
                found = f"{wheel.name} {wheel.version} has the hash {wheel.sha256}"
                raise PackageError(f"{found}, which is not in the lock file {self._path}")


def _logical_lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PackageError(f"the lock file {path} can't be read: {error}") from error
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]
