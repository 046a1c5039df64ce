"""Streams of many families become turns: text, reasoning, calls, and how they ended."""

import json
from types import SimpleNamespace

import pytest

from dm_jupyter.models.call import AnswerStream
from dm_jupyter.models.capabilities import HIDDEN


def chunk(text=None, finish=None, index=0, calls=None, **fields):
    delta = SimpleNamespace(content=text, tool_calls=calls, **fields)
    choice = SimpleNamespace(index=index, delta=delta, finish_reason=finish, logprobs=None)
    return SimpleNamespace(usage=None, choices=[choice])


def call(index, name=None, arguments=None, identity="c"):
    function = SimpleNamespace(name=name, arguments=arguments)
    return SimpleNamespace(index=index, id=identity, function=function)


def read(*chunks, prefill="", **kwargs):
    answers = AnswerStream(is_continued=bool(prefill), **kwargs)
    heard = "".join(answers.take(one) for one in chunks)
    return answers.completions(prefill)[0], heard, answers


@pytest.mark.parametrize("cuts", [True, False])
def test_a_circle_is_cut_where_that_is_wanted(cuts):
    line = chunk("print(df['the same column'].mean())  # and again and again\n")
    done, _, _ = read(*[line] * 9, chunk(finish="stop"), cuts_repetition=cuts)
    assert (done.finish_reason == "repetition") is cuts
    assert (done.text.count("\n") == 9) is not cuts


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_beside_the_text_is_no_part_of_it(name):
    done, heard, answers = read(
        chunk(**{name: "Let me "}), chunk(**{name: "count."}), chunk("3"), chunk(finish="stop")
    )
    assert (done.text, done.reasoning, heard) == ("3", "Let me count.", "3")
    assert answers.reasoning_field == name


@pytest.mark.parametrize("size", [1, 3, 100])
def test_thinking_in_the_text_is_no_part_of_it(size):
    text = "<think>\nIs it 4? ```python\nno\n```\n</think>\n\nIt is 3."
    pieces = [chunk(text[at : at + size]) for at in range(0, len(text), size)]
    done, heard, _ = read(*pieces, chunk(finish="stop"))
    assert (done.text, heard) == ("It is 3.", "It is 3.")
    assert done.reasoning.startswith("Is it 4?")


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    "text", ["<think>Is it 4?</think>\n<code>x</code>", "no</think>\nIt is 3."]
)
def test_thinking_that_is_a_tag_of_the_dialect_stays_in_the_text(text, size):
    pieces = [chunk(text[at : at + size]) for at in range(0, len(text), size)]
    done, heard, answers = read(*pieces, chunk(finish="stop"), thinks_in_text=True)
    assert (done.text, heard, done.reasoning) == (text, text, "")
    assert not answers.reasoning_field


def test_thinking_that_the_prompt_had_opened_is_no_part_of_the_text():
    done, _, _ = read(chunk("Is it 4? No.</think>It is 3."), chunk(finish="stop"))
    assert (done.text, done.reasoning) == ("It is 3.", "Is it 4? No.")


def test_thinking_that_the_prompt_had_opened_is_kept_once_however_often_it_is_read():
    answers = AnswerStream()
    for piece in ("Is it 4? No.", "</think>", "It is 3."):
        answers.take(chunk(piece))
        assert answers.has_begun
    answers.take(chunk(finish="length"))
    assert answers.reasoning_field == ""
    assert answers.completions("")[0].reasoning == "Is it 4? No."


def test_an_answer_begins_with_a_thought_in_its_text():
    answers = AnswerStream()
    assert not answers.has_begun
    answers.take(chunk(""))
    assert not answers.has_begun
    answers.take(chunk("<think>on and"))
    assert answers.has_begun


def test_thinking_that_never_ends_leaves_no_text():
    done, heard, _ = read(chunk("<think>on and on"), chunk(finish="length"))
    assert (done.text, heard, done.finish_reason) == ("", "", "length")
    assert done.reasoning == "on and on"


@pytest.mark.parametrize("text", ["<", "<thin", " <b>3</b>"])
def test_text_that_only_looks_like_thinking_is_kept(text):
    done, _, _ = read(chunk(text), chunk(finish="stop"))
    assert (done.text, done.reasoning) == (text, "")


