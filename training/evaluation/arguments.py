"""The options of `python -m training.evaluate`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.search.tree import SearchSettings
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool_settings import PROFILES
from training.durable.budget import Budget, read_budget
from training.evaluation.pools import POOLS
from training.records.records import DAMAGED
from training.suites.registry import SUITES

__all__ = [
    "CHOICES",
    "add_run_options",
    "evaluation_arguments",
    "number_between",
    "parsed_arguments",
    "positive",
    "seconds",
]

_DAY_S = 86_400
_EARLY_STOPS = ("enough_answers", "enough_votes")
CHOICES = ("vote", "mode", "value")
_OF_SEARCH = ("value_model", "iterations", "sampled_cells", "draw_again", "collect", *_EARLY_STOPS)


def parsed_arguments(description: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line; an invalid option ends the process with exit code 2.

    Args:
        description: the command's description, for its help.
        argv: the options; `None` means those of this process.
    """
    parser = _parser(description)
    arguments = parser.parse_args(argv)
    _complete(parser, arguments)
    _refuse_unread(parser, arguments)
    return arguments


def evaluation_arguments(
    parser: argparse.ArgumentParser, given: argparse.Namespace, **changes: object
) -> argparse.Namespace:
    """Return the options of an evaluation that another command runs; each attempt is one run.

    An invalid option ends the process with exit code 2.

    Args:
        parser: the command's parser, with the options of `add_run_options`; prints the message.
        given: the command's options; those that an evaluation has too are copied.
        changes: options of the evaluation that get another value.
    """
    own = vars(_parser("").parse_args([given.suite, "--split", str(given.split)]))
    same = {name: value for name, value in vars(given).items() if name in own}
    arguments = argparse.Namespace(**{**own, **same, **changes})
    _complete(parser, arguments)
    return arguments


