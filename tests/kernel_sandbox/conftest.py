"""Real kernels for the tests, and the traces that a kernel must not leave."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernel_sandbox.runners.session import KernelSession

OpenSession = Callable[..., Any]


@pytest.fixture
async def open_session(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenSession]:
    """Starts sessions, closes them after the test, and then looks for what was left."""
    sessions: list[KernelSession] = []

    async def start(*args: Any, **kwargs: Any) -> KernelSession:
        session = KernelSession(*args, **kwargs)
        sessions.append(session)
        return await session.__aenter__()

    # A folder of our own: other kernels may come and go on this machine. Short, for the sockets.
    folder = Path(tempfile.mkdtemp(prefix="t-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    children = _children()
    yield start
    for session in sessions:
        await session.close()
    assert _children() <= children
    assert list(folder.iterdir()) == []
    shutil.rmtree(folder)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}
