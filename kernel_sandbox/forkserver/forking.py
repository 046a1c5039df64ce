"""How a worker forks itself between two cells: each child is a state of its own, copied lazily.

Covered: a child has its own connection, event loop, working folder and temporary folder. A
Landlock layer keeps it out of its siblings' folders and, if the system can, from signalling them.
A state that a fork would break is refused: threads, open files, sockets, running programs.
Not covered: the home folder, which all states of a tree share, and reading what earlier states
wrote. A child restricts itself after it has run the cells before it: these can prevent that, for
all states after them. The system accepts sixteen Landlock layers, and a deeper state is refused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_sandbox.confine import landlock
from kernel_sandbox.confine.layers import Containment, LayerState
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.confine.system_paths import base_rules
from kernel_sandbox.forkserver.cell_loop import CellLoop

__all__ = ["BRANCHES", "TEMPORARY", "Forker", "obstacle"]

BRANCHES = ".branches"
"""The folder, in a state's working folder, that contains the folders of the states after it."""
TEMPORARY = f"{BRANCHES}/tmp"  # noqa: S108 (within the working folder)
"""The folder for temporary files of a state, not copied to the states after it."""
COPIED_BYTES = 64 * 1024**2
"""Most bytes that a state's files may take, because they are copied to each state after it."""
_HARMLESS_THREADS = frozenset({"jemalloc_bg_thd"})
_CONNECTION = 3
_QUIET_LINKS = ("anon_inode:", "/dev/null", "/dev/urandom", "/dev/random")


def obstacle(known_children: frozenset[int], known_descriptors: Mapping[int, str]) -> str:
    """Return why this process can't be forked without breaking its state; empty if it can.

    Args:
        known_children: processes that are states themselves.
        known_descriptors: descriptors of the worker itself, with their targets.
    """
    threads = [name for name in _thread_names() if name not in _HARMLESS_THREADS]
    if threads:
        return f"{len(threads)} threads are running ({threads[0]})"
    if _children() - known_children:
        return "a program that it started is running"
    for descriptor, target in _descriptors().items():
        is_known = known_descriptors.get(descriptor) == target
        if not is_known and not target.startswith(_QUIET_LINKS):
            return f"{Path(target).name} is open"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "a graphics processor is in use"
    return ""


def _thread_names() -> list[str]:
    main = str(os.getpid())
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            if task.name != main:
                names.append((task / "comm").read_text(encoding="utf-8").strip())
    return names


def _children() -> frozenset[int]:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return frozenset(int(number) for number in path.read_text(encoding="ascii").split())


def _descriptors() -> dict[int, str]:
    found = {}
    listing = f"/proc/{os.getpid()}/fd"
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found[int(entry.name)] = str(entry.readlink())
    return {number: target for number, target in found.items() if target != listing}


class Forker:  # pragma: no cover (runs in the worker)
    """Handler of `fork`: the worker stays as it is, and its child becomes the next state."""

    def __init__(self, loop: CellLoop, policy: ConfinementSpec, containment: Containment) -> None:
        """Record what belongs to the worker and not to its cells.

        Args:
            loop: the worker's loop, which gets the handler.
            policy: the confinement of the worker.
            containment: the layers around it.
        """
        self._loop = loop
        self._policy = policy
        self._containment = containment
        self._states: set[int] = set()
        self._known = _descriptors()
        self._written: list[Path] = []
        """Contents of the working folders of the states before this one."""
        loop.handlers["fork"] = self.handle

    def handle(self, content: dict[str, Any]) -> None:
        """Fork, or report why not.

        Args:
            content: the `id` of the request and the `folder` of the new state.

        Raises:
            OSError: the parent is gone.
        """
        channel = self._loop.channel
        descriptors = channel.take_descriptors()
        self._reap()
        given = {number: str(Path(f"/proc/self/fd/{number}").readlink()) for number in descriptors}
        reason = obstacle(frozenset(self._states), self._known | given)
        reason = reason or self._too_large()
        if not reason:
            child = os.fork()
            if child == 0:
                self._become(descriptors, Path(content["folder"]))
                return
            self._states.add(child)
        for descriptor in descriptors:
            os.close(descriptor)
        status = "error" if reason else "ok"
        reply = {"id": content["id"], "status": status, "execution_count": None}
        channel.send("reply", {**reply, "evalue": reason})

    def _reap(self) -> None:
        for child in tuple(self._states):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(child, os.WNOHANG)[0] == 0:
                    continue
            self._states.discard(child)

    def _too_large(self) -> str:
        total = 0
        for folder, names, files in os.walk("."):
            names[:] = [name for name in names if name != BRANCHES]
            for name in files:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
                if total > COPIED_BYTES:
                    return f"it has written more than {COPIED_BYTES >> 20} MiB"
        return ""

    def _become(self, descriptors: list[int], folder: Path) -> None:
        """Make this new process a state of its own and report it ready; exit if it can't."""
        try:
            os.setsid()
            self._loop.channel.let_go()
            connection, *pipes = descriptors
            for source, target in zip((connection, *pipes), (_CONNECTION, 1, 2), strict=True):
                os.dup2(source, target)
                os.close(source)
            self._states.clear()
            self._loop.channel.adopt(socket.socket(fileno=_CONNECTION))
            self._loop.renew()
            self._known = _descriptors()
            before = Path.cwd()
            self._written += [entry for entry in before.iterdir() if entry.name != BRANCHES]
            _move(folder)
            layer = landlock.restrict(self._rules(folder), probe_outside=before)
            if layer.state is not LayerState.ACTIVE:  # then states could not be kept apart
                raise OSError(layer.reason)
            self._loop.channel.send("ready", self._containment.to_json())
        except BaseException as error:  # noqa: BLE001 (the process ends here, and says why)
            os.write(2, f"the state could not be forked: {error}\n".encode())
            os._exit(1)

    def _rules(self, folder: Path) -> landlock.LandlockRules:
        """Return the rules: its own folder to write, what earlier states wrote only to read."""
        policy = self._policy
        readable = (*policy.readable_paths, *self._written)
        home = Path(policy.run_dir) / "home"
        trees, around = base_rules(policy.network)
        base = (*trees, Path("/proc"))
        return landlock.LandlockRules(readable, (folder, home), around, network=True, system=base)


def _move(folder: Path) -> None:
    """Copy the contents of the working folder, and work in the copy from now on."""
    here = Path.cwd()

    def without_branches(_: str, names: list[str]) -> list[str]:
        return [name for name in names if name == BRANCHES]

    folder.parent.mkdir(exist_ok=True)
    shutil.copytree(here, folder, symlinks=True, ignore=without_branches)
    temporary = folder / TEMPORARY
    temporary.mkdir(parents=True)
    os.chdir(folder)
    os.environ.update(PWD=str(folder), TMPDIR=str(temporary))
    tempfile.tempdir = None
