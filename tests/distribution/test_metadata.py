"""What the wheel and the sdist hold, and what a package index would show of them."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import dm_jupyter
from tests.distribution.conftest import ROOT, Built

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
PANEL = "labextension/static/style.js"


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def _members(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.mark.slow
def test_the_index_is_told_version_licence_and_this_python(built: Built) -> None:
    metadata = _metadata(built.wheel)
    assert metadata["Version"] == dm_jupyter.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    python = f"Programming Language :: Python :: 3.{sys.version_info.minor}"
    assert python in metadata.get_all("Classifier", [])


def test_the_index_shows_the_readme_without_links_that_lead_nowhere(built: Built) -> None:
    metadata = _metadata(built.wheel)
    shown = metadata.get_payload(decode=True)
    assert isinstance(shown, bytes)
    text = shown.decode()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert [link for link in LINK.findall(text) if not link[1].startswith("https://")] == []
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for words in ("# dm-jupyter", "make lab", "In JupyterLab", "## Licence"):
        assert words in text
        assert words in readme


def test_no_file_is_installed_from_two_places() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]
    wheel = settings["build"]["targets"]["wheel"]
    places = [Path(place) for place in wheel["shared-data"].values()]
    assert len(places) == len(set(places))
    assert not any(one in other.parents for one in places for other in places)


def test_the_pinned_packages_run_on_each_python_that_is_promised() -> None:
    pins = (ROOT / "constraints" / "py311.txt").read_text("utf-8").split()
    needs = {
        pin: package.metadata["Requires-Python"] or ""
        for package in distributions()
        if (pin := f"{package.name}=={package.version}") in pins
    }
    assert len(needs) > 50
    assert [pin for pin, python in needs.items() if "3.11.0" not in SpecifierSet(python)] == []


def test_the_links_of_the_readme_lead_somewhere_in_the_repository() -> None:
    links = [target for _, target in LINK.findall((ROOT / "README.md").read_text("utf-8"))]
    inside = [target.partition("#")[0] for target in links if "://" not in target]
    assert "docs/install.md" in inside
    assert [target for target in inside if not (ROOT / target).exists()] == []


def test_the_sdist_holds_tests_and_docs_and_the_wheel_does_not(built: Built) -> None:
    sdist = _members(built.sdist)
    here = Path(__file__).relative_to(ROOT).as_posix()
    assert {here, "docs/install.md", "docs/img/lab.png", "constraints/py311.txt"} <= sdist
    assert {"training/__init__.py", "Makefile", "labextension/src/index.ts"} <= sdist
    assert not [name for name in sdist if name.startswith((".venv", "node_modules", ".git/"))]
    with zipfile.ZipFile(built.wheel) as archive:
        wheel = archive.namelist()
    tops = {name.split("/")[0] for name in wheel}
    number = dm_jupyter.__version__
    info, data = f"dm_jupyter-{number}.dist-info", f"dm_jupyter-{number}.data"
    assert tops == {"dm_jupyter", "kernel_sandbox", info, data}
    assert f"{data}/data/share/jupyter/kernels/dm-sandbox/kernel.json" in wheel


@pytest.mark.skipif(not (ROOT / "dm_jupyter" / PANEL).exists(), reason="the panel is not built")
def test_the_sdist_installs_the_panel_without_node(built: Built) -> None:
    assert f"dm_jupyter/{PANEL}" in _members(built.sdist)
    with zipfile.ZipFile(built.wheel) as archive:
        assert any(
            name.endswith(f"share/jupyter/labextensions/dm-jupyter/{PANEL.partition('/')[2]}")
            for name in archive.namelist()
        )


def test_a_build_without_node_says_how_to_go_on(tmp_path: Path, built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (source / "dm_jupyter" / PANEL).unlink(missing_ok=True)
    (tmp_path / "bin").mkdir()
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", str(source)]
    env = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    refused = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "run the same command with SKIP_JUPYTER_BUILDER=1 before it" in refused.stderr
    env["SKIP_JUPYTER_BUILDER"] = "1"
    subprocess.run(command, env=env, capture_output=True, check=True)
