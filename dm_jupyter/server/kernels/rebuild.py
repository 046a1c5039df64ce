"""Fills an empty kernel again: runs the notebook's code cells that had run without an error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from jupyter_core.utils import ensure_async

from dm_jupyter.agent.continued import asks_the_analyst
from kernel_sandbox.jupyter.attached import AttachedKernel

__all__ = ["rebuild"]


async def rebuild(contents: Any, path: str, kernel: AttachedKernel) -> AsyncIterator[str]:
    """Yields a line of progress a cell; the outputs in the notebook stay as they are.

    Cells that ask the analyst are left out, which the last line says.

    Raises:
        SandboxError: the kernel can't run cells.
    """
    model = await ensure_async(contents.get(path, content=True, type="notebook"))
    worked = [cell["source"] for cell in model["content"]["cells"] if _had_worked(cell)]
    sources = [source for source in worked if not asks_the_analyst(source)]
    failed = 0
    for number, source in enumerate(sources, 1):
        yield f"running cell {number} of {len(sources)} again"
        result = await kernel.run(source)
        failed += not result.ok
        if result.state_lost:
            yield f"cell {number} ended the kernel again: {result.message}"
            return
    line = f"{len(sources)} cells were run again" + (f", {failed} failed" if failed else "")
    left_out = len(worked) - len(sources)
    yield line + (f"; {left_out} with %analyze were left out" if left_out else "")


def _had_worked(cell: Any) -> bool:
    if cell["cell_type"] != "code" or cell["execution_count"] is None:
        return False
    return not any(output["output_type"] == "error" for output in cell["outputs"])
