"""The REST side and the door to it, on a real server."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from dm_jupyter.server.handlers import HANDLERS
from dm_jupyter.server.history.summaries import Summary
from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint
from tests.waiting import PATIENCE_S, until

API = "/dm-jupyter/api"


def _paths() -> list[str]:
    return [pattern.replace(r"(?P<run_id>[0-9a-z-]+)", "some-run") for pattern, _ in HANDLERS]


@pytest.mark.parametrize("path", _paths())
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_nothing_is_open_to_a_stranger(server: JupyterServer, path: str, method: str) -> None:
    assert server.refusal(method, path, token="wrong") in (401, 403, 405)


def test_the_server_finds_no_open_handler_of_ours(server: JupyterServer) -> None:
    log = server.log.read_text()
    assert "JupyterServerAuthWarning" in log, "the server no longer checks its handlers"
    assert "dm-jupyter" not in log.split("JupyterServerAuthWarning", 1)[1].split("Serving")[0]


async def test_the_channel_is_closed_to_strangers_and_other_origins(server: JupyterServer) -> None:
    address = server.url.replace("http", "ws", 1) + f"{API}/channel"
    for headers in (
        {"Origin": server.url},
        {"Origin": server.url, "Authorization": "token wrong"},
        {"Origin": "http://elsewhere.example", "Cookie": "x=1"},
    ):
        with pytest.raises(HTTPClientError) as refusal:
            await websocket_connect(HTTPRequest(address, headers=headers))
        assert refusal.value.code == 403


def test_a_cookie_needs_the_token_against_forgery(server: JupyterServer) -> None:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(f"{server.url}/api/status?token={TOKEN}") as answer:
        assert answer.status == 200
    request = urllib.request.Request(f"{server.url}{API}/runs/some-run", method="DELETE")
    with pytest.raises(urllib.error.HTTPError) as refusal:
        opener.open(request)
    with refusal.value:
        assert refusal.value.code == 403


@pytest.mark.parametrize(
    "text", ["no json", "[]", '{"kind": "fly"}', '{"kind": "ask", "question": 3}']
)
async def test_nonsense_is_answered_and_the_line_stays(server: JupyterServer, text: str) -> None:
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        await panel._connection.write_message(text)
        assert "not understood" in (await panel.until("refused"))["message"]
        await panel.attach("any.ipynb")


def test_status_says_who_answers_and_what_holds(server: JupyterServer) -> None:
    status = server.get(f"{API}/status")
    assert status["default_model"] == "scripted"
    assert status["models"][0]["is_local"] is False
    assert any(model["is_local"] for model in status["models"])
    assert "environment" in status["containment"]["active"]


@pytest.mark.parametrize("what", ["", "/list", "/test"])
def test_the_endpoint_of_the_settings_stays(server: JupyterServer, what: str) -> None:
    given = {"base_url": "http://127.0.0.1:9/v1", "model": "big", "api_key": "a-key-of-a-person"}
    for body in (given, [], {"base_url": 3}):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            server.request("POST", f"{API}/model{what}", body)
        with refusal.value:
            assert refusal.value.code == 400
            assert "server's settings name the endpoint" in refusal.value.read().decode()
    state = server.get(f"{API}/model")
    assert "server's settings name the endpoint" in state["why_fixed"]


def test_an_endpoint_is_listed_tested_set_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    key = "key-0123456789-of-a-person"
    with (
        ScriptedEndpoint(["OK"], models=["big", "bigger"]) as far,
        JupyterServer(tmp_path, "", model="local") as bare,
    ):
        given = {"base_url": far.base_url, "model": "big", "api_key": key}
        found = bare.request("POST", f"{API}/model/list", given)
        assert found == {"models": ["big", "bigger"]}
        rows = bare.request("POST", f"{API}/model/test", given)["rows"]
        assert rows[0].keys() == {"name", "is_there", "how"}
        state = bare.request("POST", f"{API}/model", given)
        assert state["endpoint"] == {"base_url": far.base_url, "model": "big", "has_key": True}
        assert state["uses_keyring"] is False
        kept = bare.request("POST", f"{API}/model/test", {**given, "api_key": ""})
        named = {"base_url": far.base_url, "model": "big"}
        used = bare.request("POST", f"{API}/model/use", named)
        assert [one["is_default"] for one in used["endpoints"]] == [True]
        status = bare.request("GET", f"{API}/status")
        assert status["default_model"] == used["endpoints"][0]["name"]
        assert bare.request("DELETE", f"{API}/model", named)["endpoint"] is None
        assert bare.refusal("DELETE", f"{API}/model") == 400
        assert bare.refusal("POST", f"{API}/model/use") == 400
        assert key not in str([found, rows, state, kept]) + bare.log.read_text()


async def test_a_run_is_read_exported_and_deleted(server: JupyterServer, say) -> None:
    say("print('at', '/no/such/place', 'sk-abcdefghijklmnop1234')\n```", "It is done.")
    path = server.notebook("kept.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Which places?", files=["sales.csv"])
        assert server.refusal("DELETE", f"{API}/runs/{run_id}") == 409
        await panel.until("run_closed")
    found = f"{API}/runs?query=which+PLACES"
    await until(lambda: server.get(found)["runs"][0]["stop"], "the run is kept as ended")
    messages = server.get(f"{API}/runs/{run_id}")["messages"]
    assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
    document = nbformat.from_dict(server.get(f"{API}/runs/{run_id}/export?as=notebook"))
    nbformat.validate(document)
    assert "".join(document.cells[1].outputs[0].text).startswith("at")
    line = json.dumps(server.get(f"{API}/runs/{run_id}/export?as=trajectory"))
    assert '"schema_version"' in line
    assert "sk-abcdefghijklmnop1234" not in line
    assert str(server.root) not in line
    server.request("DELETE", f"{API}/runs/{run_id}")
    for method, address in (("GET", ""), ("GET", "/export"), ("DELETE", "")):
        assert server.refusal(method, f"{API}/runs/{run_id}{address}") == 404
    assert server.refusal("GET", f"{API}/runs/{run_id}/export?as=poem") == 400


async def test_a_damaged_run_is_named_and_stops_no_other(server: JupyterServer) -> None:
    folder = server.history / "20260101-000000-0000"
    folder.mkdir(parents=True)
    root = str(server.root.resolve())
    run = Summary(folder.name, "damaged.ipynb", "Why?", (), 1.0, "m", stop="answered", root=root)
    (folder / "summary.json").write_text(json.dumps(run.to_json()))
    (folder / "journal.jsonl").write_text('{"kind":"cell_opened","run_id":"x","seq":1}\n')
    said = f"journal is damaged: {folder / 'journal.jsonl'}, line 1: Object missing"
    address = f"{API}/runs/{folder.name}"
    for path in (address, f"{address}/export?as=notebook"):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            server.get(path)
        with refusal.value as answer:
            assert answer.code == 410  # the panel does not ask again
            assert said in json.loads(answer.read())["message"]
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        for _ in range(2):
            await panel.attach("damaged.ipynb")
            await panel.say("undo", run_id=folder.name)
            assert said in (await panel.until("refused"))["message"]
    server.request("DELETE", address)
    assert not folder.exists()


async def test_the_kernels_tables_are_listed_and_told_to_the_model(
    server: JupyterServer, endpoint, say
) -> None:
    say("wide = pd.DataFrame({'city': ['Rome', 'Oslo'], 'n': [1, 2]})\nprint(1)\n```", "One.")
    path = server.notebook("tables.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Make a table", files=["sales.csv"])
        await panel.until("run_closed")
        found = {x["name"]: x for x in server.get(f"{API}/variables?notebook={path}")["variables"]}
        assert found["wide"]["shape"] == [2, 2]
        assert found["wide"]["columns"][0]["samples"] == ["Rome", "Oslo"]
        say("print(2)\n```", "Two.")
        endpoint.bodies.clear()
        await panel.ask(path, "How many cities?", variables=["wide"])
        await panel.until("run_closed")
    assert [one["variables"] for one in panel.of("run_opened")] == [[], ["wide"]]
    told = json.dumps(endpoint.bodies[0])
    assert "`wide` (2 x 2)" in told
    assert "Asked before in this notebook" in told


async def test_meters_tell_a_restricted_kernel_from_another(server: JupyterServer) -> None:
    restricted = server.notebook("meter.ipynb")
    other = server.notebook("meter-own.ipynb", kernel="python3")
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        await panel.attach(restricted)
        await panel.attach(other)
        meters: dict[str, dict] = {}
        while len(meters) < 2:
            meter = await panel.until("kernel_meter")
            meters[meter["notebook_path"]] = meter
    assert meters[restricted]["is_restricted"]
    assert 0 < meters[restricted]["memory_bytes"] < meters[restricted]["memory_limit_bytes"]
    assert meters[restricted]["cpu_s"] > 0
    assert not meters[other]["is_restricted"]


def test_layers_that_the_settings_switch_off_are_missing_in_the_status(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    options = ("--SandboxProvisioner.isolate=False",)
    with JupyterServer(tmp_path, endpoint.base_url, options=options) as server:
        containment = server.get(f"{API}/status")["containment"]
    assert "network_namespace" in containment["missing"]
    assert {"landlock", "late_seccomp"} <= set(containment["active"])


async def test_a_sandbox_that_is_switched_off_is_nowhere_called_restricted(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    off = ("--SandboxProvisioner.profile=off",)
    with JupyterServer(tmp_path, endpoint.base_url, options=off) as server:
        status = server.get(f"{API}/status")
        assert status["containment"]["active"] == []
        assert "landlock" in status["containment"]["missing"]
        assert any("switched off on this server" in x["text"] for x in status["problems"])
        path = server.notebook("off.ipynb")
        async with asyncio.timeout(90), Panel(server) as panel:
            await panel.attach(path)
            meter = await panel.until("kernel_meter")
            assert (meter["is_restricted"], meter["layers_active"]) == (False, [])
            await panel.say("ask", request_id="q", notebook_path=path, question="How many?")
            refused = await panel.until("refused")
        assert "not restricted: the server's sandbox is switched off" in refused["message"]
    assert "without any restriction" in server.log.read_text()


async def test_a_busy_kernel_keeps_no_other_notebook_waiting(server: JupyterServer, say) -> None:
    say("print(df.sales.sum())\n```", "The sum is 40.")
    busy, free = server.notebook("busy-kernel.ipynb"), server.notebook("free-kernel.ipynb")
    working = asyncio.create_task(server.execute(busy, "import time; time.sleep(600)"))
    kernel = f"/api/kernels/{server.kernel_id(busy)}"
    await until(lambda: server.get(kernel)["execution_state"] == "busy", "the kernel is busy")
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        await panel.attach(busy)
        await panel.attach(free)
        await panel.ask(free, "What is the sum?", files=["sales.csv"])
        assert (await panel.until("run_closed"))["stop"] == "answered"
    server.request("POST", f"/api/kernels/{server.kernel_id(busy)}/interrupt")
    await working


async def test_the_kernel_sees_no_secret_of_the_server(server: JupyterServer, say) -> None:
    say("import os\nprint(sorted(os.environ))\nprint(os.listdir('/'))\n```", "Seen.")
    path = server.notebook("secrets.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Look", files=["sales.csv"])
        await panel.until("run_closed")
    printed = json.dumps(panel.of("operated"))
    assert "SECRET_OF_THE_SERVER" not in printed
    assert TOKEN not in printed
    assert "HOME" in printed


@pytest.mark.parametrize("kernel", ["dm-sandbox", pytest.param("python3", marks=pytest.mark.slow)])
async def test_the_magic_hands_its_question_over(server: JupyterServer, say, kernel: str) -> None:
    say("print(df.sales.sum())\n```", "The sum is 40.")
    path = server.notebook(f"magic-{kernel}.ipynb", kernel=kernel)
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        await server.execute(path, "%load_ext dm_jupyter")
        outputs = await server.execute(path, "%%analyze --into cells sales.csv\nWhat is the sum?")
        if kernel == "python3":
            waiting = await panel.until("cell_opened")
            word = {"run_id": waiting["run_id"], "cell_id": waiting["cell_id"]}
            await panel.say("decide", decision="approve", **word)
        closed = await panel.until("run_closed")
    assert "working in the cells below" in outputs
    assert closed["answer"] == "The sum is 40."
