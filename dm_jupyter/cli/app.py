"""The commands and their options."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dm_jupyter import __version__
from dm_jupyter.cli.exits import DOCTOR_EXIT_CODES, EXIT_CODES, TIDY_EXIT_CODES
from dm_jupyter.cli.model import model_app

__all__ = ["app", "main"]

app = typer.Typer(
    name="dm-jupyter",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(model_app, name="model")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"dm-jupyter {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and end."
        ),
    ] = False,
) -> None:
    """An AI data analyst: ask a data file a question, get an executed notebook."""


ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="local (default), a .gguf file, or a name at --base-url"),
]
AdapterOption = Annotated[
    Path | None,
    typer.Option("--adapter", metavar="FILE", help="a .gguf adapter for the local model"),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="an OpenAI-compatible endpoint: its address, or openai, anthropic, gemini, mistral, "
        "groq, openrouter, vllm, ollama, lm-studio, llama.cpp",
    ),
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option("--api-key-file", help="file with the endpoint's key (or set DM_JUPYTER_API_KEY)"),
]


def _number(value: float) -> float:
    """Refuse what is not a number, which no range excludes."""
    if math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


@app.command(epilog=EXIT_CODES)
def ask(
    arguments: Annotated[
        list[str], typer.Argument(metavar="FILE... QUESTION", help="data files, then the question")
    ],
    continued: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="NOTEBOOK",
            help="run its cells again and add the answer to it; no file is needed then",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="the notebook to write")] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="send figures to a model outside of this machine")
    ] = False,
    model: ModelOption = None,
    adapter: AdapterOption = None,
    base_url: BaseUrlOption = None,
    api_key_file: KeyFileOption = None,
    max_turns: Annotated[int, typer.Option(min=1, help="turns of the model")] = 10,
    max_seconds: Annotated[
        float, typer.Option(min=1, callback=_number, help="clock time of the run")
    ] = 1800,
    answer_format: Annotated[
        str, typer.Option("--format", help="form of the answer, such as '@mean_fare\\[value]'")
    ] = "",
    dialect: Annotated[
        str,
        # Written out, so that `--help` imports no dialect; a test compares it with `DIALECTS`.
        typer.Option(
            help="auto, or one of markdown, tools, datamind, deepanalyze, react, jupiter, "
            "react-published, datamind-published"
        ),
    ] = "auto",
    memory_mb: Annotated[int, typer.Option(min=256, help="memory of the kernel, MiB")] = 2048,
    cell_seconds: Annotated[
        float, typer.Option(min=1, callback=_number, help="clock time of one cell")
    ] = 120,
    strict: Annotated[
        list[str] | None,
        typer.Option(metavar="LAYER", help="refuse to run unless this layer is active (repeat)"),
    ] = None,
    install_packages: Annotated[
        bool, typer.Option("--install-packages", help="install listed packages that cells lack")
    ] = False,
    turn_tokens: Annotated[int, typer.Option(min=1, help="most tokens of one turn")] = 1_000,
    temperature: Annotated[
        float, typer.Option(min=0, max=2, callback=_number, help="sampling temperature")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="sampling seed")] = 0,
    tries: Annotated[
        int,
        typer.Option(
            min=1, max=9, help="number of attempts in fresh kernels; the majority answer wins"
        ),
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object instead")] = False,
) -> None:
    """Ask data files a question, print the work as it goes, and save a notebook."""
    from dm_jupyter.cli.ask import AskOptions, ask_files  # noqa: PLC0415

    options = AskOptions(
        arguments=tuple(arguments),
        continued=continued,
        out=out,
        pictures=pictures,
        model=model,
        adapter=adapter,
        base_url=base_url,
        api_key_file=api_key_file,
        max_turns=max_turns,
        max_seconds=max_seconds,
        answer_format=answer_format,
        dialect=dialect,
        memory_mb=memory_mb,
        cell_seconds=cell_seconds,
        strict=tuple(strict or ()),
        install_packages=install_packages,
        turn_tokens=turn_tokens,
        temperature=temperature,
        seed=seed,
        tries=tries,
        as_json=as_json,
    )
    raise typer.Exit(ask_files(options))


@app.command(epilog=TIDY_EXIT_CODES)
def tidy(
    notebook: Annotated[
        Path,
        typer.Argument(metavar="NOTEBOOK", help="a notebook with an answer; it stays as it is"),
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="files outside of its folder that its cells read"),
    ] = None,
    memory_mb: Annotated[int, typer.Option(min=256, help="memory of the kernel, MiB")] = 2048,
    cell_seconds: Annotated[
        float, typer.Option(min=1, callback=_number, help="clock time of one cell")
    ] = 120,
    strict: Annotated[
        list[str] | None,
        typer.Option(metavar="LAYER", help="refuse to run unless this layer is active (repeat)"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object instead")] = False,
) -> None:
    """Run only the cells that a notebook's last answer needs; save them in NAME-tidy.ipynb."""
    from dm_jupyter.cli.tidy import tidy_notebook  # noqa: PLC0415

    code = tidy_notebook(
        notebook,
        tuple(files or ()),
        memory_mb=memory_mb,
        cell_seconds=cell_seconds,
        strict=tuple(strict or ()),
        as_json=as_json,
    )
    raise typer.Exit(code)


@app.command(epilog=EXIT_CODES)
def profile(
    file: Annotated[
        Path,
        typer.Argument(
            help="a csv, tsv, Excel, ods, json, parquet, SQLite, Stata, SPSS, SAS … or zip file"
        ),
    ],
    seconds: Annotated[
        float,
        typer.Option(
            min=1, help="time limit for reading a large file; the profile says what was not read"
        ),
    ] = 20.0,
    as_json: Annotated[bool, typer.Option("--json", help="everything, as JSON")] = False,
) -> None:
    """Print what the model is shown of a data file."""
    from dm_jupyter.cli.profile import print_profile  # noqa: PLC0415

    raise typer.Exit(print_profile(file, seconds=seconds, as_json=as_json))


@app.command(epilog=DOCTOR_EXIT_CODES)
def doctor(
    model: ModelOption = None,
    adapter: AdapterOption = None,
    base_url: BaseUrlOption = None,
    api_key_file: KeyFileOption = None,
    profile: Annotated[
        Literal["interactive", "rollout"],
        typer.Option(help="what kernels are for: a person's questions, or runs nobody watches"),
    ] = "interactive",
    as_json: Annotated[bool, typer.Option("--json", help="the checks, as JSON")] = False,
) -> None:
    """Print what keeps you from asking, what this machine can enforce, and what is missing."""
    from dm_jupyter.cli.doctor import print_checkup  # noqa: PLC0415
    from kernel_sandbox.confine.strictness import Strictness  # noqa: PLC0415

    code = print_checkup(
        model, base_url, api_key_file, Strictness(profile), as_json=as_json, adapter=adapter
    )
    raise typer.Exit(code)


def main() -> None:
    """Run the command line."""
    # jsonschema, which nbformat imports, loads it to check `iri` formats, which no notebook's
    # schema names. Its import builds parsers, which takes a second.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    app()
