"""Missing packages for the trajectories of a pool: each is settled once, for all of them.

A trajectory must not read otherwise because another one came first: what was installed is logged,
and no cell is told of it. That a module can't be had is told to a cell that failed to import it.
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
    """Installs what cells lack, outside of the sandbox, before they run.

    Covered: one asks for a package and the others that want it wait; those that want nothing new
    do not. One that could not be installed is not tried again. Not covered: packages that come or
    go meanwhile by other ways.
    """

    def __init__(self, installer: PackageInstaller) -> None:
        """Installs nothing yet.

        Args:
            installer: what to install with, unasked; what it may install is its list's matter.
        """
        self._installer = installer
        self._settled: dict[str, str] = {}
        """From a module's name to why it can't be had; empty where it can."""
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Makes the folder that workers read.

        Raises:
            PackageError: it can't be made.
        """
        site = self._installer.site
        try:
            await asyncio.to_thread(site.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            raise PackageError(f"the folder {site} can't be made: {error}") from error

    async def prepare(self, source: str) -> Prepared:
        """Installs what a cell lacks, as far as it is allowed; returns what this call did.

        Args:
            source: the cell. One that the screen refuses gets nothing: it will not run.

        Raises:
            PackageError: the environment's interpreter can't be asked.
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
    """Returns the result of a cell that failed to import something with the reasons told.

    Args:
        result: of the cell.
        prepared: what was done before it ran. A module that the code has itself written is among
            the refused; its cell does not fail.
    """
    if result.error is None or result.error.name not in _FAILED_IMPORT or not prepared.refused:
        return result
    told = replace(prepared, installed=()).message
    return replace(result, message=f"{told} {result.message}".strip())
