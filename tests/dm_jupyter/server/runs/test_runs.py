"""Runs through a real server, a real kernel and the real WebSocket; the model is scripted."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from dm_jupyter.server.runs.active_runs import ActiveRuns
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint
from tests.waiting import PATIENCE_S, until

CODE = "print(df.sales.sum())\ndf\n```"
ANSWER = "The sales add up to 40."


async def _ended(panel: Panel) -> dict:
    async with asyncio.timeout(PATIENCE_S):
        return await panel.until("run_closed")


async def _written(server: JupyterServer, path: str, cells: int) -> None:
    """Waits until the file holds so many cells, at least."""
    await until(lambda: len(server.document(path).cells) >= cells, f"{cells} cells in {path}")


async def _undone(server: JupyterServer, path: str, cells: int) -> None:
    """Waits until the file holds so few cells again."""
    await until(lambda: len(server.document(path).cells) == cells, f"{cells} cells in {path}")


async def _first_output(panel: Panel) -> dict:
    return await panel.until(
        lambda x: x["kind"] == "operated" and x["operation"]["op"] == "append_output"
    )


async def test_a_question_is_answered_in_the_notebook(server: JupyterServer, say) -> None:
    say(CODE, ANSWER)
    path = server.notebook("answered.ipynb")
    async with Panel(server) as panel:
        assert (await panel.attach(path))["is_owner"]
        run_id = await panel.ask(path, "What is the sum of sales?", files=["sales.csv"])
        closed = await _ended(panel)
    assert closed["stop"] == "answered"
    assert closed["answer"] == ANSWER
    (number,) = closed["numbers"]
    (opened,) = panel.of("cell_opened")
    assert (number["text"], number["verdict"]) == ("40", "supported")
    assert number["cell_id"] == opened["cell_id"]
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


async def test_the_person_chooses_how_the_model_is_asked(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    say("```python\nprint(40)\n```", "<answer>40</answer>", "<answer>40</answer>")
    path = server.notebook("chosen.ipynb")
    endpoint.bodies.clear()
    async with Panel(server) as panel:
        await panel.attach(path)
        chosen = {"dialect": "datamind", "turn_tokens": 77, "temperature": 1.5}
        await panel.ask(path, "What is the sum?", files=["sales.csv"], **chosen)
        await _ended(panel)
        with pytest.raises(AssertionError, match="turn_tokens must be 0 to"):
            await panel.ask(path, "What?", files=["sales.csv"], turn_tokens=-1)
    sent = endpoint.bodies[0]
    assert (sent["max_tokens"], sent["temperature"]) == (77, 1.5)
    assert "<answer>" in sent["messages"][0]["content"]


async def test_a_run_goes_on_without_its_tab_and_is_in_the_file(server: JupyterServer, say) -> None:
    say("import time\nfor i in range(4):\n    print('line', i)\n    time.sleep(0.5)\n```", ANSWER)
    path = server.notebook("closed.ipynb", sources=("mine = 1",))
    async with Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Count", files=["sales.csv"])
        await _first_output(panel)
    async with asyncio.timeout(60), Panel(server, "watcher") as watcher:
        runs = f"/dm-jupyter/api/runs?notebook={path}"
        await until(lambda: server.get(runs)["runs"][0]["stop"], "the run has ended")
        await _written(server, path, 4)
        document = server.document(path)
        attached = await watcher.attach(path)
    assert attached["is_owner"]
    assert document.cells[0].source == "mine = 1"
    cell = document.cells[2]
    assert cell.outputs[0]["text"] == "line 0\nline 1\nline 2\nline 3\n"
    assert cell.execution_count == 1
    assert cell.metadata["dm_jupyter"]["run"] == run_id
    assert ANSWER in document.cells[-1].source


async def test_a_tab_that_comes_back_gets_what_it_missed(server: JupyterServer, say) -> None:
    say("import time\ntime.sleep(1)\nprint('late')\n```", ANSWER)
    path = server.notebook("back.ipynb")
    async with asyncio.timeout(60):
        async with Panel(server) as panel:
            await panel.attach(path)
            run_id = await panel.ask(path, "Wait", files=["sales.csv"])
            opened = await panel.until("cell_opened")
        async with Panel(server) as again:
            attached = await again.attach(path, seen={run_id: opened["seq"]})
            await _ended(again)
    assert attached["is_owner"]
    assert attached["in_file"] == {run_id: 0}
    seqs = [message["seq"] for message in again.heard if message.get("seq")]
    assert seqs == list(range(opened["seq"] + 1, seqs[-1] + 1))


def _rename(server: JupyterServer, old: str, new: str) -> None:
    """Renames the file and its session, as JupyterLab does."""
    (session,) = (x["id"] for x in server.get("/api/sessions") if x["path"] == old)
    server.request("PATCH", f"/api/contents/{old}", {"path": new})
    server.request("PATCH", f"/api/sessions/{session}", {"path": new, "name": new})


_HELD = """import os, time
print('begun', flush=True)
while not os.path.exists('go'): time.sleep(0.05)
print('late')
```"""


async def test_a_run_follows_its_notebook_to_a_new_name(server: JupyterServer, say) -> None:
    say(_HELD, ANSWER)
    old, new = server.notebook("Untitled.ipynb"), "renamed.ipynb"
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(old)
        run_id = await panel.ask(old, "Wait", files=["sales.csv"])
        opened = await panel.until("cell_opened")
        _rename(server, old, new)
        await panel.say("renamed", old_path=old, new_path=new, client_id=panel.client_id)
        server.notebook(old)
        other = await panel.attach(old)
        here = await panel.attach(new, seen={run_id: opened["seq"]})
        await panel.say("ask", request_id="second", notebook_path=new, question="And?")
        assert (await panel.until("refused"))["reason"] == "busy"
        await panel.say("detach", notebook_path=new)
        (server.root / "go").touch()
        await _written(server, new, 3)
        cells = server.document(new).cells
        listed = [server.get(f"/dm-jupyter/api/runs?notebook={x}")["runs"] for x in (old, new)]
    assert (other["is_owner"], other["in_file"]) == (True, {})
    assert (here["is_owner"], here["in_file"]) == (True, {run_id: 0})
    assert server.document(old).cells == []
    assert cells[1].outputs[0]["text"] == "begun\nlate\n"
    assert [[run["run_id"] for run in runs] for runs in listed] == [[], [run_id]]


async def test_a_question_follows_its_notebook_before_its_run_has_begun(
    server: JupyterServer, say
) -> None:
    say(ANSWER)
    old, new = server.notebook("early.ipynb"), "early-renamed.ipynb"
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(old)
        await panel.say(
            "ask", request_id="one", notebook_path=old, question="How many?", files=["sales.csv"]
        )
        await panel.say("renamed", old_path=old, new_path=new, client_id=panel.client_id)
        opened = await panel.until("run_opened")
        _rename(server, old, new)
        await _ended(panel)
        listed = server.get(f"/dm-jupyter/api/runs?notebook={new}")["runs"]
    assert [run["run_id"] for run in listed] == [opened["run_id"]]


async def test_a_run_is_found_under_the_new_name_after_a_reload(server: JupyterServer, say) -> None:
    say("import time\ntime.sleep(30)\n```")
    old, new = server.notebook("reloaded.ipynb"), "reloaded-elsewhere.ipynb"
    async with asyncio.timeout(60):
        async with Panel(server) as panel:
            await panel.attach(old)
            run_id = await panel.ask(old, "Sleep", files=["sales.csv"])
            await panel.until("cell_opened")
        _rename(server, old, new)
        async with Panel(server, "tab-2") as again:  # the tab was cut off when it was renamed
            await again.say("renamed", old_path=old, new_path=new, client_id="tab-2")
            await again.attach(new)
            opened = await again.until("run_opened")
            await again.say("stop", run_id=run_id)
            closed = await _ended(again)
    assert (opened["run_id"], opened["notebook_path"]) == (run_id, new)
    assert closed["stop"] == "cancelled"


