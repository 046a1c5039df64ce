"""The set-up of the model that answers: what is missing, its download, an endpoint with its key.

The endpoints that a person names in the panel are kept for their account alone; see
`EndpointStore`. A key goes from there to its endpoint and nowhere else: no reply, log, notebook,
trajectory or kernel gets it. A kept key goes only to the address that it was kept with.

Covered: the key in all that this package writes and answers. Not covered: a program with the
person's own rights, such as a kernel that is not restricted, can read what is kept.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.errors import LocalModelError
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.models.local.cache import missing_files
from dm_jupyter.models.local.catalogue import LocalModel, resolve
from dm_jupyter.models.local.engine import obstacles
from dm_jupyter.models.local.errors import EngineMissingError, PullCancelledError
from dm_jupyter.models.local.pull import PullProgress, pull
from dm_jupyter.presets import presets
from dm_jupyter.server.history.run_history import Redaction
from dm_jupyter.server.models.endpoint_check import (
    SetupError,
    answering,
    endpoint_of,
    learned,
    listed,
)
from dm_jupyter.server.models.endpoint_store import EndpointStore, KeptEndpoint, has_keyring
from dm_jupyter.server.models.model_pool import ModelPool, kept_name

__all__ = ["ModelSetup", "SetupError"]

_log = logging.getLogger(__name__)
_NAMED_BY_SETTINGS = (
    "The server's settings name the endpoint. An administrator can change DmJupyterApp.base_url."
)
_LOCKED = (
    "An administrator has locked the choice of endpoint. They can change it with "
    "DmJupyterApp.lock_endpoint."
)


@dataclass(slots=True, eq=False)
class _Download:
    """One download, from its start until the next one begins."""

    name: str
    total_bytes: int
    state: Literal["running", "done", "cancelled", "failed"] = "running"
    stage: str = "hub"
    done_bytes: int = 0
    error: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[None] | None = None

    def take(self, progress: PullProgress) -> None:
        """Record the progress; called from the download's thread."""
        self.stage, self.done_bytes = progress.stage, progress.done_bytes

    def to_json(self) -> dict[str, Any]:
        """Return what the panel shows of it."""
        names = ("name", "state", "stage", "done_bytes", "total_bytes", "error")
        return {name: getattr(self, name) for name in names}


