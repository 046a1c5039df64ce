"""The Jupyter server extension `dm_jupyter`: its settings, its start and its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_data_dir
from jupyter_server.extension.application import ExtensionApp
from traitlets import Enum, Float, Int, Unicode, default
from traitlets.config import Config

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.config import model_choice, packages_folder
from dm_jupyter.server.analyst import Analyst
from dm_jupyter.server.desks import Desks
from dm_jupyter.server.handlers import HANDLERS
from dm_jupyter.server.history import History
from dm_jupyter.server.kernels import Kernels
from dm_jupyter.server.model_house import ModelHouse
from dm_jupyter.server.packages import Packages
from dm_jupyter.server.redaction import Redaction
from dm_jupyter.server.shared_document import SharedDocuments
from kernel_sandbox.types import Limits

__all__ = ["DmJupyterApp"]


class DmJupyterApp(ExtensionApp):
    """Runs of the agent in the notebooks that people have open."""

    name = "dm_jupyter"
    app_name = "dm_jupyter"
    load_other_extensions = True

    model = Unicode(
        "", help="Model that answers; empty: DM_JUPYTER_MODEL, else the local one."
    ).tag(config=True)
    base_url = Unicode("", help="OpenAI-compatible endpoint; empty for a local model.").tag(
        config=True
    )
    api_key_file = Unicode("", help="File that holds the endpoint's key.").tag(config=True)
    model_idle_s = Float(600.0, help="How long an unused local model stays loaded.").tag(
        config=True
    )
    max_turns = Int(10, help="Turns of one run.").tag(config=True)
    max_tokens = Int(20_000, help="Tokens sampled in one run.").tag(config=True)
    max_seconds = Float(3_600.0, help="Clock time of one run, with waiting for approvals.").tag(
        config=True
    )
    cell_seconds = Float(120.0, help="Clock time of one cell of a run.").tag(config=True)
    output_bytes = Int(4 * 2**20, help="Output kept of one cell of a run.").tag(config=True)
    absence_s = Float(
        5.0, help="How long a run waits for a lost tab before it writes the file itself."
    ).tag(config=True)
    history_dir = Unicode(help="Where runs are kept.").tag(config=True)

    training_file = Unicode(
        "", help="JSONL file to which every run is added for training; empty: none is."
    ).tag(config=True)

    install_packages = Enum(
        ["ask", "never"],
        "ask",
        help="Whether a cell that imports a missing package waits for leave to install it.",
    ).tag(config=True)
    packages_dir = Unicode(help="Where packages that cells lacked are installed.").tag(config=True)

    @default("history_dir")
    def _default_history_dir(self) -> str:
        return str(Path(jupyter_data_dir()) / "dm_jupyter" / "runs")

    @default("packages_dir")
    def _default_packages_dir(self) -> str:
        return str(packages_folder())

    def _packages(self, kernel_manager: Any) -> Packages | None:
        """Lets restricted kernels see the packages folder, unless they were given another."""
        if self.install_packages == "never":
            return None
        packages = Packages(Path(self.packages_dir))
        if not kernel_manager.config.SandboxProvisioner.get("overlay"):
            seen = {"SandboxProvisioner": {"overlay": packages.site}}
            kernel_manager.update_config(Config(seen))
        return packages

    def initialize_settings(self) -> None:
        """Builds the service; nothing is opened and nothing heavy is imported yet.

        Raises:
            UsageError: the model's settings make no sense.
        """
        server = self.serverapp
        assert server is not None  # noqa: S101
        choice = model_choice(
            self.model or None,
            self.base_url or None,
            Path(self.api_key_file) if self.api_key_file else None,
        )
        root = Path(server.root_dir).resolve()
        limits = Limits(wall_s=self.cell_seconds, output_bytes=self.output_bytes)
        token = str(getattr(server.identity_provider, "token", ""))
        redaction = Redaction((root, Path.home()), (choice.api_key, token))
        self._analyst = Analyst(
            root=root,
            desks=Desks(server.contents_manager, self.absence_s),
            kernels=Kernels(
                server.session_manager,
                server.kernel_manager,
                limits,
                self._packages(server.kernel_manager),
            ),
            models=ModelHouse(choice, self.model_idle_s),
            history=History(
                Path(self.history_dir),
                redaction,
                Path(self.training_file) if self.training_file else None,
            ),
            settings=RunSettings(
                max_turns=self.max_turns,
                max_cells=self.max_turns,
                max_tokens=self.max_tokens,
                max_seconds=self.max_seconds,
            ),
        )
        self.settings["dm_jupyter_analyst"] = self._analyst

    def initialize_handlers(self) -> None:
        """Adds the REST handlers and the WebSocket."""
        self.handlers.extend(HANDLERS)

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        self._analyst.desks.shared = SharedDocuments.of(serverapp.extension_manager.extension_apps)
        self._analyst.open()

    async def stop_extension(self) -> None:
        """Ends all runs and keeps what they did."""
        await self._analyst.close()
