"""The panel on a JupyterHub: a login, a server of the user's own, and a proxy in front of it."""

from __future__ import annotations

import socket
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import TABLE, Say
from tests.browser.lab import LAB_OPTIONS, Lab
from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer
from tests.endpoint import ScriptedEndpoint

pytestmark = [pytest.mark.browser, pytest.mark.slow]

pytest.importorskip("jupyterhub", reason="`make test-all` installs JupyterHub")
pytest.importorskip("configurable_http_proxy", reason="`make test-all` installs the hub's proxy")

USER = "ann"
PASSWORD = "a-password-for-tests"


class Hub(JupyterServer):
    """A JupyterHub, seen as the server of its one user."""

    @property
    def hub_url(self) -> str:
        """The hub's address, below a path as on many a site."""
        return f"http://127.0.0.1:{self.port}/science"

    @property
    def url(self) -> str:
        """The address of the user's server."""
        return f"{self.hub_url}/user/{USER}"

    def _command(self) -> list[str]:
        config = self.folder / "jupyterhub_config.py"
        settings = {
            "JupyterHub.bind_url": f"{self.hub_url}/",
            "JupyterHub.hub_port": _free_port(),
            "JupyterHub.db_url": f"sqlite:///{self.folder}/hub.sqlite",
            "JupyterHub.cookie_secret_file": str(self.folder / "cookie_secret"),
            "JupyterHub.authenticator_class": "dummy",
            "JupyterHub.spawner_class": "simple",
            "JupyterHub.services": [{"name": "tests", "api_token": TOKEN}],
            "JupyterHub.load_roles": [
                {"name": "tests", "services": ["tests"], "scopes": ["access:servers"]}
            ],
            "ConfigurableHTTPProxy.command": [
                str(Path(sys.executable).with_name("configurable-http-proxy"))
            ],
            "ConfigurableHTTPProxy.api_url": f"http://127.0.0.1:{_free_port()}",
            "ConfigurableHTTPProxy.pid_file": str(self.folder / "proxy.pid"),
            "DummyAuthenticator.password": PASSWORD,
            "Authenticator.allowed_users": {USER},
            "SimpleLocalProcessSpawner.home_dir_template": str(self.folder / "home"),
            "Spawner.cmd": [sys.executable, "-m", "jupyterhub.singleuser"],
            "Spawner.args": self._settings(),
            "Spawner.default_url": "/lab/tree/work.ipynb",
            "Spawner.environment": self._environment(),
        }
        lines = [f"c.{name} = {value!r}\n" for name, value in settings.items()]
        config.write_text("".join(lines))
        return [sys.executable, "-m", "jupyterhub", "--config", str(config)]

    def _look_up(self) -> None:
        urllib.request.urlopen(f"{self.hub_url}/hub/health", timeout=5).close()


class HubLab(Lab):
    """A tab of somebody who logs in."""

    def open(self) -> Self:
        """Logs in, which starts the user's server; returns when the panel is there."""
        hub = self.server
        assert isinstance(hub, Hub)
        self.page.goto(hub.hub_url)
        self.page.get_by_label("Username").fill(USER)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{hub.url}/lab**", timeout=90_000)
        self.wait_until_idle()
        self.show_panel()
        return self


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def lab(tmp_path: Path, endpoint: ScriptedEndpoint, context: BrowserContext) -> Iterator[HubLab]:
    with Hub(tmp_path, endpoint.base_url, options=LAB_OPTIONS) as hub:
        (hub.root / "sales.csv").write_text(TABLE)
        hub.write_notebook("work.ipynb", "dm-sandbox", ("mine = 1",))
        tab = HubLab(context.new_page(), hub, "work.ipynb")
        yield tab.open()
        tab.page.screenshot(path=tmp_path / "page.png")
    assert tab.faults == []


def test_a_user_of_a_hub_asks(lab: HubLab, say: Say) -> None:
    say("print('the sum is', df.sales.sum())\n```", "The sales add up to **40**.")
    lab.ask("What is the sum of sales?")
    lab.expect_run("answered")
    expect(lab.answer.locator("strong")).to_have_text("40")
    expect(lab.cell("the sum is").locator(".jp-OutputArea")).to_contain_text("the sum is 40")
    document = lab.saved_document(cells=4, first="mine = 1")
    assert document.cells[2].outputs[0].text == "the sum is 40\n"
    # The user's login opens the analyst, and nobody else's.
    assert lab.server.get("/dm-jupyter/api/status")["models"]
    assert lab.server.refusal("GET", "/dm-jupyter/api/status", token="wrong") == 403
