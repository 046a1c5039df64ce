from __future__ import annotations

import json
from pathlib import Path

import pytest

from dm_jupyter.core.dialect import Message
from training.tokens.chat_template import ChatTemplate, ChatTemplateError

SOURCE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
ASKED = [Message("user", "go")]


def folder(path: Path, **settings: object) -> Path:
    (path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return path


def test_template_of_a_folder_with_its_marks(tmp_path: Path) -> None:
    mark = {"content": "<s>", "lstrip": False}
    read = ChatTemplate.of_folder(folder(tmp_path, chat_template=SOURCE, bos_token=mark))
    assert read.text_of(ASKED) == "<s>[user]go"


def test_template_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("own: {{ messages[0].content }}", "utf-8")
    assert ChatTemplate.of_folder(folder(tmp_path)).text_of(ASKED) == "own: go"


@pytest.mark.parametrize("settings", [{}, {"chat_template": [{"name": "default"}]}])
def test_folder_without_one_template(tmp_path: Path, settings: dict[str, object]) -> None:
    with pytest.raises(ChatTemplateError, match="chat template"):
        ChatTemplate.of_folder(folder(tmp_path, **settings))


def test_refusal_of_the_template_is_told() -> None:
    source = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(ChatTemplateError, match="roles must alternate"):
        ChatTemplate(source).text_of(ASKED)


def test_template_can_reach_nothing_of_the_process() -> None:
    with pytest.raises(ChatTemplateError):
        ChatTemplate("{{ messages.__class__.__mro__[1].__subclasses__() }}").text_of(ASKED)


def test_text_is_not_escaped() -> None:
    source = "{{ messages[0].content | tojson }}"
    assert ChatTemplate(source).text_of([Message("user", "a < b & é")]) == '"a < b & é"'
