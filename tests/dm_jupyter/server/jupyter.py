"""A real Jupyter server in its own process and folders, and a client that speaks as a panel."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.waiting import PATIENCE_S, wait_until

__all__ = ["JupyterServer", "Panel"]

TOKEN = "a-token-for-tests"
_START_S = 240.0
_OF_PAGES = ("jupyterlab", "jupyter_lsp", "notebook", "notebook_shim")


class JupyterServer:
    """A context manager around `jupyter server` (or `jupyter lab`) with our extension on."""

    def __init__(
        self,
        folder: Path,
        base_url: str,
        *,
        app: str = "server",
        model: str = "scripted",
        options: tuple[str, ...] = (),
    ) -> None:
        """Prepares the folders; entering the context starts the server.

        Args:
            folder: everything of the server lies in it; `root` is what it shows.
            base_url: the model's endpoint.
            app: `server` or `lab`.
            model: name of the model; `local` with an empty `base_url` runs the real one.
            options: further command line options.
        """
        self.folder = folder
        self.root = folder / "root"
        self.root.mkdir(parents=True, exist_ok=True)
        self.log = folder / "server.log"
        self.history = folder / "runs"
        self._app = app
        self._model = model
        self._model_url = base_url
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        """The server's address, without the token."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The number of the server's process."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the server and returns when it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                cwd=self.root,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                self._look_up()
            except (urllib.error.URLError, ConnectionError):
                if self._process.poll() is not None:
                    break
                time.sleep(0.1)
            else:
                return
        self.stop()
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-3000:]}")

    def _command(self) -> list[str]:
        return [
            sys.executable, "-m", "jupyter", self._app, "--no-browser", f"--port={self.port}",
            "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
            *self._settings(),
        ]  # fmt: skip

    def _settings(self) -> list[str]:
        """What any server of these tests is told, whoever starts it."""
        return [
            "--allow-root", f"--ServerApp.root_dir={self.root}",
            f"--ServerApp.jpserver_extensions={self._extensions()}",
            "--ServerApp.allow_unauthenticated_access=False",
            f"--DmJupyterApp.base_url={self._model_url}", f"--DmJupyterApp.model={self._model}",
            f"--DmJupyterApp.history_dir={self.history}", "--DmJupyterApp.reconnect_grace_s=0.3",
            *self._options,
        ]  # fmt: skip

    def _extensions(self) -> dict[str, bool]:
        """Ours, and for a server without pages none of those that bring them: they start slowly."""
        others = () if self._app != "server" else _OF_PAGES
        return {"dm_jupyter": True, **dict.fromkeys(others, False)}

    def _look_up(self) -> None:
        """Asks for an answer; raises while there is none."""
        self.get("/api/status")

    def _environment(self) -> dict[str, str]:
        private = self.folder / "private"
        runtime = self.folder / "r"
        runtime.mkdir(mode=0o700, exist_ok=True)
        names = {
            "HOME": "home", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime", "IPYTHONDIR": "ipython",
            "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        }  # fmt: skip
        made = {name: private / place for name, place in names.items()}
        for path in made.values():
            path.mkdir(parents=True, exist_ok=True)
        quiet = made["JUPYTERLAB_SETTINGS_DIR"] / "@jupyterlab" / "apputils-extension"
        quiet.mkdir(parents=True, exist_ok=True)
        (quiet / "notification.jupyterlab-settings").write_text(
            json.dumps({"fetchNews": "false", "checkForUpdates": False})
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DM_JUPYTER", "JUPYTER"))}
        return kept | {name: str(path) for name, path in made.items()} | {
            "SECRET_OF_THE_SERVER": "must-not-leave",
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
            "XDG_RUNTIME_DIR": str(runtime),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",  # never the developer's own
        }  # fmt: skip

    def stop(self) -> None:
        """Ends the server politely, then by force."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def kill(self) -> None:
        """Kills the server as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def request(self, method: str, path: str, body: object = None, *, token: str = TOKEN) -> Any:
        """Returns the status and the text of an answer."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=90) as answer:
            text = answer.read().decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def refusal(self, method: str, path: str, *, token: str = TOKEN) -> int:
        """The status with which a request is refused; 0 when it is not."""
        try:
            self.request(method, path, token=token)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 0

    def get(self, path: str) -> Any:
        """Returns the answer to a GET."""
        return self.request("GET", path)

    def write_notebook(self, name: str, kernel: str, sources: tuple[str, ...]) -> None:
        """Writes a notebook that names its kernel."""
        metadata = {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}}
        cells = [new_code_cell(source) for source in sources]
        nbformat.write(new_notebook(cells=cells, metadata=metadata), self.root / name)

    def notebook(
        self, name: str = "work.ipynb", kernel: str = "dm-sandbox", sources: tuple[str, ...] = ()
    ) -> str:
        """Makes a notebook with a running kernel; returns its path."""
        self.write_notebook(name, kernel, sources)
        session = {"path": name, "name": name, "type": "notebook", "kernel": {"name": kernel}}
        self.request("POST", "/api/sessions", session)
        return name

    def end_kernels(self, below: str) -> None:
        """Shuts down the kernels of notebooks whose paths begin so."""
        for session in self.get("/api/sessions"):
            if session["path"].startswith(below):
                self.request("DELETE", f"/api/sessions/{session['id']}")

    def kernel_id(self, path: str) -> str:
        """The id of a notebook's kernel."""
        return str(next(x["kernel"]["id"] for x in self.get("/api/sessions") if x["path"] == path))

    def document(self, path: str) -> Any:
        """The notebook as it lies on disk, validated.

        Not asked of the server: one that reads a notebook while it writes the same one takes the
        half-written file for a broken one and moves it away (jupyter_server's `fileio.py`).
        """

        def whole() -> Any:
            try:
                return nbformat.read(self.root / path, as_version=4)
            except nbformat.reader.NotJSONError:  # it is being written just now
                return None

        document = wait_until(whole, f"{path} is written")
        nbformat.validate(document)
        return document

    async def execute(self, path: str, source: str) -> str:
        """Runs a cell over the kernel's own WebSocket, as a browser does; returns its outputs."""
        address = self.url.replace("http", "ws", 1)
        headers = {"Authorization": f"token {TOKEN}", "Origin": self.url}
        request = HTTPRequest(
            f"{address}/api/kernels/{self.kernel_id(path)}/channels", headers=headers
        )
        connection = await websocket_connect(request)
        header = {"msg_id": "m1", "msg_type": "execute_request", "session": "s", "username": "",
                  "version": "5.3", "date": ""}  # fmt: skip
        content = {"code": source, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": False}  # fmt: skip
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content,
                   "channel": "shell", "buffers": []}  # fmt: skip
        await connection.write_message(json.dumps(message))
        outputs, missing = "", {"idle", "execute_reply"}  # they come on two channels
        while missing:
            raw = await connection.read_message()
            assert isinstance(raw, str)
            heard = json.loads(raw)
            if heard.get("parent_header", {}).get("msg_id") != "m1":
                continue
            outputs += json.dumps(heard["content"])
            missing -= {heard["msg_type"], heard["content"].get("execution_state")}
        connection.close()
        while await connection.read_message() is not None:
            pass
        return outputs


class Panel:
    """What a browser tab says and hears; an async context manager."""

    def __init__(self, server: JupyterServer, client_id: str = "tab-1") -> None:
        """Connects nothing yet."""
        self._server = server
        self.client_id = client_id
        self.heard: list[dict[str, Any]] = []
        self._connection: WebSocketClientConnection | None = None

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> None:
        """Opens the WebSocket."""
        address = self._server.url.replace("http", "ws", 1) + "/dm-jupyter/api/channel"
        headers = {"Authorization": f"token {TOKEN}", "Origin": self._server.url}
        request = HTTPRequest(address, headers=headers)
        self._connection = await websocket_connect(request, max_message_size=2**26)

    async def close(self) -> None:
        """Goes away, as a closed tab does."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            while await connection.read_message() is not None:
                pass

    async def say(self, kind: str, **fields: Any) -> None:
        """Sends a message."""
        assert self._connection is not None
        await self._connection.write_message(json.dumps({"kind": kind, **fields}))

    async def attach(self, path: str, seen: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Attaches to a notebook; returns the answer."""
        await self.say(
            "attach", notebook_path=path, client_id=self.client_id, seen=dict(seen or {})
        )
        return await self.until("attached")

    async def ask(self, path: str, question: str, **fields: Any) -> str:
        """Asks; returns the run's id."""
        await self.say("ask", request_id="q", notebook_path=path, question=question, **fields)
        opened = await self.until(lambda x: x["kind"] == "run_opened" or x["kind"] == "refused")
        assert opened["kind"] == "run_opened", opened
        return str(opened["run_id"])

    async def until(self, wanted: str | Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Listens until such a message comes; returns it."""
        assert self._connection is not None
        while True:
            raw = await self._connection.read_message()
            assert raw is not None, f"the server closed the line: {self.heard[-3:]}"
            message: dict[str, Any] = json.loads(raw)
            self.heard.append(message)
            is_it = message["kind"] == wanted if isinstance(wanted, str) else wanted(message)
            if is_it:
                return message

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What was heard of one kind."""
        return [message for message in self.heard if message["kind"] == kind]
