"""A trajectory as the page shows it: a notebook to read, with code highlighted in little markup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup, escape
from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer, SqlLexer  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]

from dm_jupyter.agent.notebook_words import closing_words, question_words
from dm_jupyter.core.trajectory import RunCell, Step, StopReason, Trajectory, Void
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.types import CellResult, CellStatus
from training.report.outputs import Shown, shown_outputs
from training.report.pictures import Pictures
from training.report.words import markdown, plain

__all__ = ["NotebookPage", "ShownTurn", "highlight", "notebook_page", "sandbox_words"]

_STATUS_CHARS = 300
_MAX_CHARS = 20_000
"""Longer code is not highlighted: an adversary could choose code that slows the lexer."""
_LEXERS: dict[str, Lexer] = {
    "python": PythonLexer(stripnl=False, ensurenl=False),
    "sql": SqlLexer(stripnl=False, ensurenl=False),
}
_MARKS = (
    (Token.Comment, "c"),
    (Token.String, "s"),
    (Token.Number, "n"),
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Name.Builtin, "b"),
    (Token.Name.Function, "f"),
    (Token.Name.Class, "f"),
    (Token.Name.Decorator, "f"),
)


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One turn of a run."""

    number: int
    """Number of the turn, from 1."""
    facts: str
    """Tokens and seconds of the turn, on one line."""
    thought: Markup
    code: Markup
    """Highlighted code; empty if the turn ran no cell."""
    execution_count: int | None
    status: str
    """How the cell ended; empty if it succeeded or there was none."""
    outputs: list[Shown]
    void: str
    """Why the turn is void; empty if it is not."""
    said: str
    """The entire turn as sampled, if neither thought nor code shows it."""
    told: str
    """The observation that the model got next."""


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """A run from its question to its answer."""

    facts: tuple[tuple[str, str], ...]
    question: Markup
    data_context: str
    """The description of the data that the model was shown."""
    turns: tuple[ShownTurn, ...]
    closing: Markup


def notebook_page(trajectory: Trajectory, pictures: Pictures) -> NotebookPage:
    """Return a run as a notebook to read.

    Args:
        trajectory: the run.
        pictures: collects the pictures that its cells showed.
    """
    return NotebookPage(
        facts=tuple(_facts(trajectory)),
        question=markdown(question_words(trajectory.task)),
        data_context=plain(trajectory.data_context.text),
        turns=tuple(
            _turn(number, step, pictures) for number, step in enumerate(trajectory.steps, 1)
        ),
        closing=_closing(trajectory),
    )


def _facts(trajectory: Trajectory) -> Iterator[tuple[str, str]]:
    stop = trajectory.stop.value.replace("_", " ") if trajectory.stop else "not ended"
    detail = f" ({plain(trajectory.stop_detail, 400)})" if trajectory.stop_detail else ""
    yield "ended by", stop + detail
    yield "model", trajectory.answered_by
    yield "dialect", trajectory.dialect
    yield "turns", str(trajectory.turns)
    yield "cells", str(trajectory.cells)
    yield "tokens of this path", f"{trajectory.tokens:,}"
    if words := sandbox_words(trajectory):
        yield "sandbox", words


def sandbox_words(trajectory: Trajectory) -> str:
    """Return how many layers confined the kernel and which did not; empty if not recorded."""
    try:
        containment = Containment.from_json(trajectory.containment)
    except (KeyError, TypeError, ValueError):
        return ""
    return containment.summary()


def _turn(number: int, step: Step, pictures: Pictures) -> ShownTurn:
    action, result = step.turn.action, step.result
    code = highlight(action.source, action.language) if isinstance(action, RunCell) else Markup()
    return ShownTurn(
        number=number,
        facts=_turn_facts(step),
        thought=markdown(step.turn.thought),
        code=code,
        execution_count=result.execution_count if result else None,
        status=_status(result) if result and not result.ok else "",
        outputs=shown_outputs(result, pictures) if result else [],
        void=action.reason if isinstance(action, Void) else "",
        said="" if code or step.turn.thought else plain(step.completion.text),
        told=plain(step.observation),
    )


def _turn_facts(step: Step) -> str:
    completion = step.completion
    facts = [f"{completion.completion_tokens:,} tokens", f"{completion.seconds:.1f} s sampling"]
    if step.result:
        facts.append(f"{step.result.seconds:.1f} s in the cell")
    if completion.finish_reason != "stop":
        facts.append(f"cut off: {completion.finish_reason}")
    return " · ".join(facts)


def _status(result: CellResult) -> str:
    if result.error is None or result.status is not CellStatus.ERROR:
        return f"The cell ended with: {result.status.value}"
    return plain(f"{result.error.name}: {result.error.message}", _STATUS_CHARS)


def _closing(trajectory: Trajectory) -> Markup:
    """Return the text below the last cell; a closed-form answer is preformatted, not markdown."""
    if trajectory.stop is StopReason.ANSWERED and trajectory.task.is_closed_form:
        return Markup("<h4>Answer</h4><pre>{}</pre>").format(plain(trajectory.answer or ""))
    return markdown(closing_words(trajectory))


def highlight(source: str, language: str) -> Markup:
    """Return code as markup; without highlighting if its language is unknown or it is very long."""
    lexer = _LEXERS.get(language)
    if lexer is None or len(source) > _MAX_CHARS:
        return escape(plain(source))
    return Markup("").join(
        Markup('<i class="{}">{}</i>').format(mark, text) if mark else escape(text)
        for mark, text in _pieces(lexer, plain(source))
    )


def _pieces(lexer: Lexer, source: str) -> Iterator[tuple[str, str]]:
    """Yield consecutive pieces of code that share a mark, each with its mark."""
    marked = ((_mark(kind), text) for kind, text in lexer.get_tokens(source))
    for mark, stretch in groupby(marked, key=lambda piece: piece[0]):
        yield mark, "".join(text for _, text in stretch)


def _mark(kind: object) -> str:
    return next((mark for token, mark in _MARKS if kind in token), "")
