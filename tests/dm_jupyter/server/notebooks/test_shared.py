"""The same run in a shared document, where jupyter-collaboration is installed."""

import asyncio
from pathlib import Path

import pytest

from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint
from tests.waiting import until

pytest.importorskip("jupyter_server_ydoc", reason="jupyter-collaboration is not installed")


@pytest.mark.slow
async def test_a_run_is_written_into_the_shared_document_and_undone(tmp_path: Path) -> None:
    texts = ["print(df.sold.sum())\n```", "```python\nprint(df.sales.sum())\n```", "The sum is 40."]
    with ScriptedEndpoint(texts) as endpoint, JupyterServer(tmp_path, endpoint.base_url) as server:
        (server.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
        path = server.notebook("shared.ipynb", sources=("mine = 1",))
        async with asyncio.timeout(60), Panel(server) as panel:
            assert (await panel.attach(path))["is_shared"]
            run_id = await panel.ask(path, "What is the sum?", files=["sales.csv"])
            await panel.until("run_closed")
            await until(lambda: len(server.document(path).cells) == 5, "the run is saved")
            failed, summed = server.document(path).cells[2:4]
            assert failed.metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}
            assert summed.outputs[0].text == "40\n"
            assert "jupyter" not in summed.metadata
            await panel.say("undo", run_id=run_id)
            await until(lambda: len(server.document(path).cells) == 1, "it is undone")
        assert server.document(path).cells[0].source == "mine = 1"
