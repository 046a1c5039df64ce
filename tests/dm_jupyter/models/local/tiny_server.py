"""The server process with a web server as its engine; the model file says how it behaves."""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dm_jupyter.models.local.engine import Engine, EngineSettings
from dm_jupyter.models.local.server import run_server


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        key = self.headers.get("Authorization")
        good = key == f"Bearer {self.server.key}"  # type: ignore[attr-defined]
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base's name
        pass


def start(settings: EngineSettings) -> Engine:
    """Start as the model file says."""
    behaviour = Path(settings.model_file).read_text()
    sys.stderr.write(f"engine: {behaviour}\n")
    if behaviour == "refuses":
        raise RuntimeError("not a model")
    if behaviour == "crashes":
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "aborts":
        import os

        os.abort()
    if behaviour == "hangs":
        time.sleep(600)
    if behaviour == "deaf":
        return Engine("http://127.0.0.1:1", None)
    if behaviour == "stubborn":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if behaviour == "slow":
        time.sleep(1.2)
    server = ThreadingHTTPServer(("127.0.0.1", settings.port), _Handler)
    server.key = settings.api_key  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return Engine(f"http://127.0.0.1:{server.server_port}", server)


if __name__ == "__main__":
    run_server(start)
