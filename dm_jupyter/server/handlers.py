"""The REST side: what a panel shows before and besides a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from dm_jupyter import __version__
from dm_jupyter.server.channel import ChannelHandler

if TYPE_CHECKING:
    from dm_jupyter.server.analyst import Analyst
    from dm_jupyter.server.first_use import AnalystAtFirstUse

__all__ = ["HANDLERS"]

_RUN_ID = r"(?P<run_id>[0-9a-z-]+)"


class _AnalystHandler(APIHandler):
    auth_resource = "dm_jupyter"

    @property
    def analyst(self) -> Analyst:
        """The service."""
        analyst: AnalystAtFirstUse = self.settings["dm_jupyter_analyst"]
        return analyst.get()

    def finish_json(self, value: dict[str, Any]) -> None:
        """Answers with a JSON object."""
        self.finish(json.dumps(value, ensure_ascii=False))


class StatusHandler(_AnalystHandler):
    """What would answer, what holds the kernel in, and what is missing."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """`{version, models, default_model, containment, is_shared, problems}`."""
        self.finish_json({"version": __version__, **await self.analyst.status()})


class RunsHandler(_AnalystHandler):
    """The runs of the past."""

    @web.authenticated
    @authorized
    def get(self) -> None:
        """`{runs}`, newest first, of `?notebook=` and with the words of `?query=`."""
        notebook, query = self.get_argument("notebook", ""), self.get_argument("query", "")
        found = self.analyst.history.summaries(notebook, query)
        self.finish_json({"runs": [summary.to_json() for summary in found]})


class RunHandler(_AnalystHandler):
    """One run."""

    @web.authenticated
    @authorized
    def get(self, run_id: str) -> None:
        """`{messages}` of its journal."""
        try:
            messages = self.analyst.history.journal(run_id).to_json()
        except KeyError:
            raise web.HTTPError(404, f"there is no run {run_id}") from None
        self.finish_json({"messages": messages})

    @web.authenticated
    @authorized
    def delete(self, run_id: str) -> None:
        """Deletes all that is kept of it; the notebook stays as it is."""
        if self.analyst.is_running(run_id):
            raise web.HTTPError(409, "the run goes on: stop it first")
        try:
            self.analyst.history.delete(run_id)
        except KeyError:
            raise web.HTTPError(404, f"there is no run {run_id}") from None
        self.set_status(204)
        self.finish()


class ExportHandler(_AnalystHandler):
    """A run as a file to take away."""

    @web.authenticated
    @authorized
    def get(self, run_id: str) -> None:
        """As `?as=notebook`, or as `?as=trajectory`: JSONL without secrets and paths."""
        history = self.analyst.history
        form = self.get_argument("as", "notebook")
        if form not in ("notebook", "trajectory"):
            raise web.HTTPError(400, "as=notebook or as=trajectory")
        try:
            is_notebook = form == "notebook"
            text = history.notebook(run_id) if is_notebook else history.trajectory_line(run_id)
        except KeyError:
            raise web.HTTPError(404, f"there is no ended run {run_id}") from None
        name = f"{run_id}.ipynb" if is_notebook else f"{run_id}.jsonl"
        kind = "application/x-ipynb+json" if is_notebook else "application/x-ndjson"
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(text, set_content_type=kind)


class VariablesHandler(_AnalystHandler):
    """The tables that a notebook's kernel holds."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """`{variables}` of `?notebook=`; none while the kernel is busy."""
        found = await self.analyst.kernels.variables(self.get_argument("notebook"))
        self.finish_json({"variables": found})


HANDLERS: list[tuple[str, type]] = [
    (r"/dm-jupyter/api/status", StatusHandler),
    (r"/dm-jupyter/api/runs", RunsHandler),
    (rf"/dm-jupyter/api/runs/{_RUN_ID}", RunHandler),
    (rf"/dm-jupyter/api/runs/{_RUN_ID}/export", ExportHandler),
    (r"/dm-jupyter/api/variables", VariablesHandler),
    (r"/dm-jupyter/api/channel", ChannelHandler),
]
