"""The process that runs one model: it starts the engine, publishes it, and ends when unused.

Started as `python -m dm_jupyter.models.local.server FOLDER` with the settings as JSON on its
standard input, since other accounts can read a command line. It checks about once a second whether
a lease is still held. A killed client can't stop it, but the kernel frees that client's lease.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from dm_jupyter.core.codec import decode_json
from dm_jupyter.models.local.engine import Engine, EngineSettings, start_engine
from dm_jupyter.models.local.errors import ServerStartError
from dm_jupyter.models.local.runtime import ServerFolder, ServerState, live_leases, try_lock

__all__ = ["claim", "run_server", "serve_until_unused"]

_POLL_S: Final = 1.0
_CLAIM_POLL_S: Final = 0.02
_CLAIM_TIMEOUT_S: Final = 2.0


def claim(folder: ServerFolder, timeout_s: float = _CLAIM_TIMEOUT_S) -> IO[str]:
    """Become the folder's one server.

    Returns:
        The open file whose lock shows that this process is alive.

    Raises:
        ServerStartError: Another server holds the folder.
    """
    deadline = time.monotonic() + timeout_s
    while (handle := try_lock(folder.alive_lock)) is None:
        # A client that checks whether a server lives also holds the lock for a moment.
        if time.monotonic() > deadline:
            raise ServerStartError(f"Another server holds {folder.path}.")
        time.sleep(_CLAIM_POLL_S)
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle


def serve_until_unused(
    folder: ServerFolder,
    settings: EngineSettings,
    start: Callable[[EngineSettings], Engine],
    poll_s: float = _POLL_S,
) -> None:
    """Start the engine, publish it, and return when no lease is left.

    Args:
        folder: Shared by users and server; the caller has claimed it.
        settings: The settings of the engine.
        start: Starts the engine, which runs in its own threads; returns once it answers.
        poll_s: Seconds between two checks of the leases.
    """
    engine = start(settings)
    state = ServerState(
        base_url=f"{engine.address}/v1",
        model_name=settings.model_name,
        context_tokens=settings.context_tokens,
        slots=settings.slots,
    )
    folder.publish(state, settings.api_key)
    while True:
        time.sleep(poll_s)
        lock = try_lock(folder.start_lock)
        if lock is None:
            continue  # a user is joining or leaving: check again afterwards
        with lock:
            if live_leases(folder.leases) == 0:
                folder.forget()
                return


def run_server(start: Callable[[EngineSettings], Engine]) -> None:
    """Run the server process: read the settings, serve, and exit without a tear-down."""
    folder = ServerFolder(Path(sys.argv[1]))
    settings = decode_json(EngineSettings, sys.stdin.read(), "settings")
    code = 1
    try:
        alive = claim(folder)  # noqa: F841 held until the process ends
        serve_until_unused(folder, settings, start)
        code = 0
    except (RuntimeError, ServerStartError) as error:
        # The engine has printed the reason above; a traceback would push it out of the log's tail.
        sys.stderr.write(f"{error}\n")
    sys.stderr.flush()
    # Skips the engine's slow tear-down, and frees `alive` last, when the process is really gone.
    os._exit(code)


if __name__ == "__main__":
    run_server(start_engine)
