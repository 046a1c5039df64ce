from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from dm_jupyter.config import ModelChoice, model_choice
from dm_jupyter.core.errors import UsageError

URL = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MODEL", "BASE_URL", "API_KEY"):
        monkeypatch.delenv(f"DM_JUPYTER_{name}", raising=False)


def test_without_any_choice_the_local_model_answers() -> None:
    choice = model_choice(None, None, None)
    assert choice == ModelChoice("local", "", "")
    assert choice.is_local


def test_variables_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DM_JUPYTER_MODEL", "tiny")
    monkeypatch.setenv("DM_JUPYTER_BASE_URL", URL)
    monkeypatch.setenv("DM_JUPYTER_API_KEY", "secret")
    choice = model_choice(None, None, None)
    assert choice == ModelChoice("tiny", URL, "secret")
    assert not choice.is_local
    assert "secret" not in repr(choice)


def test_options_go_before_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DM_JUPYTER_MODEL", "tiny")
    monkeypatch.setenv("DM_JUPYTER_BASE_URL", "http://elsewhere/v1")
    monkeypatch.setenv("DM_JUPYTER_API_KEY", "secret")
    key_file = tmp_path / "key"
    key_file.write_text("  other\n")
    assert model_choice("big", URL, key_file) == ModelChoice("big", URL, "other")


def test_an_option_and_a_variable_complete_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DM_JUPYTER_MODEL", "tiny")
    assert model_choice(None, URL, None) == ModelChoice("tiny", URL)
    assert model_choice("a.gguf", None, None).is_local


@pytest.mark.parametrize("model", [None, "local"])
def test_an_endpoint_needs_the_name_of_a_model(model: str | None) -> None:
    with pytest.raises(UsageError, match=f"{URL}.*--model"):
        model_choice(model, URL.replace("://", "://bob:s3cret@"), None)


def test_a_key_file_that_is_missing_or_a_folder_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--api-key-file .*nokey can't be read"):
        model_choice("tiny", URL, tmp_path / "nokey")
    with pytest.raises(UsageError, match="--api-key-file"):
        model_choice("tiny", URL, tmp_path)


def test_an_empty_key_file_is_wrong_usage(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(" \n")
    with pytest.raises(UsageError, match="is empty"):
        model_choice("tiny", URL, key_file)


def test_a_key_file_that_is_no_text_is_wrong_usage(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_bytes(b"\xff\xfe\x80")
    with pytest.raises(UsageError, match="--api-key-file"):
        model_choice("tiny", URL, key_file)


@pytest.mark.parametrize("around", ["{}\r\n", " {} ", "\ufeff{}\r", "\n{}\n"])
def test_a_key_is_read_without_what_surrounds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, around: str
) -> None:
    key_file = tmp_path / "key"
    key_file.write_bytes(around.format("sk-of-file").encode())
    monkeypatch.setenv("DM_JUPYTER_API_KEY", around.format("sk-of-variable"))
    assert model_choice("tiny", URL, None).api_key == "sk-of-variable"
    assert model_choice("tiny", URL, key_file).api_key == "sk-of-file"
    monkeypatch.setenv("DM_JUPYTER_API_KEY", "\n")
    monkeypatch.setenv("GROQ_API_KEY", around.format("gsk-1"))
    assert model_choice("tiny", "groq", None).api_key == "gsk-1"


@pytest.mark.parametrize(
    "key", ["sk-secret\u201d", "sk-secret\nsecond", "sk-sec\x07ret", "sk-sécret"]
)
def test_a_damaged_key_is_wrong_usage_and_named_by_its_source_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str
) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(key)
    monkeypatch.setenv("DM_JUPYTER_API_KEY", key)
    for file, source in ((key_file, f"--api-key-file {key_file}"), (None, "DM_JUPYTER_API_KEY")):
        with pytest.raises(UsageError, match=f"the key in {source} has characters") as caught:
            model_choice("tiny", URL, file)
        assert "sk-" not in "".join(traceback.format_exception(caught.value))
    assert model_choice(None, None, None).is_local
    monkeypatch.delenv("DM_JUPYTER_API_KEY")
    monkeypatch.setenv("GROQ_API_KEY", key)
    with pytest.raises(UsageError, match="the key in GROQ_API_KEY"):
        model_choice("tiny", "groq", None)


def test_an_adapter_is_a_part_of_the_name_of_a_local_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("mine.gguf")
    assert model_choice(None, None, None, file) == ModelChoice(f"local+{tmp_path}/mine.gguf")
    assert model_choice("a.gguf", None, None, file).is_local
    monkeypatch.setenv("DM_JUPYTER_MODEL", "smollm2-135m")
    assert model_choice(None, None, None, file).model == f"smollm2-135m+{tmp_path}/mine.gguf"
    monkeypatch.setenv("DM_JUPYTER_MODEL", "smollm2-135m+/a/theirs.gguf")
    assert model_choice(None, None, None, file).model == f"smollm2-135m+{tmp_path}/mine.gguf"
    with pytest.raises(UsageError, match="'gpt-99' is not one"):
        model_choice("gpt-99", None, None, file)


def test_an_endpoint_takes_no_adapter() -> None:
    address = URL.replace("://", "://bob:s3cret@")
    with pytest.raises(UsageError, match=f"{URL} is an endpoint. Load the adapter there") as caught:
        model_choice("m", address, None, Path("mine.gguf"))
    assert "s3cret" not in str(caught.value)
