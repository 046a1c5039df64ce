"""What a page hears of a kernel that a run has worked in loads nothing from elsewhere."""

from __future__ import annotations

import asyncio
import json

import pytest
from jupyter_client.session import Session

from dm_jupyter.server.kernels.page_filter import filtered, inert_message
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.remote import remote_references, spellings

MARKUP = '<img src="http://remote.test/a">'
SHOW = f"""
from comm import create_comm
from IPython.display import HTML, display
shown = display(HTML('{MARKUP}'), display_id=True)
shown.update(HTML('updated {MARKUP}'))
display(HTML('<p>' + 'large ' * 20_000 + '</p>' + '{MARKUP}'))
print('after the large one')
create_comm(target_name="jupyter.widget", target_module="http://remote.test/module",
            data={{"state": {{"_model_module": "anywidget", "_esm": "import 'http://remote.test'"}}}})
get_ipython().payload_manager.write_payload(
    {{"source": "page", "start": 0, "data": {{"text/html": '{MARKUP}'}}}})
print('{MARKUP}')
HTML('the value {MARKUP}')
"""


ECHOED = SHOW.count(MARKUP) + 1
"""How often a page hears the markup as text: in the cell's code, and printed."""


def _message(kind: str, content: object) -> tuple[Session, list[bytes]]:
    session = Session(key=b"secret")
    return session, session.serialize(session.msg(kind, content=content), ident=b"topic")


def _content(session: Session, message: list[bytes] | None) -> dict:
    assert message is not None
    _, parts = session.feed_identities(message)
    return Session(key=b"secret").deserialize(parts)["content"]


@pytest.mark.parametrize("kind", ["display_data", "execute_result", "update_display_data"])
def test_rich_outputs_are_made_inert_and_signed_again(kind: str) -> None:
    content = {"data": {"text/html": MARKUP, "text/plain": "x"}, "metadata": {}, "transient": {}}
    session, message = _message(kind, content)
    shown = _content(session, inert_message(session, message))
    assert remote_references(shown["data"]["text/html"]) == []
    assert "remote.test" in shown["data"]["text/html"]
    assert shown["data"]["text/plain"] == "x"
    assert shown["transient"] == {}


@pytest.mark.parametrize("kind", ["comm_open", "comm_msg"])
def test_widgets_are_made_inert(kind: str) -> None:
    for markup in spellings("html")[:40]:
        content = {"comm_id": "c", "data": {"state": {"value": markup}}, "target_module": "//x"}
        session, message = _message(kind, content)
        heard = _content(session, inert_message(session, message))
        assert remote_references(heard["data"]["state"]["value"]) == []
        assert "target_module" not in heard


@pytest.mark.parametrize("kind", ["stream", "status", "error", "execute_input"])
def test_text_is_handed_on_as_it_came(kind: str) -> None:
    session, message = _message(kind, {"name": "stdout", "text": MARKUP})
    assert inert_message(session, message) is message


def test_buffers_are_handed_on() -> None:
    session, message = _message("comm_msg", {"comm_id": "c", "data": {}})
    made = inert_message(session, [*message, b"one", b"two"])
    assert made is not None
    assert made[-2:] == [b"one", b"two"]


def test_what_cannot_be_read_is_dropped() -> None:
    session, message = _message("display_data", {"data": {"text/html": MARKUP}})
    for number, part in ((3, b"{"), (3, b'"x"'), (6, b"{"), (6, b"[" * 100_000), (6, b"\xff")):
        broken = [*message]
        broken[number] = part
        assert inert_message(session, broken) is None
    assert inert_message(session, message[:5]) is None
    assert inert_message(session, [b"no delimiter"]) is None
    assert inert_message(session, []) is None


def test_connections_of_another_kind_are_left_alone() -> None:
    class Gateway:
        pass

    assert filtered(Gateway, lambda _: True) is Gateway


@pytest.mark.slow
async def test_a_page_is_protected_from_the_first_run_on(server: JupyterServer, say) -> None:
    path = server.notebook("filtered.ipynb")
    before = await server.execute(path, f"{SHOW}  # before")
    escaped = json.dumps(MARKUP)[1:-1]
    assert before.count(escaped) == ECHOED + 5
    assert "target_module" in before

    say("print(df.sales.sum())\n```", "The sum is 40.")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "What is the sum?", files=["sales.csv"])
        await panel.until("run_closed")
    heard = await server.execute(path, SHOW)
    assert heard.count(escaped) == ECHOED
    assert heard.count("a picture from remote.test, not loaded") >= 5
    assert "http://remote.test/module" not in heard.replace(json.dumps(SHOW)[1:-1], "")
    assert "not shown here: a widget of anywidget" in heard
    assert heard.rindex("large large") < heard.rindex("after the large one")
    assert heard.rindex("after the large one") < heard.rindex("the value")

    server.request("POST", f"/api/kernels/{server.kernel_id(path)}/restart")
    again = await server.execute(path, SHOW)
    assert again.count(escaped) == ECHOED


async def test_a_kernel_without_runs_is_left_alone(server: JupyterServer) -> None:
    path = server.notebook("own.ipynb")
    heard = await server.execute(path, SHOW)
    assert heard.count(json.dumps(MARKUP)[1:-1]) == ECHOED + 5
