"""The handlers: REST for what the panel shows besides a run, and one WebSocket per tab."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from dm_jupyter import __version__

if TYPE_CHECKING:
    from dm_jupyter.server.app import LazyRunService
    from dm_jupyter.server.connection import Connection
    from dm_jupyter.server.run_service import RunService

__all__ = ["HANDLERS"]

_MOST_CHARS = 300
_RUN_ID = r"(?P<run_id>[0-9a-z-]+)"


class _RunServiceHandler(APIHandler):
    auth_resource = "dm_jupyter"

    @property
    def run_service(self) -> RunService:
        """The run service."""
        run_service: LazyRunService = self.settings["dm_jupyter_run_service"]
        return run_service.get()

    def given(self, *names: str) -> list[Any]:
        """Return the values of these names in the request's JSON object; empty text if missing."""
        body = self.get_json_body()
        return [body.get(name, "") if isinstance(body, dict) else "" for name in names]

    def finish_json(self, value: dict[str, Any]) -> None:
        """Answer with a JSON object."""
        self.finish(json.dumps(value, ensure_ascii=False))


def _damaged(error: ValueError) -> web.HTTPError:
    """Return the answer on a run whose journal can't be read; the error says where.

    The status is not that of a passing fault: a tab asks again after such a one.
    """
    return web.HTTPError(410, f"this run's journal is damaged: {error}")


class StatusHandler(_RunServiceHandler):
    """The models that can answer, what confines the kernel, and what is missing."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Send `{version, models, default_model, containment, is_shared, problems}`."""
        self.finish_json({"version": __version__, **await self.run_service.status()})


class RunsHandler(_RunServiceHandler):
    """The runs of the past."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Send `{runs}`, newest first, of `?notebook=` and with the words of `?query=`."""
        notebook, query = self.get_argument("notebook", ""), self.get_argument("query", "")
        # A long history, or a disk that does not answer, would keep all kernels waiting.
        found = await asyncio.to_thread(self.run_service.history.summaries, notebook, query)
        self.finish_json({"runs": [summary.to_json() for summary in found]})


class RunHandler(_RunServiceHandler):
    """One run."""

    @web.authenticated
    @authorized
    def get(self, run_id: str) -> None:
        """Send the `{messages}` of its journal."""
        try:
            messages = self.run_service.history.journal(run_id).to_json()
        except KeyError:
            raise web.HTTPError(404, f"there is no run {run_id}") from None
        except ValueError as error:
            raise _damaged(error) from error
        self.finish_json({"messages": messages})

    @web.authenticated
    @authorized
    def delete(self, run_id: str) -> None:
        """Delete all that is kept of it; the notebook stays as it is."""
        history = self.run_service.history
        try:
            if run_id in self.run_service.runs or history.is_active(run_id):
                raise web.HTTPError(409, "the run is still active: stop it first")
            history.delete(run_id)
        except KeyError:
            raise web.HTTPError(404, f"there is no run {run_id}") from None
        self.set_status(204)
        self.finish()


class ExportHandler(_RunServiceHandler):
    """A run as a file to download."""

    @web.authenticated
    @authorized
    def get(self, run_id: str) -> None:
        """Send it as `?as=notebook`, or `?as=trajectory`: JSONL without secrets and paths."""
        history = self.run_service.history
        form = self.get_argument("as", "notebook")
        if form not in ("notebook", "trajectory"):
            raise web.HTTPError(400, "as=notebook or as=trajectory")
        try:
            is_notebook = form == "notebook"
            text = history.notebook(run_id) if is_notebook else history.trajectory_line(run_id)
        except KeyError:
            raise web.HTTPError(404, f"there is no ended run {run_id}") from None
        except ValueError as error:
            raise _damaged(error) from error
        name = f"{run_id}.ipynb" if is_notebook else f"{run_id}.jsonl"
        kind = "application/x-ipynb+json" if is_notebook else "application/x-ndjson"
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(text, set_content_type=kind)


