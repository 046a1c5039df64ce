"""Train a model on rows of tokens: `python -m training.train sft RECIPE.toml --out OUT`.

- `rows CONVERSATIONS.jsonl` tokenises conversations and marks what the model learns.
- `sft RECIPE.toml` trains. The same command resumes an interrupted training.
- `export OUT` writes the adapter as a GGUF file that llama.cpp loads over the model's own file, or
  in a transformers format.
- `evaluate MODEL SUITE …` runs a suite with a transformers model, such as a training.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from dm_jupyter.core.errors import DmJupyterError

__all__ = ["main"]

_LIBRARIES = ("torch", "transformers", "peft", "accelerate", "gguf", "safetensors", "tensorboardX")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    rows = commands.add_parser("rows", help="make rows from conversations")
    rows.add_argument("conversations", type=Path, help="such as `training.export` writes")
    rows.add_argument("--model", required=True, help="a folder, a .gguf file or a local model")
    rows.add_argument("--ended-by", choices=("model", "stop"), default="model",
        help="what ended a turn: its closing token (default), or a stop string")  # fmt: skip
    rows.add_argument("--tokens", default="", metavar="DIALECT",
        help="whose tags are tokens of their own, as under [tokens] of the recipe")  # fmt: skip
    rows.add_argument("--out", type=Path, required=True, metavar="FILE", help="of the rows")
    sft = commands.add_parser("sft", help="learn the rows")
    sft.add_argument("recipe", type=Path, help="such as training/recipes/qwen2.5-coder-1.5b.toml")
    sft.add_argument("--out", type=Path, required=True, metavar="DIR", help="of the training")
    sft.add_argument(
        "--rows", nargs="+", default=(), metavar="FILE", help="instead of the recipe's"
    )
    sft.add_argument(
        "--held", nargs="+", default=(), metavar="FILE", help="instead of the recipe's"
    )
    sft.add_argument("--model", default="", help="instead of the recipe's")
    export = commands.add_parser("export", help="write the adapter for llama.cpp")
    export.add_argument("training", type=Path, help="the folder that sft wrote")
    export.add_argument("--out", type=Path, required=True, metavar="PATH",
        help="the .gguf file; a new folder for the other forms")  # fmt: skip
    export.add_argument("--form", choices=("gguf", "peft", "weights"), default="gguf",
        help="an adapter for llama.cpp (default) or for peft, or the whole model")  # fmt: skip
    export.add_argument("--numbers", choices=("F16", "F32"),
        help="of the .gguf file (default: F16)")  # fmt: skip
    export.add_argument("--step", type=int, metavar="N",
        help="of the checkpoint (default: smallest held loss, else the newest)")  # fmt: skip
    evaluate = commands.add_parser(
        "evaluate", help="run a suite with a model of transformers", add_help=False
    )
    evaluate.add_argument("model", metavar="MODEL")
    evaluate.add_argument("options", nargs=argparse.REMAINDER)
    return parser


def _rows(arguments: argparse.Namespace) -> None:
    from training.trainer.conversations import read_conversations
    from training.trainer.dialect_tokens import TokenSettings
    from training.trainer.model import open_tokenizer
    from training.trainer.rows import write_rows

    added = TokenSettings(arguments.tokens) if arguments.tokens else None
    tokenizer = open_tokenizer(arguments.model, added)
    rows = read_conversations(arguments.conversations, tokenizer, arguments.ended_by)
    write_rows(rows, arguments.out)
    learned = sum(len(row.learned) for row in rows)
    tokens = sum(len(row.ids) for row in rows)
    print(f"{len(rows)} rows, {tokens:,} tokens, {learned:,} of them learned: {arguments.out}")


def _sft(arguments: argparse.Namespace) -> None:
    from training.trainer.recipe import read_recipe
    from training.trainer.runs import train

    recipe = read_recipe(arguments.recipe)
    recipe = recipe.with_files(arguments.model, arguments.rows, arguments.held)
    train(recipe, arguments.out, lambda line: print(line, flush=True))
    print(f"curves: {arguments.out / 'curves.html'}")


def _export(arguments: argparse.Namespace) -> None:
    from training.trainer.rows import TrainerError
    from training.trainer.runs import export_adapter
    from training.trainer.trained import TrainedWeights, write_weights

    if arguments.form != "gguf":
        if arguments.numbers:
            raise TrainerError(f"--numbers is for --form gguf, not for {arguments.form}")
        trained = TrainedWeights.of(arguments.training, arguments.step)
        write_weights(trained, arguments.out, is_merged=arguments.form == "weights")
        print(f"{arguments.form} of update {trained.step}: {arguments.out}")
        _warn_of_nothing_learned(trained.step)
        return
    numbers = arguments.numbers or "F16"
    step = export_adapter(arguments.training, arguments.out, numbers, arguments.step)
    size = arguments.out.stat().st_size / 1e6
    print(f"adapter of update {step}, {size:.1f} MB: {arguments.out}")
    _warn_of_nothing_learned(step)


def _warn_of_nothing_learned(step: int) -> None:
    if step == 0:
        print(
            "update 0 is the model as it was: no later checkpoint has a smaller loss on held rows. "
            "--step N exports another one",
            file=sys.stderr,
        )


def _evaluate(arguments: argparse.Namespace) -> int:
    import torch

    from dm_jupyter.models.local.catalogue import resolve
    from training import evaluate
    from training.tokens.policy import TokenPolicy
    from training.trainer.engine import TransformersEngine
    from training.trainer.model import ModelSettings, given_adapter, open_model
    from training.trainer.trained import TrainedWeights, is_training, model_hashes

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    base = Path(arguments.model).expanduser()
    if is_training(base):
        trained = TrainedWeights.of(base)
        opened, hashes = trained.opened(device, learns=False), trained.hashes()
        name = f"{base.resolve().name}@step-{trained.step}"
    else:
        settings, adapter = ModelSettings(arguments.model), given_adapter(arguments.model)
        opened = open_model(settings, adapter, device, learns=False)
        hashes = model_hashes(arguments.model)
        content = f"{base.resolve().name}@{hashes.weights[:12]}"
        name = content if base.exists() else resolve(arguments.model).name
    return evaluate.main(arguments.options, TokenPolicy(TransformersEngine(opened, name)), hashes)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    arguments = _parser().parse_args(argv)
    if any(importlib.util.find_spec(name) is None for name in _LIBRARIES):
        print("training needs more libraries: pip install -e '.[train]'", file=sys.stderr)
        return 1
    commands = {"rows": _rows, "sft": _sft, "export": _export, "evaluate": _evaluate}
    try:
        return commands[arguments.command](arguments) or 0
    except (DmJupyterError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        resumes = {"sft": "resume from the last checkpoint", "evaluate": "resume"}
        again = resumes.get(arguments.command, "start again")
        print(f"interrupted. Run the same command to {again}.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
