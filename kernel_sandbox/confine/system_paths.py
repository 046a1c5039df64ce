"""What of the machine every kernel may read: the system's folders and the interpreter.

Covered: private keys beside the certificates, and the settings beside the interpreter, which may
contain passwords: pip's, conda's, and those in `etc`, as of Jupyter. They are hidden.
Not covered: secrets anywhere else in these folders.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from pathlib import Path

import kernel_sandbox

__all__ = ["SYSTEM", "base_paths", "base_rules", "hidden_paths", "interpreter_folders", "unfit"]

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_ETC = (
    *("ld.so.cache", "alternatives", "fonts", "localtime", "timezone", "mime.types"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf"),
)
_ETC_NETWORK = (
    *("resolv.conf", "hosts", "nsswitch.conf", "ca-certificates"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust"),
)
_SETTINGS = ("pip.conf", "condarc", ".condarc")


@functools.cache
def base_paths(network: bool) -> tuple[Path, ...]:
    """Return what every kernel may read: system and interpreter, missing paths included.

    Args:
        network: whether the kernel may reach a network.
    """
    etc = (*_ETC, *_ETC_NETWORK) if network else _ETC
    return tuple(map(Path, (*SYSTEM, *(f"/etc/{name}" for name in etc), *_interpreter_paths())))


def _interpreter_paths() -> list[str]:
    """Return the folders of the interpreter, without those in others that are shown."""
    kept: list[str] = []
    for path in map(str, interpreter_folders()):
        if not any(f"{path}/".startswith(f"{other}/") for other in (*SYSTEM, *kept)):
            kept.append(path)
    return kept


@functools.cache
def interpreter_folders() -> tuple[Path, ...]:
    """Return the folders of the interpreter and of this package, never the home around them."""
    return (*_prefixes(), Path(kernel_sandbox.__file__).parent)


def _prefixes() -> tuple[Path, ...]:
    program = str(Path(sys.executable).resolve().parents[1])
    roots = [sys.prefix, sys.base_prefix, program]
    return tuple(map(Path, dict.fromkeys((*roots, *map(os.path.realpath, roots)))))


def hidden_paths() -> tuple[Path, ...]:
    """Return the files and folders that no kernel may read although it may read those around."""
    roots = [root for root in (*_prefixes(), Path("/usr/local")) if str(root) not in SYSTEM]
    found = []
    for root in dict.fromkeys(roots):
        found += [root / name for name in _SETTINGS]
        with contextlib.suppress(OSError):
            found += [path for path in (root / "etc").iterdir() if path.name not in _ETC]
    return tuple(path for path in found if path.exists() and not path.is_symlink())


def base_rules(network: bool) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return what every kernel may read, as rules that can allow whole trees only.

    Args:
        network: whether the kernel may reach a network.

    Returns:
        The trees without what is hidden, and the folders around what is hidden.
    """
    hidden = {path.resolve() for path in hidden_paths()}
    trees: list[Path] = []
    around: list[Path] = []
    waiting = [path.resolve() for path in base_paths(network)]
    while waiting:
        path = waiting.pop()
        if path in hidden:
            continue
        if not any(path in one.parents for one in hidden):
            trees.append(path)
            continue
        around.append(path)
        with contextlib.suppress(OSError):  # one rule fewer never loosens
            waiting += [one for one in path.iterdir() if not one.is_symlink()]
    return tuple(trees), tuple(around)


def unfit(folder: Path, run_dir: Path, *, has_view: bool) -> str:
    """Return why a kernel can't have a folder to write; empty if it can.

    Args:
        folder: the folder, without links.
        run_dir: the private folder of the kernel.
        has_view: whether the kernel gets a view, which keeps the interpreter read-only.
    """
    home = Path.home()
    for path in (home, home.resolve(), run_dir, *map(Path, SYSTEM)):
        if path.is_relative_to(folder):
            return f"it contains {path}"
    for path in interpreter_folders():
        if not path.is_relative_to(folder):
            continue
        if not has_view or path == folder or Path(os.path.realpath(path)) != path:
            return f"it contains the Python environment {path}, which can't be kept read-only"
    return ""
