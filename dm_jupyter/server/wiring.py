"""Puts the analyst together from the extension's settings and the parts of the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.server.analyst import Analyst
from dm_jupyter.server.data_files import DataFiles
from dm_jupyter.server.desks import Desks
from dm_jupyter.server.history import History
from dm_jupyter.server.kernels import Kernels
from dm_jupyter.server.model_house import ModelHouse
from dm_jupyter.server.model_setup import ModelSetup
from dm_jupyter.server.redaction import Redaction
from dm_jupyter.server.shared_document import SharedDocuments
from kernel_sandbox.types import Limits

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

    from dm_jupyter.config import ModelChoice
    from dm_jupyter.server.app import DmJupyterApp
    from dm_jupyter.server.packages import Packages

__all__ = ["build"]


def build(
    app: DmJupyterApp, server: ServerApp, choice: ModelChoice, packages: Packages | None
) -> Analyst:
    """Returns the analyst of a server.

    Args:
        app: its settings, which were checked.
        server: all its extensions are loaded.
        choice: the model of whoever chooses none.
        packages: those that restricted kernels see; `None` for none.
    """
    root = Path(server.root_dir).resolve()
    limits = Limits(wall_s=app.cell_seconds, output_bytes=app.output_bytes)
    token = str(getattr(server.identity_provider, "token", ""))
    redaction = Redaction((root, Path.home()), (choice.api_key, token))
    training_file = Path(app.training_file) if app.training_file else None
    contents = server.contents_manager
    desks = Desks(contents, app.absence_s)
    desks.shared = SharedDocuments.of(server.extension_manager.extension_apps)
    kernels = Kernels(server.session_manager, server.kernel_manager, limits, packages)
    kernels.on_run = app.kernels_of_runs.add
    return Analyst(
        files=DataFiles(root, allows_hidden=bool(getattr(contents, "allow_hidden", False))),
        desks=desks,
        kernels=kernels,
        setup=ModelSetup(
            ModelHouse(choice, app.model_idle_s),
            Path(app.endpoint_file),
            redaction,
            is_locked=app.lock_endpoint,
        ),
        history=History(Path(app.history_dir), redaction, training_file),
        settings=RunSettings(
            max_turns=app.max_turns,
            max_cells=app.max_turns,
            max_tokens=app.max_tokens,
            max_seconds=app.max_seconds,
        ),
    )
