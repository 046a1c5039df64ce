from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from dm_jupyter.core.errors import DmJupyterError, EndpointRefusedError
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import HttpPolicy
from tests.dm_jupyter.models.scripted_replies import Replies
from tests.endpoint import ScriptedEndpoint, unused_url
from tests.training.judging import REWARD, open_judge, verdict
from tests.waiting import until
from training.marking.asking import ModelUnreachableError, NoReplyError
from training.marking.judge import Judge, Marks
from training.prompts import load_prompt


async def _ask(endpoint: ScriptedEndpoint, cache: Path, **changes: str) -> Marks:
    async with open_judge(endpoint.base_url, cache) as judge:
        return await judge.score("judge_reward", {**REWARD, **changes}, (0, 1))


async def test_a_question_is_sent_at_temperature_0_and_seed_0(tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(1)]) as endpoint:
        said = await _ask(endpoint, tmp_path)
    assert said == Marks(1.0, "It says three.", is_cached=False)
    (body,) = endpoint.bodies
    assert (body["model"], body["temperature"], body["seed"]) == ("judge-1", 0, 0)
    (message,) = body["messages"]
    assert message["role"] == "user"
    assert message["content"] == load_prompt("judge_reward").fill(REWARD)


async def test_a_reply_is_kept_and_not_paid_for_twice(tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(1), verdict(0)]) as endpoint:
        first = await _ask(endpoint, tmp_path)
        again = await _ask(endpoint, tmp_path)
        other = await _ask(endpoint, tmp_path, given="4")
    assert (first.score, first.is_cached) == (1, False)
    assert again == Marks(first.score, first.reason, is_cached=True)
    assert (other.score, other.is_cached) == (0, False)
    assert len(endpoint.bodies) == 2


async def test_another_model_or_length_is_asked_anew(tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(1)]) as endpoint:
        await _ask(endpoint, tmp_path)
        async with open_judge(endpoint.base_url, tmp_path, "judge-2") as judge:
            await judge.score("judge_reward", REWARD, (0, 1))
        async with HttpPolicy(Endpoint(endpoint.base_url, "judge-1")) as policy:
            await Judge(policy, tmp_path, max_tokens=50).score("judge_reward", REWARD, (0, 1))
    assert len(endpoint.bodies) == 3
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b'{"reply": "<sco', b"[]", b'{"reply": 1}', b"\xff\xfe"])
async def test_a_damaged_entry_is_asked_again_and_mended(damage: bytes, tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(1)]) as endpoint:
        await _ask(endpoint, tmp_path)
        (entry,) = tmp_path.iterdir()
        whole = entry.read_bytes()
        entry.write_bytes(damage)
        mended = await _ask(endpoint, tmp_path)
    assert mended.is_cached is False
    assert entry.read_bytes() == whole
    assert len(endpoint.bodies) == 2


async def test_an_entry_that_is_no_verdict_is_asked_again(tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(1)]) as endpoint:
        await _ask(endpoint, tmp_path)
        (entry,) = tmp_path.iterdir()
        entry.write_text(json.dumps({"reply": "<score>7</score>"}))
        assert (await _ask(endpoint, tmp_path)).score == 1
    assert len(endpoint.bodies) == 2


async def test_a_bad_reply_is_asked_for_once_more_with_what_is_wrong(tmp_path: Path) -> None:
    with ScriptedEndpoint(["I think it is right.", verdict(1)]) as endpoint:
        said = await _ask(endpoint, tmp_path)
        assert (await _ask(endpoint, tmp_path)).is_cached
    assert said.score == 1
    asked, bad, reminder = endpoint.bodies[1]["messages"]
    assert asked == endpoint.bodies[0]["messages"][0]
    assert bad == {"role": "assistant", "content": "I think it is right."}
    assert "must stand in it once, and stands 0 times" in reminder["content"]
    assert len(endpoint.bodies) == 2


@pytest.mark.parametrize("reply", ["", "right", "<score>2</score>", verdict(0) + verdict(0)])
async def test_two_bad_replies_are_no_verdict_and_never_0(reply: str, tmp_path: Path) -> None:
    with ScriptedEndpoint([reply]) as endpoint:
        with pytest.raises(NoReplyError, match="judge-1 gave no usable reply to judge_reward"):
            await _ask(endpoint, tmp_path)
        assert len(endpoint.bodies) == 2
        assert not list(tmp_path.iterdir())
        endpoint.texts[:] = [verdict(1)]
        assert (await _ask(endpoint, tmp_path)).score == 1


async def test_a_dead_endpoint_is_no_verdict(tmp_path: Path) -> None:
    async with open_judge(unused_url(), tmp_path) as judge:
        with pytest.raises(ModelUnreachableError, match="nothing answers for judge-1") as caught:
            await judge.score("judge_reward", REWARD, (0, 1))
    assert isinstance(caught.value, DmJupyterError)


async def test_a_refusal_and_a_broken_answer_are_no_verdict(tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(1)], refusals=[400, 400], breaks_at=0) as endpoint:
        with pytest.raises(NoReplyError, match="400") as refused:
            await _ask(endpoint, tmp_path)
        assert isinstance(refused.value.__cause__, EndpointRefusedError)
        assert not isinstance(refused.value, ModelUnreachableError)
        with pytest.raises(NoReplyError, match="broke off"):
            await _ask(endpoint, tmp_path)
        assert (await _ask(endpoint, tmp_path)).score == 1


