"""The range in which attacks run: things to steal, to reach and to harm, and their inspection.

Covered: everything that an attack aims at is created here, in a separate folder, and inspected
from outside afterwards. Not covered: harm that leaves no trace in the range. An attack that only
prints that it got through is believed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from kernel_sandbox.names import hidden_module, is_obeyed
from kernel_sandbox.types import CellResult

__all__ = ["AttackRange", "Targets"]

SECRET = "TOPSECRET"  # noqa: S105 (the attacks look for this word)
"""The start of every secret of the range."""
_OTHER_KERNELS = ("kOTHER", "kSECOND")
_KEY = ".sbxfake/.ssh/id_rsa"
_PROTECTED = {
    ".git/config": "[core]\n",
    ".git/hooks/README": "no hooks here\n",
    ".jupyter/jupyter_server_config.py": "c = None\n",
    ".ipython/profile_default/startup/README": "nothing\n",
    "conftest.py": "value = 1\n",
    "proj/.git/config": "[core]\n",
    "live.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n',
}
_Manifest = dict[str, tuple[int, int, bytes]]


class AttackRange:
    """The surroundings that all attacks of one run share: kernels' run folder and environment.

    While it is entered, it contains the run folders and working folders of all kernels of this
    process. The environment of this process then contains a secret.
    """

    def __init__(self) -> None:
        """Create nothing yet."""
        self._ends = contextlib.ExitStack()
        self._folder = Path()

    def __enter__(self) -> AttackRange:
        """Create the folders and the other kernels.

        Raises:
            OSError: nothing can be written to the temporary folder.
        """
        folder = tempfile.mkdtemp(prefix="dm-range-")
        self._ends.callback(_remove, Path(folder))
        self._folder = Path(folder).resolve()
        for name in ("run", "tmp"):
            (self._folder / name).mkdir(mode=0o700)
        for name in _OTHER_KERNELS:
            (self.run_dir / name).mkdir(mode=0o700)
            (self.run_dir / name / "c.json").write_text(f'{{"key": "{SECRET}-kernel"}}')
            self._ends.enter_context(_listening(str(self.run_dir / name / "s-1")))
        variables = {"XDG_RUNTIME_DIR": str(self.run_dir), "DM_RANGE_API_KEY": f"{SECRET}-own"}
        self._ends.enter_context(_changed_surroundings(variables, str(self._folder / "tmp")))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove everything and restore the environment."""
        self._ends.close()

    @property
    def run_dir(self) -> Path:
        """The folder in which kernels create their run folders."""
        return self._folder / "run"

    def targets(self) -> Targets:
        """Return fresh targets, for one attack."""
        return Targets(Path(tempfile.mkdtemp(prefix="t-", dir=self._folder)), self.run_dir)

    def leftovers(self) -> list[str]:
        """Remove the private folders that nobody owns any more, and return their names."""
        found = []
        for path in (*self.run_dir.iterdir(), *(self._folder / "tmp").iterdir()):
            if path.name not in _OTHER_KERNELS and _is_abandoned(path):
                found.append(path.name)
                _remove(path)
        return found


