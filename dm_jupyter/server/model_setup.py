"""The set-up of the model that answers: what is missing, its download, an endpoint with its key.

The endpoint that a person names in the panel is kept in one file of their own data folder, which
no other account can read. Its key goes from there to the endpoint and nowhere else: no reply, log,
notebook, trajectory or kernel gets it.

Covered: the key in all that this package writes and answers. Not covered: a program with the
person's own rights, such as a kernel that is not restricted, can read the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dm_jupyter.agent.http_policy import Endpoint, HttpPolicy
from dm_jupyter.agent.local_model.catalogue import resolve
from dm_jupyter.agent.local_model.errors import EngineMissingError, PullCancelledError
from dm_jupyter.agent.local_model.pull import PullProgress, pull
from dm_jupyter.agent.local_model.readiness import obstacles
from dm_jupyter.agent.local_model.runtime import write_private
from dm_jupyter.agent.protocols import SampleRequest
from dm_jupyter.config import ModelChoice, is_address
from dm_jupyter.core.addresses import shown_address
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import (
    EndpointRefusedError,
    EndpointUnreachableError,
    LocalModelError,
    PolicyError,
)
from dm_jupyter.server.model_house import ModelHouse
from dm_jupyter.server.redaction import Redaction

__all__ = ["ModelSetup", "SetupError"]

_log = logging.getLogger(__name__)
_CHECK_S = 30.0
_CHECK_TOKENS = 8
_MOST_CHARS = 2_000
_NOT_HERE = (404, 405)
"""What a server says of an address that is not an endpoint's."""


class SetupError(Exception):
    """The set-up can't be changed like that; its text says why and what to do."""


@dataclass(slots=True, eq=False)
class _Download:
    """One download, from its start until another one begins."""

    name: str
    total_bytes: int
    state: Literal["running", "done", "cancelled", "failed"] = "running"
    stage: str = "hub"
    done_bytes: int = 0
    error: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[None] | None = None

    def take(self, progress: PullProgress) -> None:
        """Notes how far it is; called from the thread that works."""
        self.stage, self.done_bytes = progress.stage, progress.done_bytes

    def to_json(self) -> dict[str, Any]:
        """What the panel shows of it."""
        names = ("name", "state", "stage", "done_bytes", "total_bytes", "error")
        return {name: getattr(self, name) for name in names}


