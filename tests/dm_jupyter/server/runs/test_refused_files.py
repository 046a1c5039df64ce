"""A file that holds no table is refused before its run begins, and nothing is written."""

from __future__ import annotations

import asyncio
import io
import zipfile

import pytest

from tests.dm_jupyter.server.jupyter import JupyterServer, Panel

KINDS = "Files that can be read: csv, tsv, json"


def _archive(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "a,b\n1,2\n")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("report.pdf", b"%PDF-1.7\n", "this is a PDF document"),
        ("chart.png", b"\x89PNG\r\n\x1a\n", "this is an image"),
        ("letter.docx", _archive("word/document.xml"), "this is a text or slide document"),
        ("disguised.csv", b"%PDF-1.7\n", "this is a PDF document"),
    ],
)
async def test_what_is_no_table_is_refused_by_name(
    server: JupyterServer, endpoint, name: str, content: bytes, words: str
) -> None:
    (server.root / name).write_bytes(content)
    path = server.notebook(f"no-table-{name}.ipynb")
    endpoint.bodies.clear()
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.say(
            "ask", request_id="r", notebook_path=path, question="What is in it?", files=[name]
        )
        refused = await panel.until(lambda x: x["kind"] in ("refused", "run_opened"))
    assert (refused["kind"], refused.get("reason")) == ("refused", "file")
    assert refused["message"].startswith(f"{name}: {words}")
    assert KINDS in refused["message"]
    assert endpoint.bodies == []
    assert server.get(f"/dm-jupyter/api/runs?notebook={path}")["runs"] == []


@pytest.mark.slow
async def test_the_magic_says_so_in_its_cell(server: JupyterServer) -> None:
    (server.root / "report.pdf").write_bytes(b"%PDF-1.7\n")
    path = server.notebook("magic-no-table.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.until("kernel_meter")
        await server.execute(path, "%load_ext dm_jupyter")
        outputs = await server.execute(path, "%%analyze report.pdf\nWhat is in it?")
    assert "dm-jupyter: report.pdf: this is a PDF document" in outputs
    assert KINDS in outputs
    assert panel.of("run_opened") == []
