from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dm_jupyter.server.jupyter import JupyterServer
from tests.endpoint import ScriptedEndpoint


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(["nothing was scripted"]) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, endpoint: ScriptedEndpoint
) -> Iterator[JupyterServer]:
    with JupyterServer(tmp_path_factory.mktemp("s"), endpoint.base_url) as running:
        (running.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
        yield running


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
