"""The packages that cells of a run lack: named to the person, installed after their approval.

Covered: only packages that the person was shown are installed, and only if the list allows them. A
cell that was changed meanwhile gets no more than that. Not covered: unrestricted kernels, for which
no package is installed; a kernelspec of the sandbox with another Python than the server's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages.overlay_place import overlay_site

if TYPE_CHECKING:  # takes a tenth of the extension's start, and most runs lack nothing
    from kernel_sandbox.packages.packages import Missing, PackageInstaller

__all__ = ["CellPackages", "Packages", "needs"]

_NOBODY = "is not installed, and no cell of this run waits for the person: do without it"
_UNASKED = "was not installed, as the person was not asked for it: import it in another cell to ask"


class Packages:
    """The packages that were added for the restricted kernels of this server."""

    def __init__(self, root: Path) -> None:
        """Prepare the paths; nothing is created or loaded yet.

        Args:
            root: the folder with the packages of all environments.
        """
        self._root = root
        self._installer: PackageInstaller | None = None
        self.site = str(overlay_site(root))
        """The folder that a kernel must see to import them."""

    @property
    def installer(self) -> PackageInstaller:
        """The installer that adds packages to them.

        Raises:
            PackageError: the list of packages can't be read.
        """
        if self._installer is None:
            from kernel_sandbox.packages.overlay import Overlay  # noqa: PLC0415
            from kernel_sandbox.packages.packages import AllowList, PackageInstaller  # noqa: PLC0415

            self._installer = PackageInstaller(Overlay(self._root), AllowList.load())
        return self._installer


def needs(missing: Missing | None) -> str:
    """Return why the person is asked; empty if nothing can be installed."""
    if missing is None or not missing.allowed:
        return ""
    names = [
        f"`{name}`" if name.lower() == package.lower() else f"`{name}` ({package})"
        for name, package in missing.allowed.items()
    ]
    if len(names) == 1:
        what, packages = f"{names[0]}, which is", "package"
    else:
        what, packages = f"{', '.join(names[:-1])} and {names[-1]}, which are", "packages"
    return (
        f"it needs {what} not installed: running it installs the {packages} from the package index"
    )


class CellPackages:
    """The packages that the cells of one run lack."""

    def __init__(
        self, packages: Packages | None, workspace: Path, say: Callable[[str], None]
    ) -> None:
        """Start without a cell.

        Args:
            packages: the packages that the kernel sees; `None` finds and installs nothing.
            workspace: the folder whose own files the cells may import.
            say: called with a line for the person during an installation, and an empty one after.
        """
        self._packages = packages
        self._workspace = workspace
        self._say = say

    async def missing(self, source: str) -> Missing | None:
        """Return what a cell lacks; a fault becomes a refusal with its reason."""
        if self._packages is None:
            return None
        try:
            return await self._packages.installer.missing(source, self._workspace)
        except PackageError as error:
            from kernel_sandbox.packages.packages import Missing  # noqa: PLC0415

            return Missing(refused=(("", str(error)),))

    async def supply(self, source: str, told: Missing | None, *, is_agreed: bool) -> str:
        """Install what the cell lacks and return a message on it for the person and the model.

        Args:
            source: the cell as it will run.
            told: the missing packages that the person was shown.
            is_agreed: whether they were asked at all, and said yes.

        Raises:
            asyncio.CancelledError: the run was stopped; nothing is left half installed.
        """
        missing = await self.missing(source)
        if self._packages is None or missing is None:
            return ""
        if not is_agreed:
            missing = missing.without(missing.allowed, _NOBODY)
        unasked = set(missing.allowed) - set(told.allowed if told is not None else ())
        missing = missing.without(unasked, _UNASKED)
        if not missing.allowed:
            return missing.message
        try:
            return (await self._packages.installer.install(missing, self._say)).message
        finally:
            self._say("")