class Targets:
    """What one attack may try to reach: a home, inputs, a working folder, sockets, a victim."""

    def __init__(self, folder: Path, run_dir: Path) -> None:
        """Create the files and start the listeners and the victim.

        Args:
            folder: an empty folder of this attack alone.
            run_dir: the folder of the kernels' run folders.

        Raises:
            OSError: they can't be created or started.
        """
        self._folder = folder
        self._run_dir = run_dir
        self._ends = contextlib.ExitStack()
        self._listeners: dict[str, socket.socket] = {}
        self.mark = f"atk{secrets.token_hex(5)}"
        """The name of the kernel's process, and of all that it forks; programs inherit it too."""
        self.home = folder / "home"
        self.work = folder / "work"
        """A working folder with files that its owner's other programs trust."""
        self._plant()
        self._before = self._manifests()
        for name, kind in (("TP", socket.SOCK_STREAM), ("UP", socket.SOCK_DGRAM)):
            self._listen(name, socket.socket(socket.AF_INET, kind), ("127.0.0.1", 0))
        for name, address in (("UX", str(folder / "ux")), ("AB", f"\0{self.mark}")):
            self._listen(name, socket.socket(socket.AF_UNIX), address)
        self._victim = subprocess.Popen(
            ["/bin/sleep", "3600"], env={"SERVICE_TOKEN": f"{SECRET}-victim"}, cwd="/"
        )
        self._ends.callback(self._victim.wait)
        self._ends.callback(self._victim.kill)

    def close(self) -> None:
        """End the victim, close the listeners and remove the files."""
        self._ends.close()
        _remove(self._folder)

    @property
    def inputs(self) -> dict[str, Path]:
        """The runner's input files, by the names that the code uses."""
        return {path.name: path for path in sorted((self._folder / "inputs").iterdir())}

    @property
    def names(self) -> dict[str, Any]:
        """What the code of an attack knows about the range."""
        addresses = {name: item.getsockname() for name, item in self._listeners.items()}
        return {
            "HOME_": str(self.home),
            "RUN_": str(self._run_dir),
            "TP": addresses["TP"][1],
            "UP": addresses["UP"][1],
            "UX": addresses["UX"],
            "AB": f"\0{self.mark}",
            "VP": self._victim.pid,
            "SRV": os.getpid(),
        }

    def damage(self, results: Iterable[CellResult]) -> list[str]:
        """Return what an attack did although it should not have been able to.

        Args:
            results: what its cells returned.
        """
        found = [
            f"{name} was reached" for name, item in self._listeners.items() if _was_reached(item)
        ]
        if self._victim.poll() is not None:
            found.append("the victim is dead")
        after = self._manifests()
        changed = {name for name, _ in after.items() ^ self._before.items()}
        found += [f"{Path(name).relative_to(self._folder)} was changed" for name in sorted(changed)]
        if any(SECRET in str(result.to_json()["outputs"]) for result in results):
            found.append("a secret is in the output")
        return found

    def _plant(self) -> None:
        (self.home / _KEY).parent.mkdir(parents=True)
        (self.home / _KEY).write_text(f"{SECRET}-key\n")
        (self._folder / "inputs").mkdir()
        (self._folder / "inputs" / "data.csv").write_text("a,b\n1,2\n")
        bomb = pickle.dumps(_Bomb(f"open({str(self.home / 'pwn')!r}, 'w').write('x')"))
        (self._folder / "inputs" / "bomb.pkl").write_bytes(bomb)
        for name, text in _PROTECTED.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(text)

    def _listen(self, name: str, listener: socket.socket, address: Any) -> None:
        self._listeners[name] = self._ends.enter_context(listener)
        listener.bind(address)
        if listener.type == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)

    def _manifests(self) -> _Manifest:
        """Return everything that must not change: the home, the inputs, the protected files."""
        found = _manifest(self.home) | _manifest(self._folder / "inputs")
        for name in _PROTECTED:
            guarded = self.work / name
            found |= _manifest(guarded.parent if "/" in name else guarded)
        return found | {str(x): _state(x) for x in self.work.rglob("*") if self._outlives(x)}

    def _outlives(self, path: Path) -> bool:
        """Return whether others would run or follow a file of the folder, which is kept."""
        mode = path.lstat().st_mode
        is_privileged = bool(mode & (stat.S_ISUID | stat.S_ISGID)) and stat.S_ISREG(mode)
        place = path.relative_to(self.work)
        return (
            is_privileged or path.is_symlink() or is_obeyed(path.name) or bool(hidden_module(place))
        )


class _Bomb:
    """An object whose unpickling runs code."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self._code,)


def _manifest(path: Path) -> _Manifest:
    files = path.rglob("*") if path.is_dir() else (path,)
    return {str(item): _state(item) for item in files}


def _state(path: Path) -> tuple[int, int, bytes]:
    """Return mode, number of names and content; all zero or empty for what is missing."""
    try:
        info = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(info.st_mode) else b""
    except OSError:
        return 0, 0, b""
    return info.st_mode, info.st_nlink, content


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(1)
        else:
            listener.accept()[0].close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _listening(path: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        yield


@contextlib.contextmanager
def _changed_surroundings(variables: dict[str, str], temporary: str) -> Iterator[None]:
    before, folder = dict(os.environ), tempfile.tempdir
    os.environ.update(variables)
    tempfile.tempdir = temporary
    try:
        yield
    finally:
        tempfile.tempdir = folder
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def _is_abandoned(path: Path) -> bool:
    """Return whether no living owner holds the lock of a private folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(path: Path) -> None:
    """Remove a folder, whatever its modes and however deep it is, where rmtree gives up."""
    for command in (("rm", "-rf"), ("chmod", "-R", "u+rwX"), ("rm", "-rf")):
        if not os.path.lexists(path):
            return
        program = shutil.which(command[0]) or f"/bin/{command[0]}"
        subprocess.run([program, *command[1:], "--", path], check=False, stderr=subprocess.DEVNULL)