class VariablesHandler(_RunServiceHandler):
    """The tables in a notebook's kernel."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Send the `{variables}` of `?notebook=`; none while the kernel is busy."""
        found = await self.run_service.kernels.variables(self.get_argument("notebook"))
        self.finish_json({"variables": found})


class FilesHandler(_RunServiceHandler):
    """The data files below the server's root."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Send `{files, is_whole}`: names that match `?match=`, those nearest to `?near=` first.

        `near` is a folder. `is_whole` is false if the search reached its limit before the end.
        """
        search = self.run_service.files.search
        match, near = self.get_argument("match", ""), self.get_argument("near", "")
        found = await asyncio.to_thread(search.matching, match[:_MOST_CHARS], near)
        self.finish_json({"files": found.paths, "is_whole": found.is_whole})


class MeaningHandler(_RunServiceHandler):
    """The files and tables that a question names, before it is asked."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Send `{files, variables, unclear}` for `{question, notebook, near, files}`.

        `near` is the folder where names are looked up first; the `files` came with the question.
        `unclear` lists `{word, is_unknown, sentence, candidates}`.
        """
        given = self.get_json_body() or {}
        question, notebook, near = (
            str(given.get(name, "")) for name in ("question", "notebook", "near")
        )
        files = [str(name) for name in given.get("files", [])]
        found = await self.run_service.meaning(question, notebook, near, files)
        unclear = [{**asdict(one), "sentence": one.sentence} for one in found.unclear]
        self.finish_json({"files": found.files, "variables": found.variables, "unclear": unclear})


class ContextHandler(_RunServiceHandler):
    """A preview of what a question would show the model of its notebook; nothing is sent."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Send `{parts}`, each with `kind`, `text` and `count`, for the `Ask` in the body."""
        from dm_jupyter.core.codec import decode_json  # noqa: PLC0415  (not at the start)
        from dm_jupyter.server.protocol import Ask  # noqa: PLC0415

        try:
            ask = decode_json(Ask, self.request.body, "question")
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from None
        self.finish_json({"parts": await self.run_service.preview(ask)})


class TidyHandler(_RunServiceHandler):
    """The tidy copy of a notebook; a client that disconnects cancels it."""

    _work: asyncio.Task[dict[str, Any]] | None = None

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Send lines of JSON for `{notebook, run_id}`: `{progress}` before each cell, then the end.

        The end is `{tidied}` with the result of `Tidied.to_json`, or `{error}`.
        """
        path, run_id = map(str, self.given("notebook", "run_id"))
        self.set_header("Content-Type", "application/x-ndjson")
        self._work = asyncio.ensure_future(self.run_service.tidied(path, run_id, self._progress))
        with suppress(asyncio.CancelledError):
            self._line(await self._work)

    def on_connection_close(self) -> None:
        """Cancel the work: nobody waits for it any more."""
        super().on_connection_close()
        if self._work is not None:
            self._work.cancel()

    def _progress(self, line: str) -> None:
        self._line({"progress": line})

    def _line(self, value: dict[str, Any]) -> None:
        self.write(json.dumps(value, ensure_ascii=False) + "\n")
        sent = self.flush()
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())


class ExamplesHandler(_RunServiceHandler):
    """Example questions to start with."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Send `{examples}`: each `{question, file}` about a data file in the folder `?near=`."""
        found = await self.run_service.examples(self.get_argument("near", ""))
        self.finish_json({"examples": found})


class ModelHandler(_RunServiceHandler):
    """The model that answers, and what it lacks."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Send `ModelSetup.state` of `?name=`."""
        await self.finish_state()

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Set the endpoint `{base_url, model, api_key}`, once it has answered."""
        with _refusals():
            await self.run_service.setup.set_endpoint(*self.given("base_url", "model", "api_key"))
        await self.finish_state()

    @web.authenticated
    @authorized
    async def delete(self) -> None:
        """Forget the endpoint `{base_url, model}` that was set here, with its key."""
        with _refusals():
            await self.run_service.setup.forget_endpoint(*self.given("base_url", "model"))
        await self.finish_state()

    async def finish_state(self) -> None:
        """Send the same answer as `get`."""
        setup, name = self.run_service.setup, self.get_argument("name", "")
        self.finish_json(await asyncio.to_thread(setup.state, name))


class ModelUseHandler(ModelHandler):
    """The choice among the kept endpoints; the response is that of `ModelHandler.get`."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Make the kept endpoint `{base_url, model}` the default one."""
        with _refusals():
            await self.run_service.setup.use_endpoint(*self.given("base_url", "model"))
        await self.finish_state()


