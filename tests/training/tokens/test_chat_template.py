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


@pytest.mark.parametrize("settings", ["[]", '{"bos_token": {"id": 1}}', "x"])
def test_folder_with_settings_of_another_shape(tmp_path: Path, settings: str) -> None:
    (tmp_path / "chat_template.jinja").write_text("own", "utf-8")
    (tmp_path / "tokenizer_config.json").write_text(settings, "utf-8")
    with pytest.raises(ChatTemplateError, match="chat template"):
        ChatTemplate.of_folder(tmp_path)


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


def test_text_as_json_is_written_as_transformers_does() -> None:
    source = "{{ {'b': 'é', 'a': 1} | tojson(ensure_ascii=True, sort_keys=True, indent=none) }}"
    assert ChatTemplate(source).text_of(ASKED) == '{"a": 1, "b": "\\u00e9"}'
    source = "{{ [1, 2] | tojson(separators=(',', ':')) }}"
    assert ChatTemplate(source).text_of(ASKED) == "[1,2]"


def test_generation_block_is_its_text() -> None:
    source = (
        "{% for m in messages %}<{% generation %}{{ m.content }}{% endgeneration %}>{% endfor %}"
    )
    assert ChatTemplate(source).text_of(ASKED) == "<go>"


def test_template_knows_the_date() -> None:
    assert ChatTemplate("{{ strftime_now('%Y') }}").text_of(ASKED).startswith("20")


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' + 1 }}",
        "{{ 1 / 0 }}",
        "{{ messages[0] | tojson(indent=messages) }}",
        "{{ 'a'.index('b') }}",
        "{{ [].pop() }}",
        "{{ strftime_now(1) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% generation %}",
        "{% unheard_of %}",
    ],
)
def test_whatever_a_template_does_wrong_is_its_refusal(source: str) -> None:
    with pytest.raises(ChatTemplateError, match="refuses the conversation"):
        ChatTemplate(source).text_of(ASKED)
