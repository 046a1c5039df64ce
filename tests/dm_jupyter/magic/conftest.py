from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import dm_jupyter
from tests.endpoint import ScriptedEndpoint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with data in it and no settings of a person's own."""
    (tmp_path / "my people.csv").write_text("Age,Fare\n30,7.25\n41,8.5\n29,9.0\n")
    monkeypatch.chdir(tmp_path)
    for name in ("MODEL", "BASE_URL", "API_KEY"):
        monkeypatch.delenv(f"DM_JUPYTER_{name}", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    return tmp_path


@pytest.fixture
def shell(folder: Path) -> Iterator[InteractiveShell]:
    """A real shell, as a terminal has it, with the extension loaded."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    dm_jupyter.load_ipython_extension(shell)
    yield shell
    dm_jupyter.unload_ipython_extension(shell)
    shell.restore_sys_module_state()


@pytest.fixture
def counting() -> Iterator[str]:
    """The address of a model, `tiny`, that counts the rows and says so, for two questions."""
    with ScriptedEndpoint(["print(len(df))\n```", "There are **3** rows."] * 2) as endpoint:
        yield endpoint.base_url


@pytest.fixture
def options(counting: str) -> str:
    """The options that name it."""
    return f"--base-url {counting} --model tiny"


@pytest.fixture
def set_model(folder: Path, counting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes it the model of whoever names none."""
    monkeypatch.setenv("DM_JUPYTER_BASE_URL", counting)
    monkeypatch.setenv("DM_JUPYTER_MODEL", "tiny")
