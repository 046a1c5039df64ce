"""Compaction of a conversation: its first turns become a digest.

The kernel keeps the variables of those turns, so the model no longer needs their code, only its
purpose and what it showed. A fold happens once, when the context is full, and not turn by turn. An
engine caches the beginning of a conversation and reads on from there. Each fold makes it read the
rest again.

A small model that copies its last turn would copy it again. Then all turns are folded, so that no
turn is left to copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from dm_jupyter.agent.observe import describe
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.trajectory import Answer, Fold, RunCell, Step, Trajectory

__all__ = ["estimated_tokens", "folded_for", "folded_further", "folded_if_copied"]

_CHARS_PER_TOKEN = 3.0
"""Estimate for mixed code, numbers and prose, if the endpoint has not reported usage."""
_FILL = 0.6
"""Share of the conversation's room that is used after a fold, so that the next is not soon."""
_DIGEST_SHARE = 0.15
"""Share of the context for the digest of the turns that are not shown."""
_MOST_ANSWER_SHARE = 0.25
"""Largest share of the context that is kept free for the next turn."""
_TURN_CHARS = (80, 900)
"""Fewest and most characters of one turn in the digest."""
_CODE_SHARE = 0.5
_COPIED_CHARS = 1_800
"""Most characters of the digest when the model copies itself: what it has learned so far."""
_MOST_NAMES = 40


def folded_for(trajectory: Trajectory, context_tokens: int, turn_tokens: int) -> Trajectory:
    """Return the trajectory, folded if its next turn does not fit and turns are left to fold.

    Args:
        trajectory: the run so far.
        context_tokens: tokens of prompt and answer together.
        turn_tokens: tokens kept free for the answer.
    """
    room = context_tokens - min(turn_tokens, int(context_tokens * _MOST_ANSWER_SHARE))
    if estimated_tokens(trajectory) <= room:
        return trajectory
    return _folded(trajectory, int(room * _FILL), context_tokens) or trajectory


def folded_further(trajectory: Trajectory) -> Trajectory | None:
    """Return the trajectory about half as long, after its model has rejected it as too long.

    Return `None` if no turn is left to fold.
    """
    tokens = estimated_tokens(trajectory)
    return _folded(trajectory, tokens // 2, tokens)


def folded_if_copied(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with all turns folded if the last one copies itself or the one before.

    Args:
        trajectory: the run so far.
    """
    shown = trajectory.shown_steps
    if not shown or isinstance(shown[-1].turn.action, Answer):
        return trajectory
    loops = shown[-1].completion.finish_reason == "repetition"
    texts = {step.completion.text for step in shown[-2:]}
    if not loops and (len(shown) < 2 or len(texts) > 1):
        return trajectory
    once = {step.completion.text: step for step in trajectory.steps}
    digest = _digest(tuple(once.values()), _COPIED_CHARS)
    fold = Fold(trajectory.turns, trajectory.turns, digest)
    return replace(trajectory, folds=(*trajectory.folds, fold))


def estimated_tokens(trajectory: Trajectory) -> int:
    """Return about how many tokens the prompt of the next turn has.

    The estimate is based on the usage that the endpoint reported for the turn before, if any.
    """
    per_token = _CHARS_PER_TOKEN
    if trajectory.steps and (told := trajectory.steps[-1].completion.prompt_tokens):
        before = _chars(trajectory.before(trajectory.turns - 1))
        # A fold, a template or tools may distort the ratio, so it is kept within plausible bounds.
        per_token = min(5.0, max(1.5, before / told))
    return round(_chars(trajectory) / per_token)


def _chars(trajectory: Trajectory) -> int:
    dialect = dialect_named(trajectory.dialect)
    length = sum(map(_length, dialect.messages(trajectory)))
    return length + len(dialect.prefill(trajectory))


def _length(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.calls)


def _folded(trajectory: Trajectory, tokens: int, context_tokens: int) -> Trajectory | None:
    """Return the trajectory with the fewest turns folded to be that short, never the last one.

    Return `None` if no turn is left to fold.
    """
    chars = int(context_tokens * _DIGEST_SHARE * _CHARS_PER_TOKEN)
    shorter = None
    for turns in range(trajectory.folded + 1, trajectory.turns):
        digest = _digest(trajectory.steps[:turns], chars)
        folds = (*trajectory.folds, Fold(trajectory.turns, turns, digest))
        shorter = replace(trajectory, folds=folds)
        if estimated_tokens(shorter) <= tokens:
            break
    return shorter


def _digest(steps: Sequence[Step], chars: int) -> str:
    """Return the turns, each as long as there is room; the first are left out first."""
    least, most = _TURN_CHARS
    told = list(enumerate(steps, 1))[-max(1, chars // least) :]
    room = min(most, chars // len(told))
    lines = [f"{number}. {text}" for number, step in told if (text := _turn(step, room))]
    if names := _names_made(steps):
        lines.append(f"Variables that these turns made: {', '.join(names)}.")
    return "\n".join(lines)


def _turn(step: Step, chars: int) -> str:
    match step.turn.action:
        case RunCell(source):
            code = _cut(source, int(chars * _CODE_SHARE))
            shown = describe(step.result) if step.result is not None else ""
            return f"ran: {code}\n   showed: {_cut(shown, chars - len(code)) or 'nothing'}"
        case Answer(text):
            return f"answered, and was asked to go on: {_cut(text, chars)}"
        case _:
            return ""


def _cut(text: str, chars: int) -> str:
    """Return the text on one line, cut at its start: the end has a cell's purpose and result."""
    line = " ⏎ ".join(filter(None, (part.strip() for part in text.splitlines())))
    return line if len(line) <= chars else f"… {line[-max(0, chars - 2) :]}"


def _names_made(steps: Iterable[Step]) -> list[str]:
    """Return the names that cells have bound and the kernel still has, the last of many."""
    names: dict[str, None] = {}
    for step in steps:
        if step.result is None:
            continue
        if step.result.state_lost:
            names.clear()
        elif step.result.ok and isinstance(step.turn.action, RunCell):
            for name in _bound(step.turn.action.source):
                names.pop(name, None)
                names[name] = None
    return list(names)[-_MOST_NAMES:]


def _bound(source: str) -> Iterable[str]:
    """Yield the names that a cell binds at its top level."""
    with suppress(SyntaxError, ValueError):
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                yield statement.name
            elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.With | ast.For):
                yield from (
                    node.id
                    for node in ast.walk(statement)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                )
