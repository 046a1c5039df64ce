"""Real kernels for the tests, and the traces that a kernel must not leave."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernel_sandbox.environment import runtime_base
from kernel_sandbox.session import KernelSession

OpenSession = Callable[..., Any]


@pytest.fixture(autouse=True)
def _own_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Kernels of these tests live apart, so that others at work are no leftovers of theirs."""
    tmp_path_factory.getbasetemp()  # pytest chooses its own folder before this one is in the way
    with tempfile.TemporaryDirectory(prefix="dmt-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
async def open_session() -> AsyncIterator[OpenSession]:
    """Starts sessions, closes them after the test, and then looks for what was left."""
    sessions: list[KernelSession] = []

    async def start(*args: Any, **kwargs: Any) -> KernelSession:
        session = KernelSession(*args, **kwargs)
        sessions.append(session)
        return await session.__aenter__()

    children, folders = leftovers()
    yield start
    for session in sessions:
        await session.close()
    children_after, folders_after = leftovers()
    assert children_after <= children
    assert folders_after <= folders


def leftovers() -> tuple[set[int], set[Path]]:
    """The processes below this one and the private folders of kernels."""
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    work = Path(tempfile.gettempdir()).glob("dm-work-*")
    return children, {*runtime_base().glob("dmj-*"), *work}
