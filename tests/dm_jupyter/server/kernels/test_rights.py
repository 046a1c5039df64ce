"""What comes out of a kernel has a kernel's rights, and a link is nobody's word."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError, copied_into
from dm_jupyter.server.kernels.handoff import Handoffs, Handover, files_of
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint

SECRET = "month,sales\nSECRET,7\n"
CODE = "print(df.sales.sum())\n```"
HAND_OVER = """
import asyncio
from comm import create_comm
heard = []
c = create_comm(target_name='dm-jupyter', data={data!r})
c.on_msg(lambda message: heard.append(message['content']['data']))
c.send({{'kind': 'waits'}})
for _ in range(100):
    await asyncio.sleep(0.1)
    if len(heard) > 1:
        break
print(heard)
"""


@pytest.fixture
def secrets(root: Path) -> Path:
    """Files beside and above a notebook's folder that its kernel can't read."""
    folder = root / "inner"
    folder.mkdir(exist_ok=True)
    (root / ".ssh").mkdir(exist_ok=True)
    (root / ".ssh" / "id_rsa").write_text(SECRET)
    (root / "secret.csv").write_text(SECRET)
    return folder


def _everywhere(endpoint: ScriptedEndpoint, panel: Panel, folder: Path) -> str:
    """All that a secret could have come to: the endpoint, the panel, the kernel's folder."""
    files = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    return json.dumps(endpoint.bodies) + json.dumps(panel.heard) + "".join(files)


@pytest.mark.parametrize(
    ("files", "folder", "answer"),
    [
        (["../.ssh/id_rsa"], None, "no such file"),
        (["../secret.csv"], None, "asks you"),
        (["secret.csv"], "{root}", "asks you"),
        (["/etc/passwd"], None, "no such file"),
        (["{root}/secret.csv"], None, "asks you"),
        (["../../../../etc/passwd"], None, "no such file"),
        (["../" * 50 + "etc/passwd"], None, "no such file"),
        ([5], None, "odd name"),
        (["x" * 10_000], None, "odd name"),
        ("secret.csv", None, "no question"),
        (["a\0b"], None, "embedded null"),
    ],
)
async def test_a_cell_reads_nothing_through_the_server(  # noqa: PLR0917 (fixtures)
    server: JupyterServer, endpoint, say, secrets, root, files, folder, answer
) -> None:
    say(CODE, "The sum is 7.")
    endpoint.bodies.clear()
    path = server.notebook(f"inner/rights-{abs(hash(str(files)))}.ipynb")
    if isinstance(files, list):
        files = [x.replace("{root}", str(root)) if isinstance(x, str) else x for x in files]
    data = {"question": "What is in it?", "files": files}
    if folder:
        data["folder"] = folder.replace("{root}", str(root))
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        outputs = await server.execute(path, HAND_OVER.format(data=data))
        await panel.say("undo", run_id="none")
        await panel.until("refused")
    assert "'refused'" in outputs
    assert answer in outputs
    assert "SECRET" not in outputs + _everywhere(endpoint, panel, secrets)
    assert panel.of("run_opened") == []
    wanted = panel.of("files_wanted")
    assert [x["files"] for x in wanted] == (
        [[{"name": "secret.csv", "leads_to": str(root / "secret.csv")}]]
        if answer == "asks you"
        else []
    )


