"""A trajectory: a question, the turns taken on it, and how it ended. Immutable; a branch is a copy.

The chat writes this one value into a notebook, a benchmark scores it, and a trainer learns from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dm_jupyter.core.assistance import Assistance, Finding
from dm_jupyter.core.codec import decode_value, encode_value
from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.grounded import Grounded
from dm_jupyter.core.plain_text import shown_host
from dm_jupyter.core.request_kind import RequestKind, request_kind
from dm_jupyter.core.sampled_tokens import SampledTokens
from dm_jupyter.core.task import Task
from kernel_sandbox.types import CellResult

__all__ = [
    "Action",
    "Answer",
    "Completion",
    "DataContext",
    "Fold",
    "RunCell",
    "Step",
    "StopReason",
    "Trajectory",
    "Turn",
    "Void",
]

SCHEMA_VERSION = 2
"""The version that is written. Version 1 had other names for some fields and can still be read."""


@dataclass(frozen=True, slots=True)
class RunCell:
    """The model requests that a cell is run."""

    source: str
    language: str = "python"
    """`python` or `sql`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The model states the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Void:
    """The turn contains neither code nor answer (DataMind §4: a void turn)."""

    reason: str


Action = RunCell | Answer | Void


@dataclass(frozen=True, slots=True)
class Turn:
    """One model output, parsed: what it thought, then what it does."""

    thought: str
    action: Action


@dataclass(frozen=True, slots=True)
class Completion:
    """One sample from a model."""

    text: str
    """The entire turn: the opening that was put before it, then what the model sampled."""
    prefill: str = ""
    """The opening, with which `text` starts. Never trained on."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    finish_reason: str = "stop"
    """`stop`; `length` if the token limit cut it; `repetition` if it repeated itself."""
    reasoning: str = ""
    """What the model thought outside the turn, if its endpoint reports that."""
    mean_probability: float | None = None
    """Geometric mean of its tokens' probabilities; `None` if not requested or unknown."""
    tokens: SampledTokens | None = field(default=None, compare=False, repr=False)
    """The token ids of the text, from a policy that works on ids. They are stored beside the
    trajectory, not in its JSON."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn and its result."""

    completion: Completion
    turn: Turn
    result: CellResult | None = None
    """What the cell did, if the action was a cell."""
    observation: str = ""
    """What the model is shown next; empty if the turn ended the run."""
    critique: str = ""
    """Why a cell that worked was sent back; empty if it was not."""
    is_edited: bool = False
    """Whether a person changed the cell before it ran: the action is theirs, not the model's."""
    written: RunCell | None = None
    """The cell as the turn contains it, if the action, which is what ran, is different: a person
    changed it, or the comments of an opening were left out."""
    findings: tuple[Finding, ...] = ()
    """What the help for the model noticed and did about this turn."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A point at which a conversation was too long for its model, or the model copied itself."""

    at: int
    """Turns taken when it was created; it applies from the next turn on."""
    turns: int
    """How many of the first turns the model sees only through the digest."""
    digest: str
    """What they ran and what that showed, shortened."""

    @property
    def why(self) -> str:
        """The reason in words; only after a copy is no turn left in full."""
        if self.turns == self.at:
            return "the model copies its last turn"
        return "the model's context is full"


@dataclass(frozen=True, slots=True)
class DataContext:
    """What the model is shown of the data before it writes anything."""

    text: str = ""
    preamble: str = ""
    """Code that loads the data, which begins a python cell."""
    databases: tuple[str, ...] = ()
    """Names of the database files; not empty if `sql` cells make sense."""
    incomplete: tuple[str, ...] = ()
    """The columns with missing values, as far as they were counted."""
    variables: tuple[str, ...] = ()
    """Names of a person's tables in the kernel that the question is about."""
    links: str = ""
    """What the question's words are in the data, one line each. Of what the model is shown, only
    this part depends on the question, so it follows the question in the prompt."""
    years_missed: tuple[str, ...] = ()
    """The question's years outside of all dates and years of the data, in words; for the check of
    the answer."""
    whole_tables: str = ""
    """Code that reads all tables of the databases into frames, for what SQL can't compute; empty
    without databases, or if they are large."""


