"""The wheel and the sdist of this checkout, built once, and environments to install them into."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Built:
    sdist: Path
    wheel: Path
    """Made from the sdist, so that it proves that one to be whole."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that borrows the packages of this one, so that nothing is fetched."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def pip_install(self, *arguments: str) -> None:
        """Installs without what a package depends on, and without a look at what is borrowed."""
        command = [self.python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--ignore-installed", *arguments]
        own = {**os.environ, "SKIP_JUPYTER_BUILDER": "1"}
        subprocess.run(command, env=own, check=True, capture_output=True)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Built(sdist, wheel)


@pytest.fixture
def make_environment(tmp_path: Path) -> Callable[[], Environment]:
    def make() -> Environment:
        folder = tmp_path / "an environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        places = {"base": str(folder), "platbase": str(folder)}
        site = Path(sysconfig.get_path("purelib", vars=places))
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        return Environment(folder)

    return make