async def test_a_person_gives_what_a_kernel_asked_for(
    server: JupyterServer, say, secrets, root
) -> None:
    say(CODE, "The sum is 7.")
    path = server.notebook("inner/given.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        data = {"question": "What is the sum?", "files": ["../secret.csv"]}
        await server.execute(path, HAND_OVER.format(data=data))
        wanted = await panel.until("files_wanted")
        await panel.ask(path, wanted["question"], files=[x["name"] for x in wanted["files"]])
        closed = await panel.until("run_closed")
    assert closed["answer"] == "The sum is 7."


async def test_a_cell_hands_over_what_it_made_itself(server: JupyterServer, say, secrets) -> None:
    say(CODE, "The sum is 3.")
    path = server.notebook("inner/own.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        make = "open('own.csv', 'w').write('sales\\n3\\n')\n"
        data = {"question": "Sum?", "files": ["own.csv", "./sub/../own.csv"]}
        outputs = await server.execute(path, make + HAND_OVER.format(data=data))
        closed = await panel.until("run_closed")
    assert "'accepted'" in outputs
    assert closed["answer"] == "The sum is 3."


async def test_a_link_is_followed_only_when_the_person_agrees(
    server: JupyterServer, endpoint, say, secrets, root
) -> None:
    say(CODE, "The sum is 7.")
    (secrets / "linked.csv").symlink_to("../.ssh/id_rsa")
    endpoint.bodies.clear()
    path = server.notebook("inner/link.ipynb")
    question: dict[str, Any] = {"notebook_path": path, "question": "Sum?", "request_id": "r"}
    question["files"] = ["inner/linked.csv"]
    real = str(root / ".ssh" / "id_rsa")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.say("read_ahead", notebook_path=path, files=["inner/linked.csv"])
        for agreed in ([], ["/etc/passwd"]):
            await panel.say("ask", **question, agreed=agreed)
            refused = await panel.until("refused")
            assert refused["reason"] == "link"
            assert refused["files"] == [{"name": "inner/linked.csv", "leads_to": real}]
        assert "SECRET" not in json.dumps(endpoint.bodies)
        await panel.say("ask", **question, agreed=[real])
        closed = await panel.until("run_closed")
    assert closed["answer"] == "The sum is 7."


async def test_nothing_is_written_through_a_link_in_the_kernels_folder(
    server: JupyterServer, say, secrets, root
) -> None:
    say(CODE, "The sum is 7.")
    planted = server.folder / "PLANTED"
    (secrets / "secret.csv").unlink(missing_ok=True)
    (secrets / "secret.csv").symlink_to(planted)
    path = server.notebook("inner/planted.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Sum?", files=["secret.csv"])
        assert (await panel.until("run_closed"))["stop"] == "answered"
    assert not planted.exists()
    assert (secrets / "secret (2).csv").read_text() == SECRET


@pytest.mark.parametrize("odd", ["pipe", "link", "folder"])
def test_a_copy_goes_beside_what_is_no_file(tmp_path: Path, odd: str) -> None:
    theirs, folder = tmp_path / "theirs", tmp_path / "work"
    theirs.mkdir()
    folder.mkdir()
    (theirs / "a.csv").write_text("a")
    if odd == "pipe":
        os.mkfifo(folder / "a.csv")
    elif odd == "link":
        (folder / "a.csv").symlink_to(theirs / "a.csv")
    else:
        (folder / "a.csv").mkdir()
    assert copied_into(folder, theirs / "a.csv") == folder / "a (2).csv"
    assert copied_into(folder, theirs / "a.csv") == folder / "a (2).csv"
    (theirs / "b.csv").symlink_to(theirs / "a.csv")
    with pytest.raises(OSError, match="symbolic link"):
        copied_into(folder, theirs / "b.csv")


@pytest.fixture
def files(tmp_path: Path) -> DataFiles:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("a")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.csv").write_text("a")
    (tmp_path / "folder").symlink_to("in")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "in" / "pipe.csv")
    return DataFiles(tmp_path)


@pytest.mark.parametrize(
    "name", [".hidden/a.csv", "../x", "in", "in/pipe.csv", "in/none", "", "/", "loop", "in/a.csv/b"]
)
def test_these_are_no_data_files(files: DataFiles, name: str) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        files.place(name)
    assert files.still_there((name,)) == ()


def test_names_are_looked_up_beneath_the_root(files: DataFiles, tmp_path: Path) -> None:
    real = tmp_path / "in" / "a.csv"
    assert files.place("in/a.csv") == files.place("/in/a.csv") == real
    assert DataFiles(tmp_path, allows_hidden=True).place(".hidden/a.csv").is_file()
    with pytest.raises(LinkedFilesError, match=r"folder/a\.csv leads to") as raised:
        files.places(["in/a.csv", "folder/a.csv"])
    assert [x.leads_to for x in raised.value.files] == [str(real)]
    assert files.place("folder/a.csv", [str(real)]) == real
    assert files.still_there(("in/a.csv", "folder/a.csv")) == ("in/a.csv",)


def test_a_plain_kernel_has_the_persons_rights(files: DataFiles, tmp_path: Path) -> None:
    real = str(tmp_path / "in" / "a.csv")
    handover = Handover("?", files=("../folder/a.csv", "../in/a.csv", "a.csv"))
    own = files_of(handover, files, tmp_path / "in", "own")
    assert (own.files, own.wanted) == (["folder/a.csv", "in/a.csv", "in/a.csv"], [])
    assert own.agreed == [real]
    bound = files_of(handover, files, tmp_path / "in", "restricted")
    assert (bound.files, [x.leads_to for x in bound.wanted]) == (["in/a.csv"] * 2, [real])
    kernel = Handover("?", files=("a.csv",), folder=str(tmp_path / "in"))
    assert files_of(kernel, files, tmp_path / "in", "restricted").files == ["in/a.csv"]
    beside = Handover("?", files=("in/a.csv",), folder=str(tmp_path))
    found = files_of(beside, files, tmp_path / "other", "restricted")
    assert [x.name for x in found.wanted] == ["in/a.csv"]


async def test_a_kernel_that_hands_over_without_end_is_heard_a_few_times() -> None:
    taken, release = [], asyncio.Event()

    async def take(data: Any) -> dict[str, Any]:
        taken.append(data)
        await release.wait()
        raise RuntimeError("breaks")

    tasks: list[asyncio.Task[None]] = []

    async def answer(*_: Any) -> None:
        pass

    handoffs = Handoffs(
        take, answer, lambda _: None, lambda work: tasks.append(asyncio.create_task(work))
    )
    for number in range(1000):
        handoffs.hear(
            "comm_open", {"comm_id": str(number), "target_name": "dm-jupyter", "data": [1]}
        )
        handoffs.hear("comm_msg", {"comm_id": str(number), "data": {"kind": "waits"}})
        handoffs.hear("comm_close", {"comm_id": str(number), "data": "odd"})
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert taken == [{}] * 4
    release.set()
    await asyncio.wait(tasks)
    broken = [task for task in tasks if task.exception() is not None]
    assert all(isinstance(task.exception(), RuntimeError) for task in broken)
    assert len(broken) == 4
    before = len(tasks)
    handoffs.hear("comm_open", {"comm_id": "last", "target_name": "dm-jupyter"})
    assert len(tasks) == before + 1
    tasks[-1].cancel()
