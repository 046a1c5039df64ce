"""The data files of a question, placed where a notebook's kernel reads them, and profiled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.core.trajectory import DataContext
from dm_jupyter.data.data_context import DataContextSize, build_data_context
from dm_jupyter.data.profile import HEAD_BYTES, FileProfile, check_head
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.server.files.data_files import copied_into, head_of
from dm_jupyter.server.files.file_search import is_data_file
from kernel_sandbox.errors import SandboxError

if TYPE_CHECKING:
    from dm_jupyter.server.kernels.registry import KernelDirectory

__all__ = ["StagedData"]


class StagedData:
    """Data files for the notebooks' kernels; a worker reads them."""

    def __init__(self, directory: KernelDirectory) -> None:
        """Prepare the reader; nothing is read yet.

        Args:
            directory: the kernels, with the working folder of each.
        """
        self._directory = directory
        self._reader = ProfileReader()

    def stage(self, kernel_id: str, file: Path, notebook_folder: Path) -> tuple[str, Path]:
        """Return a data file's name in code, and its path.

        A restricted kernel sees its working folder only. A file from elsewhere is copied into it,
        never over another file.

        Args:
            kernel_id: the id of the kernel.
            file: the path without links, as `DataFiles.place` returns it.
            notebook_folder: the folder of the notebook.

        Raises:
            DataFileError: the file is not there or can't be copied.
        """
        if not file.is_file():
            raise DataFileError(f"{file.name}: there is no such file; check the name and folder")
        workspace = self._directory.workspace(kernel_id, notebook_folder)
        if file.is_relative_to(workspace):
            return file.relative_to(workspace).as_posix(), file
        if not self._directory.is_restricted(kernel_id):
            return str(file), file
        try:
            target = copied_into(workspace, file)
        except OSError as error:
            raise DataFileError(
                f"{file.name} can't be copied to where the restricted kernel works: "
                f"{error.strerror}"
            ) from error
        if (layer := self._directory.layer(kernel_id)) is not None:
            layer.refresh()
        return target.name, target

    async def data_context_of(
        self,
        kernel_id: str,
        files: Iterable[Path],
        notebook_folder: Path,
        question: str = "",
        room: DataContextSize | None = None,
    ) -> tuple[dict[str, Path], DataContext]:
        """Return each data file's name in code with its path, and what the model is shown.

        Args:
            kernel_id: the id of the kernel.
            files: the paths without links, as `DataFiles.place` returns them.
            notebook_folder: the folder of the notebook.
            question: the question whose words are linked to the data; empty before there is one.
            room: how much to show; `None` for a small context.

        Raises:
            DataFileError: a file is not there, can't be copied, or is not a table.
            SandboxError: there is no worker to read the files.
        """
        names = {}
        for file in files:
            name, place = await asyncio.to_thread(self.stage, kernel_id, file, notebook_folder)
            names[name] = place
        return names, await build_data_context(names, self._reader, question, room)

    async def profile(self, file: Path, name: str) -> FileProfile:
        """Return the profile of a data file, which a worker reads.

        Args:
            file: the path without links, as `DataFiles.place` returns it.
            name: the file's name in the profile.

        Raises:
            DataFileError: the file is not a table.
            SandboxError: there is no worker to read it.
        """
        return await self._reader.profile(file, name)

    async def refuse_unreadable(self, files: Iterable[Path]) -> None:
        """Refuse files that contain no table, before anything is done with them.

        Their first bytes decide. A file without a data file's name is also read, in a worker.

        Args:
            files: the files, as for `data_context_of`.

        Raises:
            DataFileError: a file can't be read; the message says what can.
        """
        for file in files:
            check_head(file.name, await asyncio.to_thread(head_of, file, HEAD_BYTES))
            if not is_data_file(file.name):
                with contextlib.suppress(SandboxError):  # the run will say so
                    await self._reader.profile(file, file.name)

    async def close(self) -> None:
        """End the worker that reads."""
        await self._reader.close()
