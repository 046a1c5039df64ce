"""Says in one line that a build lacks Node.js; without it the reason is lost in a traceback."""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLE = Path("dm_jupyter/labextension/static/style.js")


class NodeHook(BuildHookInterface[Any]):
    """Runs before the hook that builds the side panel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Ends the build unless the panel can be built, is there already or is not wanted."""
        if os.getenv("SKIP_JUPYTER_BUILDER") or (Path(self.root) / BUNDLE).exists():
            return
        try:
            subprocess.run(["node", "--version"], check=True, capture_output=True)  # noqa: S607
        except (OSError, subprocess.CalledProcessError):
            self.app.abort(
                "Building JupyterLab's side panel takes Node.js 20.19, 22.12 or newer "
                "(https://nodejs.org). To install everything but the panel, run the same command "
                "with SKIP_JUPYTER_BUILDER=1 before it."
            )
