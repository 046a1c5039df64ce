"""The life of a worker, from the fork of its zygote to its end.

Covered: it has three descriptors and no others, and its own environment and random numbers.
Not covered: addresses and string hashes are the same in all workers of a zygote.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from kernel_sandbox.confine.confine import confine_late, confined, contained
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.forkserver.jail import join

__all__ = ["DESCRIPTORS", "WorkerOrder", "live"]

DESCRIPTORS = 3
"""Number of descriptors of a worker: its connection, standard output and standard error."""
_CONNECTION = 3
_HIGHEST = 65_536


@dataclass(frozen=True, slots=True)
class WorkerOrder:  # pragma: no cover (lives in the zygote)
    """Request to a zygote for one worker."""

    number: int
    """The number of the request."""
    policy: ConfinementSpec
    """The confinement of the worker."""
    environment: dict[str, str]
    """All of its variables."""
    descriptors: tuple[int, ...]
    """Its descriptors, `DESCRIPTORS` in number."""

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def live(order: WorkerOrder, first: int) -> NoReturn:  # pragma: no cover (runs in the worker)
    """Make this new process a worker, which runs cells until its connection ends.

    Args:
        order: the request.
        first: descriptor of the first process of its jail; -1 if it has none.
    """
    status = 1
    try:
        if first >= 0:
            join(first, order.policy)
        _keep(order.descriptors)
        os.environ.clear()
        os.environ.update(order.environment)
        if first < 0:
            os.chdir(order.policy.workspace)
        enter = contained if first < 0 else confined
        status = enter(order.policy, lambda layers: _serve_cells(order.policy, layers))
    except BaseException:  # noqa: BLE001 (reported, and the process ends)
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _keep(descriptors: Sequence[int]) -> None:  # pragma: no cover
    """Make the connection descriptor 3 and the two pipes 1 and 2; close all others."""
    least = _CONNECTION + 1
    connection, *pipes = [fcntl.fcntl(source, fcntl.F_DUPFD, least) for source in descriptors]
    os.dup2(connection, _CONNECTION, inheritable=False)
    for target, pipe in enumerate(pipes, start=1):
        os.dup2(pipe, target)
    os.closerange(_CONNECTION + 1, _HIGHEST)


def _serve_cells(policy: ConfinementSpec, containment: Containment) -> int:  # pragma: no cover
    from kernel_sandbox.forkserver.cell_loop import CellLoop  # noqa: PLC0415 (imported with the shell)
    from kernel_sandbox.forkserver.forking import Forker  # noqa: PLC0415
    from kernel_sandbox.forkserver.shell import ZMQInteractiveShell  # noqa: PLC0415
    from kernel_sandbox.forkserver.worker_channel import WorkerChannel  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _refresh(policy.overlay)
    channel = WorkerChannel(socket.socket(fileno=_CONNECTION))
    shell = ZMQInteractiveShell.instance()
    shell.attach(channel, Path(os.environ["HOME"]))
    loop = CellLoop(channel, shell)
    containment = confine_late(policy, containment)
    Forker(loop, policy, containment)
    channel.send("ready", containment.to_json())
    return loop.serve()


def _refresh(overlay: str) -> None:  # pragma: no cover
    """Reset what this process inherited and must not share with its siblings."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    tempfile.tempdir = None
    sys.argv = [""]
    # Isolated mode leaves the working folder out. Last: it adds modules and replaces none.
    sys.path += ["", overlay] if overlay else [""]
