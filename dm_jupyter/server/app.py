"""The Jupyter server extension `dm_jupyter`: its settings, its start and its end.

The run service is built when it is first needed, so that no server waits for its imports at the
start. A server then loads only the app, the handlers and what they import at module level.
`tests/dm_jupyter/server/test_start.py` lists modules that must not be among them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_core.paths import jupyter_data_dir
from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Enum, Float, Int, Unicode, default
from traitlets.config import Config

from dm_jupyter.config import ModelChoice, model_choice, packages_folder
from dm_jupyter.core.errors import UsageError
from dm_jupyter.server.handlers import HANDLERS
from dm_jupyter.server.history.summaries import has_open_run
from dm_jupyter.server.kernels.packages import Packages
from dm_jupyter.server.kernels.page_filter import filtered

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

    from dm_jupyter.server.run_service import RunService

__all__ = ["DmJupyterApp", "LazyRunService"]

_POSITIVE = ("max_turns", "max_tokens", "max_seconds", "cell_seconds", "output_bytes")
_NOT_NEGATIVE = ("model_idle_s", "reconnect_grace_s")


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
    api_key_file = Unicode("", help="File with the endpoint's key.").tag(config=True)
    model_idle_s = Float(
        600.0, help="How long an unused local model stays loaded; 0: unloaded at once."
    ).tag(config=True)
    max_turns = Int(10, help="Turns of one run.").tag(config=True)
    max_tokens = Int(20_000, help="Tokens sampled in one run.").tag(config=True)
    max_seconds = Float(3_600.0, help="Clock time of one run, with waiting for approvals.").tag(
        config=True
    )
    cell_seconds = Float(120.0, help="Clock time of one cell of a run.").tag(config=True)
    output_bytes = Int(4 * 2**20, help="Output kept of one cell of a run.").tag(config=True)
    reconnect_grace_s = Float(
        5.0, help="How long a run waits for a lost tab before it writes the file itself."
    ).tag(config=True)
    history_dir = Unicode(help="Where runs are kept.").tag(config=True)

    training_file = Unicode(
        "", help="JSONL file to which every run is added for training; empty: off."
    ).tag(config=True)

    install_packages = Enum(
        ["ask", "never"],
        "ask",
        help="Whether a cell that imports a missing package waits for your approval.",
    ).tag(config=True)
    packages_dir = Unicode(help="Where packages that cells lacked are installed.").tag(config=True)

    endpoint_file = Unicode(
        help="Where the endpoints that were set in the panel are kept, with their keys."
    ).tag(config=True)

    lock_endpoint = Bool(
        False, help="Whether the panel can't set an endpoint, and uses none that was set in it."
    ).tag(config=True)

    @default("endpoint_file")
    def _default_endpoint_file(self) -> str:
        return str(Path(jupyter_data_dir()) / "dm_jupyter" / "endpoint.json")

    @default("history_dir")
    def _default_history_dir(self) -> str:
        return str(Path(jupyter_data_dir()) / "dm_jupyter" / "runs")

    @default("packages_dir")
    def _default_packages_dir(self) -> str:
        return str(packages_folder())

    def _packages(self, kernel_manager: Any) -> Packages | None:
        """Let restricted kernels see the packages folder, unless settings name another overlay."""
        if self.install_packages == "never":
            return None
        packages = Packages(Path(self.packages_dir))
        if not kernel_manager.config.SandboxProvisioner.get("overlay"):
            seen = {"SandboxProvisioner": {"overlay": packages.site}}
            kernel_manager.update_config(Config(seen))
        return packages

    def initialize_settings(self) -> None:
        """Check the settings; the service is built, and its parts are loaded, on first use.

        Raises:
            UsageError: the model's settings are invalid, or a number is too small.
        """
        server = self.serverapp
        assert server is not None  # noqa: S101
        for name in _POSITIVE:
            if getattr(self, name) <= 0:
                raise UsageError(f"DmJupyterApp.{name} must be positive, got {getattr(self, name)}")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise UsageError(
                    f"DmJupyterApp.{name} must not be negative, got {getattr(self, name)}"
                )
        choice = model_choice(
            self.model or None,
            self.base_url or None,
            Path(self.api_key_file) if self.api_key_file else None,
        )
        self.kernels_of_runs: set[str] = set()
        connection = self.settings["kernel_websocket_connection_class"]
        is_watched = self.kernels_of_runs.__contains__
        self.settings["kernel_websocket_connection_class"] = filtered(connection, is_watched)
        packages = self._packages(server.kernel_manager)
        build = partial(self._build, server, choice, packages)
        root = Path(server.root_dir).resolve()
        self._run_service = LazyRunService(build, Path(self.history_dir), root)
        self.settings["dm_jupyter_run_service"] = self._run_service

    def _build(
        self, server: ServerApp, choice: ModelChoice, packages: Packages | None
    ) -> RunService:
        # This import loads everything that a server's start need not wait for.
        from dm_jupyter.server.bootstrap import build_service  # noqa: PLC0415

        return build_service(self, server, choice, packages)

    def initialize_handlers(self) -> None:
        """Add the REST handlers and the WebSocket."""
        self.handlers.extend(HANDLERS)

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:  # noqa: ARG002
        self._run_service.start()

    async def stop_extension(self) -> None:
        """End all runs and keep what they did."""
        await self._run_service.close()


class LazyRunService:
    """The entry for the run service in the server's settings, which builds it on first use."""

    def __init__(self, build: Callable[[], RunService], history_dir: Path, root: Path) -> None:
        """Start without a run service.

        Args:
            build: builds the run service; called once, by the server's event loop.
            history_dir: the folder of past runs.
            root: the real path of the server's folder.
        """
        self._build = build
        self._history_dir = history_dir
        self._root = root
        self._run_service: RunService | None = None

    def get(self) -> RunService:
        """Return the run service, built at the first call."""
        if self._run_service is None:
            self._run_service = self._build()
        return self._run_service

    def start(self) -> None:
        """End runs that an earlier server left open; build the run service only if there are any.

        They are runs of this server's folder: another server writes the notebooks of another one.
        """
        if has_open_run(self._history_dir, self._root):
            self.get().end_cut_off()

    async def close(self) -> None:
        """Close the run service, if it was built."""
        if self._run_service is not None:
            await self._run_service.close()