class ModelListHandler(_RunServiceHandler):
    """The names that an endpoint lists."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Send `{models}` at `{base_url, api_key}`; an empty key means the kept one for it."""
        with _refusals():
            names = await self.run_service.setup.list_models(*self.given("base_url", "api_key"))
        self.finish_json({"models": names})


class ModelTestHandler(_RunServiceHandler):
    """The capabilities of an endpoint."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Send `{rows}` of `{name, is_there, how}` for `{base_url, model, api_key}`."""
        given = self.given("base_url", "model", "api_key")
        with _refusals():
            rows = await self.run_service.setup.test_endpoint(*given)
        self.finish_json({"rows": rows})


class DownloadHandler(ModelHandler):
    """The download of a local model; each response is that of `ModelHandler.get`."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Start the download of the model `?name=`, or resume where an earlier one stopped."""
        with _refusals():
            self.run_service.setup.start_download(self.get_argument("name", ""))
        await self.finish_state()

    @web.authenticated
    @authorized
    async def delete(self) -> None:
        """Cancel the download; what has arrived is kept."""
        self.run_service.setup.cancel_download()
        await self.finish_state()


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn a `SetupError` into a response with its reason."""
    from dm_jupyter.server.models.model_setup import SetupError  # noqa: PLC0415  (not at the start)

    try:
        yield
    except SetupError as error:
        raise web.HTTPError(400, str(error)) from None


class ChannelHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """The WebSocket that carries text between a tab and its `Connection`."""

    auth_resource = "dm_jupyter"
    _connection: Connection | None = None

    @ws_authenticated
    @authorized
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open the connection; the mixin checks the origin."""
        result = super().get(*args, **kwargs)
        if result is not None:
            await result

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Connect the tab to the run service."""
        super().open(*args, **kwargs)
        run_service: LazyRunService = self.settings["dm_jupyter_run_service"]
        self._connection = run_service.get().connect(self._send_text)

    def on_message(self, message: str | bytes) -> None:
        """Pass one message on."""
        if self._connection is not None:
            self._connection.take(message)

    def on_close(self) -> None:
        """Disconnect the tab."""
        if self._connection is not None:
            self._connection.close()
        super().on_close()

    def _send_text(self, text: str) -> None:
        try:
            sent = self.write_message(text)
        except WebSocketClosedError:  # the journal keeps it for when the tab comes back
            return
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())


HANDLERS: list[tuple[str, type]] = [
    (r"/dm-jupyter/api/status", StatusHandler),
    (r"/dm-jupyter/api/runs", RunsHandler),
    (rf"/dm-jupyter/api/runs/{_RUN_ID}", RunHandler),
    (rf"/dm-jupyter/api/runs/{_RUN_ID}/export", ExportHandler),
    (r"/dm-jupyter/api/variables", VariablesHandler),
    (r"/dm-jupyter/api/files", FilesHandler),
    (r"/dm-jupyter/api/meaning", MeaningHandler),
    (r"/dm-jupyter/api/context", ContextHandler),
    (r"/dm-jupyter/api/tidy", TidyHandler),
    (r"/dm-jupyter/api/examples", ExamplesHandler),
    (r"/dm-jupyter/api/model", ModelHandler),
    (r"/dm-jupyter/api/model/use", ModelUseHandler),
    (r"/dm-jupyter/api/model/list", ModelListHandler),
    (r"/dm-jupyter/api/model/test", ModelTestHandler),
    (r"/dm-jupyter/api/model/download", DownloadHandler),
    (r"/dm-jupyter/api/channel", ChannelHandler),
]
