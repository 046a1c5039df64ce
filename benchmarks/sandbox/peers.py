"""Approaches of other projects, run with our code, our data and our limits of parallelism."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import start_new_async_kernel

__all__ = ["ONE_THREAD", "ask", "fresh_interpreter", "plain_kernel"]

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
"""As in our workers."""


@asynccontextmanager
async def plain_kernel(folder: Path | None = None) -> AsyncIterator[AsyncKernelClient]:
    """Start an ipykernel as jupyter_client does, ready for cells, and kill it at the end.

    Args:
        folder: to work in.
    """
    manager, client = await start_new_async_kernel(
        kernel_name="python3",
        env={**os.environ, **ONE_THREAD},
        cwd=str(folder or Path.cwd()),
        stderr=asyncio.subprocess.DEVNULL,  # it warns about its own transport at each start
    )
    try:
        yield client
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)  # a graceful shutdown would take longer


async def ask(client: AsyncKernelClient, source: str) -> bool:
    """Run a cell with its outputs; return whether it ran without an error."""
    reply = await client.execute_interactive(source, allow_stdin=False, output_hook=lambda _: None)
    return bool(reply["content"]["status"] == "ok")


async def fresh_interpreter(source: str, folder: Path) -> None:
    """Run code in a new interpreter.

    Args:
        source: the code.
        folder: to work in.

    Raises:
        RuntimeError: it failed.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", source),
        cwd=folder,
        env={**os.environ, **ONE_THREAD},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the code of a peer failed:\n{errors.decode()}")
