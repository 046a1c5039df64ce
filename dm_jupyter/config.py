"""The only module that reads this package's environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from jupyter_core.paths import jupyter_data_dir

from dm_jupyter.core.errors import UsageError
from dm_jupyter.core.plain_text import shown_address

__all__ = ["ModelChoice", "is_address", "key_in", "model_choice", "packages_folder"]


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
        UsageError: the key file can't be read or is empty, a key has characters that no key has, an
            endpoint has no model name or an invalid address, or an adapter has no local model
            below it.
    """
    base_url = _address(base_url or os.environ.get("DM_JUPYTER_BASE_URL", ""))
    model = model or os.environ.get("DM_JUPYTER_MODEL", "local")
    if base_url and model == "local":
        raise UsageError(f"which model at {shown_address(base_url)}? Name it with --model")
    source, text = _key_source(base_url, api_key_file)
    api_key = key_in(text)
    if api_key is None and base_url:  # a local model has no use for it
        raise UsageError(
            f"the key in {source} has characters that no key has, such as a line break or a "
            "typographic quote. Copy it again"
        )
    if adapter is not None:
        model = _with_adapter(model, base_url, adapter)
    return ModelChoice(model, base_url, api_key or "")


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


def key_in(text: str) -> str | None:
    """Return the key in a text, without what surrounds it; `None` if no key has its characters.

    Args:
        text: as copied, or read from a file; empty for no key.
    """
    key = text.removeprefix("\ufeff").strip()
    return key if key.isascii() and key.isprintable() else None


def _key_source(base_url: str, file: Path | None) -> tuple[str, str]:
    """Return the name of the file or variable with the key, and its text; empty if there is none.

    A preset's own tools may use another variable.
    """
    if file is not None:
        name = f"--api-key-file {file}"
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{name} can't be read: {error}") from error
        if key_in(text) == "":
            raise UsageError(f"{name} is empty")
        return name, text
    found = ((name, os.environ.get(name, "")) for name in _key_variables(base_url))
    return next(((name, text) for name, text in found if text.strip()), ("", ""))


def _key_variables(base_url: str) -> tuple[str, ...]:
    if not base_url:
        return ("DM_JUPYTER_API_KEY",)
    from dm_jupyter.presets import preset_at  # noqa: PLC0415  (not at the start of a server)

    preset = preset_at(base_url)
    own = (preset.key_variable,) if preset and preset.key_variable else ()
    return ("DM_JUPYTER_API_KEY", *own)


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
