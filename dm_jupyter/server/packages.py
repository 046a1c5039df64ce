"""The packages that cells of a run lack: named to the person, installed on their word.

Covered: only what the person was told of is installed, and only what the list allows; a cell that
was changed meanwhile gets no more than that. Not covered: kernels of the person's own, which no
package is installed for; a kernelspec of the sandbox with another Python than the server's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages import Missing, PackageInstaller
from kernel_sandbox.pip_process import canonical

__all__ = ["CellPackages", "needs"]

_NOBODY = "is not installed, and no cell of this run waits for the person: do without it"
_UNASKED = "was not installed, as the person was not asked for it: import it in another cell to ask"


def needs(missing: Missing) -> str:
    """Returns why the person is asked; empty when nothing can be installed."""
    names = [
        f"`{name}`" if canonical(name) == canonical(package) else f"`{name}` ({package})"
        for name, package in missing.allowed.items()
    ]
    if not names:
        return ""
    if len(names) == 1:
        what, packages = f"{names[0]}, which is", "package"
    else:
        what, packages = f"{', '.join(names[:-1])} and {names[-1]}, which are", "packages"
    return (
        f"it needs {what} not installed: running it installs the {packages} from the package index"
    )


class CellPackages:
    """What the cells of one run lack."""

    def __init__(
        self, installer: PackageInstaller | None, workspace: Path, say: Callable[[str], None]
    ) -> None:
        """Looks at nothing yet.

        Args:
            installer: of the packages that the kernel sees; `None` finds and installs nothing.
            workspace: the folder whose own files the cells may import.
            say: gets a line for the person while something is installed, an empty one at the end.
        """
        self._installer = installer
        self._workspace = workspace
        self._say = say

    async def missing(self, source: str) -> Missing:
        """Returns what a cell lacks; a fault is a refusal with its reason."""
        if self._installer is None:
            return Missing()
        try:
            return await self._installer.missing(source, self._workspace)
        except PackageError as error:
            return Missing(refused=(("", str(error)),))

    async def supply(self, source: str, told: Missing, *, is_agreed: bool) -> str:
        """Installs what the cell lacks; returns what was done or not, for the person and the model.

        Args:
            source: the cell as it will run.
            told: what the person was told of.
            is_agreed: whether they were asked at all, and said yes.

        Raises:
            asyncio.CancelledError: the run was stopped; nothing was left half done.
        """
        missing = await self.missing(source)
        if not is_agreed:
            missing = missing.without(missing.allowed, _NOBODY)
        missing = missing.without(set(missing.allowed) - set(told.allowed), _UNASKED)
        if self._installer is None or missing == Missing():
            return ""
        try:
            return (await self._installer.install(missing, self._say)).message
        finally:
            self._say("")