async def test_a_wrong_key_would_refuse_every_question(tmp_path: Path) -> None:
    with (
        ScriptedEndpoint([verdict(1)], refusals=[401]) as endpoint,
        pytest.raises(ModelUnreachableError, match="401"),
    ):
        await _ask(endpoint, tmp_path)


async def test_a_redirect_would_keep_every_question_from_the_judge(tmp_path: Path) -> None:
    with Replies(lambda _: (308, b""), Location="https://elsewhere.invalid/v1") as endpoint:
        async with open_judge(endpoint.base_url, tmp_path) as judge:
            with pytest.raises(ModelUnreachableError, match=r"redirects to https://elsewhere"):
                await judge.score("judge_reward", REWARD, (0, 1))


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    script = ScriptedEndpoint([verdict(1)])
    kept = pytest.raises(ModelUnreachableError, match=r"can't be kept in .*cache")
    with script as endpoint, kept:
        await _ask(endpoint, tmp_path / "file" / "cache")


async def test_half_a_character_in_an_answer_is_no_fault(tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(0)]) as endpoint:
        assert (await _ask(endpoint, tmp_path, given="3 \ud800")).score == 0
    assert "3 ?" in endpoint.bodies[0]["messages"][0]["content"]


async def test_askers_of_the_same_at_the_same_time_ask_once(tmp_path: Path) -> None:
    with ScriptedEndpoint([verdict(1)], piece_pause_s=0.02) as endpoint:
        async with open_judge(endpoint.base_url, tmp_path) as judge, asyncio.TaskGroup() as group:
            same = [
                group.create_task(judge.score("judge_reward", REWARD, (0, 1))) for _ in range(8)
            ]
            other = group.create_task(judge.score("judge_reward", {**REWARD, "given": "4"}, (0, 1)))
    assert [task.result().score for task in (*same, other)] == [1] * 9
    assert sum(not task.result().is_cached for task in same) == 1
    assert len(endpoint.bodies) == 2


async def test_askers_of_the_same_share_a_failure(tmp_path: Path) -> None:
    with ScriptedEndpoint(["no idea"]) as endpoint:
        async with open_judge(endpoint.base_url, tmp_path) as judge:
            tasks = [
                asyncio.create_task(judge.score("judge_reward", REWARD, (0, 1))) for _ in range(5)
            ]
            await asyncio.wait(tasks)
    assert all(isinstance(task.exception(), NoReplyError) for task in tasks)
    assert len(endpoint.bodies) == 2


async def test_one_cancelled_half_way_leaves_nothing_and_the_next_asks(tmp_path: Path) -> None:
    may_answer = threading.Event()
    with ScriptedEndpoint([verdict(1)], reads_until=may_answer) as endpoint:
        async with open_judge(endpoint.base_url, tmp_path) as judge:
            first = asyncio.create_task(judge.score("judge_reward", REWARD, (0, 1)))
            second = asyncio.create_task(judge.score("judge_reward", REWARD, (0, 1)))
            await until(lambda: endpoint.bodies, "the model is asked")
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            may_answer.set()
            assert not list(tmp_path.iterdir())
            assert (await second).score == 1
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
    assert len(endpoint.bodies) == 2


async def test_grades_are_named_scores_of_one_reply(tmp_path: Path) -> None:
    fields = {"instruction": "Report.", "points": "1. a", "names": "all", "report": "# R"}
    scales = {"content": (1.0, 5.0), "format": (1.0, 5.0), "point_1": (0.0, 1.0)}
    reply = (
        'Fair. <score name="content">4</score><score name="format">3</score>'
        '<score name="point_1">1</score>'
    )
    with ScriptedEndpoint([reply.replace("4", "4.5"), reply]) as endpoint:
        async with open_judge(endpoint.base_url, tmp_path) as judge:
            grades = await judge.grades("judge_report", fields, scales, is_whole=True)
            again = await judge.grades("judge_report", fields, scales, is_whole=True)
    assert dict(grades.scores) == {"content": 4, "format": 3, "point_1": 1}
    assert grades.reason == "Fair."
    assert (grades.is_cached, again.is_cached) == (False, True)
    assert len(endpoint.bodies) == 2


async def test_the_consistency_prompt_takes_two_answers(tmp_path: Path) -> None:
    fields = {"question": "?", "one": "It is 3.", "other": "It is 4."}
    with ScriptedEndpoint([verdict(0)]) as endpoint:
        async with open_judge(endpoint.base_url, tmp_path) as judge:
            said = await judge.score("judge_consistency", fields, (0, 1), is_whole=True)
    assert said.score == 0
    assert "It is 3.\n</first>" in endpoint.bodies[0]["messages"][0]["content"]


async def test_a_prompt_that_lacks_a_field_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    async with open_judge(unused_url(), tmp_path) as judge:
        with pytest.raises(KeyError):
            await judge.score("judge_reward", {"question": "?"}, (0, 1))
        with pytest.raises(FileNotFoundError):
            await judge.score("absent", {}, (0, 1))
