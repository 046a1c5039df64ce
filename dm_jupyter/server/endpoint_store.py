"""Keeps the endpoint that was set in the panel: a file, and the system's keyring for its key.

The package `keyring` is used where a person has installed it and it has a real backend. Without it
the key is in the file, which no other account can read.

Covered: no other account reads the key; no log shows it. Not covered: a program with the person's
own rights, which may read the file and may ask an unlocked keyring.
"""

from __future__ import annotations

import importlib
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dm_jupyter.agent.local_model.runtime import write_private
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.addresses import shown_address
from dm_jupyter.server.endpoint_check import SetupError, endpoint_of

__all__ = ["SERVICE", "EndpointStore", "has_keyring"]

_log = logging.getLogger(__name__)
SERVICE = "dm-jupyter"
"""What the keyring calls this program; the user's name in it is the endpoint's address."""
_LEAST_PRIORITY = 1.0
"""Backends below it keep nothing, keep it in plain text, or ask for a password on a terminal."""
_ANSWER_S = 10.0
"""How long the keyring may take: a locked one waits for a person who may not see its question."""


class EndpointStore:
    """The kept endpoint of one account."""

    def __init__(self, place: Path) -> None:
        """Reads nothing yet.

        Args:
            place: the file.
        """
        self.place = place

    def read(self) -> ModelChoice | None:
        """Returns the kept endpoint with its key; `None` where none can be used."""
        try:
            kept = json.loads(self.place.read_text("utf-8"))
            choice = endpoint_of(kept["base_url"], kept["model"], kept.get("api_key", ""))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, SetupError) as error:
            # Never the text of the error: it may contain a piece of the file.
            _log.warning("%s is not used: %s", self.place, type(error).__name__)
            return None
        if "api_key" in kept:
            return choice
        key = _key_of(choice)
        if not key:
            _log.warning("%s is not used: the keyring does not return its key", self.place)
            return None
        return ModelChoice(choice.model, choice.base_url, key)

    def keep(self, choice: ModelChoice) -> None:
        """Keeps an endpoint in place of the one before.

        Args:
            choice: the endpoint with its key.

        Raises:
            OSError: the file can't be written.
        """
        before = self._address()
        names = ["base_url", "model"]
        is_in_keyring = bool(choice.api_key) and _put(choice)
        if not is_in_keyring:
            names.append("api_key")
        after = shown_address(choice.base_url)
        try:
            self._write({name: getattr(choice, name) for name in names})
        except OSError:
            if is_in_keyring and before != after:
                _removed(after)
            raise
        if before and not (is_in_keyring and before == after) and not _removed(before):
            _log.warning("the keyring did not delete the key for %s", before)

    def forget(self) -> None:
        """Deletes the endpoint, from the file and from the keyring.

        Raises:
            SetupError: the key is still in the keyring.
            OSError: the file can't be deleted.
        """
        address = self._address()
        self.place.unlink(missing_ok=True)
        if address and not _removed(address):
            raise SetupError(
                f"The endpoint is forgotten, but the system's keyring did not delete its key. "
                f"Delete the entry {SERVICE} for {address} in the keyring's own program."
            )

    def _address(self) -> str:
        """The kept endpoint's name in the keyring; empty for none."""
        try:
            return shown_address(json.loads(self.place.read_text("utf-8"))["base_url"])
        except (OSError, ValueError, TypeError, KeyError):
            return ""

    def _write(self, content: dict[str, Any]) -> None:
        self.place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.place.with_suffix(".new")
        write_private(fresh, json.dumps(content))
        fresh.replace(self.place)


def has_keyring() -> bool:
    """Returns whether a new key would go to the system's keyring; blocks for a moment."""
    return _asked(lambda _: True) is True


def _key_of(choice: ModelChoice) -> str:
    address = shown_address(choice.base_url)
    key = _asked(lambda keyring: keyring.get_password(SERVICE, address))
    return key if isinstance(key, str) else ""


def _put(choice: ModelChoice) -> bool:
    """Stores the key; returns whether the keyring gives it back."""
    address = shown_address(choice.base_url)
    _asked(lambda keyring: keyring.set_password(SERVICE, address, choice.api_key))
    return _key_of(choice) == choice.api_key


def _removed(address: str) -> bool:
    """Deletes the key of an address; returns whether none is there any more."""
    if not _asked(lambda keyring: keyring.get_password(SERVICE, address)):
        return True
    _asked(lambda keyring: keyring.delete_password(SERVICE, address))
    return not _asked(lambda keyring: keyring.get_password(SERVICE, address))


def _asked(question: Callable[[Any], Any]) -> Any:
    """Returns what the keyring says; `None` where there is none, it fails or is too slow."""
    answer: list[Any] = []

    def ask() -> None:
        try:
            keyring = importlib.import_module("keyring")
            if float(keyring.get_keyring().priority) >= _LEAST_PRIORITY:
                answer.append(question(keyring))
        except Exception as error:  # noqa: BLE001  (any backend, any fault: the file is used)
            if not isinstance(error, ImportError):
                _log.debug("the keyring can't be used: %s", type(error).__name__)

    # A thread that a locked keyring keeps must not keep the server.
    asking = threading.Thread(target=ask, name="dm-jupyter-keyring", daemon=True)
    asking.start()
    asking.join(_ANSWER_S)
    return answer[0] if answer else None
