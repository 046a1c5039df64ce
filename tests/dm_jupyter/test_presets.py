"""Presets: every one can be used, and an address finds its own."""

import pytest

from dm_jupyter.cli.app import BaseUrlOption
from dm_jupyter.config import is_address, model_choice
from dm_jupyter.core.errors import UsageError
from dm_jupyter.models.capabilities import Capabilities
from dm_jupyter.presets import preset_at, presets


@pytest.mark.parametrize("preset", presets().values(), ids=lambda preset: preset.name)
def test_every_preset_can_be_used(preset):
    assert is_address(preset.base_url)
    assert not preset.base_url.endswith("/")
    Capabilities.from_json(preset.capabilities)
    assert preset_at(preset.base_url + "/") == preset
    if not preset.blank:
        assert preset.name in BaseUrlOption.__metadata__[0].help


def test_an_address_with_a_word_of_ones_own_finds_its_preset():
    found = preset_at("https://acme.openai.azure.com/openai/v1")
    assert found is not None
    assert found.name == "azure"
    assert preset_at("https://example.org/v1") is None


def test_a_name_stands_for_the_address_and_its_own_key(monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "gsk-1")
    monkeypatch.delenv("DM_JUPYTER_API_KEY", raising=False)
    choice = model_choice("llama", "groq", None)
    assert (choice.base_url, choice.api_key) == ("https://api.groq.com/openai/v1", "gsk-1")
    monkeypatch.setenv("DM_JUPYTER_API_KEY", "mine")
    assert model_choice("llama", "groq", None).api_key == "mine"
    assert model_choice("llama", "http://localhost:9/v1", None).api_key == "mine"


@pytest.mark.parametrize(
    "address",
    [
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/?https://api.openai.com/v1",
        "https://evil.example/.openai.azure.com/openai/v1",
        "https://evil.example#.openai.azure.com/openai/v1",
        "http://api.openai.com/v1",
    ],
)
def test_another_endpoint_gets_no_key_of_a_preset(monkeypatch, address):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-1")
    monkeypatch.delenv("DM_JUPYTER_API_KEY", raising=False)
    assert model_choice("m", address, None).api_key == ""


@pytest.mark.parametrize("address", ["notaurl", "ftp://x/v1", "http://", "https://x:0/v1"])
def test_what_is_no_address_is_wrong_usage(address):
    with pytest.raises(UsageError, match=r"neither an address .* nor one of openai"):
        model_choice("m", address, None)


def test_an_address_with_a_blank_is_asked_for():
    with pytest.raises(UsageError, match="your own address"):
        model_choice("m", "azure", None)
