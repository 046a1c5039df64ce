"""The local model: a small open model in a file, run by a private server on this machine.

- `catalogue.py`: which models there are, pinned by hash; `cache.py`: where their files lie
- `adapters.py`: an adapter's file, and whether it fits a model (`gguf_header.py`)
- `pull.py`: fetch a file from the model hub, or part by part (`parts.py`)
- `endpoint.py`: use a model; `server.py`: the process that runs it; `engine.py`: what it runs, and
  what is missing before it can
- `runtime.py`: how one server is shared by all who use it; `tickets.py`: whose request comes next
"""

from dm_jupyter.models.local.endpoint import LocalEndpoint, ServerOptions, local_endpoint

__all__ = ["LocalEndpoint", "ServerOptions", "local_endpoint"]
