"""File names that other programs run, import or obey without being asked.

Covered: names that the usual tools of a Python analyst look for by themselves, in any folder.
Not covered: tools whose settings make them run a file of another name; a file that a person
starts.
"""

from __future__ import annotations

import functools
import importlib.machinery
import sys
import tomllib
from pathlib import Path, PurePath

__all__ = ["carries_code", "hidden_module", "is_code", "is_obeyed"]

_OBEYED = frozenset(
    {
        # Version control, and what it runs.
        *(".git", ".hg", ".svn", ".gitconfig", ".gitattributes", ".gitmodules", ".husky"),
        ".pre-commit-config.yaml",
        # Shells, and tools that load a folder's settings.
        *(".env", ".envrc", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv"),
        *(".mise.toml", ".tool-versions", ".ssh", ".direnv"),
        # Editors and notebooks.
        *(".vscode", ".idea", ".devcontainer", ".jupyter", ".ipython", ".vimrc", ".exrc"),
        *(".dir-locals.el", ".gdbinit", ".lldbinit", ".Rprofile", ".Renviron"),
        *("jupyter_server_config.py", "jupyter_notebook_config.py", "jupyter_lab_config.py"),
        *("jupyter_config.py", "ipython_config.py", "ipython_kernel_config.py"),
        # Python, its tests and its builds.
        *("sitecustomize.py", "usercustomize.py", "conftest.py", "setup.py", "setup.cfg"),
        *("pyproject.toml", "pytest.ini", "tox.ini", "noxfile.py", "pyvenv.cfg"),
        # Other builds.
        *("makefile", "gnumakefile", "justfile", ".justfile", "rakefile", "gulpfile.js"),
        *("taskfile.yml", ".npmrc", ".yarnrc", ".yarnrc.yml", "package.json"),
    }
)
"""In lower case, for file systems that ignore case."""
_OBEYED_ENDINGS = (".pth", ".desktop")
_CODE = frozenset(
    {
        *(".py", ".pyc", ".pyw", ".pyx", ".pyd", ".so", ".ipynb", ".sh", ".bash", ".zsh", ".fish"),
        *(".bat", ".cmd", ".ps1", ".exe", ".dll", ".js", ".mjs", ".r", ".jl", ".pl", ".rb", ".lua"),
        *(".jar", ".php", ".vbs"),
    }
)
_CARRIES_CODE = frozenset({".html", ".htm", ".svg", ".pkl", ".pickle", ".joblib", ".xlsm"})
_MODULE_ENDINGS = tuple(importlib.machinery.all_suffixes())


def is_obeyed(name: str) -> bool:
    """Whether programs run or obey a file or folder of that name without being asked."""
    small = name.lower()
    return small in _OBEYED or small.endswith(_OBEYED_ENDINGS)


def is_code(name: str) -> bool:
    """Whether a file of that name is a program."""
    return PurePath(name.lower()).suffix in _CODE


def carries_code(name: str) -> bool:
    """Whether a file of that name is data that may run code when it is opened."""
    return PurePath(name.lower()).suffix in _CARRIES_CODE


def hidden_module(place: PurePath) -> str:
    """Return the module that a file hides from Python's import, or an empty string.

    Python searches the folder of a notebook first. A file of its name hides a package, and so does
    a folder of its name with an `__init__` file.

    Args:
        place: the path of the file, relative to the working folder.
    """
    ending = next((x for x in _MODULE_ENDINGS if place.name.endswith(x)), None)
    if ending is None:
        return ""
    name = place.name.removesuffix(ending)
    if name == "__init__":
        name = place.parent.name
    return name if name and _is_importable(name) else ""


@functools.cache
def _usual() -> frozenset[str]:
    """Return the modules of data analysis, which another environment of the user may have."""
    text = Path(__file__).with_name("packages.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(text)["imports"])


def _is_importable(name: str) -> bool:
    if name in sys.stdlib_module_names or name in _usual():
        return True
    elsewhere = [path for path in sys.path if path not in ("", ".")]
    try:
        return importlib.machinery.PathFinder.find_spec(name, elsewhere) is not None
    except (ImportError, ValueError):
        return False
