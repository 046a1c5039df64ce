"""The endpoints set in the panel, in a file, with their keys in the system's keyring.

The package `keyring` is used if a person has installed it and it has a real backend. Without it the
keys are in the file, which no other account can read. Models at one address share its key, until
one of them is given another.

Covered: no other account reads a key; no log shows it. Not covered: a program with the person's
own rights, which may read the file and may ask an unlocked keyring.
"""

from __future__ import annotations

import importlib
import json
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.models.local.runtime import write_private
from dm_jupyter.server.models.endpoint_check import SetupError, endpoint_of

__all__ = ["MOST_KEPT", "SERVICE", "EndpointStore", "KeptEndpoint", "has_keyring"]

_log = logging.getLogger(__name__)
SERVICE = "dm-jupyter"
"""Service name in the keyring; the user name there is the endpoint's address."""
MOST_KEPT = 20
_LEAST_PRIORITY = 1.0
"""Lowest priority of a usable backend: those below it store nothing, store in plain text, or ask
for a password on a terminal."""
_ANSWER_S = 10.0
"""Time limit for the keyring, seconds: a locked one waits for a person who may not see its
question."""


@dataclass(frozen=True, slots=True)
class KeptEndpoint:
    """One endpoint that is kept, with its key."""

    choice: ModelChoice
    is_default: bool = False
    in_keyring: bool = False
    """Whether the key is in the keyring, not in the file."""
    has_own_key: bool = False
    """Whether its key differs from the one that the models of its address share."""

    @property
    def address(self) -> str:
        """The address without anything that may be secret in it."""
        return shown_address(self.choice.base_url)

    @property
    def is_usable(self) -> bool:
        """Whether its key could be read."""
        return bool(self.choice.api_key) or not self.in_keyring

    @property
    def user(self) -> str:
        """The user name under which the keyring stores its key."""
        # A shown address has no fragment: no other endpoint's name can look like this one.
        return f"{self.address}#{self.choice.model}" if self.has_own_key else self.address

    def is_at(self, base_url: str, model: str) -> bool:
        """Return whether it is the endpoint of this address, as typed or as shown, and model."""
        return (self.address, self.choice.model) == (shown_address(base_url), model)

    def to_json(self) -> dict[str, Any]:
        """Return its entry in the file, with the key only if the keyring does not store it."""
        raw: dict[str, Any] = {"base_url": self.choice.base_url, "model": self.choice.model}
        if not self.in_keyring:
            raw["api_key"] = self.choice.api_key
        names = ("is_default", "has_own_key")
        return raw | {name: True for name in names if getattr(self, name)}


class EndpointStore:
    """The kept endpoints of one account."""

    def __init__(self, place: Path) -> None:
        """Start without reading the file.

        Args:
            place: the path of the file.
        """
        self.place = place
        self._lock = threading.Lock()
        """Lock around each change, which reads, changes and writes the file."""

    def read(self) -> tuple[KeptEndpoint, ...]:
        """Return the kept endpoints with their keys, in the order in which they were added."""
        try:
            raw = json.loads(self.place.read_text("utf-8"))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as error:
            return self._unread(error)
        if isinstance(raw, dict):  # the format of a release that kept one endpoint
            raw = [{**raw, "is_default": True}]
        if not isinstance(raw, list):
            return self._unread(TypeError())
        found = []
        for one in raw:
            try:
                found.append(_kept_of(one))
            except (TypeError, KeyError, AttributeError, SetupError) as error:
                self._unread(error)
        keys = _keys_of({kept.user for kept in found if kept.in_keyring})
        full = tuple(_with_key(one, keys[one.user]) if one.in_keyring else one for one in found)
        for address in {kept.address for kept in full if not kept.is_usable}:
            _log.warning("%s is not used: the keyring does not return its key", address)
        return full

    def keep(self, choice: ModelChoice) -> tuple[KeptEndpoint, ...]:
        """Keep an endpoint as the default one, in place of one with the same address and model.

        Args:
            choice: the endpoint with its key.

        Returns:
            All kept endpoints.

        Raises:
            SetupError: too many are kept.
            OSError: the file can't be written.
        """
        with self._lock:
            before = self.read()
            kept = _with_new(before, choice)
            new = next(one for one in kept if one.is_default)
            in_keyring = bool(choice.api_key) and _put(new.user, choice.api_key)
            # All endpoints that share the key store it in the same place.
            kept = tuple(
                replace(one, in_keyring=in_keyring) if one.user == new.user else one for one in kept
            )
            was_in_keyring = any(one.in_keyring and one.user == new.user for one in before)
            try:
                self._write(kept)
            except OSError:
                if in_keyring and not was_in_keyring:
                    _removed(new.user)
                raise
            if was_in_keyring and not in_keyring and not _removed(new.user):
                _log.warning("the keyring did not delete the key for %s", new.address)
            return kept

    def choose(self, base_url: str, model: str) -> tuple[KeptEndpoint, ...]:
        """Make a kept endpoint the default one, and return all kept endpoints.

        Raises:
            SetupError: the endpoint is not kept, or its key can't be read.
            OSError: the file can't be written.
        """
        with self._lock:
            before = self.read()
            chosen = _found(before, base_url, model)
            if not chosen.is_usable:
                raise SetupError(
                    f"The system's keyring does not return the key for {chosen.address}. Unlock "
                    "the keyring, or connect the endpoint again with its key."
                )
            kept = tuple(replace(one, is_default=one is chosen) for one in before)
            self._write(kept)
            return kept

    def forget(self, base_url: str, model: str) -> tuple[KeptEndpoint, ...]:
        """Delete an endpoint, and its key if no other one shares it, and return the others.

        Raises:
            SetupError: the endpoint is not kept, or its key is still in the keyring.
            OSError: the file can't be written or deleted.
        """
        with self._lock:
            before = self.read()
            gone = _found(before, base_url, model)
            kept = tuple(one for one in before if one is not gone)
            if kept:
                self._write(kept)
            else:
                self.place.unlink(missing_ok=True)
            is_shared = any(one.user == gone.user for one in kept)
            if not is_shared and not _removed(gone.user):
                raise SetupError(
                    "The endpoint is forgotten, but the system's keyring did not delete its key. "
                    f"Delete the entry {SERVICE} for {gone.user} in the keyring's own program."
                )
            return kept

    def _unread(self, error: Exception) -> tuple[()]:
        # Never the text of the error: it may contain a piece of the file.
        _log.warning("%s is not used: %s", self.place, type(error).__name__)
        return ()

    def _write(self, kept: Iterable[KeptEndpoint]) -> None:
        self.place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.place.with_suffix(".new")
        write_private(fresh, json.dumps([one.to_json() for one in kept]))
        fresh.replace(self.place)


