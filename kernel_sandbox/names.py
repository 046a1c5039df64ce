"""File names that other programs run, import or obey without being asked.

Covered: names that the usual tools of a Python analyst look for by themselves, in any folder.
Not covered: tools whose settings make them run a file of another name; a file that a person
starts.
"""

from __future__ import annotations

import functools
import importlib.machinery
import re
import sys
import tomllib
from pathlib import Path, PurePath

__all__ = ["carries_code", "hidden_module", "is_code", "is_obeyed"]

_OBEYED = frozenset(
    {
        # Version control, and what it runs.
        *(".git", ".hg", ".svn", ".gitconfig", ".gitattributes", ".gitmodules", ".husky"),
        *(".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"),
        # Services that run what a repository says.
        *(".github", ".gitlab-ci.yml", ".circleci", ".travis.yml", ".gitea", ".forgejo"),
        *("azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile", ".drone.yml"),
        # Shells, and tools that load a folder's settings.
        *(".env", ".envrc", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv"),
        *(".bash_login", ".bash_logout", ".bash_aliases", ".zprofile", ".zlogin", ".zlogout"),
        *(".inputrc", "mise.toml", ".mise.toml", ".tool-versions", ".ssh", ".direnv"),
        # Editors and notebooks.
        *(".vscode", ".idea", ".devcontainer", ".jupyter", ".ipython", ".vimrc", ".exrc"),
        *(".nvim.lua", ".nvimrc", ".zed", ".dir-locals.el", ".gdbinit", ".lldbinit"),
        *(".rprofile", ".renviron", ".rdata", "_quarto.yml", "_quarto.yaml", "voila.json"),
        # Programs that write code with a model.
        *("agents.md", "claude.md", "gemini.md", ".claude", ".gemini", ".cursor", ".cursorrules"),
        *(".mcp.json", ".aider.conf.yml", ".windsurfrules"),
        # Python, its tests, its checks and its builds.
        *("sitecustomize.py", "usercustomize.py", "conftest.py", "setup.py", "setup.cfg"),
        *("pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "noxfile.py", "pyvenv.cfg"),
        *("matplotlibrc", ".pdbrc", ".pythonrc", ".coveragerc", ".flake8", "mypy.ini", ".mypy.ini"),
        *("pylintrc", ".pylintrc", "pylintrc.toml", ".pylintrc.toml"),
        *("dodo.py", "fabfile.py", "snakefile", "sconstruct", "dvc.yaml"),
        # Other builds.
        *("makefile", "gnumakefile", "justfile", ".justfile", "rakefile", "gulpfile.js"),
        *("taskfile.yml", "taskfile.yaml", ".npmrc", ".yarnrc", ".yarnrc.yml", "package.json"),
        *("dockerfile", "containerfile", "vagrantfile", "compose.yml", "compose.yaml"),
        *("docker-compose.yml", "docker-compose.yaml"),
    }
)
"""In lower case, for file systems that ignore case."""
_OBEYED_ENDINGS = (
    *(".pth", ".desktop", ".code-workspace", ".sublime-project"),
    *(".egg-info", ".dist-info", ".egg-link"),  # their entry points are imported
)
_CONFIG = re.compile(r"(jupyter|ipython)(_\w+)?_config\.(py|json)")
"""Jupyter's programs run those in the folder where they are started."""
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
    is_config = _CONFIG.fullmatch(small) is not None
    return small in _OBEYED or small.endswith(_OBEYED_ENDINGS) or is_config


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
