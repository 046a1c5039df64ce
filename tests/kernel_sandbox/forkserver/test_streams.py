"""The worker's end of the socket, and the order that the parent gives to two streams."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from kernel_sandbox.forkserver.frames import Decoder, encode
from kernel_sandbox.forkserver.worker_channel import (
    ERROR_CHARACTERS,
    PROMPT_LINES,
    TextStream,
    WorkerChannel,
)
from kernel_sandbox.forkserver.worker_client import HELD_CHARACTERS, HELD_S, StreamOrder
from kernel_sandbox.messages import MESSAGE_BYTES


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield WorkerChannel(theirs), ours


def sent(ours):
    """All that the channel has sent so far."""
    ours.setblocking(False)
    decoder, found = Decoder(), []
    while True:
        try:
            found += decoder.feed(ours.recv(1 << 20))
        except BlockingIOError:
            return found


def texts(ours):
    return [content["text"] for _, content in sent(ours)]


def order_of(*pieces):
    emitted = []
    order = StreamOrder(lambda name, text: emitted.append((name, text)))
    for piece in pieces:
        order.add(*piece)
    order.flush_all()
    return emitted


def test_streams_are_gathered_as_ipykernel_gathers_them():
    quick = order_of(("stdout", "a", 0.0), ("stderr", "b", 0.01), ("stdout", "c", 0.02))
    assert quick == [("stdout", "ac"), ("stderr", "b")]


def test_what_waited_long_enough_comes_first():
    late = HELD_S + 0.02
    pieces = ("stderr", "a", 0.0), ("stdout", "b", 0.01), ("stderr", "c", late)
    assert order_of(*pieces) == [("stderr", "a"), ("stdout", "b"), ("stderr", "c")]


def test_a_flush_sends_its_own_stream_only():
    pieces = ("stdout", "a", 0.0), ("stderr", "b", 0.0, True), ("stdout", "c", 0.0)
    assert order_of(*pieces) == [("stderr", "b"), ("stdout", "ac")]


def test_what_is_held_back_is_bounded_whatever_the_clock_says():
    emitted = []
    order = StreamOrder(lambda name, text: emitted.append(len(text)))
    for _ in range(100):
        order.add("stdout", "x" * 10_000, float("nan"))
    assert sum(emitted) > 10**6 - HELD_CHARACTERS - 10_000


def test_lines_are_sent_one_by_one_and_later_in_pieces(ends):
    channel, ours = ends
    stream = TextStream(channel, "stdout")
    stream.begin_cell()
    print("a", file=stream)
    assert texts(ours) == ["a\n"]
    stream.write("no end")
    assert texts(ours) == []
    stream.flush()
    assert texts(ours) == ["no end"]
    for number in range(1000):
        print(number, file=stream)
    stream.flush()
    pieces = texts(ours)
    assert PROMPT_LINES - 5 < len(pieces) < PROMPT_LINES + 100
    assert "".join(pieces).split() == [str(number) for number in range(1000)]


def test_a_stream_takes_text_and_says_what_it_is(ends):
    stream = TextStream(ends[0], "stderr")
    assert (stream.name, stream.encoding, stream.errors) == ("stderr", "UTF-8", None)
    assert (stream.fileno(), stream.writable(), stream.isatty()) == (2, True, False)
    with pytest.raises(TypeError, match="must be str"):
        stream.write(b"x")


def test_a_long_text_is_sent_in_messages_of_a_fair_size(ends):
    channel, ours = ends
    stream = TextStream(channel, "stdout")
    stream.write("x" * 150_000)
    assert [len(text) for text in texts(ours)] == [65_536, 65_536, 18_928]


def test_an_error_of_any_length_is_cut_and_counted(ends):
    channel, ours = ends
    reading = []
    thread = threading.Thread(target=lambda: reading.append(ours.recv(1 << 22, socket.MSG_WAITALL)))
    thread.start()
    channel.send_error("E", "y" * (ERROR_CHARACTERS + 5), ["l", "z" * (ERROR_CHARACTERS + 7)])
    ours.shutdown(socket.SHUT_RD)
    thread.join()
    (cut, counted), (kind, content) = Decoder().feed(reading[0])
    assert (cut, counted) == ("cut", {"bytes": 12})
    assert (kind, content["ename"], len(content["evalue"])) == ("error", "E", ERROR_CHARACTERS)
    assert [len(line) for line in content["traceback"]] == [1, ERROR_CHARACTERS]


def test_a_message_too_long_is_told_and_not_sent(ends):
    channel, ours = ends
    channel.send("display_data", {"data": {"text/html": "x" * MESSAGE_BYTES}, "metadata": {}})
    assert sent(ours) == [("cut", {"bytes": MESSAGE_BYTES})]


def test_messages_are_received_until_the_parent_goes(ends):
    channel, ours = ends
    ours.sendall(encode("ping", {"id": 1}) + encode("ping", {"id": 2}))
    assert [channel.receive(), channel.receive()] == [("ping", {"id": n}) for n in (1, 2)]
    ours.close()
    assert channel.receive() is None
    with pytest.raises(OSError, match="Broken pipe"):
        channel.send("started", {})


SENDER = """
import signal, socket, sys
from kernel_sandbox.forkserver.worker_channel import WorkerChannel
channel, is_sending, raised = WorkerChannel(socket.socket(fileno=int(sys.argv[1]))), False, 0
def stop(*_):
    global is_sending
    if is_sending:  # once a message, and nowhere else
        is_sending = False
        raise InterruptedError
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
content = {"name": "stdout", "text": "x" * 50_000, "at": 0.0, "is_flush": False}
for _ in range(300):
    try:
        is_sending = True
        channel.send("stream", content)
        is_sending = False
    except InterruptedError:
        raised += 1
signal.setitimer(signal.ITIMER_REAL, 0)
sys.exit(0 if raised else 1)
"""


def test_a_signal_handler_that_raises_cuts_no_message():
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            command = [sys.executable, "-c", SENDER, str(theirs.fileno())]
            sender = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
        decoder, lengths = Decoder(), []
        while data := ours.recv(4096):
            lengths += [len(content["text"]) for _, content in decoder.feed(data)]
        assert sender.wait() == 0  # some were interrupted
    assert set(lengths) == {50_000}


def test_a_forked_process_sends_nothing_and_prints_to_the_descriptor(ends):
    channel, ours = ends
    stream = TextStream(channel, "stdout")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        channel.send("started", {})
        stream.write("from the child")
        stream.flush()
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 100) == b"from the child"
    os.close(reading)
    assert sent(ours) == []