def _kept_of(raw: Any) -> KeptEndpoint:
    """Return one endpoint of the file, without its key if the keyring has it.

    Raises:
        SetupError: the entry is not a valid endpoint.
        TypeError: the entry is not an endpoint, as with the next two.
        KeyError: the address or the model is missing.
        AttributeError: the entry is not an object.
    """
    choice = endpoint_of(raw["base_url"], raw["model"], raw.get("api_key", ""))
    flags = {name: raw.get(name) is True for name in ("is_default", "has_own_key")}
    return KeptEndpoint(choice, in_keyring="api_key" not in raw, **flags)


def _found(kept: Iterable[KeptEndpoint], base_url: str, model: str) -> KeptEndpoint:
    for one in kept:
        if one.is_at(base_url, model):
            return one
    raise SetupError(f"No endpoint {shown_address(base_url)} with the model {model} is kept.")


def _with_new(before: tuple[KeptEndpoint, ...], choice: ModelChoice) -> tuple[KeptEndpoint, ...]:
    """Return the kept endpoints with a new one, or its new key, as the default.

    Raises:
        SetupError: too many endpoints are kept.
    """
    old = next((one for one in before if one.is_at(choice.base_url, choice.model)), None)
    if old is not None:
        new = replace(old, choice=choice, is_default=True)
        return tuple(new if one is old else _beside(one, new) for one in before)
    if len(before) >= MOST_KEPT:
        raise SetupError(f"{MOST_KEPT} endpoints are kept, which is the most. Forget one first.")
    new = KeptEndpoint(choice, is_default=True)
    sharing = (one for one in before if one.user == new.user and one.is_usable)
    is_own = any(one.choice.api_key != choice.api_key for one in sharing)
    new = replace(new, has_own_key=is_own)
    return (*(_beside(one, new) for one in before), new)


def _beside(kept: KeptEndpoint, new: KeptEndpoint) -> KeptEndpoint:
    """Return a kept endpoint, no longer the default, with the new default's key if shared."""
    is_shared = kept.user == new.user
    kept = _with_key(kept, new.choice.api_key) if is_shared else kept
    return replace(kept, is_default=False)


def _with_key(kept: KeptEndpoint, key: str) -> KeptEndpoint:
    return replace(kept, choice=replace(kept.choice, api_key=key))


def has_keyring() -> bool:
    """Return whether a new key would go to the system's keyring; blocks for a moment."""
    return _asked(lambda _: True) is True


def _keys_of(users: set[str]) -> dict[str, str]:
    """Return the keys that the keyring has under these names; empty if it has none."""
    if not users:
        return {}
    found = _asked(lambda keyring: {user: keyring.get_password(SERVICE, user) for user in users})
    keys = found if isinstance(found, dict) else {}
    return {user: key if isinstance(key := keys.get(user), str) else "" for user in users}


def _put(user: str, key: str) -> bool:
    """Store the key, and return whether the keyring returns it."""
    _asked(lambda keyring: keyring.set_password(SERVICE, user, key))
    return _keys_of({user})[user] == key


def _removed(user: str) -> bool:
    """Delete a key, and return whether it is gone."""
    if not _asked(lambda keyring: keyring.get_password(SERVICE, user)):
        return True
    _asked(lambda keyring: keyring.delete_password(SERVICE, user))
    return not _asked(lambda keyring: keyring.get_password(SERVICE, user))


def _asked(question: Callable[[Any], Any]) -> Any:
    """Return the keyring's answer; `None` if there is no keyring, it fails or is too slow."""
    answer: list[Any] = []

    def ask() -> None:
        try:
            keyring = importlib.import_module("keyring")
            if float(keyring.get_keyring().priority) >= _LEAST_PRIORITY:
                answer.append(question(keyring))
        except Exception as error:  # noqa: BLE001  (any backend, any fault: the file is used)
            if not isinstance(error, ImportError):
                _log.debug("the keyring can't be used: %s", type(error).__name__)

    # A daemon thread: one that a locked keyring blocks must not block the server.
    asking = threading.Thread(target=ask, name="dm-jupyter-keyring", daemon=True)
    asking.start()
    asking.join(_ANSWER_S)
    return answer[0] if answer else None
