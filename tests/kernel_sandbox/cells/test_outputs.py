"""How messages become outputs, and what happens at the limit."""

import pytest

from kernel_sandbox.cells import outputs
from kernel_sandbox.cells.outputs import (
    ERROR_BYTES,
    FREE_ERRORS,
    OUTPUTS,
    PART_BYTES,
    SAME_ID,
    OutputCollector,
    Replaced,
)
from kernel_sandbox.types import CellError, Display, Stream


def stream(text, name="stdout"):
    return "stream", {"name": name, "text": text}


def display(data, identity=None, kind="display_data"):
    transient = {"display_id": identity} if identity else {}
    return kind, {"data": data, "metadata": {}, "transient": transient}


def gather(*messages, limit=100):
    collector = OutputCollector(limit)
    for message in messages:
        collector.add(*message)
    return collector


def test_neighbouring_pieces_of_one_stream_are_joined():
    found = gather(stream("a"), stream("b"), stream("c", "stderr"), stream("d"))
    assert found.outputs == (Stream("stdout", "ab"), Stream("stderr", "c"), Stream("stdout", "d"))


def test_a_cut_falls_between_characters_and_is_counted_in_bytes():
    found = gather(stream("ééé"), limit=5)
    assert found.outputs == (Stream("stdout", "éé"),)
    assert found.cut_bytes == 1
    assert gather(stream("abc"), stream("def"), limit=3).outputs == (Stream("stdout", "abc"),)


def test_a_display_that_does_not_fit_is_dropped_whole():
    found = gather(display({"image/png": "x" * 101}), display({"application/json": {"a": 1}}))
    assert found.outputs == (Display({"application/json": {"a": 1}}, {}),)
    assert found.cut_bytes == 101


def test_an_error_is_kept_when_the_output_is_full():
    long = ("error", {"ename": "E", "evalue": "v" * 10**5, "traceback": ["t" * 10**5, "last"]})
    found = gather(stream("x" * 500), long)
    error = found.outputs[-1]
    assert isinstance(error, CellError)
    assert len(error.message) == ERROR_BYTES
    assert sum(map(len, error.traceback)) == ERROR_BYTES
    assert found.cut_bytes == 400 + 2 * (10**5 - ERROR_BYTES) + len("last")


def test_an_update_changes_every_display_of_that_name():
    update = display({"text/plain": "new"}, "i", "update_display_data")
    stray = display({"text/plain": "?"}, "other", "update_display_data")
    first, second = display({"text/plain": "1"}, "i"), display({"text/plain": "2"}, "i")
    found = gather(first, second, stray, update)
    assert [output.data["text/plain"] for output in found.outputs] == ["new", "new"]


def test_an_update_that_does_not_fit_is_dropped():
    update = display({"text/plain": "n" * 200}, "i", "update_display_data")
    found = gather(display({"text/plain": "1"}, "i"), update)
    assert found.outputs[0].data["text/plain"] == "1"
    assert found.cut_bytes == 199


@pytest.mark.parametrize("wait", [True, False])
def test_clearing_gives_the_room_back(wait):
    clear = ("clear_output", {"wait": wait})
    found = gather(stream("x" * 90), clear, stream("y" * 90))
    assert found.outputs == (Stream("stdout", "y" * 90),)
    assert found.cut_bytes == 0


def test_a_clear_that_waits_for_nothing_keeps_what_is_there():
    found = gather(stream("x"), ("clear_output", {"wait": True}), ("status", {}))
    assert found.outputs == (Stream("stdout", "x"),)


def test_far_too_much_is_a_flood():
    assert not gather(stream("x" * 900), limit=100).is_flooded
    assert gather(stream("x" * 901), limit=100).is_flooded


def test_a_display_without_an_identity_is_kept():
    bare = ("display_data", {"data": {}, "metadata": {}, "transient": None})
    found = gather(bare, ("update_display_data", bare[1]))
    assert [output.data for output in found.outputs] == [{}]


def test_what_describes_a_display_counts_and_so_does_its_identity():
    for name, content in (
        ("metadata", {"data": {}, "metadata": {"x": "y" * 200}, "transient": {}}),
        ("type", {"data": {"t" * 200: ""}, "metadata": {}, "transient": {}}),
        ("identity", {"data": {}, "metadata": {}, "transient": {"display_id": "i" * 200}}),
    ):
        found = gather(("display_data", content))
        assert found.outputs == (), name
        assert found.cut_bytes > 100, name


def test_parts_of_no_size_do_not_come_without_end():
    empty = ("display_data", {"data": {}, "metadata": {}, "transient": {}})
    found = gather(*[empty] * (OUTPUTS + 20), stream("late"))
    assert len(found.outputs) == OUTPUTS
    assert found.cut_bytes == 21 * PART_BYTES
    assert found.is_flooded


def test_errors_beyond_a_few_count_as_output():
    one = ("error", {"ename": "E" * 10**5, "evalue": "v" * 60, "traceback": []})
    found = gather(*[one] * 5)
    assert [len(output.name) for output in found.outputs] == [ERROR_BYTES] * FREE_ERRORS
    assert found.is_flooded


def test_displays_of_one_identity_beyond_a_hundred_are_told_as_cut():
    found = gather(*[display({"text/plain": "x"}, "i")] * (SAME_ID + 3), limit=10_000)
    assert len(found.outputs) == SAME_ID
    assert found.cut_bytes == 3 * PART_BYTES


def test_an_update_of_many_displays_measures_its_content_once(monkeypatch):
    measured = []
    monkeypatch.setattr(outputs, "clean_bundle", lambda data: measured.append(data) or data)
    found = gather(*[display({"text/plain": "x"}, "i")] * 50, limit=10_000)
    measured.clear()
    found.add(*display({"text/plain": "new"}, "i", "update_display_data"))
    assert [output.data["text/plain"] for output in found.outputs] == ["new"] * 50
    assert len(measured) == 1


def test_updates_of_many_displays_count_against_the_limit():
    changes = []
    found = OutputCollector(1_000, changes.append)
    for message in [display({"text/plain": "1"}, "i")] * 10:
        found.add(*message)
    for _ in range(1_000):
        found.add(*display({"text/plain": "2"}, "i", "update_display_data"))
    copies = 1_000 // PART_BYTES
    assert sum(isinstance(change, Replaced) for change in changes) == 1_000 + copies
    assert found.cut_bytes == (9 * 1_000 - copies) * PART_BYTES
    assert found.is_flooded


def test_updates_of_a_single_display_go_on_without_end():
    updates = [display({"text/plain": f"{n:50}"}, "i", "update_display_data") for n in range(500)]
    found = gather(display({"text/plain": "x"}, "i"), *updates)
    assert found.outputs == (Display({"text/plain": f"{499:50}"}, {}),)
    assert found.cut_bytes == 0
