"""The tools dialect: native calls, for models that were trained to make them.

By default the model gets the data's profile and no help for small models. The text of a turn
contains its call in the form of Hermes and Qwen: `<tool_call>` and `</tool_call>` around one JSON
object with `name` and `arguments`. So turns can be stored, parsed and learned as text. The
endpoint's client converts native calls to this form. If an endpoint accepts no tools, the prompt
describes them in words.

The endpoint has its own form for a native call, so it decides how the model sees its own turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message, Tool, ToolCall
from dm_jupyter.core.dialects.conversation import rendered, task_text
from dm_jupyter.core.trajectory import Answer, RunCell, Step, Trajectory, Turn, Void
from kernel_sandbox.types import CellResult

__all__ = ["TOOLS", "ToolsDialect", "call_text", "in_words"]

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_OPENED = re.compile(r"((?:\A|\n|```\w*)[ \t]*)\{?(?=\{)")
"""Where JSON may begin in the words of a model whose server does not parse its calls.

The brace may be doubled, as in the chat template of Qwen2.5-Coder.
"""
_FENCE = re.compile(r"```\w*\s*\Z")
_DECODER = json.JSONDecoder(strict=False)
_ENDS_IN_CODE = re.compile(r"```(?:python|py|sql)\b(?:(?!```).)*(?:```)?\s*\Z", re.DOTALL)


def _tool(name: str, argument: str, description: str, argument_is: str) -> Tool:
    properties = {argument: {"type": "string", "description": argument_is}}
    return Tool(
        name,
        description,
        {"type": "object", "properties": properties, "required": [argument]},
    )


TOOLS = (
    _tool(
        "run_python",
        "code",
        "Run one cell of Python in the notebook's kernel and return what it prints. Variables "
        "stay. pandas, numpy, scipy, scikit-learn and matplotlib are there; a figure is shown to "
        "the person.",
        "The cell. Print what you need to see.",
    ),
    _tool(
        "run_sql",
        "query",
        "Run one query on the SQLite database of the task and return its rows; Python cells find "
        "them in the variable that the output names, such as result_1. Only where the data is in "
        "a database.",
        "One SELECT statement.",
    ),
    _tool(
        "answer",
        "text",
        "Finish with the answer, once outputs hold all of it.",
        "The answer in a few sentences of Markdown, or exactly in the format that was asked for.",
    ),
)
_ARGUMENTS = {tool.name: next(iter(tool.parameters["properties"])) for tool in TOOLS}
_NAMES_TOOL = re.compile(rf'\{{\s*"name"\s*:\s*"(?:{"|".join(_ARGUMENTS)})"')


def call_text(name: str, arguments: str) -> str:
    """Return a call in the form that the text of a turn contains.

    Args:
        name: the tool's name.
        arguments: JSON, as the model wrote it; anything but a JSON object stays a string.
    """
    try:
        value = json.loads(arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        value = arguments
    if not isinstance(value, dict):
        value = arguments
    written = json.dumps({"name": name, "arguments": value}, ensure_ascii=False)
    return "<tool_call>\n" + written.replace("</", "<\\/") + "\n</tool_call>"


def in_words(messages: Iterable[Message], tools: Sequence[Tool]) -> tuple[Message, ...]:
    """Return a conversation with all calls as text, for an endpoint that accepts no tools.

    Args:
        messages: the conversation, which begins with a system message.
        tools: the tools that the model may call.
    """
    listed = "\n".join(json.dumps(tool.to_json(), ensure_ascii=False) for tool in tools)
    told = prompts.fill("tools_in_words", tools=listed, example=tools[0].name)
    plain: list[Message] = []
    for message in messages:
        calls = [call_text(call.name, call.arguments) for call in message.calls]
        text = "\n".join([*([message.content] if message.content else []), *calls])
        if message.role == "system":
            plain.append(Message("system", f"{text}\n\n{told}"))
        elif message.role == "tool" and plain[-1].role == "user":  # results of one turn
            plain[-1] = Message("user", f"{plain[-1].content}\n{text}")
        else:
            plain.append(Message("user" if message.role == "tool" else message.role, text))
    return tuple(plain)


@dataclass(frozen=True, slots=True)
class ToolsDialect:
    """A thought, then one call of `run_python`, `run_sql` or `answer`."""

    name: str = "tools"
    answers_in_words: bool = False
    thinks_in_text: bool = False
    is_append_only: bool = False
    tools: tuple[Tool, ...] = TOOLS
    prompts: tuple[str, ...] = (
        "tools_system",
        "tools_in_words",
        "tools_one_call",
        "tools_silent",
        "tools_void",
        "task_files",
        "task_question",
        "task_links",
        "task_constraints",
        "task_format",
        "task_so_far",
    )

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Return no strings: the model ends its turn with a call."""
        return ()

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """Return system, task with the data's profile, then each turn's calls and results."""
        system = prompts.text_of("tools_system")
        messages = [Message("system", system), Message("user", task_text(trajectory))]
        for number, step in enumerate(trajectory.shown_steps, trajectory.folded + 1):
            messages += _turn_messages(number, step)
        return tuple(messages)

    def prefill(self, trajectory: Trajectory) -> str:
        """Return no opening: the model begins on its own."""
        return ""

    def parse(self, text: str) -> Turn:
        """Return the first call, else a call in the words, else the words as the answer."""
        if match := _CALL.search(text):
            call = _call_of(match[1])
            words = text[: match.start()].strip()
            return Turn(words, Void(call) if isinstance(call, str) else _action(*call))
        if found := _call_in_words(text):
            words, call = found
            return Turn(words, Void(call) if isinstance(call, str) else _action(*call))
        return _words(text.strip())

    def ending(self, text: str) -> str:
        """Return nothing: no stop string removes anything."""
        return ""

    def render(self, turn: Turn) -> str:
        """Return the thought, then the call as text.

        The dialect can't express a call in a thought.

        Raises:
            UnrenderableTurnError: the dialect can't express this turn.
        """
        match turn.action:
            case RunCell(source, language):
                name, value = f"run_{language}", source
            case Answer(answer):
                name, value = "answer", answer
            case Void(reason):
                name, value = "", reason
        arguments = {_ARGUMENTS.get(name, ""): value}
        call = call_text(name, json.dumps(arguments, ensure_ascii=False))
        return rendered(self, turn, f"{turn.thought}\n{call}" if turn.thought else call)

    def is_well_formed(self, text: str) -> bool:
        """Whether the text has one valid call, with nothing after it."""
        calls = list(_CALL.finditer(text))
        if len(calls) != 1 or text[calls[0].end() :].strip():
            return False
        return not isinstance(self.parse(text).action, Void)

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """Return the result of the call."""
        return text or prompts.text_of("tools_silent")

    def void_reminder(self, trajectory: Trajectory) -> str:
        """Return what was wrong with the last turn, and what a turn must be."""
        action = trajectory.steps[-1].turn.action
        reason = action.reason if isinstance(action, Void) else ""
        return prompts.fill("tools_void", reason=reason).strip()

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """Return `None`: the answer is a call."""
        return None


