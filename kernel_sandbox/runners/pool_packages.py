"""Missing packages for the trajectories of a pool: each is resolved once, for all of them.

A trajectory must not read differently because another one came first. An installation is therefore
logged and not reported to any cell. Only a cell that failed to import a module is told that the
module is not available.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from kernel_sandbox.cells.screen import screen
from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages.packages import Missing, PackageInstaller, Prepared, missing_imports
from kernel_sandbox.types import CellResult

__all__ = ["PoolPackages", "with_refusals"]

_FAILED_IMPORT = frozenset({"ModuleNotFoundError", "ImportError"})

log = logging.getLogger(__name__)


class PoolPackages:
    """Installer of what cells lack, outside of the sandbox, before they run.

    Covered: one cell requests a package, and other cells that need it wait; cells that need nothing
    new do not. A package that could not be installed is not tried again. Not covered: packages that
    are added or removed by other means.
    """

    def __init__(self, installer: PackageInstaller) -> None:
        """Prepare; nothing is installed yet.

        Args:
            installer: the installer to use, unasked; its allow-list decides what it may install.
        """
        self._installer = installer
        self._settled: dict[str, str] = {}
        """From a module's name to why it is not available; empty if it is."""
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Create the folder that workers read.

        Raises:
            PackageError: it can't be created.
        """
        site = self._installer.site
        try:
            await asyncio.to_thread(site.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            raise PackageError(f"the folder {site} can't be made: {error}") from error

    async def prepare(self, source: str) -> Prepared:
        """Install what a cell lacks, as far as it is allowed; return what this call did.

        Args:
            source: the cell. For a cell that the screen refuses nothing is installed.

        Raises:
            PackageError: the environment's interpreter can't be queried.
            asyncio.CancelledError: the caller was cancelled; nothing was left half done.
        """
        names = () if screen(source) else missing_imports(source, lambda _: False)
        prepared = Prepared()
        if not self._settled.keys() >= set(names):
            async with self._lock:
                new = frozenset(names) - self._settled.keys()
                if new:
                    prepared = await self._settle(source, new)
        reasons = [(name, self._settled[name]) for name in names if self._settled[name]]
        return replace(prepared, refused=tuple(reasons))

    async def _settle(self, source: str, new: frozenset[str]) -> Prepared:
        missing = await self._installer.missing(source)
        allowed = {name: package for name, package in missing.allowed.items() if name in new}
        prepared = await self._installer.install(Missing(allowed, missing.refused))
        self._settled |= {**dict.fromkeys(new, ""), **dict(prepared.refused)}
        if prepared.installed:
            names = ", ".join(f"{package.name} {package.version}" for package in prepared.installed)
            log.info("installed for the trajectories of a pool: %s", names)
        return prepared


def with_refusals(result: CellResult, prepared: Prepared) -> CellResult:
    """Return the result; if an import failed, add why a package was refused to its message.

    Args:
        result: the result of the cell.
        prepared: what was done before the cell ran. A module that the code has itself written is
            among the refused, but its cell does not fail.
    """
    if result.error is None or result.error.name not in _FAILED_IMPORT or not prepared.refused:
        return result
    told = replace(prepared, installed=()).message
    return replace(result, message=f"{told} {result.message}".strip())