async def test_stop_interrupts_the_cell_and_keeps_its_output(server: JupyterServer, say) -> None:
    say("import time\nprint('begun', flush=True)\ntime.sleep(60)\n```")
    path = server.notebook("stopped.ipynb")
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Sleep", files=["sales.csv"])
        await _first_output(panel)
        await panel.say("stop", run_id=run_id)
        closed = await _ended(panel)
    assert closed["stop"] == "cancelled"
    assert panel.of("cell_closed")[0]["status"] == "interrupted"
    assert panel.of("operated")[-2]["operation"] == {
        **panel.of("operated")[-2]["operation"], "op": "set_execution", "is_running": False,
    }  # fmt: skip


async def test_stop_said_again_does_not_cut_the_end_of_a_run_short(
    server: JupyterServer, say
) -> None:
    deaf = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    say(deaf + "print('begun', flush=True)\ntime.sleep(60)\n```")
    path = server.notebook("deaf.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Sleep", files=["sales.csv"])
        await _first_output(panel)
        for _ in range(3):  # while the kernel is waited for, which does not listen
            await panel.say("stop", run_id=run_id)
            await asyncio.sleep(0.4)  # a person's pace
        closed = await _ended(panel)
    assert closed["stop"] == "cancelled"
    assert len(panel.of("cell_closed")) == 1
    executions = [
        x["operation"] for x in panel.of("operated") if x["operation"]["op"] == "set_execution"
    ]
    assert not executions[-1]["is_running"]


