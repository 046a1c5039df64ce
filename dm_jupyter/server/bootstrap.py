"""Construction of the run service from the extension's settings and the server's parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.history.run_history import Redaction, RunHistory
from dm_jupyter.server.kernels.registry import KernelRegistry
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.models.model_setup import ModelSetup
from dm_jupyter.server.notebooks.open_notebooks import OpenNotebooks
from dm_jupyter.server.notebooks.shared_document import SharedDocuments
from dm_jupyter.server.run_service import RunService
from kernel_sandbox.types import Limits

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

    from dm_jupyter.config import ModelChoice
    from dm_jupyter.server.app import DmJupyterApp
    from dm_jupyter.server.kernels.packages import Packages

__all__ = ["build_service"]


def build_service(
    app: DmJupyterApp, server: ServerApp, choice: ModelChoice, packages: Packages | None
) -> RunService:
    """Return the run service of a server.

    Args:
        app: the extension, whose settings were checked.
        server: the server, whose extensions are all loaded.
        choice: the default model.
        packages: the added packages that restricted kernels see; `None` for none.
    """
    root = Path(server.root_dir).resolve()
    limits = Limits(wall_s=app.cell_seconds, output_bytes=app.output_bytes)
    token = str(getattr(server.identity_provider, "token", ""))
    redaction = Redaction((root, Path.home()), (choice.api_key, token))
    training_file = Path(app.training_file) if app.training_file else None
    contents = server.contents_manager
    open_notebooks = OpenNotebooks(contents, app.reconnect_grace_s)
    open_notebooks.shared = SharedDocuments.of(server.extension_manager.extension_apps)
    kernels = KernelRegistry(server.session_manager, server.kernel_manager, limits, packages)
    kernels.on_run = app.kernels_of_runs.add
    return RunService(
        files=DataFiles(root, allows_hidden=bool(getattr(contents, "allow_hidden", False))),
        open_notebooks=open_notebooks,
        kernels=kernels,
        setup=ModelSetup(
            ModelPool(choice, app.model_idle_s),
            Path(app.endpoint_file),
            redaction,
            is_locked=app.lock_endpoint,
        ),
        history=RunHistory(Path(app.history_dir), root, redaction, training_file),
        settings=RunSettings(
            max_turns=app.max_turns,
            max_cells=app.max_turns,
            max_tokens=app.max_tokens,
            max_seconds=app.max_seconds,
        ),
    )
