"""The first question on a real server: what is refused before a run begins, and what is left."""

import asyncio
import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint
from tests.waiting import until

API = "/dm-jupyter/api"
CODE = "print(df.sales.sum())\n```"
KEY = "key-0123456789-of-a-person"


async def _refused(panel: Panel, path: str, question: str, **fields: Any) -> dict[str, Any]:
    panel.heard.clear()
    await panel.say("ask", request_id="r", notebook_path=path, question=question, **fields)
    return await panel.until(lambda x: x["kind"] in ("refused", "run_opened"))


def _meant(server: JupyterServer, **given: str) -> dict[str, Any]:
    return server.request("POST", f"{API}/meaning", given)


@pytest.fixture
def data(root: Path) -> Path:
    """A folder with a table below it."""
    folder = root / "atlas"
    (folder / "below").mkdir(parents=True, exist_ok=True)
    (folder / "below" / "penguins.csv").write_text("species,mass\nA,1\nB,2\nA,3\n")
    return folder


@pytest.mark.slow
async def test_a_mention_is_found_in_a_folder_below_and_an_unknown_one_refused(
    server: JupyterServer, say, data: Path
) -> None:
    say("print(df.mass.sum())\n```", "It is 6.")
    path = server.notebook("atlas/mention.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        refused = await _refused(panel, path, "What is the mass in @pengu?")
        assert (refused["kind"], refused["reason"]) == ("refused", "data")
        assert "“@pengu” names no file" in refused["message"]
        assert refused["candidates"] == [{"kind": "file", "name": "atlas/below/penguins.csv"}]
        await panel.ask(path, "What is the mass in @penguins.csv?")
        closed = await panel.until("run_closed")
    assert closed["answer"] == "It is 6."
    assert panel.of("run_opened")[-1]["files"] == ["atlas/below/penguins.csv"]


async def test_a_question_about_nothing_asks_back_and_names_what_is_there(
    server: JupyterServer, endpoint: ScriptedEndpoint, say, data: Path
) -> None:
    say("print(6 * 7)\n```", "It is 42.")
    path = server.notebook("atlas/vague.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        endpoint.bodies.clear()
        refused = await _refused(panel, path, "What is the mean mass?")
        assert refused["reason"] == "data"
        assert "Which data is the question about?" in refused["message"]
        assert refused["candidates"][0] == {"kind": "file", "name": "atlas/below/penguins.csv"}
        assert endpoint.bodies == []
        await panel.ask(path, "What is 6 times 7?", without_data=True)
        assert (await panel.until("run_closed"))["stop"] == "answered"
        say("print(43)\n```", "It is 43.")
        await panel.ask(path, "And one more?")  # the notebook says what is meant
        assert (await panel.until("run_closed"))["stop"] == "answered"


async def test_the_only_table_of_the_kernel_is_meant_and_of_several_the_named(
    server: JupyterServer, say
) -> None:
    path = server.notebook("tables-meant.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        await server.execute(path, "import pandas as pd; ants = pd.DataFrame({'n': [1]})")
        say("print(ants.n.sum())\n```", "It is 1.")
        first = await panel.ask(path, "What is the sum of n?")
        await panel.until("run_closed")
        await server.execute(path, "bees = ants * 2")
        server.request("DELETE", f"{API}/runs/{first}")
        refused = await _refused(panel, path, "What is the sum of n?")
        assert {"kind": "variable", "name": "bees"} in refused["candidates"]
        say("print(bees.n.sum())\n```", "It is 2.")
        await panel.ask(path, "What is the sum of n in bees?")
        await panel.until("run_closed")
    assert panel.of("run_opened")[-1]["variables"] == ["bees"]


async def test_a_run_in_which_no_cell_ran_leaves_nothing(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    path = server.notebook("nothing.ipynb", sources=("mine = 1",))
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        endpoint._refusals = [401]
        await panel.ask(path, "Sum", files=["sales.csv"])
        failed = await panel.until("run_closed")
        assert failed["stop"] == "fault"
        assert panel.of("operated") == []
        say(CODE, "It is 40.")
        run_id = await panel.ask(path, "Sum", files=["sales.csv"], approval="ask")
        waiting = await panel.until("cell_opened")
        word = {"run_id": run_id, "cell_id": waiting["cell_id"]}
        await panel.say("stop", run_id=run_id)
        await panel.until("run_closed")
        await panel.close()
    assert word["cell_id"]
    runs = f"{API}/runs?notebook={path}"
    await until(lambda: server.get(runs)["runs"][0]["stop"], "the run has ended")
    # Where a tab is gone, the file is written after 0.3 s. Nothing tells that it was not.
    await asyncio.sleep(1)
    assert [cell.source for cell in server.document(path).cells] == ["mine = 1"]


async def test_a_kernel_names_no_file_by_its_words(server: JupyterServer, data: Path) -> None:
    path = server.notebook("atlas/forged.ipynb")
    (server.root / "elsewhere.csv").write_text("secret\n1\n")
    hand_over = (
        "from ipykernel.comm import Comm\n"
        "said = []\n"
        "comm = Comm(target_name='dm-jupyter', data={'question': %r, 'files': []})\n"
        "comm.on_msg(lambda m: said.append(m['content']['data']))\n"
        "comm.send({'kind': 'waits'})\n"
    )
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        await server.execute(path, hand_over % "Show @elsewhere.csv")
        said = ""
        while "refused" not in said:
            said = await server.execute(path, "print(said)")
        assert "refused" in said
        assert "names none of the files" in said
        await server.execute(path, hand_over % "Show elsewhere.csv")
        opened = await panel.until("run_opened")
        await panel.say("stop", run_id=opened["run_id"])
        await panel.until("run_closed")
    assert opened["files"] == []
    assert not (data / "elsewhere.csv").exists()


def test_files_meanings_and_examples_are_told(server: JupyterServer, data: Path) -> None:
    found = server.get(f"{API}/files?match=pengu&near=atlas")
    assert found == {"files": ["atlas/below/penguins.csv"], "is_whole": True}
    meant = _meant(server, question="Mean of @penguins.csv", near="")
    assert meant == {"files": ["atlas/below/penguins.csv"], "variables": [], "unclear": []}
    (unclear,) = _meant(server, question="Mean of @nothing.csv", near="")["unclear"]
    assert unclear["is_unknown"]
    assert "“@nothing.csv” names no file" in unclear["sentence"]
    examples = server.get(f"{API}/examples?near=atlas/below")["examples"]
    assert len(examples) == 3
    assert {one["file"] for one in examples} == {"atlas/below/penguins.csv"}
    assert "species" in examples[0]["question"]
    assert server.get(f"{API}/examples?near=atlas")["examples"] == []


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JupyterServer]:
    """A server that has no model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with JupyterServer(tmp_path, "", model="local") as running:
        (running.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
        yield running


async def test_without_a_model_nothing_is_written_and_an_endpoint_helps(
    bare: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    path = bare.notebook("first.ipynb", sources=("mine = 1",))
    async with asyncio.timeout(90), Panel(bare) as panel:
        await panel.attach(path)
        state = bare.get(f"{API}/model")
        assert (state["is_ready"], state["obstacle"]["kind"]) == (False, "model")
        assert not bare.get(f"{API}/status")["models"][0]["is_present"]
        refused = await _refused(panel, path, "Sum of sales in sales.csv?")
        assert (refused["reason"], refused["kind"]) == ("model", "refused")
        assert [cell.source for cell in bare.document(path).cells] == ["mine = 1"]

        wrong = {"base_url": "http://127.0.0.1:9/v1", "model": "big", "api_key": KEY}
        with pytest.raises(urllib.error.HTTPError) as error:
            bare.request("POST", f"{API}/model", wrong)
        with error.value:
            said = json.loads(error.value.read())["message"]
        assert "Nothing answers at http://127.0.0.1:9/v1" in said

        say("OK", CODE, "The sum is 40.")
        given = {"base_url": endpoint.base_url, "model": "big", "api_key": KEY}
        assert bare.request("POST", f"{API}/model", given)["is_ready"]
        assert bare.get(f"{API}/status")["default_model"] == f"big @ {endpoint.base_url}"
        await panel.ask(path, "Sum of sales in sales.csv?")
        closed = await panel.until("run_closed")
        await _look_for_the_key(bare, path, panel)
    assert closed["answer"] == "The sum is 40."
    assert endpoint.headers[-1]["authorization"] == f"Bearer {KEY}"


async def _look_for_the_key(server: JupyterServer, path: str, panel: Panel) -> None:
    """It lies in one private file, and nothing that a kernel or a reader gets holds it."""
    kept = server.folder / "private" / "data" / "dm_jupyter" / "endpoint.json"
    assert KEY in kept.read_text()
    read = await server.execute(path, f"print(open({str(kept)!r}).read())")
    assert KEY not in read
    assert "Error" in read
    assert KEY not in await server.execute(path, "import os; print(os.environ)")
    assert KEY not in json.dumps(panel.heard)
    assert KEY not in json.dumps(server.get(f"{API}/model"))
    holders = [
        found for found in server.folder.rglob("*") if found.is_file() and found != kept
        and KEY.encode() in found.read_bytes()
    ]  # fmt: skip
    assert holders == []