class ModelSetup:
    """The set-up of a model for a server that has none yet."""

    def __init__(
        self,
        models: ModelPool,
        place: Path,
        redaction: Redaction,
        fetch: Callable[..., Path] = pull,
        *,
        is_locked: bool = False,
    ) -> None:
        """Use the kept endpoints, unless the server's settings name one.

        Args:
            models: the models that answer; their default is what is set up.
            place: the file with the endpoints.
            redaction: removes texts from trajectories; keys are added to it.
            fetch: downloads the files of a local model, as `pull` does.
            is_locked: whether no endpoint can be set here, and no kept one is used or listed.
        """
        self.models = models
        self._configured = models.default
        self._store = EndpointStore(place)
        self._redaction = redaction
        self._fetch = fetch
        self._download: _Download | None = None
        locked = _LOCKED if is_locked else ""
        self._why_fixed = locked if self._configured.is_local else _NAMED_BY_SETTINGS
        """Why no endpoint can be set here; empty if one can."""
        self._kept: tuple[KeptEndpoint, ...] = ()
        if not self._why_fixed:
            self._take(self._store.read())

    def state(self, name: str = "") -> dict[str, Any]:
        """Return what a model lacks, and the progress of its set-up; blocks for a moment.

        Args:
            name: the name of the model, as in `Ask`; empty for the default.
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
            "endpoints": [self._shown(kept) for kept in self._kept],
            "can_set_endpoint": not self._why_fixed,
            "why_fixed": self._why_fixed,
            "presets": _PRESETS,
            "uses_keyring": not self._why_fixed and has_keyring(),
        }

    async def set_endpoint(self, base_url: str, model: str, api_key: str) -> None:
        """Make an endpoint the default one, once it has answered.

        Raises:
            SetupError: it does not answer, or may not be set; the text does not contain the key.
        """
        choice = await answering(self._named(base_url, model, api_key))
        await self._change(lambda: self._store.keep(choice))
        _log.info("the endpoint was set in the panel: %s", shown_address(choice.base_url))

    async def use_endpoint(self, base_url: str, model: str) -> None:
        """Make a kept endpoint the default one.

        Raises:
            SetupError: it is not kept, its key can't be read, or no endpoint may be set.
        """
        if self._why_fixed:
            raise SetupError(self._why_fixed)
        await self._change(lambda: self._store.choose(str(base_url), str(model)))

    async def list_models(self, base_url: str, api_key: str) -> list[str]:
        """Return the names in an endpoint's own list of models, sorted.

        Args:
            base_url: its address.
            api_key: its key; empty for the one kept for that address.

        Raises:
            SetupError: it does not answer, lists none, or may not be set; without the key.
        """
        return await listed(self._named(base_url, "", api_key, needs_model=False))

    async def test_endpoint(self, base_url: str, model: str, api_key: str) -> list[dict[str, Any]]:
        """Return what an endpoint can do with a model: `{name, is_there, how}` for each ability.

        Args:
            base_url: its address.
            model: the model's name at the endpoint.
            api_key: its key; empty for the one kept for that address.

        Raises:
            SetupError: it does not answer, or may not be set; without the key.
        """
        found = await learned(self._named(base_url, model, api_key))
        names = ("name", "is_there", "how")
        return [dict(zip(names, row, strict=True)) for row in found.described()]

    async def forget_endpoint(self, base_url: str, model: str) -> None:
        """Delete a kept endpoint, and its key if no other model shares it.

        If it was the default, the model of the server's settings answers, not another endpoint.

        Raises:
            SetupError: it is not kept, or the key could not be deleted everywhere.
        """
        try:
            await self._change(lambda: self._store.forget(str(base_url), str(model)))
        except SetupError:
            # The endpoint may be gone, with only its key left.
            self._take(await asyncio.to_thread(self._store.read))
            raise

    def start_download(self, name: str = "") -> None:
        """Start or resume the download of a local model; do nothing if it runs already.

        Raises:
            SetupError: it is not a local model that can be fetched, or another download runs.
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
        download = _Download(choice.model, _download_bytes(model))
        download.task = asyncio.create_task(self._work(download))
        self._download = download

    def cancel_download(self) -> None:
        """Cancel the download; what has arrived is kept for the next one."""
        if self._download is not None:
            self._download.cancelled.set()

    async def close(self) -> None:
        """Cancel the download, and return when it has ended."""
        self.cancel_download()
        if self._download is not None and self._download.task is not None:
            await asyncio.wait([self._download.task])

    async def _work(self, download: _Download) -> None:
        """Run one download, and record any fault in it instead of raising it."""
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

    async def _change(self, change: Callable[[], tuple[KeptEndpoint, ...]]) -> None:
        """Change the kept endpoints, and use them.

        Raises:
            SetupError: they can't be changed.
        """
        try:
            self._take(await asyncio.to_thread(change))
        except OSError as error:
            folder = self._store.place.parent
            raise SetupError(
                f"The endpoints can't be kept: {error}. Make {folder} writable and try again."
            ) from error

    def _take(self, kept: tuple[KeptEndpoint, ...]) -> None:
        if self._why_fixed:
            return
        for one in kept:
            self._redaction.add_secret(one.choice.api_key)
        self._kept = kept
        usable = [one for one in kept if one.is_usable]
        self.models.kept = tuple(one.choice for one in usable)
        defaults = (one.choice for one in usable if one.is_default)
        self.models.default = next(defaults, self._configured)

    def _shown(self, kept: KeptEndpoint) -> dict[str, Any]:
        return {
            "name": kept_name(kept.choice),
            "base_url": kept.address,
            "model": kept.choice.model,
            "has_key": bool(kept.choice.api_key),
            "is_default": kept.choice == self.models.default,
            "is_usable": kept.is_usable,
        }

    def _named(
        self, base_url: str, model: str, api_key: str, *, needs_model: bool = True
    ) -> ModelChoice:
        """Return the endpoint that a person names, with the kept key if they leave it empty.

        Raises:
            SetupError: the endpoint is invalid, or none can be set here.
        """
        if self._why_fixed:
            raise SetupError(self._why_fixed)
        choice = endpoint_of(base_url, model, api_key, needs_model=needs_model)
        # The panel shows the address without its password: both texts mean the kept endpoint.
        there = [
            one.choice
            for one in self._kept
            if choice.base_url in (one.choice.base_url, one.address) and one.is_usable
        ]
        if choice.api_key or not there:
            return choice
        known = next((one for one in there if one.model == choice.model), there[0])
        return replace(choice, base_url=known.base_url, api_key=known.api_key)


_PRESETS = [
    {
        "name": preset.name,
        "title": preset.title,
        "base_url": preset.base_url,
        "needs_key": bool(preset.key_variable),
        "blank": preset.blank,
    }
    for preset in presets().values()
]
"""Endpoints that the panel offers; `blank` is the part of the address to replace, or empty."""


def _download_bytes(model: LocalModel) -> int:
    """Return the size of a model's missing files, or of all of them if none is missing."""
    return sum(file.size_bytes for file in missing_files(model)) or model.download_bytes


def _missing(choice: ModelChoice) -> dict[str, Any]:
    """Return the first obstacle that a person can remove, and the model's download."""
    if not choice.is_local:
        return {"is_ready": True, "obstacle": None, "local": None}
    obstacle = next(obstacles(choice.model), None)
    try:
        model = resolve(choice.model)
    except LocalModelError:
        local = None
    else:
        size = _download_bytes(model)
        local = {"name": choice.model, "title": model.title, "size_bytes": size}
    found = None
    if obstacle is not None:
        is_engine = isinstance(obstacle, EngineMissingError)
        found = {"kind": "engine" if is_engine else "model" if local else "unknown"}
        found |= {"text": obstacle.text, "command": obstacle.command}
    return {"is_ready": obstacle is None, "obstacle": found, "local": local}