def test_a_call_comes_together_from_its_pieces():
    done, heard, answers = read(
        chunk("I count."),
        chunk(calls=[call(0, "run_python", "")]),
        chunk(calls=[call(0, None, '{"code": "pri')]),
        chunk(calls=[call(0, None, 'nt(3)"}')]),
        chunk(finish="tool_calls"),
    )
    first, opened, body, closed = done.text.split("\n")
    assert (first, opened, closed) == ("I count.", "<tool_call>", "</tool_call>")
    assert json.loads(body) == {"name": "run_python", "arguments": {"code": "print(3)"}}
    assert (done.finish_reason, heard, answers.has_calls) == ("stop", "I count.", True)


def test_calls_without_numbers_are_apart():
    done, _, _ = read(
        chunk(calls=[call(None, "answer", '{"text": "3"}')]),
        chunk(calls=[call(None, "answer", '{"text": "4"}')], finish="stop"),
    )
    assert done.text.count("<tool_call>") == 2


def calls_in(done):
    return [json.loads(line)["arguments"] for line in done.text.splitlines() if "{" in line]


@pytest.mark.parametrize("index", [0, None])
def test_calls_with_one_number_and_different_identities_are_apart(index):
    done, _, _ = read(
        chunk(calls=[call(index, "answer", '{"text": ', "a"), call(index, None, '"3"}', "")]),
        chunk(calls=[call(index, "answer", '{"text": "4"}', "b")]),
        chunk(finish="tool_calls"),
    )
    assert calls_in(done) == [{"text": "3"}, {"text": "4"}]


@pytest.mark.parametrize(
    ("name", "ids"), [("", "abc"), ("answer", "aaa"), ("answer", ["", "", "c"])]
)
def test_pieces_of_one_call_stay_together(name, ids):
    """Some endpoints give each piece a new identity, and some repeat the name."""
    texts = ['{"te', 'xt": ', '"3"}']
    names = ["answer", name, name]
    pieces = [call(0, *piece) for piece in zip(names, texts, ids, strict=True)]
    done, _, _ = read(*(chunk(calls=[one]) for one in pieces), chunk(finish="stop"))
    assert calls_in(done) == [{"text": "3"}]


def test_arguments_that_come_as_an_object_are_arguments():
    done, _, _ = read(chunk(calls=[call(0, "answer", {"text": "3 \u2603"})]), chunk(finish="stop"))
    assert calls_in(done) == [{"text": "3 \u2603"}]


def test_text_in_parts_is_text():
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "3"}]
    assert read(chunk(parts), chunk(finish="stop"))[0].text == "3"


def test_a_refusal_is_the_answer():
    assert read(chunk(refusal="I can't."), chunk(finish="stop"))[0].text == "I can't."


def test_a_stop_string_that_the_endpoint_does_not_take_ends_the_answer_here():
    done, _, answers = read(
        chunk("print(3)\n`"), chunk("``\nOutput: 4"), chunk(" and more"), stop=("\n```",)
    )
    assert (done.text, done.finish_reason) == ("print(3)", "stop")
    assert answers.is_enough


def test_an_opening_that_is_written_once_more_counts_once():
    opening = "```python\nimport pandas as pd\n"
    done, _, _ = read(chunk(opening + "print(3)"), chunk(finish="stop"), prefill=opening)
    assert (done.text, done.prefill) == (opening + "print(3)", "")
    done, _, _ = read(chunk("print(3)"), chunk(finish="stop"), prefill=opening)
    assert (done.text, done.prefill) == (opening + "print(3)", opening)


@pytest.mark.parametrize(
    ("said", "meant"), [("max_tokens", "length"), ("eos", "stop"), ("strange", "strange")]
)
def test_every_family_has_its_words_for_the_end(said, meant):
    assert read(chunk("3"), chunk(finish=said))[0].finish_reason == meant


def test_an_answer_of_hidden_thoughts_alone_tells_of_them():
    _, _, answers = read(chunk(""), chunk(finish="length"))
    assert answers.reasoning_field == HIDDEN
    _, _, answers = read(chunk("3"), chunk(finish="length"))
    assert answers.reasoning_field == ""


def test_a_chunk_without_choices_is_nothing():
    empty = SimpleNamespace(usage=None, choices=None)
    assert read(empty, chunk("3"), chunk(finish="stop"))[0].text == "3"
