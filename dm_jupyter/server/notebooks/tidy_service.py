"""The tidy copy of a notebook, made on the server for the panel.

Covered: the notebook is found below the server's folder and through no link, and its cells run in
a kernel of their own, confined and limited as the server's restricted kernels are. Not covered: a
link that a program without namespaces lays between that check and the reading of the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from dm_jupyter.agent.tidy import Tidied, TidySettings, tidy
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError
from dm_jupyter.server.kernels.registry import KernelDirectory

__all__ = ["TidyService"]


class TidyService:
    """Tidies notebooks, each of them once at a time."""

    def __init__(self, files: DataFiles, kernels: KernelDirectory) -> None:
        """Tidies nothing yet.

        Args:
            files: the files below the server's folder.
            kernels: the kernels, whose settings also hold for the ones that are started here.
        """
        self._files = files
        self._kernels = kernels
        self._at_work: set[str] = set()

    async def tidy(self, path: str, run_id: str, on_progress: Callable[[str], None]) -> Tidied:
        """Writes the tidy copy beside a notebook; its path is below the server's folder.

        Args:
            path: of the saved notebook, as the contents API names it.
            run_id: of the run whose answer is meant; empty for the last answer.
            on_progress: gets a line before each cell.

        Raises:
            NotebookError: it can't be tidied; the message says why. Nothing is written then.
            SandboxError: no restricted kernel can run its cells.
            asyncio.CancelledError: cancelled; nothing is written.
        """
        place = await asyncio.to_thread(self._place, path)
        if path in self._at_work:
            raise NotebookError(f"{path} is being tidied already: wait, or cancel that first")
        self._at_work.add(path)
        try:
            tidied = await tidy(place, self._settings(), on_progress, run_id)
        finally:
            self._at_work.discard(path)
        beside = PurePosixPath(path.lstrip("/")).with_name(tidied.path.name)
        return replace(tidied, path=Path(beside))

    def _place(self, path: str) -> Path:
        if not path.endswith(".ipynb"):
            raise NotebookError(f"{path} is not a notebook: its name must end in .ipynb")
        try:
            return self._files.place(path)
        except LinkedFilesError as error:
            raise NotebookError(f"{path} is behind a link: open the file it leads to") from error
        except FileNotFoundError as error:
            raise NotebookError(
                f"{path} is not a file of this server: save the notebook, then try again"
            ) from error

    def _settings(self) -> TidySettings:
        if not self._kernels.are_confined:
            raise NotebookError(
                "The sandbox is switched off on this server, so the cells can't run in a "
                "restricted kernel. Run 'dm-jupyter tidy' in a terminal instead"
            )
        new = self._kernels.new_session_settings()
        overlay = new.overlay if new.overlay is not None and new.overlay.is_dir() else None
        return TidySettings(new.limits, overlay=overlay, is_isolated=new.is_isolated)
