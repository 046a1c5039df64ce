"""Milliseconds that loading our extension adds to the start of a Jupyter server."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

RUNS = 9
LOAD = """
import json, sys, time
from jupyter_server.serverapp import ServerApp
app = ServerApp()
options = ["--ServerApp.port=0", "--allow-root", "--no-browser"]
app.initialize(options, find_extensions=False, new_httpserver=False)
manager = app.extension_manager
started = time.perf_counter()
manager.add_extension("dm_jupyter", enabled=True)
manager.link_extension("dm_jupyter")
manager.load_extension("dm_jupyter")
ms = 1000 * (time.perf_counter() - started)
assert "dm_jupyter_analyst" in app.web_app.settings
print(json.dumps([ms, [name for name in ("pandas", "torch", "openai") if name in sys.modules]]))
"""


def load() -> tuple[float, list[str]]:
    """Returns the milliseconds, and which heavy modules were imported."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        environment = os.environ | dict.fromkeys(names, folder)
        done = subprocess.run(
            [sys.executable, "-c", LOAD],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    ms, heavy = json.loads(done.stdout.splitlines()[-1])
    return ms, heavy


def main() -> None:
    load()
    loads = [load() for _ in range(RUNS)]
    heavy = sorted({name for _, names in loads for name in names})
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {RUNS}")
    print(f"extension loaded in {statistics.median(ms for ms, _ in loads):.0f} ms")
    print(f"heavy imports: {', '.join(heavy) or 'none'}")


if __name__ == "__main__":
    main()
