"""What a model is told of the notebook: from a real kernel, as the tab sent it, and no more."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint
from tests.waiting import until

SET_UP = (
    "import pandas as pd\n"
    "sales = pd.DataFrame({'region': ['north', 'south'], 'n': [7, 5]})\n"
    "costs = sales.copy()\n"
    "rate, names = 0.25, ['a', 'b', 'c']\n"
    "api_key = 'abcdefgh'\n"
    "from collections import Counter"
)
CELLS = [
    {"kind": "markdown", "source": "# Sales", "output": "", "count": None, "role": ""},
    {"kind": "code", "source": SET_UP, "output": "", "count": 1, "role": ""},
    {"kind": "code", "source": "sales.n.sum()", "output": "12", "count": 2, "role": ""},
]


@pytest.fixture(params=["dm-sandbox", pytest.param("python3", marks=pytest.mark.slow)])
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def _told(
    server: JupyterServer, endpoint: ScriptedEndpoint, path: str, **fields: Any
) -> tuple[str, list[dict[str, str]]]:
    """What the model was told, and what the panel was told of that."""
    endpoint.bodies.clear()
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "What did I compute above?", kernel="own", **fields)
        parts = (await panel.until("context_told"))["parts"]
        await until(lambda: endpoint.bodies, "the model is asked")
        await panel.say("stop", run_id=panel.of("run_opened")[-1]["run_id"])
        await panel.until("run_closed")
    return json.dumps(endpoint.bodies[0]["messages"], ensure_ascii=False), parts


async def test_the_notebook_around_a_question_is_told(
    server: JupyterServer, endpoint: ScriptedEndpoint, say, kernel: str
) -> None:
    say("print(12)\n```", "12.")
    path = server.notebook(f"context-{kernel}.ipynb", kernel)
    await server.execute(path, SET_UP)
    told, parts = await _told(server, endpoint, path, cells=CELLS, selected=2)
    by_kind = {part["kind"]: part["text"] for part in parts}
    assert by_kind["selection"] == "The selected cell:\n[2]\nsales.n.sum()\nshowed:\n12"
    assert "- sales (DataFrame, 2 x 2): region (str, e.g. north)" in by_kind["variables"]
    assert "- rate (float): 0.25" in by_kind["variables"]
    assert "- names (list): 3 items" in by_kind["variables"]
    assert "Counter" not in by_kind["variables"]
    assert "# Sales" in by_kind["cells"]
    assert "- sales.csv (" in by_kind["files"]
    assert "abcdefgh" not in told
    for text in by_kind.values():
        assert json.dumps(text, ensure_ascii=False)[1:-1] in told


@pytest.mark.slow
async def test_a_question_from_a_cell_is_told_the_same(
    server: JupyterServer, endpoint: ScriptedEndpoint, say, kernel: str
) -> None:
    say("print(12)\n```", "12.")
    magic = "%%analyze --into cells\nWhat did I compute above?"
    path = server.notebook(
        f"magic-{kernel}.ipynb", kernel, ("sales.n.sum() + 0", magic, "later = 1")
    )
    await server.execute(path, SET_UP)
    endpoint.bodies.clear()
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        assert "error" not in await server.execute(path, "%load_ext dm_jupyter")
        outputs = await server.execute(path, magic)
        assert "The analyst is working in the cells below" in outputs
        parts = (await panel.until("context_told"))["parts"]
        run = panel.of("run_opened")[-1]
        await panel.say("stop", run_id=run["run_id"])
        await panel.until("run_closed")
    assert run["approval"] == ("ask" if kernel == "python3" else "risky")
    by_kind = {part["kind"]: part["text"] for part in parts}
    assert "- sales (DataFrame, 2 x 2): region (str, e.g. north)" in by_kind["variables"]
    assert "- rate (float): 0.25" in by_kind["variables"]
    assert "sales.n.sum() + 0" in by_kind["cells"]
    assert "later = 1" in by_kind["cells"]
    assert "%%analyze" not in by_kind["cells"]


@pytest.mark.slow
async def test_a_question_from_a_cell_may_stand_alone(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    say("print(12)\n```", "12.")
    path = server.notebook("alone.ipynb", "python3", ("sales.n.sum() + 0",))
    await server.execute(path, SET_UP)
    endpoint.bodies.clear()
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        await server.execute(path, "%load_ext dm_jupyter")
        await server.execute(path, "%%analyze sales.csv --alone --into cells\nWhat is the sum?")
        parts = (await panel.until("context_told"))["parts"]
        await panel.say("stop", run_id=panel.of("run_opened")[-1]["run_id"])
        await panel.until("run_closed")
    assert [part["kind"] for part in parts] == ["data"]


@pytest.mark.parametrize("has_page", [pytest.param(True, marks=pytest.mark.slow), False])
async def test_a_question_from_a_cell_follows_the_settings_of_the_page(
    server: JupyterServer, endpoint: ScriptedEndpoint, say, has_page: bool
) -> None:
    say("print(12)\n```", "12.")
    magic = "%%analyze sales.csv --without files --into cells\nWhat is the sum?"
    cells = ("sales.n.sum() + 0", magic)
    path = server.notebook(f"settings-{has_page}.ipynb", "python3", cells)
    await server.execute(path, SET_UP)
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.say("tells", withheld=[])
        await panel.say("tells", withheld=["variables"])
        await panel.attach(path)
        await panel.until("kernel_meter")
        await server.execute(path, "%load_ext dm_jupyter")
        if not has_page:  # the settings are the person's, whether or not a page shows the notebook
            await panel.say("detach", notebook_path=path)
        assert "working in the cells below" in await server.execute(path, magic)
        await panel.attach(path)
        parts = (await panel.until("context_told"))["parts"]
        await panel.say("stop", run_id=panel.of("run_opened")[-1]["run_id"])
        await panel.until("run_closed")
        await panel.say("tells", withheld=[])
        await panel.say("undo", run_id="none")
        await panel.until("refused")
    assert [part["kind"] for part in parts] == ["data", "cells"]
    assert "sales.n.sum() + 0" in parts[1]["text"]


async def test_a_question_is_told_of_no_run_before_it_where_that_is_switched_off(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    path = server.notebook("before.ipynb", "python3", ("1 + 1",))
    kinds = []
    async with asyncio.timeout(120), Panel(server) as panel:
        await panel.attach(path)
        for withheld in ([], [], ["earlier"]):
            say("print(12)\n```", "The sum is 12.")
            await panel.ask(path, "Sum?", kernel="own", files=["sales.csv"], withheld=withheld)
            kinds.append({part["kind"] for part in (await panel.until("context_told"))["parts"]})
            await panel.until("run_closed")
        await panel.until("kernel_meter")
        say("print(12)\n```", "The sum is 12.")
        await server.execute(path, "%load_ext dm_jupyter")
        await server.execute(path, "%%analyze sales.csv --alone --into cells\nWhat is the sum?")
        kinds.append({part["kind"] for part in (await panel.until("context_told"))["parts"]})
        await panel.say("stop", run_id=panel.of("run_opened")[-1]["run_id"])
        await panel.until("run_closed")
    assert ["earlier" in one for one in kinds] == [False, True, False, False]
    assert kinds[-1] == {"data"}


async def test_a_figure_near_the_cursor_is_told(
    server: JupyterServer, endpoint: ScriptedEndpoint
) -> None:
    path = server.notebook("figure.ipynb")
    await server.execute(path, SET_UP)
    figure = {"data": [{"type": "bar", "x": ["north", "south"], "y": [7, 5]}], "layout": {}}
    bundle = json.dumps({"application/vnd.plotly.v1+json": figure})
    cell = {**CELLS[2], "source": "draw()", "output": "", "figures": [bundle]}
    ask = {"kind": "ask", "request_id": "r", "notebook_path": path, "question": ""}
    found = await asyncio.to_thread(
        server.request, "POST", "/dm-jupyter/api/context", {**ask, "cells": [cell], "selected": 0}
    )
    assert "bars of 2: lowest 5 at south, highest 7 at north" in found["parts"][0]["text"]
    large = {**cell, "figures": ["x" * 1_000_001]}
    with pytest.raises(HTTPError, match="400"):
        await asyncio.to_thread(
            server.request, "POST", "/dm-jupyter/api/context", {**ask, "cells": [large]}
        )


async def test_what_would_be_told_is_shown_and_goes_nowhere(
    server: JupyterServer, endpoint: ScriptedEndpoint
) -> None:
    path = server.notebook("preview.ipynb")
    await server.execute(path, SET_UP)
    endpoint.bodies.clear()
    ask = {"kind": "ask", "request_id": "r", "notebook_path": path, "question": ""}
    about = {"cells": CELLS, "selected": 2, "withheld": ["files"]}
    found = await asyncio.to_thread(
        server.request, "POST", "/dm-jupyter/api/context", {**ask, **about}
    )
    counts = {part["kind"]: part["count"] for part in found["parts"]}
    assert counts == {"selection": 1, "variables": 4, "cells": 1}
    assert "abcdefgh" not in json.dumps(found)
    assert endpoint.bodies == []
    with pytest.raises(HTTPError, match="400"):
        await asyncio.to_thread(
            server.request, "POST", "/dm-jupyter/api/context", {"kind": "stop", "run_id": "r"}
        )


async def test_what_is_withheld_is_not_told(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    say("print(12)\n```", "12.")
    path = server.notebook("withheld.ipynb")
    await server.execute(path, SET_UP)
    withheld = ["variables", "cells", "files"]
    _, parts = await _told(server, endpoint, path, cells=CELLS, selected=2, withheld=withheld)
    assert [part["kind"] for part in parts] == ["selection"]


@pytest.mark.slow
async def test_a_notebook_that_is_too_large_is_refused_by_name(server: JupyterServer) -> None:
    path = server.notebook("large.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        cell = {**CELLS[0], "source": "x" * 20_001}
        with pytest.raises(AssertionError, match="one that is too long"):
            await panel.ask(path, "What?", cells=[cell])
