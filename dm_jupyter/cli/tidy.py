"""`dm-jupyter tidy`: a notebook with only the cells that its last answer needs, run again."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from dm_jupyter.cli.exits import Exit, reporting, terminate_as_interrupt
from dm_jupyter.config import packages_folder
from dm_jupyter.core.errors import DataFileError, UsageError
from dm_jupyter.core.plain_text import harmless_text
from kernel_sandbox.packages.overlay_place import overlay_site
from kernel_sandbox.types import MIB, Limits

__all__ = ["tidy_notebook"]


def tidy_notebook(
    notebook: Path,
    files: tuple[Path, ...],
    *,
    memory_mb: int,
    cell_seconds: float,
    strict: tuple[str, ...],
    as_json: bool,
) -> int:
    """Write the tidy notebook, print what was kept, and return the exit code.

    Args:
        notebook: the notebook to tidy; it is only read.
        files: files outside of its folder that its cells may read.
        memory_mb: memory of the kernel, MiB.
        cell_seconds: clock time of a cell.
        strict: layers that must be active.
        as_json: whether to print one JSON object instead of text.
    """
    with reporting() as outcome:
        if notebook.suffix != ".ipynb":
            raise UsageError(f"{notebook}: the name of a notebook ends in .ipynb")
        if missing := [file for file in files if not file.is_file()]:
            raise DataFileError(f"{missing[0]}: there is no such file; check the name")
        limits = Limits(memory_bytes=memory_mb * MIB, wall_s=cell_seconds)
        outcome.code = asyncio.run(_tidy(notebook.resolve(), files, limits, strict, as_json))
    return outcome.code


async def _tidy(
    notebook: Path, files: tuple[Path, ...], limits: Limits, strict: tuple[str, ...], as_json: bool
) -> int:
    from dm_jupyter.agent.tidy import TidySettings, tidy  # noqa: PLC0415

    site = overlay_site(packages_folder())
    overlay = site if await asyncio.to_thread(site.is_dir) else None
    settings = TidySettings(limits, strict, overlay, files)
    is_shown = sys.stderr.isatty() and not as_json
    with terminate_as_interrupt():
        tidied = await tidy(notebook, settings, _progress if is_shown else lambda _: None)
    if is_shown:
        _progress("")
    if as_json:
        print(json.dumps(tidied.to_json(), ensure_ascii=False, indent=2))
    else:
        print(harmless_text(tidied.words))
        if tidied.left_out:
            print(harmless_text(f"left out: {', '.join(tidied.left_out)}"))
        print(harmless_text(f"notebook: {tidied.path}"))
    return Exit.ANSWERED if tidied.is_same else Exit.NO_ANSWER


def _progress(line: str) -> None:
    print(f"\r\033[K{harmless_text(line)}", end="", file=sys.stderr, flush=True)
