"""The local model: a small open model in a file, run by a private server on this machine.

- `catalogue.py`: which models there are, pinned by hash; `cache.py`: where their files are stored
- `adapters.py`: an adapter's file, and whether it fits a model (`gguf_header.py`)
- `pull.py`: fetch a file from the model hub, or part by part (`parts.py`)
- `endpoint.py`: use a model; `server.py`: the process that runs it; `engine.py`: the engine inside,
  and what is missing before it can start
- `runtime.py`: how all users share one server; `tickets.py`: whose request comes next
"""

from dm_jupyter.models.local.endpoint import LocalEndpoint, ServerOptions, local_endpoint

__all__ = ["LocalEndpoint", "ServerOptions", "local_endpoint"]