async def test_a_changed_cell_is_told_and_kept_as_it_ran(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    say("print('as written')\n```", "It says so.")
    path = server.notebook("told.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Print", files=["sales.csv"], approval="ask")
        waiting = await panel.until("cell_opened")
        word = {"run_id": run_id, "cell_id": waiting["cell_id"], "decision": "approve"}
        await panel.say("decide", source="print('as changed')", **word)
        await _ended(panel)
    told = endpoint.bodies[-1]["messages"][-1]["content"]
    assert "The person changed this cell to:\n```python\nprint('as changed')\n```" in told
    kept = server.get(f"/dm-jupyter/api/runs/{run_id}/export?as=trajectory")
    step = kept["steps"][0]
    assert step["action"]["source"] == "print('as changed')"
    assert step["is_edited"]
    assert not kept["steps"][1]["is_edited"]


@pytest.mark.parametrize("decision", ["approve", "edit", "skip"])
async def test_a_cell_waits_for_the_person(server: JupyterServer, say, decision: str) -> None:
    say("print('as written')\n```", ANSWER)
    path = server.notebook(f"{decision}.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Print", files=["sales.csv"], approval="ask")
        waiting = await panel.until("cell_opened")
        assert waiting["waits_because"]
        word = {"run_id": run_id, "cell_id": waiting["cell_id"]}
        if decision == "edit":
            source = "print('as changed')"
            await panel.say("decide", decision="approve", source=source, **word)
        else:
            await panel.say("decide", decision=decision, **word)
        closed = await panel.until("cell_closed")
        await panel.say("stop", run_id=run_id)
        await _ended(panel)
    operations = [message["operation"] for message in panel.of("operated")]
    texts = [x["output"].get("text") for x in operations if x["op"] == "append_output"]
    expected = {"approve": ["as written\n"], "edit": ["as changed\n"], "skip": []}[decision]
    assert texts == expected
    assert closed["status"] == ("skipped" if decision == "skip" else "ok")
    # What ran is what the notebook shows; a cell that the person has rewritten is not removed.
    of_cell = [x for x in operations if x.get("cell_id") == waiting["cell_id"]]
    inserted, decided = of_cell[:2]
    if decision == "skip":
        assert (decided["op"], decided["if_source"]) == ("delete_cell", inserted["source"])
    else:
        changed = "print('as changed')" if decision == "edit" else inserted["source"]
        assert (decided["op"], decided["source"]) == ("set_source", changed)


async def test_what_the_answer_does_not_need_folds_and_the_run_can_be_undone(
    server: JupyterServer, say
) -> None:
    say(
        "print(df.columns.tolist())\n```",
        "```python\nprint(df.sold.sum())\n```",
        "```python\nprint(df.sales.sum())\n```",
        ANSWER,
    )
    path = server.notebook("folded.ipynb", sources=("mine = 1",))
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "What is the sum of sales?", files=["sales.csv"])
        await _ended(panel)
        opened = [message["cell_id"] for message in panel.of("cell_opened")]
        operations = [message["operation"] for message in panel.of("operated")]
        folded = [one["cell_id"] for one in operations if one["op"] == "fold_cell"]
        assert opened[1] in folded
        assert opened[-1] not in folded
        inserted = [one for one in operations if one["op"] == "insert_cell"]
        assert {one["metadata"]["dm_jupyter"]["role"] for one in inserted} >= {"answer", "cell"}
        assert "jupyter" not in inserted[-1]["metadata"]
        await panel.say("undo", run_id=run_id)
        await panel.until("run_undone")
        await panel.say("detach", notebook_path=path)
        await _undone(server, path, 1)
    assert server.document(path).cells[0].source == "mine = 1"
    kept = nbformat.reads(
        json.dumps(server.get(f"/dm-jupyter/api/runs/{run_id}/export?as=notebook")), as_version=4
    )
    hidden = [cell.id for cell in kept.cells if cell.metadata.get("collapsed")]
    assert opened[1] in hidden


