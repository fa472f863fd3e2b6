import asyncio
import errno
import fcntl
import os
import threading
import time

import pytest

from podium.telemetry import log_writer
from podium.telemetry.log_writer import BYTES_MAX, LogWriter

LINE_BYTES = 1024


@pytest.fixture
def pipe():
    """The reading stream and the writing descriptor of a pipe with a small buffer.

    The writing end stays open, because the writer's thread never ends and may still write to it.
    """
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    with open(reader, "rb") as stream:
        yield stream, writer


def loss_line(count):
    return b"lost %d\n" % count


def line(number):
    return f"line {number}".ljust(LINE_BYTES - 1).encode() + b"\n"


def read_until(reader, last):
    """Read lines without their padding, up to and including `last`."""
    lines = []
    while not lines or lines[-1] != last:
        lines.append(reader.readline().decode().strip())
    return lines


def test_lines_are_written_in_order(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, loss_line)
    for number in range(3):
        writer.put(line(number))
    assert writer.flush(20.0)
    assert read_until(reader, "line 2") == ["line 0", "line 1", "line 2"]
    assert writer.lost_count == 0


@pytest.fixture
def idle_writer(pipe):
    """A writer whose thread sleeps, as it does while no line is waiting."""
    writer = LogWriter(pipe[1], loss_line)
    while not writer._is_asleep:
        time.sleep(0.001)
    return writer


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="only Linux can write without waiting")
def test_a_line_that_fits_into_the_pipe_is_written_at_once(pipe, idle_writer, monkeypatch):
    reader, _ = pipe
    thread_writes = []
    monkeypatch.setattr(os, "write", lambda *args: thread_writes.append(args))
    idle_writer.put(line(0))
    idle_writer.put(line(1))
    assert read_until(reader, "line 1") == ["line 0", "line 1"]
    assert not thread_writes
    assert idle_writer.fill == 0.0


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="only Linux can write without waiting")
def test_lines_of_one_iteration_of_the_event_loop_are_written_together(pipe, idle_writer, monkeypatch):
    reader, _ = pipe
    buffers = []
    write = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda *args: buffers.append(args[1]) or write(*args))

    async def log() -> None:
        for turn in range(2):
            idle_writer.put(b"one of %d\n" % turn)
            idle_writer.put(b"another of %d\n" % turn)
            await asyncio.sleep(0)

    asyncio.run(log())
    assert [bytes(piece) for (piece,) in buffers] == [b"one of 0\nanother of 0\n", b"one of 1\nanother of 1\n"]
    assert read_until(reader, "another of 1") == ["one of 0", "another of 0", "one of 1", "another of 1"]


def test_a_line_left_by_a_closed_loop_is_written_with_the_next_line(pipe, idle_writer):
    reader, _ = pipe

    loop = asyncio.new_event_loop()
    loop.call_soon(idle_writer.put, b"left\n")
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    idle_writer.put(b"next\n")
    assert read_until(reader, "next") == ["left", "next"]


def test_the_rest_of_a_line_that_does_not_fit_into_the_pipe_follows_in_order(pipe, idle_writer):
    reader, _ = pipe
    long = b"x" * 3000 + b"\n"
    for _ in range(3):
        idle_writer.put(long)
    idle_writer.put(b"last\n")
    assert [reader.readline() for _ in range(4)] == [long, long, long, b"last\n"]
    assert idle_writer.lost_count == 0


def test_lines_beyond_the_limit_are_replaced_by_a_line_with_their_count(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, loss_line)
    count = BYTES_MAX // LINE_BYTES + 500
    for number in range(count):
        writer.put(line(number))
    lost_count = writer.lost_count
    assert 400 < lost_count <= 500
    assert writer.fill <= 1
    flush_thread = threading.Thread(target=writer.flush, args=(60.0,))
    flush_thread.start()
    lines = read_until(reader, f"lost {lost_count}")
    flush_thread.join()
    assert lines == [*(f"line {number}" for number in range(count - lost_count)), f"lost {lost_count}"]
    writer.put(b"after\n")
    assert read_until(reader, "after") == ["after"]


def test_a_critical_line_is_kept_although_others_are_lost(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, loss_line)
    for number in range(BYTES_MAX // LINE_BYTES + 10):
        writer.put(line(number))
    lost_count = writer.lost_count
    writer.put(b"fatal\n", is_critical=True)
    writer.put(b"not fatal\n")
    assert read_until(reader, "fatal")[-2:] == [f"lost {lost_count}", "fatal"]
    assert read_until(reader, "lost 1") == ["lost 1"]


def test_a_flush_has_a_deadline(pipe):
    _, descriptor = pipe
    writer = LogWriter(descriptor, loss_line)
    for number in range(100):
        writer.put(line(number))
    assert not writer.flush(0.01)


def test_lines_kept_while_the_disk_was_full_are_written_later(pipe, monkeypatch):
    monkeypatch.setattr(log_writer, "_TRY_AGAIN_S", 0.01)
    monkeypatch.setattr(log_writer, "_NO_WAIT", 0)
    reader, descriptor = pipe
    is_full = True
    write = os.write

    def write_or_fail(target, content):
        if target == descriptor and is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(target, content)

    monkeypatch.setattr(os, "write", write_or_fail)
    writer = LogWriter(descriptor, loss_line)
    writer.put(b"first\n")
    assert not writer.flush(20.0)
    writer.put(b"second\n")
    is_full = False
    assert read_until(reader, "second") == ["first", "second"]


def test_a_closed_pipe_is_tried_once_and_flush_does_not_wait_for_it(pipe, monkeypatch):
    descriptors: list[int] = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda *args: (descriptors.append(args[0]), write(*args))[1])
    reader, descriptor = pipe
    reader.close()
    writer = LogWriter(descriptor, loss_line)
    writer.put(b"into the void\n")
    assert not writer.flush(20.0)
    assert descriptors.count(descriptor) == 1


def test_a_non_blocking_descriptor_is_waited_for(pipe):
    reader, descriptor = pipe
    os.set_blocking(descriptor, False)
    writer = LogWriter(descriptor, loss_line)
    for number in range(20):
        writer.put(line(number))
    assert read_until(reader, "line 19") == [f"line {number}" for number in range(20)]
