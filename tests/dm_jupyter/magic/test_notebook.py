"""In real kernels, driven by nbclient."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.dm_jupyter.magic.kernel import Listener, executed, texts
from tests.endpoint import ScriptedEndpoint

RICH = (
    "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('rows', len(df))\n"
    "df.head(1)\n```"
)
OOPS = "dff\n```"
WHOLE = "There are **3** rows, <b>no</b> more."
ANALYZE = '%%analyze "my people.csv"'


async def test_the_work_and_the_answer_are_the_outputs_of_the_cell(folder: Path) -> None:
    with ScriptedEndpoint([OOPS, f"so.\n{RICH}", WHOLE]) as endpoint:
        asking, using = await executed(
            f"{ANALYZE} --into output --base-url {endpoint.base_url} --model tiny\nHow many rows?",
            "answer = _\nassert answer.to_notebook('n.ipynb').cells\nanswer.values, answer.text",
        )
    *work, used, answer = asking.outputs
    assert [output.output_type for output in work] == ["display_data"] * 6
    failed, error, code, picture, printed, table = (output.data for output in work)
    assert failed["text/markdown"].startswith("```python\n")
    assert "NameError" in error["text/html"]
    assert "plt.show()" in code["text/plain"]
    assert set(picture) == {"image/png", "text/plain"}
    assert printed == {"text/plain": "rows 3"}
    assert '<table border="1" class="dataframe">' in table["text/html"]
    assert re.match(r"tiny at 127\.0\.0\.1:\d+ · 3 turns · ", used.data["text/plain"])
    assert answer.output_type == "execute_result"
    assert answer.data["text/markdown"] == "There are **3** rows, <\u200bb>no<\u200b/b> more."
    assert answer.data["text/plain"] == WHOLE
    assert texts(using) == [str(({}, WHOLE))]
    kept = nbformat.read(folder / "n.ipynb", as_version=nbformat.NO_CONVERT)
    nbformat.validate(kept)
    assert kept.cells[-1].source == f"## Answer\n\n{WHOLE}"


async def test_a_listener_takes_the_question_and_the_cell_ends_at_once(folder: Path) -> None:
    # A page that does not know the comm closes it; the server listens all the same.
    listener = Listener(
        ("comm_close", {}),
        ("comm_msg", {"kind": "seen"}),
        ("comm_msg", {"kind": "accepted", "run_id": "r1"}),
    )
    asking, using = await executed(
        f"{ANALYZE} --model m\nHow many rows?",
        "_.run_id",
        listener=listener,
    )
    assert listener.told == [{"kind": "waits"}]
    assert texts(asking) == ["The analyst is working in the cells below."]
    assert asking.outputs[0].data["text/markdown"].startswith("**The analyst is")
    assert texts(using) == ["'r1'"]
    (question,) = listener.questions
    assert len(question.pop("request_id")) == 32
    assert question == {
        "question": "How many rows?",
        "files": ["my people.csv"],
        "folder": str(folder),
        "cell_id": None,
        "options": {"model": "m"},
        "withheld": [],
        "variables": '{"tables": [], "values": []}',
    }
    assert listener.closings == [{"kind": "received"}]


async def test_a_slow_start_is_not_taken_for_nobody(folder: Path) -> None:
    accepted = ("comm_msg", {"kind": "accepted", "run_id": "r1"})
    listener = Listener(("comm_msg", {"kind": "seen"}), late=(accepted,))
    _, asking, using = await executed(
        "import dm_jupyter.magic.handoff as handoff; handoff._SEEN_S = 0.4",
        f"{ANALYZE}\nHow many rows?",
        "_.run_id",
        listener=listener,
    )
    assert texts(asking) == ["The analyst is working in the cells below."]
    assert texts(using) == ["'r1'"]
    assert len(listener.questions) == 1
    assert listener.closings == [{"kind": "received"}]


async def test_a_question_that_was_seen_and_not_answered_is_not_worked_on_here(
    folder: Path,
) -> None:
    listener = Listener(("comm_msg", {"kind": "seen"}))
    _, asking = await executed(
        "import dm_jupyter.magic.handoff as handoff; handoff._ANSWER_S = 0.2",
        f"{ANALYZE}\nHow many rows?",
        listener=listener,
    )
    assert [output.output_type for output in asking.outputs] == ["error"]
    assert "look at its panel, then ask again" in texts(asking)[0]
    assert listener.closings == [{"kind": "abandoned"}]


async def test_a_refusal_and_a_missing_file_are_one_line_each(folder: Path) -> None:
    listener = Listener(
        ("comm_msg", {"kind": "hello"}),
        ("comm_msg", ["accepted"]),
        ("comm_msg", {"kind": "refused", "message": "a run still works in this notebook"}),
    )
    refused, missing = await executed(
        f"{ANALYZE}\nHow many?", '%analyze gone.csv "How many?"', listener=listener
    )
    assert [output.output_type for output in refused.outputs + missing.outputs] == ["error"] * 2
    assert texts(refused) == ["dm-jupyter: a run still works in this notebook"]
    assert missing.outputs[0].ename == "DataFileError"
    assert texts(missing) == [
        "dm-jupyter: gone.csv: there is no such file; check the name and the folder"
    ]
    assert len(listener.questions) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("set_model")
async def test_without_a_listener_the_work_is_done_in_the_cell(folder: Path) -> None:
    quiet, told = await executed(
        f"{ANALYZE}\nHow many rows?",
        'answer = %analyze "my people.csv" "How many rows?" --into cells',
    )
    assert texts(quiet)[-1] == "There are **3** rows."
    assert "df = pd.read_csv" in texts(quiet)[0]
    assert texts(told)[0].startswith("nobody here writes cells for the analyst")
    assert texts(told)[-1].startswith("tiny at 127.0.0.1:")


@pytest.mark.slow
@pytest.mark.usefixtures("set_model", "folder")
@pytest.mark.parametrize("replies", [[("comm_close", {})], []])
async def test_a_closed_comm_and_no_answer_mean_that_nobody_listens(
    replies: list[tuple[str, dict[str, str]]],
) -> None:
    listener = Listener(*replies)
    (cell,) = await executed(f"{ANALYZE}\nHow many rows?", listener=listener)
    assert texts(cell)[-1] == "There are **3** rows."
    assert listener.closings == [{"kind": "abandoned"}]


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
async def test_an_answer_in_a_form_for_code_comes_back_whoever_listens() -> None:
    listener = Listener(("comm_msg", {"kind": "accepted", "run_id": "r1"}))
    with ScriptedEndpoint(["print(f'@n[{len(df)}]')\n```"]) as endpoint:
        options = f"--base-url {endpoint.base_url} --model tiny --format @n[count]"
        line = f'answer = %analyze "my people.csv" "How many?" {options}'
        _, using = await executed(line, "answer.values", listener=listener)
    assert texts(using) == ["{'n': '3'}"]
    assert not listener.questions


@pytest.mark.slow
async def test_a_key_is_never_handed_on(folder: Path) -> None:
    (folder / "key").write_text("sk-secret")
    listener = Listener(("comm_msg", {"kind": "accepted", "run_id": "r1"}))
    with ScriptedEndpoint([RICH, WHOLE]) as endpoint:
        (cell,) = await executed(
            f"{ANALYZE} --base-url {endpoint.base_url} --model tiny --api-key-file key\nHow many?",
            listener=listener,
        )
    assert texts(cell)[-1] == WHOLE
    assert not listener.questions
    assert endpoint.headers[0]["authorization"] == "Bearer sk-secret"


@pytest.mark.slow
async def test_an_endpoint_that_breaks_leaves_the_work_so_far_and_one_line(folder: Path) -> None:
    with ScriptedEndpoint([RICH, WHOLE], breaks_at=1) as endpoint:
        (cell,) = await executed(
            f"{ANALYZE} --into output --base-url {endpoint.base_url} --model tiny\nHow many?"
        )
    *work, used, error = texts(cell)
    assert "rows 3" in work
    assert used.startswith("stopped · tiny at 127.0.0.1:")
    assert error.startswith(f"dm-jupyter: the answer of tiny at {endpoint.base_url} broke off")
    assert cell.outputs[-1].output_type == "error"


@pytest.mark.slow
async def test_a_dead_endpoint_leaves_one_line(folder: Path) -> None:
    (cell,) = await executed(
        f"{ANALYZE} --into output --base-url http://127.0.0.1:9/v1 --model tiny\nHow many?"
    )
    blank, error = texts(cell)
    assert blank == ""
    assert error.startswith("dm-jupyter: nothing answers for tiny at http://127.0.0.1:9/v1")
