"""Allow-listed environments of a kernel and of pip; only this module reads `os.environ`.

Covered: a variable of the parent reaches a kernel or pip only if this module names it. So no API
key or token does, and no proxy password reaches a kernel. Not covered: secrets in files, which the
file layers hide.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "find_program",
    "font_caches",
    "kernel_environment",
    "pip_environment",
    "runtime_base",
    "unexpected_names",
]

RUN_DIR_VARIABLE = "DM_SANDBOX_RUN_DIR"
"""Mark of every process that a kernel leaves behind: they all inherit it."""
IPYTHON = "ipython"
"""The folder of IPython's settings, in the run folder."""
OFF_VARIABLE = "DM_SANDBOX_OFF"
"""Variable that shows code in a kernel that nothing confines it."""

_KEPT = ("PATH", "LANG", "LANGUAGE", "TZ")
_KEPT_FOR_PIP = (
    *("PATH", "HOME", "LANG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CERT"),
    *("PIP_CLIENT_CERT", "PIP_CONFIG_FILE", "PIP_TRUSTED_HOST", "PIP_PROXY", "PIP_CACHE_DIR"),
    *("PIP_NO_CACHE_DIR", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "PIP_KEYRING_PROVIDER"),
)

_STYLE = "matplotlibrc"

# Set by Jupyter's kernel launcher, by shells and by Python's C locale start-up.
_SET_BY_OTHERS = frozenset({"JPY_PARENT_PID", "PWD", "LC_CTYPE", "OLDPWD", "SHLVL", "_"})


def kernel_environment(workspace: Path, run_dir: Path) -> dict[str, str]:
    """Return the complete environment of a kernel.

    Args:
        workspace: the folder that the kernel works in.
        run_dir: the kernel's private folder; home, caches and settings live in it.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("LC_")}
    kept.setdefault("PATH", os.defpath)
    home = run_dir / "home"
    return kept | {
        "HOME": str(home),
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "PWD": str(workspace),
        "TMPDIR": str(run_dir / "tmp"),
        "MPLCONFIGDIR": str(home / "matplotlib"),
        "IPYTHONDIR": str(run_dir / IPYTHON),
        "JUPYTER_CONFIG_DIR": str(home / "jupyter"),
        "JUPYTER_DATA_DIR": str(home / "jupyter"),
        "JUPYTER_RUNTIME_DIR": str(home / "jupyter"),
        # One thread per pool: threads cost address space, and rollouts already run in parallel.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        # Without these two, a limit on the address space stops an ordinary `import pandas`.
        "MALLOC_ARENA_MAX": "2",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        RUN_DIR_VARIABLE: str(run_dir),
    }


def pip_environment(folder: Path) -> dict[str, str]:
    """Return the complete environment of pip.

    Args:
        folder: the folder for temporary files.
    """
    kept = {name: os.environ[name] for name in _KEPT_FOR_PIP if name in os.environ}
    # PIP_USER: a user's own setting would conflict with `--target`.
    return kept | {"TMPDIR": str(folder), "PIP_USER": "0", "PYTHONIOENCODING": "utf-8"}


def unexpected_names(expected: Iterable[str]) -> tuple[str, ...]:
    """Return the variables of this process that are neither expected nor set by a launcher."""
    return tuple(sorted(set(os.environ) - set(expected) - _SET_BY_OTHERS))


def runtime_base() -> Path:
    """Return the folder for private run folders, with links resolved.

    Its path is short because the path of a socket has at most 107 bytes.
    """
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108 (a subfolder is private)
    usable = base.is_dir() and os.access(base, os.W_OK)
    return (base if usable else Path("/tmp")).resolve()  # noqa: S108


def find_program(name: str) -> str | None:
    """Return the absolute path of a program on PATH, or `None` if there is none."""
    return shutil.which(name)


def font_caches() -> tuple[Path, ...]:
    """Return this user's matplotlib font lists; a copy saves each kernel a second."""
    return tuple(sorted(_matplotlib_folder("XDG_CACHE_HOME", ".cache").glob("fontlist-*.json")))


def chart_style() -> Path:
    """Return this user's `matplotlibrc`, or ours if there is none."""
    own = _matplotlib_folder("XDG_CONFIG_HOME", ".config") / _STYLE
    return own if own.is_file() else Path(__file__).with_name(_STYLE)


def _matplotlib_folder(variable: str, default: str) -> Path:
    own = os.environ.get("MPLCONFIGDIR")
    base = Path(os.environ.get(variable) or Path.home() / default)
    return Path(own) if own else base / "matplotlib"