class StopReason(StrEnum):
    """Why a run ended."""

    ANSWERED = "answered"
    TURN_LIMIT = "turn_limit"
    VOID = "void"
    BUDGET = "budget"
    CANCELLED = "cancelled"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Everything about one run that can be stored, replayed, scored or learned from."""

    task: Task
    dialect: str
    data_context: DataContext = field(default_factory=DataContext)
    steps: tuple[Step, ...] = ()
    stop: StopReason | None = None
    """Why the run ended; `None` while it continues."""
    stop_detail: str = ""
    """Which budget ran out, or which fault it was."""
    answer: str | None = None
    unsupported: tuple[str, ...] = ()
    """Numbers of the answer that the outputs don't support."""
    rests_on: tuple[str, ...] = ()
    """Absent data that the answer rests on, such as a selection without rows."""
    grounding: tuple[Grounded, ...] = ()
    """Each number of a free answer, with the step whose output it comes from."""
    ending: tuple[str, ...] = ()
    """The lines below the answer: what a cleaning saved and changed, or that the requested chart
    or file is missing."""
    policy: str = ""
    """The model's name."""
    endpoint: str = ""
    """The model's address without possible secrets; empty for this machine."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Map from the name of each prompt used to the first 12 hex digits of its sha256."""
    containment: Mapping[str, Any] = field(default_factory=dict)
    """The restrictions of the kernel, layer by layer."""
    folds: tuple[Fold, ...] = ()
    """Where the conversation was shortened; the last fold applies to the next turn."""
    assistance: Assistance | None = None
    """The help that the model gets; `None` before a run begins, and in records of old releases."""
    advice: tuple[str, ...] = ()
    """Names of the prompts that help with this task."""

    @property
    def assists(self) -> Assistance:
        """The help that the model gets: the recorded one, else the dialect's default."""
        if self.assistance is None:
            return Assistance.for_dialect(self.dialect)
        return self.assistance

    @property
    def kind(self) -> RequestKind:
        """The kind of request that the prompts assume; without help, always an answer."""
        return request_kind(self.task) if self.assists.ending else "answer"

    @property
    def digest(self) -> str:
        """The digest of the turns that the model is not shown; empty while it sees all."""
        return self.folds[-1].digest if self.folds else ""

    @property
    def folded(self) -> int:
        """How many of the first turns the model is no longer shown."""
        return self.folds[-1].turns if self.folds else 0

    @property
    def shown_steps(self) -> tuple[Step, ...]:
        """The steps that the model is shown in full."""
        return self.steps[self.folded :]

    @property
    def answered_by(self) -> str:
        """The model, and its host if that is not this machine, in words for a person."""
        host = shown_host(self.endpoint)
        return f"{self.policy} at {host}" if host else self.policy

    def cell_ids(self, ran: Sequence[str]) -> dict[int, str]:
        """Return the ids of the notebook's cells by the index of the step that ran each.

        Args:
            ran: ids of the run's cells, in the order in which they ran.
        """
        steps = (at for at, step in enumerate(self.steps) if step.result is not None)
        return dict(zip(steps, ran, strict=False))

    @property
    def turns(self) -> int:
        """Turns taken so far."""
        return len(self.steps)

    @property
    def cells(self) -> int:
        """Cells run so far."""
        return sum(step.result is not None for step in self.steps)

    @property
    def tokens(self) -> int:
        """Tokens sampled so far."""
        return sum(step.completion.completion_tokens for step in self.steps)

    @property
    def seconds(self) -> float:
        """Seconds spent sampling and running cells."""
        return sum(
            step.completion.seconds + (step.result.seconds if step.result else 0.0)
            for step in self.steps
        )

    def extended(self, step: Step) -> Trajectory:
        """Return the trajectory with one more step."""
        return replace(self, steps=(*self.steps, step))

    def before(self, turn: int) -> Trajectory:
        """Return the trajectory as it was when the model was asked for a turn.

        Args:
            turn: index of the turn; 0 is the first.
        """
        folds = tuple(fold for fold in self.folds if fold.at <= turn)
        return replace(self, steps=self.steps[:turn], folds=folds)

    def to_json(self) -> dict[str, Any]:
        """Return the trajectory as plain JSON values, with its schema version."""
        return {
            "schema_version": SCHEMA_VERSION,
            "task": self.task.to_json(),
            "dialect": self.dialect,
            "data_context": encode_value(self.data_context),
            "steps": [_step_to_json(step) for step in self.steps],
            "stop": self.stop.value if self.stop else None,
            "stop_detail": self.stop_detail,
            "answer": self.answer,
            "unsupported": list(self.unsupported),
            "rests_on": list(self.rests_on),
            "grounding": encode_value(self.grounding),
            "ending": list(self.ending),
            "policy": self.policy,
            "endpoint": self.endpoint,
            "prompts": dict(self.prompts),
            "containment": dict(self.containment),
            "folds": encode_value(self.folds),
            "assistance": self.assistance.to_json() if self.assistance else None,
            "advice": list(self.advice),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Trajectory:
        """Return the trajectory from the output of `to_json`.

        Raises:
            TrajectoryError: it is not an object, the schema version is unknown, or a field is
                missing or of the wrong kind.
        """
        if not isinstance(raw, Mapping):
            kind = type(raw).__name__
            raise TrajectoryError(f"this trajectory is not valid: expected an object, found {kind}")
        try:
            version = raw.get("schema_version")
            if version not in (1, SCHEMA_VERSION):
                raise TrajectoryError(
                    f"this trajectory has schema version {version!r}; this release reads "
                    f"versions 1 to {SCHEMA_VERSION}"
                )
            return _trajectory_from_json(_from_version_1(raw) if version == 1 else raw)
        except KeyError as error:
            raise TrajectoryError(f"this trajectory is incomplete: {error} is missing") from error
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise TrajectoryError(f"this trajectory is not valid: {error}") from error
        except RecursionError:
            raise TrajectoryError("this trajectory is not valid: it is nested too deeply") from None


def _completion_to_json(completion: Completion) -> dict[str, Any]:
    """Return the completion, with the counts of its token ids instead of the ids."""
    raw: dict[str, Any] = encode_value(replace(completion, tokens=None))
    del raw["tokens"]
    if tokens := completion.tokens:
        raw["token_counts"] = {"prompt": len(tokens.prompt), "sampled": len(tokens.sampled)}
    return raw


def _step_to_json(step: Step) -> dict[str, Any]:
    return {
        "completion": _completion_to_json(step.completion),
        "thought": step.turn.thought,
        "action": {"kind": type(step.turn.action).__name__, **encode_value(step.turn.action)},
        "result": step.result.to_json() if step.result else None,
        "observation": step.observation,
        "critique": step.critique,
        "is_edited": step.is_edited,
        "written": encode_value(step.written),
        "findings": encode_value(step.findings),
    }


_ACTIONS: dict[str, Any] = {
    "RunCell": RunCell,
    "Answer": Answer,
    "Void": Void,
}


def _step_from_json(raw: Mapping[str, Any], name: str) -> Step:
    kind = raw["action"]["kind"]
    if kind not in _ACTIONS:
        raise ValueError(f"{name}.action.kind: Invalid value {kind!r}")
    action: Action = decode_value(_ACTIONS[kind], raw["action"], f"{name}.action")
    return Step(
        completion=decode_value(Completion, raw["completion"], f"{name}.completion"),
        turn=Turn(decode_value(str, raw["thought"], f"{name}.thought"), action),
        result=CellResult.from_json(raw["result"]) if raw["result"] is not None else None,
        observation=decode_value(str, raw["observation"], f"{name}.observation"),
        critique=decode_value(str, raw.get("critique", ""), f"{name}.critique"),
        is_edited=raw.get("is_edited", False),
        written=decode_value(RunCell | None, raw.get("written"), f"{name}.written"),
        findings=decode_value(tuple[Finding, ...], raw.get("findings", ()), f"{name}.findings"),
    )


def _from_version_1(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trajectory of version 1 with the field names of version 2."""
    data_context = {**raw["brief"], "preamble": raw["brief"]["opening"]}
    steps = [{**step, "critique": step.get("objection", "")} for step in raw["steps"]]
    return {**raw, "data_context": data_context, "steps": steps}


def _trajectory_from_json(raw: Mapping[str, Any]) -> Trajectory:
    return Trajectory(
        task=Task.from_json(raw["task"]),
        dialect=decode_value(str, raw["dialect"], "dialect"),
        data_context=decode_value(DataContext, raw["data_context"], "data_context"),
        steps=tuple(_step_from_json(step, f"steps[{at}]") for at, step in enumerate(raw["steps"])),
        stop=StopReason(raw["stop"]) if raw["stop"] is not None else None,
        stop_detail=decode_value(str, raw["stop_detail"], "stop_detail"),
        answer=decode_value(str | None, raw["answer"], "answer"),
        unsupported=tuple(raw["unsupported"]),
        rests_on=tuple(raw.get("rests_on", ())),
        grounding=decode_value(tuple[Grounded, ...], raw.get("grounding", ()), "grounding"),
        ending=tuple(raw.get("ending", ())),
        policy=decode_value(str, raw["policy"], "policy"),
        endpoint=decode_value(str, raw.get("endpoint", ""), "endpoint"),
        prompts=dict(raw["prompts"]),
        containment=dict(raw["containment"]),
        folds=decode_value(tuple[Fold, ...], raw.get("folds", ()), "folds"),
        assistance=Assistance.from_json(raw["assistance"]) if raw.get("assistance") else None,
        advice=tuple(raw.get("advice", ())),
    )
