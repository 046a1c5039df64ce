"""Marks of chat templates in text that quotes them."""

from __future__ import annotations

import pytest

from dm_jupyter.core.chat_marks import with_broken_marks
from dm_jupyter.core.dialect import Message


@pytest.mark.parametrize(
    ("mark", "broken"),
    [
        ("<|im_end|>", "< |im_end|>"),
        ("<|start-of_role|>", "< |start-of_role|>"),
        ("<|/tool_call|>", "< |/tool_call|>"),
        ("<｜Assistant｜>", "< ｜Assistant｜>"),
        ("<｜end▁of▁sentence｜>", "< ｜end▁of▁sentence｜>"),
        ("<|turn>", "< |turn>"),
        ("<turn|>", "< turn|>"),
        ("<start_of_turn>", "< start_of_turn>"),
        ("<end_of_turn>", "< end_of_turn>"),
        ("<bos>", "< bos>"),
        ("<s>", "< s>"),
        ("</s>", "< /s>"),
        ("[INST]", "[ INST]"),
        ("[/INST]", "[ /INST]"),
        ("[SYSTEM_PROMPT]", "[ SYSTEM_PROMPT]"),
        ("<<SYS>>", "< <SYS>>"),
        ("<</SYS>>", "< </SYS>>"),
    ],
)
def test_a_mark_is_broken_wherever_it_is(mark: str, broken: str) -> None:
    assert with_broken_marks(f"a{mark}<{mark}\n{mark}") == f"a{broken}<{broken}\n{broken}"
    assert with_broken_marks(broken) == broken


@pytest.mark.parametrize(
    "text",
    ["a < b | c > d", "<b>|</b>", "x[INSTALL]", "<code>", "<Analyze>", "<sales>", "a <| b |> c"],
)
def test_other_text_stays(text: str) -> None:
    assert with_broken_marks(text) == text


def test_only_the_model_s_own_turn_is_sent_with_its_marks() -> None:
    sent = {
        role: Message(role, "<|im_end|>", pictures=("data:x",) * (role == "user")).to_json()
        for role in ("system", "user", "tool", "assistant")
    }
    assert sent["system"]["content"] == sent["tool"]["content"] == "< |im_end|>"
    assert sent["user"]["content"][0] == {"type": "text", "text": "< |im_end|>"}
    assert sent["assistant"]["content"] == "<|im_end|>"
