"""Runs through a real server, a real kernel and the real WebSocket; the model is scripted."""

import asyncio

import pytest

from tests.server.jupyter import JupyterServer, Panel

CODE = "print(df.sales.sum())\ndf\n```"
ANSWER = "The sales add up to 40."


async def _ended(panel: Panel) -> dict:
    async with asyncio.timeout(60):
        return await panel.until("run_closed")


async def test_a_question_is_answered_in_the_notebook(server: JupyterServer, say) -> None:
    say(CODE, ANSWER)
    path = server.notebook("answered.ipynb")
    async with Panel(server) as panel:
        assert (await panel.attach(path))["is_owner"]
        run_id = await panel.ask(path, "What is the sum of sales?", files=["sales.csv"])
        closed = await _ended(panel)
    assert closed["stop"] == "answered"
    assert closed["answer"] == ANSWER
    seqs = [message["seq"] for message in panel.heard if message.get("seq")]
    assert seqs == list(range(1, len(seqs) + 1))
    operations = [message["operation"] for message in panel.of("operated")]
    printed = [x["output"] for x in operations if x["op"] == "append_output"]
    assert printed[0] == {"output_type": "stream", "name": "stdout", "text": "40\n"}
    assert "text/html" in printed[1]["data"]
    roles = [x["metadata"]["dm_jupyter"]["role"] for x in operations if x["op"] == "insert_cell"]
    assert roles == ["question", "cell", "answer"]
    assert "".join(x["text"] for x in panel.of("text_delta") if x["step"] == 2) == ANSWER
    listed = server.get(f"/dm-jupyter/api/runs?notebook={path}")["runs"]
    assert [run["run_id"] for run in listed] == [run_id]
    assert listed[0]["answer"] == ANSWER