def _call_in_words(text: str) -> tuple[str, tuple[str, str] | str] | None:
    """Return the text before the first call, and the call or what is wrong with it."""
    for match in _OPENED.finditer(text):
        at, end = match.end(), len(text)
        try:
            raw, end = _DECODER.raw_decode(text, at)
            is_call = str(raw.get("name")) in _ARGUMENTS and "arguments" in raw
        except (ValueError, RecursionError):
            is_call = bool(_NAMES_TOOL.match(text, at))
        if is_call:
            return _FENCE.sub("", text[: match.end(1)]).strip(), _call_of(text[at:end])
    return None


def _json_of(text: str) -> Any:
    """Return the JSON of a call, whose outer braces may be doubled.

    Raises:
        ValueError: it is not valid.
        RecursionError: it is nested too deep.
    """
    if not text.startswith("{{"):
        return json.loads(text, strict=False)
    raw, end = _DECODER.raw_decode(text, 1)
    if text[end:].strip("} \n"):
        raise ValueError("more follows the call")
    return raw


def _call_of(text: str) -> tuple[str, str] | str:
    """Return the tool and its argument, or what is wrong with the call."""
    try:
        raw = _json_of(text)
        name, arguments = raw["name"], raw["arguments"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "The call is not valid JSON with a name and arguments."
    if not isinstance(name, str) or name not in _ARGUMENTS:
        return f"There is no tool {str(name)[:40]!r}."
    if not isinstance(arguments, dict):
        return f"The arguments of {name} are not valid JSON."
    value = arguments.get(_ARGUMENTS[name])
    if not isinstance(value, str) or not value.strip():
        return f"{name} needs a text in {_ARGUMENTS[name]!r}."
    return name, value


def _words(words: str) -> Turn:
    """Return a turn without a call: the answer, unless it only announces something."""
    if not words:
        return Turn("", Void("The turn was empty."))
    if words.endswith(":"):
        return Turn(words, Void("The turn announces something and ends."))
    if _ENDS_IN_CODE.search(words):
        return Turn(words, Void("The turn ends in code that no tool was called with."))
    return Turn("", Answer(words))


def _action(name: str, value: str) -> RunCell | Answer:
    if name == "answer":
        return Answer(value.strip())
    return RunCell(value.strip("\n"), "sql" if name == "run_sql" else "python")


def _turn_messages(number: int, step: Step) -> Iterator[Message]:
    """Yield a turn and its results; of several calls only the first was executed."""
    text = step.completion.text
    found = list(_CALL.finditer(text))
    if not found:
        yield Message("assistant", text or "(nothing)")
        yield Message("user", step.observation)
        return
    calls = tuple(_written(f"call_{number}_{at}", one[1]) for at, one in enumerate(found, 1))
    yield Message("assistant", text[: found[0].start()].strip(), calls)
    yield Message("tool", step.observation, call_id=calls[0].id)
    for call in calls[1:]:
        yield Message("tool", prompts.text_of("tools_one_call"), call_id=call.id)


def _written(call_id: str, text: str) -> ToolCall:
    """Return the call in the form sent to the endpoint, whose arguments must be JSON."""
    try:
        raw = _json_of(text)
        name, arguments = str(raw["name"]), raw["arguments"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ToolCall(call_id, "unknown", "{}")
    whole = arguments if isinstance(arguments, dict) else {}
    return ToolCall(call_id, name, json.dumps(whole, ensure_ascii=False))
