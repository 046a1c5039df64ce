"""The engine that runs a GGUF file behind an OpenAI-compatible interface (llama.cpp).

Only the server's own process loads the engine. Its environment must be set before its first thread,
and its crash must not end a notebook. Callers that offer or start a local model first ask for its
`obstacles`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dm_jupyter.models.local.adapters import check_adapter
from dm_jupyter.models.local.cache import model_path, require
from dm_jupyter.models.local.catalogue import LocalModel, resolve
from dm_jupyter.models.local.errors import EngineMissingError, NotReadyError
from kernel_sandbox.packages.commands import install_extra

__all__ = [
    "SLOTS",
    "Engine",
    "EngineSettings",
    "Guess",
    "all_tokens",
    "obstacles",
    "require_engine",
    "start_engine",
]

SLOTS: Final = 2
"""Requests processed at the same time, unless more are requested.

They share one context's memory. Two write faster together than one after the other; three or four
write at half that speed (`python -m benchmarks.model_speed slots`). If more are requested, each has
its own context, so that none waits for room. An evaluation can afford that memory.
"""
_PROMPT_CACHE_MIB: Final = 256
"""Memory per slot for prefixes of conversations that lost it; the engine's default is 8 GiB."""
_BATCH_TOKENS: Final = 256
"""Tokens read per batch; after each the engine checks whether anybody still waits for the answer.

With the engine's default of 2,048, a stopped question blocks the next one for half a minute.
"""
_LOG_WARNINGS: Final = 2
"""The engine's log level: warnings and errors. Nothing of a prompt is ever written."""
SPIN_COUNT: Final = 2_000
"""Checks of a thread for more work before it sleeps: some microseconds.

Threads that keep spinning starve a kernel and a browser on the same cores. Threads that sleep at
once wait for the system at each of a token's many barriers (`python -m benchmarks.model_speed`).
"""
_NO_ORIGIN: Final = "null://closed"
"""An origin no page has. The engine's default lets every page in a browser read answers."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of the engine, sent to the server's process through its standard input."""

    model_file: str
    """Path of the GGUF file with the weights."""
    model_name: str
    """The name the interface uses instead of the path."""
    api_key: str
    """Key that requests must carry."""
    context_tokens: int
    """Tokens that one request may use."""
    slots: int
    """Requests processed at the same time; with more than `SLOTS`, each has its own context."""
    port: int
    """Port on 127.0.0.1; 0 lets the system choose a free one."""
    adapter_file: str = ""
    """Path of the LoRA adapter over the weights; empty for none."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Speculative decoding: tokens guessed from earlier text, which the model checks all at once.

    The distribution of the output does not change: a guess that the model does not sample is
    dropped.
    """

    kind: str
    """The engine's name for the method: `NGRAM_SIMPLE` or `NGRAM_MAP_K`."""
    matching: int
    """Tokens that must match earlier text before its continuation is guessed."""
    guessed: int
    """The most tokens of one guess."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine."""

    address: str
    """`http://host:port`, answering."""
    handle: object
    """The engine's server object; dropping it ends the engine."""


def all_tokens(slots: int, context_tokens: int) -> int:
    """Return the tokens that all requests together may use.

    Args:
        slots: Requests processed at the same time.
        context_tokens: Tokens that one of them may use.
    """
    return context_tokens * (slots if slots > SLOTS else 1)


def require_engine() -> None:
    """Check that the engine's package is installed, without loading it.

    Raises:
        EngineMissingError: It is not; the message says how to install it.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise EngineMissingError(
            "The local model needs the package xllamacpp, which is not installed.",
            install_extra("local"),
        )


def start_engine(
    settings: EngineSettings, spin_count: int = SPIN_COUNT, guess: Guess | None = None
) -> Engine:
    """Load the model and listen; return once the engine answers.

    Args:
        settings: The settings of the engine.
        spin_count: Checks of a thread for work before it sleeps; can be set once per process.
        guess: How the next tokens are guessed; None guesses nothing.

    Raises:
        RuntimeError: The engine refused the file or the settings; it has printed why.
    """
    # Read by the library while it loads.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ["GOMP_SPINCOUNT"] = str(spin_count)
    import xllamacpp  # noqa: PLC0415 the environment above comes first

    params = xllamacpp.CommonParams()
    params.model.path = settings.model_file
    params.model_alias = {settings.model_name}
    if settings.adapter_file:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(settings.adapter_file, 1.0)]
    params.hostnames = ["127.0.0.1"]
    params.port = settings.port
    params.api_keys = [settings.api_key]
    params.cors_origins = _NO_ORIGIN
    params.cors_credentials = False
    params.ui = False
    # Slots would show one client the prompt of another.
    params.endpoint_slots = False
    params.n_parallel = settings.slots
    params.n_ctx = all_tokens(settings.slots, settings.context_tokens)
    params.kv_unified = settings.slots <= SLOTS
    params.n_batch = _BATCH_TOKENS
    params.cache_prompt = True
    params.cache_ram_mib = _PROMPT_CACHE_MIB * settings.slots
    params.verbosity = _LOG_WARNINGS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = len(os.sched_getaffinity(0))
    if guess is not None:
        kinds = xllamacpp.common_speculative_type
        params.speculative.types = [getattr(kinds, f"COMMON_SPECULATIVE_TYPE_{guess.kind}")]
        ngrams = getattr(params.speculative, guess.kind.lower())
        ngrams.size_n, ngrams.size_m = guess.matching, guess.guessed
    server = xllamacpp.Server(params)
    return Engine(address=server.listening_address, handle=server)


def obstacles(model: LocalModel | str, cache_dir: Path | None = None) -> Iterator[NotReadyError]:
    """Yield what is missing, in the order in which a person can act on it.

    Each error has a `text` that says what is missing, and the one `command` that helps.

    Args:
        model: A model, or a name that `resolve` takes.
        cache_dir: Folder of model files; None means the user's cache.
    """
    try:
        model = resolve(model) if isinstance(model, str) else model
    except NotReadyError as error:
        yield error
        return
    # The engine first: it is small, and the file is of no use without it.
    try:
        require_engine()
    except NotReadyError as error:
        yield error
    try:
        weights = require(model, cache_dir)
        if model.adapter is not None:
            file = model_path(model.adapter, cache_dir)
            check_adapter(model.adapter, file, model.pulled_as or model.title, weights)
    except NotReadyError as error:
        yield error
