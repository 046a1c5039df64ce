"""Milliseconds that our extension adds to the start of a Jupyter server, and to its first use.

It measures clock time, and processor time, which other work on the machine disturbs less.
"""

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


def times():
    return time.perf_counter(), time.process_time()


begun = times()
manager.add_extension("dm_jupyter", enabled=True)
manager.link_extension("dm_jupyter")
manager.load_extension("dm_jupyter")
loaded = times()
assert "dm_jupyter_run_service" in app.web_app.settings
app.web_app.settings["dm_jupyter_run_service"].get()
used = times()
spent = [1000 * (b - a) for pair in ((begun, loaded), (loaded, used)) for a, b in zip(*pair)]
print(json.dumps([spent, [name for name in ("pandas", "torch", "openai") if name in sys.modules]]))
"""


def load() -> tuple[list[float], list[str]]:
    """Return the milliseconds, and which heavy modules were imported.

    The milliseconds are clock and processor time of the start, then those of the first use.
    """
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
    spent, heavy = json.loads(done.stdout.splitlines()[-1])
    return spent, heavy


def main() -> None:
    load()
    loads = [load() for _ in range(RUNS)]
    heavy = sorted({name for _, names in loads for name in names})
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {RUNS}")
    start, start_cpu, use, use_cpu = map(
        statistics.median, zip(*(x for x, _ in loads), strict=True)
    )
    print(f"extension loaded in {start:.0f} ms ({start_cpu:.0f} ms of processor time)")
    print(f"then built at its first use in {use:.0f} ms ({use_cpu:.0f} ms of processor time)")
    print(f"heavy imports: {', '.join(heavy) or 'none'}")


if __name__ == "__main__":
    main()
