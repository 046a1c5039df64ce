"""The commands that messages print, run by a shell as they are printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import packaging
import pytest

import kernel_sandbox
from tests.distribution.conftest import ROOT, Built, Environment
from tests.wheels import index_variables, make_wheel

EXTRAS = {
    "local": ["xllamacpp-2026.10.11549"],
    "formats": [
        "duckdb-1.2",
        "lxml-5.3",
        "odfpy-1.4.1",
        "pyarrow-18.0",
        "pyreadstat-1.3",
        "python_calamine-0.3",
        "xlrd-2.0.1",
        "zstandard-0.23",
    ],
    "ray": ["ray-2.60.0"],
    "lab": ["jupyterlab-4.6.0"],
}
TELL = "from kernel_sandbox.packages.commands import *; print({})"


NAMED = re.compile(r"pip install [^`\n]*[\s'\"]dm[-_]jupyter(\[|['\"\s]|$)", re.MULTILINE)
"""An installation by a name that no index has."""


def _index(folder: Path) -> dict[str, str]:
    """Variables that make pip see tiny packages of those names and nothing else."""
    folder.mkdir()
    for wheels in EXTRAS.values():
        for wheel in wheels:
            make_wheel(folder, *wheel.split("-"))
    return index_variables(folder)


def _printed(python: str, expression: str, path: str = os.defpath, **own: str) -> str:
    command = [python, "-c", TELL.format(expression)]
    env = {**os.environ, **own, "PATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _pasted(command: str, path: str = os.defpath, **own: str) -> str:
    """What a shell prints that is given the command."""
    env = {**os.environ, **own, "PATH": path}
    done = subprocess.run(
        ["sh", "-c", command], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "wheel",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("sdist", "folder", "editable", "index")
        ),
    ],
)
def test_the_command_for_an_extra_runs_however_this_was_installed(
    source: str, built: Built, make_environment: Callable[[], Environment], tmp_path: Path
) -> None:
    arguments = {
        "wheel": [str(built.wheel)],
        "sdist": [str(built.sdist)],
        "folder": [str(ROOT)],
        "editable": ["--editable", str(ROOT)],
        "index": ["--find-links", str(built.wheel.parent), "dm-jupyter"],
    }
    environment = make_environment()
    environment.pip_install(*arguments[source])
    dry = {"PIP_DRY_RUN": "1", "PIP_IGNORE_INSTALLED": "1", **_index(tmp_path / "index")}
    for extra, wheels in EXTRAS.items():
        said = _pasted(_printed(environment.python, f"install_extra({extra!r})"), **dry)
        assert f"Would install {' '.join(wheels)}" in said


@pytest.mark.slow
def test_an_environment_without_pip_gets_it_first(tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    subprocess.run(["python3", "-m", "venv", "--without-pip", str(folder)], check=True)
    modules = tmp_path / "modules"
    modules.mkdir()
    for module in (kernel_sandbox, packaging):
        assert module.__file__ is not None
        (modules / module.__name__).symlink_to(Path(module.__file__).parent)
    python = str(folder / "bin" / "python")
    command = _printed(python, "pip_install('xlrd>=2')", PYTHONPATH=str(modules))
    assert "Successfully installed xlrd-2.0.1" in _pasted(command, **_index(tmp_path / "index"))


def test_programs_on_the_path_have_short_names_and_others_long_ones(
    built: Built, make_environment: Callable[[], Environment]
) -> None:
    environment = make_environment()
    environment.pip_install(str(built.wheel))
    programs = environment.folder / "bin"
    path = f"{programs}{os.pathsep}{os.defpath}"
    ask = "own_command('--version')"
    assert _printed(environment.python, ask, path) == "dm-jupyter --version"
    elsewhere = _printed(environment.python, ask)
    assert elsewhere == f"'{programs / 'dm-jupyter'}' --version"
    assert _pasted(elsewhere) == _pasted("dm-jupyter --version", path)
    install = "pip_install('xlrd>=2')"
    assert _printed(environment.python, install, path).startswith(f"'{environment.python}' -m pip")
    shutil.copy(shutil.which("true") or "", programs / "pip")
    assert _printed(environment.python, install, path) == "pip install 'xlrd>=2'"


def test_no_page_and_no_message_installs_this_by_name() -> None:
    assert NAMED.search("Run pip install 'dm-jupyter[local]'.")
    folders = ("docs", "dm_jupyter", "kernel_sandbox", "training", "examples", "labextension/src")
    pages = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    texts = [path for path in pages if path.suffix in (".md", ".py", ".ts", ".tsx", ".txt")]
    assert len(texts) > 200
    named = {str(path) for path in (ROOT / "README.md", *texts) if NAMED.search(path.read_text())}
    assert named == {str(ROOT / "kernel_sandbox" / "packages" / "commands.py")}  # it says why not
