"""A session in a forked worker, without a Jupyter kernel, for training and search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kernel_sandbox.forkserver.worker_process import WorkerOptions, WorkerProcess
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.session import CellSession
from kernel_sandbox.types import Limits

__all__ = ["CellWorker"]


class CellWorker(CellSession):
    """Session in one worker of a zygote, with the same `CellResult`s as a `KernelSession`.

    Covered: the same layers and limits. Not covered: comms, and tasks that continue between cells,
    because the event loop of a worker stops there.
    """

    def __init__(  # noqa: PLR0913 (those of a session, and how it is started)
        self,
        zygote: Zygote,
        limits: Limits | None = None,
        inputs: Mapping[str, Path] | None = None,
        require: Iterable[str] = (),
        *,
        isolate: bool = True,
        overlay: Path | None = None,
        screened: bool = True,
        keeps_ledger: bool = True,
    ) -> None:
        """Prepare a worker; entering the context forks it.

        Args:
            zygote: the zygote that forks it; the caller keeps ownership.
            limits: what the worker may use.
            inputs: the files that the code may read, by the names that it uses for them.
            require: the layers that must be active, or the start fails.
            isolate: whether to use namespaces if the machine has them.
            overlay: a folder of added packages that the code may import.
            screened: whether a cell is screened before it runs; the layers do not depend on it.
            keeps_ledger: whether it records what its cells do to the data.

        Raises:
            ContainmentError: `require` names a layer that does not exist.
        """
        super().__init__(limits, inputs, require, screened=screened, keeps_ledger=keeps_ledger)
        self._zygote = zygote
        self._options = WorkerOptions(isolate=isolate, overlay=overlay)

    def _launch(self) -> WorkerProcess:
        return WorkerProcess(self._zygote, self.limits, self.workspace, self._options)