async def test_numbers_lead_to_their_cells(server: JupyterServer, say) -> None:
    say(
        "print('rows', len(df))\n```",
        "```python\nprint('sum of sales', df.sales.sum())\n```",
        "There are 2 rows and the sum of sales is 40.",
    )
    path = server.notebook("two-cells.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "How many rows, and what is the sum of sales?", files=["sales.csv"])
        closed = await _ended(panel)
    first, second = dict.fromkeys(message["cell_id"] for message in panel.of("cell_opened"))
    found = {one["text"]: one["cell_id"] for one in closed["numbers"]}
    assert found == {"2": first, "40": second}


async def test_a_risky_cell_asks_and_a_plain_one_does_not(server: JupyterServer, say) -> None:
    say("import os\nos.system('ls')\n```")
    path = server.notebook("risky.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "List", files=["sales.csv"])
        waiting = await panel.until("cell_opened")
        await panel.say("stop", run_id=run_id)
        await _ended(panel)
    assert "os.system" in waiting["waits_because"]


async def test_another_kernel_is_never_used_unasked(server: JupyterServer, say) -> None:
    say("print(1)\n```", ANSWER)
    path = server.notebook("own.ipynb", kernel="python3")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.say("ask", request_id="r", notebook_path=path, question="One?")
        refused = await panel.until("refused")
        assert refused["reason"] == "kernel"
        run_id = await panel.ask(path, "One?", kernel="own", approval="ask", without_data=True)
        waiting = await panel.until("cell_opened")
        await panel.say("stop", run_id=run_id)
        await _ended(panel)
    assert waiting["waits_because"] == "this kernel is not restricted"


@pytest.mark.parametrize(
    ("approval", "source", "waits", "status"),
    [
        ("risky", "print(1)", False, "ok"),
        ("risky", "import os\nos.system('ls')", True, "interrupted"),
        ("auto", "import os\nos.system('ls')", False, "denied"),
    ],
)
async def test_in_another_kernel_cells_wait_as_the_person_chose(
    server: JupyterServer, say, approval: str, source: str, waits: bool, status: str
) -> None:
    say(f"{source}\n```", ANSWER)
    path = server.notebook(f"{approval}-{waits}.ipynb", kernel="python3")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        asked = {"kernel": "own", "approval": approval, "without_data": True}
        run_id = await panel.ask(path, "One?", **asked)
        opened = await panel.until("cell_opened")
        if waits:
            await panel.say("stop", run_id=run_id)
        closed = await panel.until("cell_closed")
        await _ended(panel)
    assert bool(opened["waits_because"]) == waits
    assert closed["status"] == status


async def test_a_stop_of_a_run_that_is_not_kept_is_refused(server: JupyterServer) -> None:
    path = server.notebook("gone.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.say("stop", run_id="gone")
        refused = await panel.until("refused")
    assert (refused["request_id"], refused["reason"]) == ("gone", "unknown")


async def test_undo_leaves_what_the_person_wrote(server: JupyterServer, say) -> None:
    say(CODE, ANSWER)
    path = server.notebook("undone.ipynb", sources=("mine = 1",))
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Sum", files=["sales.csv"])
        await _ended(panel)
        await panel.close()
        await _written(server, path, 4)
        document = server.document(path)
        document.cells[2].source += "\n# a note of mine"
        model = {"type": "notebook", "format": "json", "content": document}
        server.request("PUT", f"/api/contents/{path}", model)
        await panel.connect()
        await panel.attach(path)
        await panel.say("undo", run_id=run_id)
        await panel.until("run_undone")
        await panel.close()
        await _undone(server, path, 2)
        left = [cell.source for cell in server.document(path).cells]
    assert left[0] == "mine = 1"
    assert left[1].endswith("# a note of mine")


async def test_two_tabs_have_one_owner_and_the_second_inherits(server: JupyterServer, say) -> None:
    say(CODE, ANSWER)
    path = server.notebook("two.ipynb")
    async with asyncio.timeout(60), Panel(server, "one") as one, Panel(server, "two") as two:
        assert (await one.attach(path))["is_owner"]
        assert not (await two.attach(path))["is_owner"]
        await one.ask(path, "Sum", files=["sales.csv"])
        await _ended(one)
        await _ended(two)
        assert len(two.of("operated")) == len(one.of("operated"))
        await one.close()
        assert (await two.until("attached"))["is_owner"]
        await one.connect()
        assert not (await one.attach(path))["is_owner"]
        await one.say("take_over", notebook_path=path)
        assert (await one.until("attached"))["is_owner"]
        assert not (await two.until(lambda x: x["kind"] == "attached" and not x["is_owner"]))[
            "is_owner"
        ]


async def test_one_run_a_notebook(server: JupyterServer, say) -> None:
    say("import time\ntime.sleep(30)\n```")
    path = server.notebook("busy.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Sleep", files=["sales.csv"])
        await panel.say("ask", request_id="second", notebook_path=path, question="And?")
        refused = await panel.until("refused")
        await panel.say("stop", run_id=run_id)
        await _ended(panel)
    assert (refused["request_id"], refused["reason"]) == ("second", "busy")


async def test_of_two_tabs_that_ask_at_once_one_begins(server: JupyterServer, say) -> None:
    say(CODE, ANSWER)
    path = server.notebook("at_once.ipynb")
    question = {"notebook_path": path, "question": "Sum?", "variables": ["df"]}
    async with asyncio.timeout(60), Panel(server, "one") as one, Panel(server, "two") as two:
        await one.attach(path)
        await two.attach(path)
        for tab in (one, two):
            await tab.say("ask", request_id="a", files=["missing.csv"], **question)
        assert "file" in [(await tab.until("refused"))["reason"] for tab in (one, two)]
        for tab in (one, two):
            await tab.say("ask", request_id="b", files=["sales.csv"], **question)
        await _ended(one)
        await _ended(two)
    refused = [x for x in one.of("refused") + two.of("refused") if x["request_id"] == "b"]
    assert [x["reason"] for x in refused] == ["busy"]
    assert len(one.of("run_opened")) == 1


@pytest.mark.parametrize("name", ["missing.csv", "../../etc/passwd"])
async def test_a_file_that_is_not_there_is_named(server: JupyterServer, name: str) -> None:
    path = server.notebook("nofile.ipynb")
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        await panel.attach(path)
        await panel.say("ask", request_id="r", notebook_path=path, question="What?", files=[name])
        refused = await panel.until("refused")
    assert refused["reason"] == "file"
    assert name in refused["message"]


async def test_a_question_that_breaks_is_answered_all_the_same(server: JupyterServer) -> None:
    path = server.notebook("breaks.ipynb")
    name = "a name that no system call takes\0.csv"
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        await panel.attach(path)
        await panel.say("ask", request_id="r", notebook_path=path, question="What?", files=[name])
        refused = await panel.until("refused")
    assert (refused["request_id"], refused["reason"]) == ("r", "unknown")
    assert "can't be worked on (ValueError: " in refused["message"]
    assert "a question broke before its run began" in server.log.read_text()


async def test_the_files_meant_are_those_named_and_then_those_of_before(
    server: JupyterServer, say
) -> None:
    say("print(df.sales.sum())\n```", ANSWER)
    path = server.notebook("meant.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        for question in ("What is the sum in sales.csv?", "And once more?"):
            say("print(df.sales.sum())\n```", ANSWER)
            await panel.ask(path, question)
            assert (await _ended(panel))["stop"] == "answered"
    assert [opened["files"] for opened in panel.of("run_opened")] == [["sales.csv"]] * 2


@pytest.mark.slow
async def test_a_kernel_out_of_memory_says_so_everywhere(server: JupyterServer, say) -> None:
    say("hog = [bytearray(2**20) for _ in range(5000)]\n```", ANSWER)
    path = server.notebook("memory.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Fill", files=["sales.csv"], approval="auto")
        closed = await panel.until("cell_closed")
        ended = (panel.of("kernel_ended") or [await panel.until("kernel_ended")])[0]
        await panel.say("stop", run_id=run_id)
        await _ended(panel)
    assert closed["status"] == "memory"
    assert closed["state_lost"]
    assert "2048 MiB" in closed["message"]
    assert "2048 MiB" in ended["message"]
    errors = [
        message["operation"]["output"]
        for message in panel.of("operated")
        if message["operation"]["op"] == "append_output"
    ]
    assert errors[-1]["ename"] == "MemoryLimit"


async def test_a_kernel_shut_down_during_a_run_is_named_and_the_run_is_kept(
    server: JupyterServer, say
) -> None:
    say("print('never')\n```", ANSWER)
    path = server.notebook("shut_down.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Print", files=["sales.csv"], approval="ask")
        waiting = await panel.until("cell_opened")
        server.end_kernels(path)
        await panel.say(
            "decide", run_id=run_id, cell_id=waiting["cell_id"], decision="approve", source=None
        )
        closed = await _ended(panel)
    assert closed["stop"] == "fault"
    assert "was shut down: start one" in closed["detail"]
    run = f"/dm-jupyter/api/runs/{run_id}"
    await until(lambda: not server.refusal("GET", f"{run}/export?as=trajectory"), "it is kept")


def test_the_notebook_is_written_even_if_keeping_the_run_breaks() -> None:
    settled: list[str] = []

    def broken(_: object) -> None:
        raise RuntimeError("a fault")

    parts: Any = SimpleNamespace(settle=settled.append, keep=broken)
    run: Any = SimpleNamespace(
        journal=SimpleNamespace(run_id="r", release=lambda: settled.append("released")),
        summary=None,
        ask=SimpleNamespace(notebook_path="n.ipynb"),
    )
    with pytest.raises(RuntimeError, match="a fault"):
        ActiveRuns(parts, parts, parts, parts, parts, parts)._ended(run)
    assert settled == ["released", "n.ipynb"]


async def test_the_cells_are_run_again_in_an_empty_kernel(server: JupyterServer, say) -> None:
    say("kept = 41\nprint(kept)\n```", ANSWER)
    path = server.notebook("again.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Keep", files=["sales.csv"])
        await _ended(panel)
        await panel.close()
        await _written(server, path, 3)
        server.request("POST", f"/api/kernels/{server.kernel_id(path)}/restart")
        await panel.connect()
        await panel.attach(path)
        await panel.say("rebuild", run_id=run_id)
        await panel.until(lambda x: x["kind"] == "phase" and "1 cells were run" in x["text"])
        say("print(kept + 1)\n```", ANSWER)
        await panel.ask(path, "Is it there?", files=["sales.csv"])
        await _ended(panel)
    texts = [
        message["operation"]["output"].get("text")
        for message in panel.of("operated")
        if message["operation"]["op"] == "append_output"
    ]
    assert texts[-1] == "42\n"


async def test_cells_are_run_again_by_one_at_a_time_and_ask_nothing(
    server: JupyterServer, say
) -> None:
    say(CODE, ANSWER)
    path = server.notebook("once.ipynb")
    sources = (
        "import time\ntime.sleep(3)",
        "%%analyze sales.csv\nWhat is the sum?",
        'answer = %analyze sales.csv "What is the sum?"',
    )
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Sum", files=["sales.csv"])
        await panel.say("rebuild", run_id=run_id)
        assert (await panel.until("refused"))["reason"] == "busy"
        await _ended(panel)
        cells = [new_code_cell(source, execution_count=1) for source in sources]
        nbformat.write(new_notebook(cells=cells), server.root / path)
        for _ in range(2):
            await panel.say("rebuild", run_id=run_id)
        assert (await panel.until("refused"))["reason"] == "busy"
        await panel.say("ask", request_id="r", notebook_path=path, question="Sum?")
        refused = await panel.until("refused")
        assert (refused["request_id"], refused["reason"]) == ("r", "busy")
        last = await panel.until(lambda x: x["kind"] == "phase" and "were run again" in x["text"])
    assert last["text"] == "1 cells were run again; 2 with %analyze were left out"


async def test_a_file_elsewhere_is_brought_to_the_kernel(server: JupyterServer, say) -> None:
    (server.root / "deep").mkdir(exist_ok=True)
    say(CODE, ANSWER)
    path = server.notebook("deep/inner.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Sum", files=["sales.csv"])
        closed = await _ended(panel)
    assert closed["stop"] == "answered"
    assert (server.root / "deep" / "sales.csv").is_file()


@pytest.mark.slow
async def test_the_server_shuts_down_politely_and_a_crash_loses_nothing(
    tmp_path, endpoint, say
) -> None:
    say("import time\nprint('before', flush=True)\ntime.sleep(60)\n```")
    server = JupyterServer(tmp_path, endpoint.base_url)
    (server.root / "sales.csv").write_text("a\n1\n")
    with server:
        path = server.notebook("crash.ipynb")
        async with asyncio.timeout(60), Panel(server) as panel:
            await panel.attach(path)
            run_id = await panel.ask(path, "Sleep", files=["sales.csv"])
            await _first_output(panel)
            server.kill()
        server.start()
        await _written(server, path, 2)
        listed = server.get("/dm-jupyter/api/runs")["runs"]
        messages = server.get(f"/dm-jupyter/api/runs/{run_id}")["messages"]
        document = server.document(path)
    assert document.cells[1].outputs[0]["text"] == "before\n"
    assert (listed[0]["run_id"], listed[0]["stop"]) == (run_id, "fault")
    assert "server stopped" in messages[-1]["detail"]
