"""The record of an overlay: what is installed, and what an installation is about to add."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from kernel_sandbox.errors import PackageError

__all__ = ["OverlayState", "Package"]


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was installed into an overlay."""

    name: str
    version: str
    sha256: str
    """Of the wheel."""
    installed_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True)
class OverlayState:
    """What `installed.json` holds; changed only under the overlay's lock."""

    packages: tuple[Package, ...] = ()
    """Oldest first, dependencies included."""
    requirements: tuple[str, ...] = ()
    """What was asked for and is there, word for word."""
    pending: tuple[str, ...] = ()
    """Paths in the overlay that belong to no package yet: an installation is adding them."""

    def with_requirements(self, added: Iterable[str]) -> OverlayState:
        """The state in which these were asked for too."""
        return replace(self, requirements=(*self.requirements, *added))

    def with_packages(self, added: Iterable[Package]) -> OverlayState:
        """The state in which these are installed too."""
        return replace(self, packages=(*self.packages, *added))

    @classmethod
    def read(cls, path: Path) -> OverlayState:
        """Reads the record; a missing one is empty.

        Raises:
            PackageError: it can't be read, or is not such a record.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            packages = tuple(Package(**package) for package in raw.pop("packages"))
            fields = {name: tuple(_checked(name, texts)) for name, texts in raw.items()}
            return cls(packages, **fields)
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            what = f"{path} is no record of packages ({error!r})"
            raise PackageError(f"{what}: remove the folder {path.parent}") from error

    def write(self, path: Path) -> None:
        """Writes the record at once: a reader sees the old one or the new one.

        Raises:
            OSError: it can't be written; the old one is still there.
        """
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        draft.replace(path)


def _checked(name: str, texts: list[str]) -> list[str]:
    # Whoever could write the record must not choose what the next installation removes.
    for text in texts if name == "pending" else ():
        parts = PurePosixPath(text).parts
        if not parts or ".." in parts or parts[0] == "/":
            raise ValueError(f"{text!r} lies outside of the overlay")
    return texts
