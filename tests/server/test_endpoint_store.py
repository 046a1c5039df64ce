"""Where the endpoint of the panel is kept: its key in the system's keyring where there is one."""

import json
import logging
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dm_jupyter.config import ModelChoice
from dm_jupyter.server import endpoint_store
from dm_jupyter.server.endpoint_check import SetupError
from dm_jupyter.server.endpoint_store import EndpointStore, has_keyring

KEY = "key-0123456789-of-a-person"
URL = "https://far.example/v1"
FAR = ModelChoice("big", URL, KEY)
ENTRY = ("dm-jupyter", URL)


class FakeKeyring(ModuleType):
    """Stands for the package `keyring` and its backend."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.priority: Any = 5
        self.kept: dict[tuple[str, str], str] = {}
        self.fails: set[str] = set()

    def get_keyring(self) -> Any:
        self._may("get_keyring")
        return self

    def get_password(self, service: str, user: str) -> str | None:
        self._may("get")
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, password: str) -> None:
        self._may("set")
        self.kept[service, user] = password

    def delete_password(self, service: str, user: str) -> None:
        self._may("delete")
        del self.kept[service, user]

    def _may(self, what: str) -> None:
        if what in self.fails:
            raise RuntimeError(f"locked: {KEY}")


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> FakeKeyring:
    fake = FakeKeyring()
    monkeypatch.setitem(sys.modules, "keyring", fake)
    return fake


@pytest.fixture
def store(tmp_path: Path) -> EndpointStore:
    return EndpointStore(tmp_path / "kept" / "endpoint.json")


def _file(store: EndpointStore) -> Any:
    assert store.place.stat().st_mode & 0o777 == 0o600
    return json.loads(store.place.read_text())


def test_the_key_is_in_the_keyring_and_not_in_the_file(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    store.keep(FAR)
    assert keyring.kept == {ENTRY: KEY}
    assert _file(store) == {"base_url": URL, "model": "big"}
    assert store.read() == FAR
    assert has_keyring()
    store.forget()
    assert keyring.kept == {}
    assert not store.place.exists()
    assert store.read() is None


def _uninstalled(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)


def _null(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.priority = -1


def _fail(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.priority = 0


def _odd(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.priority = "high"


def _broken(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.fails = {"get_keyring"}


def _refuses(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.fails = {"set"}


def _forgets(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "set_password", lambda *_: None)


def _hangs(fake: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_store, "_ANSWER_S", 0.05)
    monkeypatch.setattr(fake, "set_password", lambda *_: threading.Event().wait(1))


@pytest.mark.parametrize(
    "spoil", [_uninstalled, _null, _fail, _odd, _broken, _refuses, _forgets, _hangs]
)
def test_without_a_usable_keyring_the_file_has_the_key(
    store: EndpointStore,
    keyring: FakeKeyring,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    spoil: Any,
) -> None:
    caplog.set_level(logging.DEBUG)
    spoil(keyring, monkeypatch)
    store.keep(FAR)
    assert _file(store) == {"base_url": URL, "model": "big", "api_key": KEY}
    assert store.read() == FAR
    store.forget()
    assert not store.place.exists()
    assert KEY not in caplog.text


def test_a_file_with_a_key_keeps_working(store: EndpointStore, keyring: FakeKeyring) -> None:
    store.place.parent.mkdir()
    store.place.write_text(json.dumps({"base_url": URL, "model": "big", "api_key": KEY}))
    assert store.read() == FAR
    assert keyring.kept == {}


def test_an_endpoint_without_a_key_asks_no_keyring(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    free = ModelChoice("big", "http://127.0.0.1:8000/v1")
    store.keep(free)
    assert keyring.kept == {}
    assert store.read() == free


def test_another_endpoint_takes_the_old_key_away(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    store.keep(FAR)
    store.keep(ModelChoice("bigger", URL, "another-key"))
    assert keyring.kept == {ENTRY: "another-key"}
    store.keep(ModelChoice("small", "http://127.0.0.1:8000/v1"))
    assert keyring.kept == {}


def test_a_password_in_the_address_is_no_name_in_the_keyring(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    guarded = ModelChoice("big", "https://me:secret@far.example/v1", KEY)
    store.keep(guarded)
    assert list(keyring.kept) == [ENTRY]
    assert store.read() == guarded


def test_a_key_that_the_keyring_lost_is_said(
    store: EndpointStore, keyring: FakeKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    store.keep(FAR)
    keyring.kept.clear()
    assert store.read() is None
    assert "does not return its key" in caplog.text


def test_a_key_that_can_not_be_deleted_is_said(store: EndpointStore, keyring: FakeKeyring) -> None:
    store.keep(FAR)
    keyring.fails = {"delete"}
    with pytest.raises(SetupError, match=f"Delete the entry dm-jupyter for {URL}"):
        store.forget()
    assert not store.place.exists()


def test_a_file_that_can_not_be_written_leaves_no_key_behind(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    store.place.parent.write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        store.keep(FAR)
    assert keyring.kept == {}
