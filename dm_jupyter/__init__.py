"""An AI data analyst that lives in Jupyter."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"

# The functions below import by name when they are called: an import up here would tie every part
# that reads this package's version to the server and to IPython.


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Add `%analyze` and `%%analyze`; called by `%load_ext dm_jupyter`."""
    import_module("dm_jupyter.magic.extension").load(ipython)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Remove `%analyze` and `%%analyze`; called by `%unload_ext dm_jupyter`."""
    import_module("dm_jupyter.magic.extension").unload(ipython)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Return the location of the built side panel; called by JupyterLab's tools."""
    return [{"src": "labextension", "dest": "dm-jupyter"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Return our server extension; called by a Jupyter server."""
    app = import_module("dm_jupyter.server.app").DmJupyterApp
    return [{"module": "dm_jupyter.server", "app": app}]