class ModelSetup:
    """Brings a model to a server that has none yet."""

    def __init__(
        self,
        models: ModelHouse,
        place: Path,
        redaction: Redaction,
        fetch: Callable[..., Path] = pull,
    ) -> None:
        """Uses the endpoint that was kept, unless the server's settings name one.

        Args:
            models: the models that answer; its default is what is set up.
            place: the file that keeps the endpoint.
            redaction: what must not stand in a trajectory; a key is added to it.
            fetch: brings the file of a local model; as `pull`.
        """
        self.models = models
        self._configured = models.default
        self._place = place
        self._redaction = redaction
        self._fetch = fetch
        self._download: _Download | None = None
        kept = self._kept() if self._configured.is_local else None
        if kept is not None:
            self._use(kept)

    def state(self, name: str = "") -> dict[str, Any]:
        """Returns what is missing for a model, and how far its set-up is; blocks for a moment.

        Args:
            name: of the model, as in `Ask`; empty for the default.
        """
        choice = self.models.choice(name)
        default = self.models.default
        download = self._download
        endpoint: dict[str, Any] | None = None
        if not default.is_local:
            address = shown_address(default.base_url)
            endpoint = {"base_url": address, "model": default.model}
            endpoint["has_key"] = bool(default.api_key)
        return {
            **_missing(choice),
            "download": download.to_json() if download is not None else None,
            "endpoint": endpoint,
            "can_set_endpoint": self._configured.is_local,
        }

    async def set_endpoint(self, base_url: str, model: str, api_key: str) -> None:
        """Has an endpoint answer from now on, once it has answered.

        Raises:
            SetupError: it does not answer, or may not be set; the text has no key in it.
        """
        if not self._configured.is_local:
            raise SetupError(
                "The server's settings name the endpoint. An administrator can change "
                "DmJupyterApp.base_url."
            )
        choice = await _answering(_choice_of(base_url, model, api_key))
        try:
            await asyncio.to_thread(self._keep, choice)
        except OSError as error:
            raise SetupError(f"The endpoint can't be kept: {error}. Make {self._place.parent} "
                             "writable and try again.") from error  # fmt: skip
        self._use(choice)
        _log.info("the endpoint was set in the panel: %s", shown_address(choice.base_url))

    async def forget_endpoint(self) -> None:
        """Deletes the kept endpoint and its key; the model of the server's settings answers."""
        await asyncio.to_thread(self._place.unlink, missing_ok=True)
        self.models.default = self._configured

    def start_download(self, name: str = "") -> None:
        """Begins to fetch a local model, or goes on with it.

        Raises:
            SetupError: it is no local model that can be fetched, or another one is being fetched.
        """
        choice = self.models.choice(name)
        if not choice.is_local:
            raise SetupError(f"{name or choice.model} is not a local model: nothing to download.")
        if self._download is not None and self._download.state == "running":
            if self._download.name == choice.model:
                return
            raise SetupError(f"{self._download.name} is being downloaded. Wait, or cancel it.")
        try:
            model = resolve(choice.model)
        except LocalModelError as error:
            raise SetupError(str(error)) from error
        download = _Download(choice.model, model.size_bytes)
        download.task = asyncio.create_task(self._work(download))
        self._download = download

    def cancel_download(self) -> None:
        """Ends the download; what has arrived is kept for the next one."""
        if self._download is not None:
            self._download.cancelled.set()

    async def close(self) -> None:
        """Ends the download, and returns when it has ended."""
        self.cancel_download()
        if self._download is not None and self._download.task is not None:
            await asyncio.wait([self._download.task])

    async def _work(self, download: _Download) -> None:
        """The boundary of one download: whatever breaks in it is its own end."""
        model = resolve(download.name)
        try:
            await asyncio.to_thread(
                self._fetch, model, None, download.take, cancelled=download.cancelled
            )
            download.state = "done"
        except PullCancelledError:
            download.state = "cancelled"
        except (LocalModelError, OSError) as error:
            download.state, download.error = "failed", str(error)
        except Exception as error:  # noqa: BLE001  (the boundary)
            _log.exception("the download of %s broke", download.name)
            download.state = "failed"
            download.error = f"{type(error).__name__}: the server's log has more"

    def _use(self, choice: ModelChoice) -> None:
        self._redaction.add_secret(choice.api_key)
        self.models.default = choice

    def _kept(self) -> ModelChoice | None:
        try:
            kept = json.loads(self._place.read_text("utf-8"))
            choice = _choice_of(kept["base_url"], kept["model"], kept["api_key"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, SetupError) as error:
            # Never the text of the error: it may hold a piece of the file.
            _log.warning("%s is not used: %s", self._place, type(error).__name__)
            return None
        return choice

    def _keep(self, choice: ModelChoice) -> None:
        self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = ("base_url", "model", "api_key")
        text = json.dumps({name: getattr(choice, name) for name in names})
        fresh = self._place.with_suffix(".new")
        write_private(fresh, text)
        fresh.replace(self._place)


def _missing(choice: ModelChoice) -> dict[str, Any]:
    """The first thing that a person can do about a model, and what there is to download."""
    if not choice.is_local:
        return {"is_ready": True, "obstacle": None, "local": None}
    obstacle = next(obstacles(choice.model), None)
    try:
        model = resolve(choice.model)
    except LocalModelError:
        local = None
    else:
        local = {"name": choice.model, "title": model.title, "size_bytes": model.size_bytes}
    found = None
    if obstacle is not None:
        is_engine = isinstance(obstacle, EngineMissingError)
        found = {"kind": "engine" if is_engine else "model" if local else "unknown"}
        found |= {"text": obstacle.text, "command": obstacle.command}
    return {"is_ready": obstacle is None, "obstacle": found, "local": local}


def _choice_of(base_url: object, model: object, api_key: object) -> ModelChoice:
    """Returns the endpoint that a person named.

    Raises:
        SetupError: the address or the name can't be one.
    """
    words = (base_url, model, api_key)
    texts = [word.strip() for word in words if isinstance(word, str) and len(word) < _MOST_CHARS]
    if len(texts) < len(words):
        raise SetupError("Give the address, the model's name and the key as short texts.")
    url, name, key = texts
    if not is_address(url):
        raise SetupError("The address must begin with http:// or https://; it usually ends in /v1.")
    if not name:
        raise SetupError("Name the model as the endpoint calls it.")
    if not key.isascii() or not key.isprintable():
        raise SetupError("The key has characters that no key has: copy it again.")
    return ModelChoice(name, url.rstrip("/"), key)


async def _answering(choice: ModelChoice) -> ModelChoice:
    """Returns the choice when its endpoint answers; with `/v1` after the address where it must be.

    Raises:
        SetupError: it does not answer.
    """
    try:
        await _ask(choice)
    except EndpointRefusedError as error:
        if error.status not in _NOT_HERE or choice.base_url.endswith("/v1"):
            raise SetupError(_why(choice, error)) from None
    except (PolicyError, TimeoutError) as error:
        raise SetupError(_why(choice, error)) from None
    else:
        return choice
    longer = ModelChoice(choice.model, f"{choice.base_url}/v1", choice.api_key)
    try:
        await _ask(longer)
    except (PolicyError, TimeoutError) as error:
        raise SetupError(_why(choice, error)) from None
    return longer


async def _ask(choice: ModelChoice) -> None:
    endpoint = Endpoint(choice.base_url, choice.model, choice.api_key, retries=0)
    request = SampleRequest((Message("user", "Say OK."),), max_tokens=_CHECK_TOKENS)
    async with asyncio.timeout(_CHECK_S), HttpPolicy(endpoint) as policy:
        await policy.sample(request, lambda _: None)


def _why(choice: ModelChoice, error: Exception) -> str:
    """Why the endpoint was not accepted, in the panel's words; without the key."""
    address = shown_address(choice.base_url)
    if isinstance(error, TimeoutError):
        return f"{address} did not answer within {_CHECK_S:.0f} s. Is the server busy or blocked?"
    if isinstance(error, EndpointUnreachableError):
        return f"Nothing answers at {address}. Is the server running, and is the address right?"
    status = getattr(error, "status", 0)
    said = str(error)
    if choice.api_key:
        said = said.replace(choice.api_key, "[key]")
    remedies = {
        401: f"{address} refuses the key. Check it.",
        403: f"{address} does not let this key use {choice.model}.",
        404: f"{address} has no model {choice.model}, or is not an endpoint: its address usually "
        "ends in /v1.",
    }
    return remedies.get(status) or f"The endpoint was not accepted: {said}"
