"""The tidy copy of a notebook, created on the server for the panel.

A kernel may write to the notebook's folder, and create a link in it at any moment. So the work is
done on private copies. The notebook and the files that its cells name are copied by descriptors,
and so is the new notebook into the folder. Covered: links, also those that replace a file
meanwhile; files that are hidden, or outside of the server's folder. The cells run in a kernel of
their own, with the confinement and limits of the server's restricted kernels.
"""

from __future__ import annotations

import asyncio
import posixpath
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp

from dm_jupyter.agent.continued import MOST_INPUTS, quoted_names
from dm_jupyter.agent.notebook_file import new_names, read_notebook
from dm_jupyter.agent.tidy import Tidied, TidySettings, tidy
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError, copied_into
from dm_jupyter.server.kernels.registry import KernelDirectory
from kernel_sandbox.aio import run_shielded

__all__ = ["TidyService"]


class TidyService:
    """The service that tidies notebooks, each of them once at a time."""

    def __init__(self, files: DataFiles, kernels: KernelDirectory) -> None:
        """Start with no notebook.

        Args:
            files: the files below the server's folder.
            kernels: the kernels, whose settings also apply to those that are started here.
        """
        self._files = files
        self._kernels = kernels
        self._at_work: set[str] = set()

    async def tidy(self, path: str, run_id: str, on_progress: Callable[[str], None]) -> Tidied:
        """Write the tidy copy beside a notebook; the result's path is below the server's folder.

        Args:
            path: the path of the saved notebook, as the contents API names it.
            run_id: the run whose answer is meant; empty for the last answer.
            on_progress: called with a line before each cell.

        Raises:
            NotebookError: it can't be tidied; the message says why. Nothing is written then.
            SandboxError: no restricted kernel can run its cells.
            asyncio.CancelledError: the work was cancelled; nothing is written.
        """
        settings = self._settings()
        if path in self._at_work:
            raise NotebookError(f"{path} is being tidied already: wait, or cancel that first")
        self._at_work.add(path)
        private = await asyncio.to_thread(lambda: Path(mkdtemp(prefix="dm-tidy-")).resolve())
        try:
            copy = await asyncio.to_thread(self._copied, path, private)
            tidied = await tidy(copy, settings, on_progress, run_id)
            name = await asyncio.to_thread(self._placed, path, tidied.path)
        finally:
            self._at_work.discard(path)
            await run_shielded(asyncio.to_thread(shutil.rmtree, private, ignore_errors=True))
        return replace(tidied, path=Path(name))

    def _settings(self) -> TidySettings:
        if not self._kernels.are_confined:
            raise NotebookError(
                "The sandbox is switched off on this server, so the cells can't run in a "
                "restricted kernel. Run 'dm-jupyter tidy' in a terminal instead"
            )
        new = self._kernels.new_session_settings()
        overlay = new.overlay if new.overlay is not None and new.overlay.is_dir() else None
        return TidySettings(new.limits, overlay=overlay, is_isolated=new.is_isolated)

    def _copied(self, path: str, private: Path) -> Path:
        """Copy the notebook, and the files below its folder that its cells name."""
        if not path.endswith(".ipynb"):
            raise NotebookError(f"{path} is not a notebook: its name must end in .ipynb")
        try:
            copy = copied_into(private, self._files.place(path))
        except LinkedFilesError as error:
            raise NotebookError(f"{path} is behind a link: open the file it leads to") from error
        except OSError as error:
            raise NotebookError(
                f"{path} is not a file of this server: save the notebook, then try again"
            ) from error
        _, document = read_notebook(copy)
        folder, copied = posixpath.dirname(path.lstrip("/")), 0
        for name in dict.fromkeys(quoted_names(document)):
            if copied == MOST_INPUTS:
                break
            if not posixpath.isabs(name) and ".." not in PurePosixPath(name).parts:
                copied += self._copies_input(posixpath.join(folder, name), private / name)
        return copy

    def _copies_input(self, name: str, target: Path) -> bool:
        """Copy a file to the same position beside the notebook's copy; skip a name of no file.

        Raises:
            NotebookError: the file can't be copied, as when there is no space.
        """
        try:
            source = self._files.place(name)
        except (LinkedFilesError, FileNotFoundError):
            return False
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            copied_into(target.parent, source)
        except OSError as error:
            raise NotebookError(
                f"{name} can't be copied for the fresh kernel ({error.strerror or error}). No "
                "notebook was written: free some space, or run 'dm-jupyter tidy' in a terminal"
            ) from error
        return True

    def _placed(self, path: str, made: Path) -> str:
        """Write the new notebook beside the old one, under a free name, and return its path."""
        wanted = PurePosixPath(path.lstrip("/")).with_name(made.name)
        text = made.read_bytes()
        try:
            for name in new_names(wanted):
                with suppress(FileExistsError), self._files.made(str(name)) as target:
                    target.write(text)
                    return str(name)
        except OSError as error:
            raise NotebookError(
                f"{wanted} can't be written ({error.strerror or error}); the notebook is unchanged"
            ) from error
        raise NotebookError(f"{wanted} can't be written: too many notebooks have that name")
