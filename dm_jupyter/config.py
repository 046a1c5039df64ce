"""The only module that reads this package's environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from jupyter_core.paths import jupyter_data_dir

from dm_jupyter.core.errors import UsageError
from dm_jupyter.core.plain_text import shown_address

__all__ = ["ModelChoice", "is_address", "model_choice", "packages_folder"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that answers, and its address."""

    model: str = "local"
    """`local`, the name of a local model, the path of a .gguf file, or a name at `base_url`.

    After a local model, `+` and the path of a .gguf file add the adapter in that file.
    """
    base_url: str = field(default="", repr=False)
    """An OpenAI-compatible endpoint, perhaps with a password; empty for a model on this machine."""
    api_key: str = field(default="", repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the model runs on this machine, started by this package."""
        return not self.base_url


def model_choice(
    model: str | None,
    base_url: str | None,
    api_key_file: Path | None,
    adapter: Path | None = None,
) -> ModelChoice:
    """Return the choice made by options, else by environment variables, else the local model.

    The variables are `DM_JUPYTER_MODEL`, `DM_JUPYTER_BASE_URL` and `DM_JUPYTER_API_KEY`. A key
    comes from a variable or a file only, so that no list of processes shows it. A preset's name
    means its address; its key may come from the preset's own variable. An adapter becomes part of
    the model's name, in place of one that the name has.

    Raises:
        UsageError: the key file can't be read or is empty, an endpoint has no model name or an
            invalid address, or an adapter has no local model below it.
    """
    base_url = _address(base_url or os.environ.get("DM_JUPYTER_BASE_URL", ""))
    model = model or os.environ.get("DM_JUPYTER_MODEL", "local")
    if base_url and model == "local":
        raise UsageError(f"which model at {shown_address(base_url)}? Name it with --model")
    api_key = os.environ.get("DM_JUPYTER_API_KEY", "") or _own_key(base_url)
    if api_key_file is not None:
        try:
            api_key = api_key_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--api-key-file {api_key_file} can't be read: {error}") from error
        if not api_key:
            raise UsageError(f"--api-key-file {api_key_file} is empty")
    if adapter is not None:
        model = _with_adapter(model, base_url, adapter)
    return ModelChoice(model, base_url, api_key)


def _with_adapter(model: str, base_url: str, adapter: Path) -> str:
    """Return the name of a local model with an adapter."""
    from dm_jupyter.models.local.catalogue import (  # noqa: PLC0415  (not at the start of a server)
        is_local_name,
        name_with_adapter,
    )

    if base_url:
        raise UsageError(
            f"--adapter works with a model on this machine only, and {shown_address(base_url)} is "
            "an endpoint. Load the adapter there, and name its model with --model"
        )
    if not is_local_name(model):
        raise UsageError(
            f"--adapter needs a local model, and {model!r} is not one. "
            "`dm-jupyter model list` lists them"
        )
    return name_with_adapter(model, adapter)


def _own_key(base_url: str) -> str:
    """Return the key in the variable that a preset's own tools use; empty if there is none."""
    if not base_url:
        return ""
    from dm_jupyter.presets import preset_at  # noqa: PLC0415  (not at the start of a server)

    preset = preset_at(base_url)
    return os.environ.get(preset.key_variable, "") if preset and preset.key_variable else ""


def _address(text: str) -> str:
    """Return the address that a URL or a preset's name means; empty stays empty."""
    if not text:
        return ""
    from dm_jupyter.presets import presets  # noqa: PLC0415  (not at the start of a server)

    preset = presets().get(text)
    if preset is not None:
        if preset.blank:
            raise UsageError(
                f"{preset.title} needs your own address: --base-url {preset.base_url}, with the "
                f"name of your resource in place of {preset.blank}"
            )
        return preset.base_url
    if not is_address(text):
        raise UsageError(
            f"--base-url {shown_address(text)} is neither an address that begins with http:// or "
            f"https:// nor one of {', '.join(presets())}"
        )
    return text


def is_address(url: str) -> bool:
    """Return whether a text can be the address of an endpoint.

    Args:
        url: the text, as a person gave it.
    """
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def packages_folder() -> Path:
    """Return the folder for packages that cells lacked; JupyterLab and `ask` share it."""
    return Path(jupyter_data_dir()) / "dm_jupyter" / "packages"
