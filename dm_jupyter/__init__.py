"""An AI data analyst that lives in Jupyter."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"

# What follows is found by name when it is asked for: an import here would tie every part that asks
# this package for its version to the server and to IPython.


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Adds `%analyze` and `%%analyze`; called by `%load_ext dm_jupyter`."""
    import_module("dm_jupyter.magic.extension").load(ipython)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Removes them; called by `%unload_ext dm_jupyter`."""
    import_module("dm_jupyter.magic.extension").unload(ipython)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Returns where the built side panel is; called by JupyterLab's tools."""
    return [{"src": "labextension", "dest": "dm-jupyter"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Returns our server extension; called by a Jupyter server."""
    app = import_module("dm_jupyter.server.app").DmJupyterApp
    return [{"module": "dm_jupyter.server", "app": app}]
