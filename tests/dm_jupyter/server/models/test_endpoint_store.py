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
from dm_jupyter.server.models import endpoint_store
from dm_jupyter.server.models.endpoint_check import SetupError
from dm_jupyter.server.models.endpoint_store import MOST_KEPT, EndpointStore, has_keyring

KEY = "key-0123456789-of-a-person"
URL = "https://far.example/v1"
FAR = ModelChoice("big", URL, KEY)
NEAR = ModelChoice("near", "http://127.0.0.1:8000/v1")
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


def _usable(store: EndpointStore) -> list[ModelChoice]:
    return [kept.choice for kept in store.read() if kept.is_usable]


def _default(store: EndpointStore) -> ModelChoice:
    (found,) = (kept.choice for kept in store.read() if kept.is_default)
    return found


def test_the_key_is_in_the_keyring_and_not_in_the_file(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    store.keep(FAR)
    assert keyring.kept == {ENTRY: KEY}
    assert _file(store) == [{"base_url": URL, "model": "big", "is_default": True}]
    assert _usable(store) == [FAR]
    assert has_keyring()
    store.forget(URL, "big")
    assert keyring.kept == {}
    assert not store.place.exists()
    assert _usable(store) == []


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
    (kept,) = _file(store)
    assert kept == {"base_url": URL, "model": "big", "api_key": KEY, "is_default": True}
    assert _usable(store) == [FAR]
    store.forget(URL, "big")
    assert not store.place.exists()
    assert KEY not in caplog.text


@pytest.mark.parametrize("in_keyring", [False, True])
def test_a_file_of_one_endpoint_keeps_working(
    store: EndpointStore, keyring: FakeKeyring, in_keyring: bool
) -> None:
    store.place.parent.mkdir()
    raw = {"base_url": URL, "model": "big"}
    keyring.kept = {ENTRY: KEY} if in_keyring else {}
    store.place.write_text(json.dumps(raw if in_keyring else {**raw, "api_key": KEY}))
    assert _usable(store) == [FAR]
    assert _default(store) == FAR
    store.keep(NEAR)
    assert _usable(store) == [FAR, NEAR]
    assert keyring.kept == ({ENTRY: KEY} if in_keyring else {})


def test_an_endpoint_without_a_key_asks_no_keyring(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    free = ModelChoice("big", "http://127.0.0.1:8000/v1")
    store.keep(free)
    assert keyring.kept == {}
    assert _usable(store) == [free]


def test_several_are_kept_and_the_last_connected_is_the_default(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    store.keep(FAR)
    store.keep(NEAR)
    assert _usable(store) == [FAR, NEAR]
    assert _default(store) == NEAR
    store.choose(URL, "big")
    assert _default(store) == FAR
    store.forget(URL, "big")
    assert _usable(store) == [NEAR]
    assert not any(kept.is_default for kept in store.read())
    assert keyring.kept == {}
    for change in (store.choose, store.forget):
        with pytest.raises(SetupError, match=f"No endpoint {URL} with the model big"):
            change(URL, "big")


@pytest.mark.parametrize("is_installed", [True, False])
def test_connecting_a_kept_endpoint_replaces_its_key(
    store: EndpointStore,
    keyring: FakeKeyring,
    monkeypatch: pytest.MonkeyPatch,
    is_installed: bool,
) -> None:
    if not is_installed:
        _uninstalled(keyring, monkeypatch)
    other = ModelChoice("bigger", URL, KEY)
    for choice in (FAR, other, NEAR, ModelChoice("big", URL, "a-new-key")):
        store.keep(choice)
    # The other model at the address shares its key.
    keys = [(kept.choice.model, kept.choice.api_key) for kept in store.read()]
    assert keys == [("big", "a-new-key"), ("bigger", "a-new-key"), ("near", "")]
    assert _default(store).model == "big"
    assert keyring.kept == ({ENTRY: "a-new-key"} if is_installed else {})
    store.forget(URL, "big")
    assert _usable(store)[0] == ModelChoice("bigger", URL, "a-new-key")
    store.forget(URL, "bigger")
    assert keyring.kept == {}


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_model_that_was_given_another_key_keeps_its_own(
    store: EndpointStore,
    keyring: FakeKeyring,
    monkeypatch: pytest.MonkeyPatch,
    is_installed: bool,
) -> None:
    if not is_installed:
        _uninstalled(keyring, monkeypatch)
    own = ModelChoice("bigger", URL, "another-key")
    store.keep(FAR)
    store.keep(own)
    assert _usable(store) == [FAR, own]
    store.keep(ModelChoice("bigger", URL, "its-next-key"))
    assert [choice.api_key for choice in _usable(store)] == [KEY, "its-next-key"]
    named = (ENTRY[0], f"{URL}#bigger")
    assert keyring.kept == ({ENTRY: KEY, named: "its-next-key"} if is_installed else {})
    store.forget(URL, "big")
    assert keyring.kept == ({named: "its-next-key"} if is_installed else {})
    assert [choice.api_key for choice in _usable(store)] == ["its-next-key"]


def test_not_more_than_twenty_are_kept(store: EndpointStore, keyring: FakeKeyring) -> None:
    for number in range(MOST_KEPT):
        store.keep(ModelChoice(f"model-{number}", NEAR.base_url))
    with pytest.raises(SetupError, match=r"20 endpoints are kept.*Forget one first"):
        store.keep(FAR)
    assert keyring.kept == {}
    store.keep(ModelChoice("model-3", NEAR.base_url, KEY))
    assert len(store.read()) == MOST_KEPT
    store.forget(NEAR.base_url, "model-3")
    store.keep(FAR)
    assert _default(store) == FAR


def test_what_is_damaged_is_passed_over_and_the_others_stay(
    store: EndpointStore, keyring: FakeKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    store.keep(FAR)
    (kept,) = _file(store)
    wrong = {"base_url": "no address", "model": KEY, "api_key": KEY}
    store.place.write_text(json.dumps([3, None, {}, wrong, kept]))
    assert _usable(store) == [FAR]
    store.place.write_text(f'["{KEY}')
    assert _usable(store) == []
    store.place.write_text("7")
    assert _usable(store) == []
    assert KEY not in caplog.text


def test_a_password_in_the_address_is_no_name_in_the_keyring(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    guarded = ModelChoice("big", "https://me:secret@far.example/v1", KEY)
    store.keep(guarded)
    assert list(keyring.kept) == [ENTRY]
    assert _usable(store) == [guarded]


def test_a_key_that_the_keyring_lost_is_said(
    store: EndpointStore, keyring: FakeKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    store.keep(FAR)
    keyring.kept.clear()
    assert _usable(store) == []
    assert "does not return its key" in caplog.text
    with pytest.raises(SetupError, match="does not return the key"):
        store.choose(URL, "big")
    store.keep(NEAR)
    keyring.kept[ENTRY] = KEY  # it was locked
    assert _usable(store) == [FAR, NEAR]
    store.choose(URL, "big")
    assert _default(store) == FAR


def test_a_key_that_can_not_be_deleted_is_said(store: EndpointStore, keyring: FakeKeyring) -> None:
    store.keep(FAR)
    keyring.fails = {"delete"}
    with pytest.raises(SetupError, match=f"Delete the entry dm-jupyter for {URL}"):
        store.forget(URL, "big")
    assert not store.place.exists()


def test_a_file_that_can_not_be_written_leaves_no_key_behind(
    store: EndpointStore, keyring: FakeKeyring
) -> None:
    store.place.parent.write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        store.keep(FAR)
    assert keyring.kept == {}
