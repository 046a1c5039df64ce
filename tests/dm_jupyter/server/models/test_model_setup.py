"""A model for a server that has none: what is missing, the download, the endpoint and its key."""

# ruff: noqa: F811  (fixtures of another folder are taken by their names)

import asyncio
import dataclasses
import json
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.config import ModelChoice
from dm_jupyter.models.local import catalogue, engine
from dm_jupyter.models.local.adapters import own_adapter
from dm_jupyter.models.local.catalogue import LocalModel
from dm_jupyter.models.local.pull import Sources, pull
from dm_jupyter.server.history.run_history import Redaction
from dm_jupyter.server.models import endpoint_check
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.models.model_setup import ModelSetup, SetupError
from tests.dm_jupyter.models.local.conftest import (  # noqa: F401  (fixtures)
    CONTENT,
    Hub,
    Index,
    hub,
    index,
    model,
    serving,
    sources,
)
from tests.dm_jupyter.models.local.gguf_files import write_adapter_file
from tests.endpoint import ScriptedEndpoint, unused_url
from tests.waiting import PATIENCE_S, until

LOCAL = ModelChoice()
KEY = "key-0123456789-of-a-person"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of models."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tiny(model: LocalModel, cache: Path, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    """The one model of the catalogue, which is not on this machine."""
    named = dataclasses.replace(model, name=catalogue.DEFAULT_MODEL)
    monkeypatch.setattr(catalogue, "MODELS", (named,))
    return named


@pytest.fixture
def setup_of(tmp_path: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "keyring", None)  # never the developer's own

    def make(choice: ModelChoice = LOCAL, **more: Any) -> ModelSetup:
        redaction = Redaction((), ())
        fetch = more.pop("fetch", partial(pull, sources=sources))
        place = tmp_path / "kept" / "endpoint.json"
        return ModelSetup(ModelPool(choice), place, redaction, fetch, **more)

    return make


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(["OK"]) as running:
        yield running


async def _settled(setup: ModelSetup) -> dict[str, Any]:
    await until(lambda: setup.state()["download"]["state"] != "running", "the download ends")
    return setup.state()["download"]


def test_the_engine_is_missing_before_the_model_is(
    setup_of, tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = setup_of().state()
    assert (without["is_ready"], without["obstacle"]["kind"]) == (False, "model")
    assert without["local"]["size_bytes"] == len(CONTENT)
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda _: None)
    found = setup_of().state()
    assert found["obstacle"]["kind"] == "engine"
    assert "xllamacpp" in found["obstacle"]["text"]
    assert "install" in found["obstacle"]["command"]


async def test_a_download_brings_the_model(setup_of, tiny: LocalModel, hub: Hub) -> None:
    setup = setup_of()
    setup.start_download()
    assert setup.state()["download"]["total_bytes"] == len(CONTENT)
    assert await _settled(setup) == {
        "name": "local",
        "state": "done",
        "stage": "checking",
        "done_bytes": len(CONTENT),
        "total_bytes": len(CONTENT),
        "error": "",
    }
    assert setup.state()["is_ready"]


async def test_a_download_brings_an_adapter_to_weights_that_are_here(
    setup_of, tiny: LocalModel, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_adapter_file(tmp_path / "mine.gguf")
    with serving(Hub(content=file.read_bytes()), file.name) as adapter_hub:
        own = own_adapter(file)
        adapter = dataclasses.replace(own, path=None, hub_url=adapter_hub.url)
        tuned = dataclasses.replace(tiny, name="tiny-tuned", adapter=adapter)
        monkeypatch.setattr(catalogue, "MODELS", (tiny, tuned))
        setup = setup_of()
        whole = setup.state("tiny-tuned")["local"]
        assert whole["size_bytes"] == len(CONTENT) + own.size_bytes
        setup.start_download()
        await _settled(setup)
        assert not setup.state("tiny-tuned")["is_ready"]
        assert setup.state("tiny-tuned")["local"]["size_bytes"] == own.size_bytes
        setup.start_download("tiny-tuned")
        done = await _settled(setup)
    assert (done["state"], done["name"]) == ("done", "tiny-tuned")
    assert (done["done_bytes"], done["total_bytes"]) == (own.size_bytes, own.size_bytes)
    assert setup.state("tiny-tuned")["is_ready"]
    assert len(hub.ranges) == 1


async def test_a_download_that_is_cancelled_goes_on_later(
    setup_of, tiny: LocalModel, sources
) -> None:
    arrived = threading.Event()

    def slow(*args: Any, cancelled: threading.Event, **more: Any) -> Path:
        take = args[2]

        def on_progress(progress: Any) -> None:
            take(progress)
            arrived.set()
            cancelled.wait(PATIENCE_S)

        return pull(args[0], None, on_progress, cancelled=cancelled, sources=sources)

    setup = setup_of(fetch=slow)
    setup.start_download()
    setup.start_download()  # a second click changes nothing
    with pytest.raises(SetupError, match=r"is being downloaded"):
        setup.start_download(catalogue.DEFAULT_MODEL)
    await asyncio.to_thread(arrived.wait, PATIENCE_S)
    assert 0 < setup.state()["download"]["done_bytes"] <= len(CONTENT)
    setup.cancel_download()
    assert (await _settled(setup))["state"] == "cancelled"
    assert not setup.state()["is_ready"]
    again = setup_of()
    again.start_download()
    assert (await _settled(again))["state"] == "done"


async def test_a_download_that_fails_says_why(
    setup_of,
    tiny: LocalModel,
    hub: Hub,
    index: Index,
) -> None:
    hub.status = 503
    index.parts.clear()
    setup = setup_of()
    setup.start_download()
    failed = await _settled(setup)
    assert failed["state"] == "failed"
    assert "could not be fetched" in failed["error"]


async def test_the_servers_end_ends_the_download(setup_of, tiny: LocalModel) -> None:
    def endless(*_: Any, cancelled: threading.Event) -> Path:
        cancelled.wait(PATIENCE_S)
        raise catalogue.ModelMissingError("stopped", "")

    setup = setup_of(fetch=endless)
    setup.start_download()
    async with asyncio.timeout(PATIENCE_S):
        await setup.close()
    assert setup.state()["download"]["state"] == "failed"


async def test_an_endpoint_that_answers_is_used_and_kept(
    setup_of, tiny: LocalModel, endpoint: ScriptedEndpoint, tmp_path: Path, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    setup = setup_of()
    await setup.set_endpoint(endpoint.base_url, "big", KEY)
    assert endpoint.headers[-1]["authorization"] == f"Bearer {KEY}"
    state = setup.state()
    assert state["is_ready"]
    assert state["endpoint"] == {"base_url": endpoint.base_url, "model": "big", "has_key": True}
    assert KEY not in json.dumps(state)
    assert KEY not in caplog.text
    place = tmp_path / "kept" / "endpoint.json"
    assert place.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    again = setup_of()
    assert again.models.default == ModelChoice("big", endpoint.base_url, KEY)
    assert again._redaction.applied_to(f"it is {KEY}") == "it is [secret]"
    await again.forget_endpoint(endpoint.base_url, "big")
    assert not place.exists()
    assert again.models.default == ModelChoice()


async def test_the_v1_that_was_left_out_is_added(setup_of, endpoint: ScriptedEndpoint) -> None:
    setup = setup_of()
    await setup.set_endpoint(f"{endpoint.base_url.removesuffix('/v1')}/", "big", "")
    assert setup.models.default.base_url == endpoint.base_url


@pytest.mark.parametrize(
    ("status", "why"),
    [(401, "refuses the key"), (403, "does not let this key"), (404, "has no model big"),
     (500, "was not accepted")],
)  # fmt: skip
async def test_an_endpoint_that_refuses_is_not_kept(
    setup_of, tmp_path: Path, status: int, why: str
) -> None:
    setup = setup_of()
    refusals = [status] * 3
    with (
        ScriptedEndpoint(["OK"], refusals=refusals, refusal=f"bad {KEY}") as refusing,
        pytest.raises(SetupError, match=why) as refused,
    ):
        await setup.set_endpoint(refusing.base_url, "big", KEY)
    assert KEY not in str(refused.value)
    assert not (tmp_path / "kept").exists()
    assert setup.models.default == ModelChoice()


@pytest.mark.parametrize(
    ("url", "name", "key", "why"),
    [
        ("", "big", "", "must begin with http"),
        ("file:///etc/passwd", "big", "", "must begin with http"),
        ("http://[", "big", "", "must begin with http"),
        ("http://x:99999/v1", "big", "", "must begin with http"),
        ("http://x/v1", " ", "", "Name the model"),
        ("http://x/v1", "big", "käy", "characters that no key has"),
        ("http://x/v1", "big", "key\nsecond", "characters that no key has"),
        ("http://x/v1", "big", "k" * 3000, "short texts"),
    ],
)
async def test_nonsense_is_refused_before_anything_is_asked(
    setup_of, url: str, name: str, key: str, why: str
) -> None:
    with pytest.raises(SetupError, match=why):
        await setup_of().set_endpoint(url, name, key)


async def test_where_nothing_listens_is_said(setup_of) -> None:
    with pytest.raises(SetupError, match="Nothing answers at http"):
        await setup_of().set_endpoint(unused_url(), "big", KEY)


def test_the_presets_are_told(setup_of, tiny: LocalModel) -> None:
    told = {preset["name"]: preset for preset in setup_of().state()["presets"]}
    assert told["openai"] == {
        "name": "openai",
        "title": "OpenAI",
        "base_url": "https://api.openai.com/v1",
        "needs_key": True,
        "blank": "",
    }
    assert not told["ollama"]["needs_key"]
    assert told["azure"]["blank"] in told["azure"]["base_url"]


async def test_an_address_with_its_blank_is_refused(setup_of) -> None:
    with pytest.raises(SetupError, match="still contains RESOURCE"):
        await setup_of().list_models("https://RESOURCE.openai.azure.com/openai/v1", KEY)


@pytest.mark.parametrize("left_out", ["", "/v1"])
async def test_the_endpoints_own_list_is_sorted_and_bounded(
    setup_of, caplog: Any, left_out: str
) -> None:
    caplog.set_level(logging.DEBUG)
    names: list[Any] = [f"model-{number:03}" for number in range(600)][::-1]
    names[50:50] = [7, None, " ", {"id": "x"}, f"model-{KEY}", "model-000"]
    with ScriptedEndpoint([], models=names) as listing:
        given = listing.base_url.removesuffix(left_out)
        found = await setup_of().list_models(given, KEY)
    assert found == [f"model-{number:03}" for number in range(500)]
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("models", "why"),
    [
        ((), "lists no models. Type"),
        (401, "refuses the key"),
        (404, r"answered 404\)\. Type the model's name"),
        (500, r"did not list its models.*\[key\]"),
    ],
)
async def test_a_list_that_does_not_come_says_why(setup_of, models: Any, why: str) -> None:
    with (
        ScriptedEndpoint([], models=models, refusal=f"bad {KEY}") as listing,
        pytest.raises(SetupError, match=why) as refused,
    ):
        await setup_of().list_models(listing.base_url, KEY)
    assert KEY not in str(refused.value)


async def test_a_key_that_is_cut_in_a_message_is_hidden_too(setup_of) -> None:
    refusal = "x" * 290 + KEY
    with (
        ScriptedEndpoint([], refusals=[500] * 3, refusal=refusal) as refusing,
        pytest.raises(SetupError, match="xxx") as refused,
    ):
        await setup_of().test_endpoint(refusing.base_url, "big", KEY)
    assert KEY[:8] not in str(refused.value)


async def test_a_list_that_nobody_sends_is_told(setup_of, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="Nothing answers at http"):
        await setup_of().list_models(unused_url(), KEY)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(endpoint_check, "_LIST_S", 0.2)
        with pytest.raises(SetupError, match="did not answer within"):
            await setup_of().list_models(f"http://127.0.0.1:{silent.getsockname()[1]}/v1", "")


async def test_a_test_says_what_the_endpoint_can_do(
    setup_of, cache: Path, endpoint: ScriptedEndpoint, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    setup = setup_of()
    rows = await setup.test_endpoint(endpoint.base_url, "big", KEY)
    there = {row["name"]: row["is_there"] for row in rows}
    assert there["tool calls"] is False
    assert there["continues an opening"] is True
    assert there["reasoning"] is None
    assert all(row["how"] for row in rows)
    assert KEY not in json.dumps(rows) + caplog.text
    assert setup.models.default == ModelChoice()
    remembered = (cache / "dm-jupyter" / "endpoints.json").read_text()
    assert KEY not in remembered
    assert "big" in remembered


async def test_a_test_asks_even_where_all_is_known(setup_of, cache: Path) -> None:
    with ScriptedEndpoint(["OK"]) as endpoint:
        await setup_of().test_endpoint(endpoint.base_url, "big", KEY)
        endpoint._refusals = [401]
        with pytest.raises(SetupError, match="refuses the key"):
            await setup_of().test_endpoint(endpoint.base_url, "big", "another-wrong-key")


async def test_the_kept_key_goes_to_its_own_address_only(
    setup_of, cache: Path, endpoint: ScriptedEndpoint
) -> None:
    setup = setup_of()
    await setup.set_endpoint(endpoint.base_url, "big", KEY)
    await setup.test_endpoint(f"{endpoint.base_url}/", "bigger", "")
    assert endpoint.headers[-1]["authorization"] == f"Bearer {KEY}"
    await setup.set_endpoint(endpoint.base_url, "bigger", "")
    assert setup.models.default == ModelChoice("bigger", endpoint.base_url, KEY)
    with ScriptedEndpoint(["OK"]) as other:
        await setup.test_endpoint(other.base_url, "big", "")
        assert KEY not in str(other.headers)


async def test_several_endpoints_are_kept_and_one_is_used(
    setup_of, tiny: LocalModel, endpoint: ScriptedEndpoint, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    setup = setup_of()
    with ScriptedEndpoint(["OK"]) as other:
        await setup.set_endpoint(endpoint.base_url, "big", KEY)
        await setup.set_endpoint(other.base_url, "big", "another-key-0123")
        await setup.set_endpoint(endpoint.base_url, "bigger", "")  # the address's key
    state = setup.state()
    rows = [(one["base_url"], one["model"], one["is_default"]) for one in state["endpoints"]]
    assert rows == [
        (endpoint.base_url, "big", False),
        (other.base_url, "big", False),
        (endpoint.base_url, "bigger", True),
    ]
    assert setup.models.default.api_key == KEY
    for one in state["endpoints"]:
        chosen = setup.models.choice(one["name"])
        assert (chosen.base_url, chosen.model) == (one["base_url"], one["model"])
    await setup.use_endpoint(other.base_url, "big")
    for used in (setup, setup_of()):  # after a restart, too
        assert used.models.default == ModelChoice("big", other.base_url, "another-key-0123")
        assert used._redaction.applied_to(KEY) == "[secret]"
    await setup.forget_endpoint(other.base_url, "big")
    # Nothing goes to another endpoint because one was forgotten.
    assert setup.models.default == ModelChoice()
    assert [one["is_default"] for one in setup.state()["endpoints"]] == [False, False]
    with pytest.raises(SetupError, match="is kept"):
        await setup.use_endpoint(other.base_url, "big")
    assert KEY not in json.dumps(setup.state()) + caplog.text


async def test_a_locked_choice_stays(setup_of, endpoint: ScriptedEndpoint, tiny) -> None:
    await setup_of().set_endpoint(endpoint.base_url, "big", KEY)
    locked = setup_of(is_locked=True)
    state = locked.state()
    assert locked.models.default == ModelChoice()
    assert (locked.models.kept, state["endpoints"]) == ((), [])
    assert [one["name"] for one in locked.models.listed()] == [tiny.name]
    with pytest.raises(SetupError, match="administrator has locked"):
        await locked.use_endpoint(endpoint.base_url, "big")
    assert not state["can_set_endpoint"]
    assert "administrator has locked" in state["why_fixed"]
    for asked in (locked.set_endpoint, locked.test_endpoint):
        with pytest.raises(SetupError, match="administrator has locked"):
            await asked(endpoint.base_url, "big", KEY)
    with pytest.raises(SetupError, match="administrator has locked"):
        await locked.list_models(endpoint.base_url, KEY)


async def test_an_administrators_endpoint_stays(setup_of, endpoint: ScriptedEndpoint) -> None:
    setup = setup_of(ModelChoice("theirs", "http://theirs/v1", "their-key"))
    assert not setup.state()["can_set_endpoint"]
    assert setup.state()["is_ready"]
    assert setup.state()["endpoints"] == []
    with pytest.raises(SetupError, match="server's settings name the endpoint"):
        await setup.set_endpoint(endpoint.base_url, "big", KEY)
    with pytest.raises(SetupError, match="not a local model"):
        setup.start_download()


def test_a_kept_file_that_is_damaged_is_passed_over(setup_of, tmp_path: Path, caplog: Any) -> None:
    place = tmp_path / "kept" / "endpoint.json"
    place.parent.mkdir()
    place.write_text(f'{{"base_url": "http://x/v1", "api_key": "{KEY}"')
    assert setup_of().models.default == ModelChoice()
    assert KEY not in caplog.text