def _complete(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Set the options that follow from others; end the command if two options conflict."""
    if arguments.install_packages is None:  # whoever starts a rollout agrees to every listed one
        arguments.install_packages = arguments.profile == Strictness.ROLLOUT.value
    if arguments.budget.dollars is not None and not arguments.price:
        parser.error("--budget dollars=N needs --price IN OUT")
    if arguments.slots and arguments.base_url:
        parser.error(
            "--slots applies to a local model only. Use --samples-at-once with an endpoint."
        )
    if arguments.packages_lock and not arguments.install_packages:
        parser.error("--packages-lock needs --install-packages")


def _refuse_unread(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End the command if an option was given that the strategy would not read."""
    for name in _OF_SEARCH if arguments.strategy != "search" else ():
        if getattr(arguments, name) != parser.get_default(name):
            parser.error(f"--{name.replace('_', '-')} needs --strategy search")
    for name in _EARLY_STOPS if arguments.collect else ():
        if getattr(arguments, name) is not None:
            parser.error(f"--collect grows the whole tree: leave --{name.replace('_', '-')} out")
    _refuse_choice(parser, arguments)
    if arguments.strategy == "react" and arguments.tries != parser.get_default("tries"):
        parser.error("--tries needs --strategy vote or search; --k tries each question again")


def _refuse_choice(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End the command if there is nothing to choose among, or nothing to choose by."""
    if arguments.strategy == "react" and arguments.choose != "vote":
        parser.error("--choose needs --strategy vote or search: a single try is not chosen")
    if arguments.choose == "value" and not arguments.value_model:
        parser.error("--choose value needs --strategy search and --value-model URL")


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is no http:// or https:// address")
    return text


def positive(text: str) -> int:
    """Return the value of an option that must be a number of at least 1.

    Raises:
        argparse.ArgumentTypeError: the number is below 1.
        ValueError: the text is not a number.
    """
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def _assistance(text: str) -> Assistance | None:
    """Return the assistance of that name, or of those rules; `None` for the dialect's own."""
    if text == "default":
        return None
    try:
        return Assistance.only([] if text == "none" else text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; or say none, or default") from error


def _budget(text: str) -> Budget:
    try:
        return read_budget(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _dollars(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"a price must be 0 dollars or more, not {text}")
    return number


def seconds(text: str) -> float:
    """Return the value of an option that is a time in seconds: above 0, and a day at most.

    Raises:
        argparse.ArgumentTypeError: the time is out of that range.
        ValueError: the text is not a number.
    """
    number = float(text)
    if not 0 < number <= _DAY_S:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {_DAY_S:,}")
    return number


def number_between(low: float, high: float) -> Callable[[str], float]:
    """Return a reader of an option whose value is a number from `low` to `high`, both included."""

    def read(text: str) -> float:
        number = float(text)
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text} is not between {low:g} and {high:g}")
        return number

    return read


def _add_model(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--policy", "--model", dest="model", metavar="MODEL",
        help="local (default), a .gguf file, or a name at --base-url")  # fmt: skip
    add("--adapter", type=Path, metavar="FILE", help="a .gguf adapter for the local model")
    add("--slots", type=positive,
        help="turns that a local model writes at the same time (default: 2)")  # fmt: skip
    add("--base-url", help="an OpenAI-compatible endpoint")
    add("--api-key-file", type=Path)


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description=description)
    add_run_options(parser)
    add = parser.add_argument
    add("--out", type=Path, help="folder of the run (default: runs/SUITE-STRATEGY-SEED)")
    add("--k", type=positive, default=1, help="tries at each question, for pass@k")
    add("--dialect", default="markdown", help=", ".join(DIALECTS))
    search = parser.add_argument_group("more than one candidate")
    add = search.add_argument
    add("--strategy", choices=("react", "vote", "search"), default="react")
    add(
        "--tries",
        type=positive,
        default=3,
        help="attempts of a vote; turns sampled at each expansion",
    )
    add("--iterations", type=positive, default=40, help="expansions of a tree")
    add("--sampled-cells", type=positive, help="turns sampled for a question (default: no limit)")
    add("--draw-again", action="store_true", help="expand the root again when all paths ended")
    add("--enough-answers", type=positive, help="stop once so many paths have answered")
    add("--enough-votes", type=positive, help="stop once so many answers agree")
    add("--choose", choices=CHOICES, default="vote",
        help="how an answer is chosen: what most say, its form and chance weighed (default); the "
        "plain mode; or what a value model values most")  # fmt: skip
    add("--value-model", type=_http_url, metavar="URL", help="values the states of a search")
    add("--collect", action="store_true", help="collect values: rewards by the labels")
    parser.set_defaults(knowledge=None, leave_out=(), tries_before=0)  # of a collection only
    return parser


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that makes runs on a suite's questions.

    Args:
        parser: the command's parser.
    """
    add = parser.add_argument
    add("suite", help=f"{', '.join(sorted(SUITES))}, or package.module:ClassName")
    add("--split", type=Path, required=True, help="the folder of the split")
    add("--salvage", action="store_true",
        help=f"keep intact records, and move damaged lines to {DAMAGED}")  # fmt: skip
    add("--limit", type=positive, help="how many questions to draw (default: all)")
    add("--level", dest="levels", action="append", default=[], metavar="NAME",
        help="draw questions of this level only; repeatable")  # fmt: skip
    add("--seed", type=int, default=7, help="of the draw of questions (default: 7)")
    add("--assist", type=_assistance, default="default", metavar="HELP",
        help="for the model: none, default (the dialect's), or RULE,... alone")  # fmt: skip
    add("--simplify", action="store_true",
        help="have the model restate each task in short words first")  # fmt: skip
    add("--at-once", type=positive, default=1, help="tries that run at the same time")
    add("--samples-at-once", type=positive, default=1, help="turns sampled at the same time")
    add("--cells-at-once", type=positive, help="cells run at the same time (default: one a core)")
    add("--install-packages", action=argparse.BooleanOptionalAction,
        help="install listed packages that cells lack (default: in rollouts)")  # fmt: skip
    add("--packages-lock", type=Path, metavar="FILE",
        help="the versions and hashes that may be installed (default: any version)")  # fmt: skip
    add("--profile", choices=[one.value for one in PROFILES], default=Strictness.ROLLOUT.value)
    add("--price", type=_dollars, nargs=2, metavar=("IN", "OUT"),
        help="dollars per million tokens read and sampled")  # fmt: skip
    add("--budget", type=_budget, default=Budget(), metavar="KIND=N,...",
        help="calls, tokens, dollars or seconds of the whole run, resumed or not")  # fmt: skip
    add("--pool", choices=POOLS, default=POOLS[0],
        help="where cells run: this machine, or a Ray cluster")  # fmt: skip
    _add_model(parser)
    defaults, hotter = RunSettings(), SearchSettings().temperature
    sampling = parser.add_argument_group("sampling and limits of a try")
    add = sampling.add_argument
    add("--max-turns", type=positive, default=defaults.max_turns,
        help="turns and cells; of a search the depth")  # fmt: skip
    add("--turn-tokens", type=positive, default=defaults.turn_tokens, help="sampled in one turn")
    add("--max-tokens", type=positive, default=defaults.max_tokens,
        help="sampled in all turns; in a search in those of one path")  # fmt: skip
    add("--max-seconds", type=positive, default=defaults.max_seconds,
        help="clock time; in a search, nothing is expanded after it")  # fmt: skip
    add("--temperature", type=number_between(0, 2),
        help=f"default: {defaults.temperature}; of several candidates {hotter}")  # fmt: skip
    add("--score-seconds", type=seconds, default=60.0, metavar="S",
        help="what one score may take; beyond it the try is unscored")  # fmt: skip
    judge = parser.add_argument_group("suites that a model marks")
    add = judge.add_argument
    add("--judge-model", metavar="MODEL")
    add("--judge-base-url", default="", metavar="URL", help="default: a local model")
    add("--judge-api-key-file", type=Path, metavar="FILE")
