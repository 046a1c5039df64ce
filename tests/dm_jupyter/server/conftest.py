import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dm_jupyter.server.jupyter import JupyterServer
from tests.endpoint import ScriptedEndpoint
from tests.waiting import wait_until


@pytest.fixture(scope="session")
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(["nothing was scripted"]) as running:
        yield running


@pytest.fixture(scope="session")
def running_server(
    tmp_path_factory: pytest.TempPathFactory, endpoint: ScriptedEndpoint
) -> Iterator[JupyterServer]:
    """One for all files of tests that need no other: a start takes three seconds."""
    with JupyterServer(tmp_path_factory.mktemp("s"), endpoint.base_url) as running:
        yield running


@pytest.fixture(scope="module")
def server(running_server: JupyterServer, endpoint: ScriptedEndpoint) -> Iterator[JupyterServer]:
    """Begins with one file, no kernel and no request to the model."""
    endpoint.bodies.clear()
    (running_server.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
    yield running_server
    running_server.end_kernels("")
    wait_until(lambda: _emptied(running_server.root), "the server's folder is empty")


def _emptied(folder: Path) -> bool:
    """Removes what lies in a folder in which a server may still rename what it saves."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return not any(folder.iterdir())


@pytest.fixture
def say(endpoint: ScriptedEndpoint):
    """Scripts what the model answers next."""

    def script(*texts: str) -> None:
        endpoint.texts = list(texts)
        endpoint.rewind()

    return script


@pytest.fixture
def root(server: JupyterServer) -> Path:
    return server.root
