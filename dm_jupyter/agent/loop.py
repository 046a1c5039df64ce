"""The agent loop, the only code that samples from a model and runs a cell.

`step` samples once, parses once, runs at most one cell and appends one frozen `Step`. `run`
repeats it until there is a reason to stop. A search branches by calling `step` on any trajectory.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from dm_jupyter.agent import turns
from dm_jupyter.agent.compaction import folded_for, folded_further, folded_if_copied
from dm_jupyter.agent.observe import describe, pictures_in, shorten
from dm_jupyter.agent.protocols import Notebook
from dm_jupyter.agent.turns import absent_of, after_answer, parse_turn
from dm_jupyter.assist import critique
from dm_jupyter.assist.advice import advised
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Assistance, Finding
from dm_jupyter.core.data_facts import facts_block
from dm_jupyter.core.dialect import Dialect, Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import ContextFullError, DmJupyterError
from dm_jupyter.core.events import (
    CellFinished,
    CellStarted,
    Emit,
    ModelSilent,
    RunFinished,
    RunStarted,
    StepFinished,
    TextSampled,
)
from dm_jupyter.core.limits_met import SAME_LIMIT, limit_met, limit_words
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Void,
)
from dm_jupyter.models.protocols import MOST_TEMPERATURE, Policy, SampleRequest
from kernel_sandbox.errors import SandboxError

__all__ = ["RunSettings", "begin", "give_up", "request_for", "run", "step"]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run is sampled and when it must end. Creation checks that the limits are positive."""

    max_turns: int = 10
    max_tokens: int = 20_000
    """Tokens sampled in all turns together."""
    max_seconds: float = 1_800.0
    """Wall-clock time of the entire run."""
    max_cells: int = 10
    turn_tokens: int = 1_000
    """Tokens sampled in one turn."""
    temperature: float = 0.2
    top_p: float = 0.95
    retry_temperature: float | None = 0.7
    """The minimum temperature after a turn that was not good enough, if the help for the model
    includes that; `None` for the usual one."""
    seed: int = 0
    """Seed of the first turn; each later turn adds one, so that no turn repeats a draw."""
    observation_chars: int = 4_000
    """Length to which the output of a cell is cut for the model."""
    context_tokens: int = 0
    """Length of the model's context, prompt and answer together; 0 if unknown."""
    shows_pictures: bool = False
    """Whether the last cell's figures are also sent as pictures, not only in words."""
    stop_on_void: bool = False
    """Whether a turn without code or answer ends the run, as in training (DataMind §4)."""
    assistance: Assistance | None = None
    """The help that the model gets; `None` for the dialect's default."""

    def __post_init__(self) -> None:
        for name in (
            "max_turns", "max_tokens", "max_seconds", "max_cells", "turn_tokens",
            "observation_chars",
        ):  # fmt: skip
            if getattr(self, name) <= 0:
                raise ValueError(f"RunSettings.{name} must be positive, got {getattr(self, name)}")
        for name in ("temperature", "retry_temperature"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= MOST_TEMPERATURE:
                raise ValueError(
                    f"RunSettings.{name} must be 0 to {MOST_TEMPERATURE:g}, got {value}"
                )

    @classmethod
    def for_rollouts(cls) -> RunSettings:
        """Return the settings that sample a model to train it on its own turns.

        Each token is drawn from the model's own distribution, and nothing helps the model. So a
        log-probability of the model is that of the draw.
        """
        return cls(
            temperature=1.0,
            top_p=1.0,
            retry_temperature=None,
            stop_on_void=True,
            assistance=Assistance.none(),
        )


_PROMPTS = (
    "cell_changed",
    "cell_critique",
    "figure_shown",
    "turn_cut",
    *turns.PROMPTS,
    *critique.PROMPTS,
)
SILENCE_S = 10
"""Seconds after which an event reports that the model has not said anything."""
_MOST_VOIDS = 3
"""Void turns in a row that end the run: the model has lost the thread."""


def begin(trajectory: Trajectory, policy: Policy, settings: RunSettings) -> Trajectory:
    """Return the trajectory with the model, its help and the prompts' fingerprints recorded.

    Raises:
        UsageError: no dialect has that name.
    """
    names = (*dialect_named(trajectory.dialect).prompts, *_PROMPTS)
    return replace(
        _assisted(trajectory, settings),
        policy=policy.name,
        prompts={name: prompts.fingerprint(name) for name in names},
    )


def _assisted(trajectory: Trajectory, settings: RunSettings) -> Trajectory:
    """Return the trajectory with the help of the settings; one that has begun keeps its own."""
    if trajectory.assistance is not None:
        return trajectory
    given = settings.assistance or trajectory.assists
    return advised(replace(trajectory, assistance=given))


async def run(
    trajectory: Trajectory, policy: Policy, notebook: Notebook, settings: RunSettings, emit: Emit
) -> Trajectory:
    """Return the trajectory after enough steps to end it; `stop` says why it ended.

    A fault of the endpoint or the sandbox ends the run as `StopReason.FAULT` and keeps all earlier
    steps. Cancelling stops the sampling or the cell at once: `emit` gets the cancelled trajectory,
    then `CancelledError` is raised.

    Raises:
        asyncio.CancelledError: the run was cancelled.
        UsageError: no dialect has that name.
    """
    trajectory = begin(trajectory, policy, settings)
    emit(RunStarted(trajectory))
    deadline = time.monotonic() + settings.max_seconds
    try:
        while trajectory.stop is None:
            remaining_s = deadline - time.monotonic()
            if limit := _exhausted(trajectory, settings, remaining_s):
                trajectory = give_up(trajectory, *limit)
                break
            scope = asyncio.timeout(remaining_s)
            try:
                async with scope:
                    trajectory = await step(trajectory, policy, notebook, settings, emit)
            except TimeoutError:
                if not scope.expired():
                    raise
            except ContextFullError:
                shorter = folded_further(trajectory) if trajectory.assists.compaction else None
                detail = "the model's context is full"
                trajectory = shorter or give_up(trajectory, StopReason.BUDGET, detail)
    except asyncio.CancelledError:
        emit(RunFinished(replace(trajectory, stop=StopReason.CANCELLED)))
        raise
    except (DmJupyterError, SandboxError) as fault:
        trajectory = replace(trajectory, stop=StopReason.FAULT, stop_detail=str(fault))
        emit(RunFinished(trajectory, fault))
        return trajectory
    emit(RunFinished(trajectory))
    return trajectory


def request_for(trajectory: Trajectory, settings: RunSettings) -> SampleRequest:
    """Return the request of the next step to the model."""
    trajectory = _assisted(trajectory, settings)
    dialect = dialect_named(trajectory.dialect)
    prefill = dialect.prefill(trajectory)
    messages = dialect.messages(trajectory)
    return SampleRequest(
        messages=_with_pictures(messages, trajectory) if settings.shows_pictures else messages,
        prefill=prefill,
        stop=dialect.stop(trajectory, prefill),
        stop_unopened=dialect.stop(trajectory, ""),
        tools=dialect.tools,
        temperature=_temperature(trajectory, settings),
        top_p=settings.top_p,
        max_tokens=settings.turn_tokens,
        seed=settings.seed + trajectory.turns,
        cuts_repetition=trajectory.assists.repetition,
        thinks_in_text=dialect.thinks_in_text,
        before=trajectory.steps[-1].completion.tokens if trajectory.steps else None,
    )


def _with_pictures(messages: tuple[Message, ...], trajectory: Trajectory) -> tuple[Message, ...]:
    """Return the conversation with the last cell's figures, which a tool result can't contain."""
    result = trajectory.steps[-1].result if trajectory.steps else None
    pictures = pictures_in(result) if result is not None else ()
    if not pictures:
        return messages
    last = messages[-1]
    if last.role == "user":
        return (*messages[:-1], replace(last, pictures=pictures))
    return (*messages, Message("user", prompts.text_of("figure_shown"), pictures=pictures))


async def step(
    trajectory: Trajectory, policy: Policy, notebook: Notebook, settings: RunSettings, emit: Emit
) -> Trajectory:
    """Return the trajectory with one more step, ended if that step answers.

    Raises:
        PolicyError: the model could not be sampled.
        SandboxError: the kernel could not run the cell.
        asyncio.CancelledError: the step was cancelled; the cell it ran was interrupted.
    """
    trajectory = _assisted(trajectory, settings)
    dialect = dialect_named(trajectory.dialect)
    request = request_for(trajectory, settings)
    completion = await _sampled(policy, request, emit)
    taken = Step(completion, parse_turn(dialect, completion, trajectory))
    match taken.turn.action:
        case RunCell() as cell:
            emit(CellStarted(taken.turn.thought, cell))
            taken = await _run_cell(trajectory, taken, cell, notebook)
            assert isinstance(taken.turn.action, RunCell)  # noqa: S101
            assert taken.result is not None  # noqa: S101
            emit(CellFinished(taken.turn.action, taken.result))
            after = _after_cell(trajectory, dialect, taken, settings)
        case Answer(text):
            # Outputs may be long, and the event loop serves others.
            after = await asyncio.to_thread(after_answer, trajectory, taken, text)
        case Void():
            after = _after_void(trajectory, dialect, taken, settings)
    if trajectory.assists.forgetting and dialect.is_append_only and after.stop is None:
        after = folded_if_copied(after)
    if trajectory.assists.compaction and settings.context_tokens and after.stop is None:
        after = folded_for(after, settings.context_tokens, settings.turn_tokens)
    emit(StepFinished(after.steps[-1], after))
    return after


async def _run_cell(trajectory: Trajectory, taken: Step, cell: RunCell, notebook: Notebook) -> Step:
    ran = await notebook.run(cell, taken.turn.thought)
    return replace(
        taken,
        turn=replace(taken.turn, action=ran.cell),
        result=ran.result,
        is_edited=ran.cell != cell,
        written=_as_written(trajectory, taken, ran.cell),
    )


def _as_written(trajectory: Trajectory, taken: Step, ran: RunCell) -> RunCell | None:
    """Return the cell as its turn contains it, with opening notes; `None` if the same ran."""
    wrote = dialect_named(trajectory.dialect).parse(taken.completion.text).action
    return wrote if isinstance(wrote, RunCell) and wrote != ran else None


async def _sampled(policy: Policy, request: SampleRequest, emit: Emit) -> Completion:
    """Sample one turn, and emit an event every ten seconds until the first text arrives."""
    heard = asyncio.Event()
    before = seconds = 0

    def on_wait(count: int) -> None:
        nonlocal before, seconds
        before, seconds = count, 0  # its silence counts from its turn
        emit(ModelSilent(policy.name, seconds, before))

    def on_text(text: str) -> None:
        heard.set()
        emit(TextSampled(text))

    async def tell() -> None:
        nonlocal seconds
        while not heard.is_set():
            await asyncio.sleep(SILENCE_S)
            seconds += SILENCE_S
            if not heard.is_set():
                emit(ModelSilent(policy.name, seconds, before))

    telling = asyncio.create_task(tell())
    try:
        return await policy.sample(replace(request, on_wait=on_wait), on_text)
    finally:
        telling.cancel()


def _exhausted(
    trajectory: Trajectory, settings: RunSettings, remaining_s: float
) -> tuple[StopReason, str] | None:
    """Return the limit that the run has reached, or `None`."""
    if trajectory.turns >= settings.max_turns:
        return StopReason.TURN_LIMIT, f"{settings.max_turns} turns"
    if trajectory.cells >= settings.max_cells:
        return StopReason.BUDGET, f"{settings.max_cells} cells"
    if trajectory.tokens >= settings.max_tokens:
        return StopReason.BUDGET, f"{settings.max_tokens} tokens"
    if remaining_s <= 0:
        return StopReason.BUDGET, f"{settings.max_seconds:g} seconds"
    if detail := _same_limit(trajectory):
        return StopReason.BUDGET, detail
    detail = _voids(trajectory)
    return (StopReason.VOID, detail) if detail else None


def _voids(trajectory: Trajectory) -> str:
    """Return how many turns in a row were void, in words; "" while there are few."""
    last = [step.turn.action for step in trajectory.steps[-_MOST_VOIDS:]]
    reasons = [action.reason for action in last if isinstance(action, Void)]
    if len(reasons) == _MOST_VOIDS:
        detail = f"{_MOST_VOIDS} turns in a row without code or an answer"
        return f"{detail}; the last was {reasons[-1] or 'empty'}".rstrip(".")
    return ""


def _same_limit(trajectory: Trajectory) -> str:
    """Return the kernel limit that two cells reached, since a third would too; "" if none."""
    results = [step.result for step in trajectory.steps if step.result is not None]
    if not results or not (name := limit_met(results[-1])):
        return ""
    if sum(limit_met(result) == name for result in results) < 2:
        return ""
    return f"{SAME_LIMIT}{limit_words(name)}: {results[-1].message}".rstrip(". :")


def give_up(trajectory: Trajectory, stop: StopReason, detail: str) -> Trajectory:
    """End the run without an answer, or with one that was sent back and never improved.

    Args:
        trajectory: the run, not ended yet.
        stop: why it ends, if it has no answer.
        detail: which limit it reached.
    """
    dialect = dialect_named(trajectory.dialect)
    for step in reversed(trajectory.steps):
        if step.result is not None:  # it may have changed the answer
            break
        if isinstance(step.turn.action, Answer):
            return turns.answered(trajectory, step.turn.action.text)
    for step in trajectory.steps:
        answer = dialect.printed_answer(trajectory, step.result) if step.result else None
        if step.critique and answer is not None:
            return replace(trajectory, stop=StopReason.ANSWERED, answer=answer)
        if step.critique and isinstance(step.turn.action, Answer):
            return turns.answered(trajectory, step.turn.action.text)
    return replace(trajectory, stop=stop, stop_detail=detail)


def _after_cell(
    trajectory: Trajectory, dialect: Dialect, taken: Step, settings: RunSettings
) -> Trajectory:
    result, cell = taken.result, taken.turn.action
    assert result is not None  # noqa: S101
    assert isinstance(cell, RunCell)  # noqa: S101
    answer, assists = dialect.printed_answer(trajectory, result), trajectory.assists
    against: tuple[Finding, ...] = ()
    if result.ok and not any(step.critique for step in trajectory.steps):
        against = critique.critique_of(trajectory, answer)
    reason = " ".join(finding.suggestion for finding in against)
    taken = replace(taken, findings=(*taken.findings, *against))
    if answer is not None and not reason:
        ended = replace(trajectory.extended(taken), stop=StopReason.ANSWERED, answer=answer)
        return replace(ended, rests_on=absent_of(ended, answer))
    text = describe(result, settings.observation_chars, is_quiet=assists.quiet_output)
    facts = facts_block(result.facts) if assists.ledger else ""
    if text and facts:
        text, facts = f"{text}\n\n{facts}", ""
    if reason:
        told = prompts.fill("cell_critique", output=text, critique=reason)
        taken = replace(taken, critique=reason)
        return trajectory.extended(_told(taken, cell, told, settings))
    observation = dialect.observation(trajectory, result, text)
    if facts:  # below the note that nothing was shown
        observation = f"{observation}\n\n{facts}"
    return trajectory.extended(_told(taken, cell, observation, settings))


def _told(taken: Step, cell: RunCell, observation: str, settings: RunSettings) -> Step:
    """Return the step with its observation, which begins with the cell if a person changed it."""
    if taken.is_edited:
        source = shorten(cell.source, settings.observation_chars)
        observation = prompts.fill(
            "cell_changed", language=cell.language, source=source, observation=observation
        )
    return replace(taken, observation=observation)


def _after_void(
    trajectory: Trajectory, dialect: Dialect, taken: Step, settings: RunSettings
) -> Trajectory:
    if settings.stop_on_void:
        return replace(trajectory.extended(taken), stop=StopReason.VOID)
    if taken.completion.finish_reason == "length" and trajectory.assists.cut_reminder:
        reminder = prompts.text_of("turn_cut")
    else:
        reminder = dialect.void_reminder(trajectory.extended(taken))
    return trajectory.extended(replace(taken, observation=reminder))


def _temperature(trajectory: Trajectory, settings: RunSettings) -> float:
    """Return the temperature, higher after a bad turn, which a small model would repeat."""
    last = trajectory.steps[-1] if trajectory.steps else None
    if settings.retry_temperature is None or not trajectory.assists.retry_temperature:
        return settings.temperature
    if last is None or isinstance(last.turn.action, Answer):
        return settings.temperature
    if last.result is not None and last.result.ok and last.result.outputs and not last.critique:
        return settings.temperature
    return max(settings.temperature, settings.retry_temperature)
