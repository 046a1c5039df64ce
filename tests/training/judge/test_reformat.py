from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.task import Task
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import HttpPolicy
from tests.endpoint import ScriptedEndpoint, unused_url
from training.judge.column import Reformatter, read_reformatted
from training.marking.asking import NoReplyError, UnusableReplyError

TASK = Task("t", "Mean and count?", answer_format="@mean[value], @c[count], @normal[yes/no]")
NAMES = ("mean", "c", "normal")
ANSWER = "The mean is 2.50 over 1,204 rows (p = 0.03), so it is not normal."


async def _reformat(base_url: str, cache: Path, answer: str, task: Task = TASK) -> str:
    async with HttpPolicy(Endpoint(base_url, "clerk", retries=0)) as policy:
        return await Reformatter(policy, cache).reformat(task, answer)


async def test_an_answer_in_words_comes_back_in_form(tmp_path: Path) -> None:
    reply = "Here it is:\n@mean[2.5] @c[1204]\n@normal[no]"
    with ScriptedEndpoint([reply]) as endpoint:
        text = await _reformat(endpoint.base_url, tmp_path, ANSWER)
        assert await _reformat(endpoint.base_url, tmp_path, ANSWER) == text
    assert text == "@mean[2.5]\n@c[1204]\n@normal[no]"
    (body,) = endpoint.bodies
    asked = body["messages"][0]["content"]
    assert all(part in asked for part in (TASK.question, TASK.answer_format, ANSWER))
    assert (body["temperature"], body["seed"]) == (0, 0)


@pytest.mark.parametrize("answer", ["", "  ", "So @normal[no] @mean[9] and @c[1]."])
async def test_nothing_to_do_asks_nobody(answer: str, tmp_path: Path) -> None:
    assert await _reformat(unused_url(), tmp_path, answer) == answer
    assert await _reformat(unused_url(), tmp_path, "free", Task("t", "?")) == "free"


async def test_an_answer_that_broke_off_is_not_in_form(tmp_path: Path) -> None:
    task = Task("t", "?", answer_format="@mean[x]")
    with ScriptedEndpoint(["@mean[2.5]"]) as endpoint:
        assert await _reformat(endpoint.base_url, tmp_path, "@mean[2.5", task) == "@mean[2.5]"


async def test_a_value_that_was_changed_is_refused_and_asked_for_once_more(tmp_path: Path) -> None:
    with ScriptedEndpoint(["@mean[2.6]", "@mean[2.50]"]) as endpoint:
        assert await _reformat(endpoint.base_url, tmp_path, ANSWER) == "@mean[2.50]"
    assert "number that the answer lacks" in endpoint.bodies[1]["messages"][-1]["content"]
    refused = pytest.raises(NoReplyError, match=r"@mean\[2.6\] holds a number")
    with ScriptedEndpoint(["@mean[2.6]"]) as endpoint, refused:
        await _reformat(endpoint.base_url, tmp_path / "other", ANSWER)


@pytest.mark.parametrize("value", ["2.5", "2.50", "1204", "1,204", "1,204, 2.5", "no", "p = 3e-2"])
def test_values_of_the_answer_may_be_copied(value: str) -> None:
    assert read_reformatted(f"@c[{value}]", names=NAMES, answer=ANSWER) == f"@c[{value}]"


@pytest.mark.parametrize("value", ["-2.5", "25", "3", "1205", "2.5001", "1,204, 7", "2.5, 2.6"])
def test_values_that_the_answer_lacks_may_not_be_made_up(value: str) -> None:
    with pytest.raises(UnusableReplyError, match="the answer lacks"):
        read_reformatted(f"@c[{value}]", names=NAMES, answer=ANSWER)


def test_a_name_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(UnusableReplyError, match="@median is not a name"):
        read_reformatted("@median[2.5]", names=NAMES, answer=ANSWER)


def test_no_value_is_said_in_one_word() -> None:
    assert read_reformatted(" none.\n", names=NAMES, answer="I can't tell.") == ""
    with pytest.raises(UnusableReplyError, match="no line of the form"):
        read_reformatted("mean: 2.5", names=NAMES, answer=ANSWER)


@given(st.text(), st.text())
def test_no_text_crashes(reply: str, answer: str) -> None:
    try:
        text = read_reformatted(reply, names=NAMES, answer=answer)
    except UnusableReplyError:
        return
    assert text == "" or text.startswith("@")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1))
def test_every_number_of_an_answer_may_be_copied_out_of_it(numbers: list[float]) -> None:
    said = [f"{number:.4f}" for number in numbers]
    answer = "Values " + " and ".join(said) + "."
    reply = "\n".join(f"@c[{one}]" for one in said)
    assert read_reformatted(reply, names=NAMES, answer=answer) == reply
