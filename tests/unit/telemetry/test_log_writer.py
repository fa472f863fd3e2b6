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
    """Both ends, and a small room in between.

    The writing end stays open: a thread that never ends may still write to it.
    """
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    with open(reader, "rb") as stream:
        yield stream, writer


def note(lines):
    return b"lost %d\n" % lines


def line(number):
    return f"line {number}".ljust(LINE_BYTES - 1).encode() + b"\n"


def read_until(reader, last):
    """Every line up to the last one, without its padding."""
    found = []
    while not found or found[-1] != last:
        found.append(reader.readline().decode().strip())
    return found


def test_lines_come_out_in_order(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, note)
    for number in range(3):
        writer.put(line(number))
    assert writer.flush(20.0)
    assert read_until(reader, "line 2") == ["line 0", "line 1", "line 2"]
    assert writer.lost_count == 0


@pytest.fixture
def writer_at_rest(pipe):
    """A writer whose thread sleeps, as it does where nothing has to wait."""
    writer = LogWriter(pipe[1], note)
    while not writer._is_asleep:
        time.sleep(0.001)
    return writer


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="only Linux can write without waiting")
def test_a_line_that_there_is_room_for_is_written_at_once(pipe, writer_at_rest, monkeypatch):
    reader, _ = pipe
    written_by_thread = []
    monkeypatch.setattr(os, "write", lambda *args: written_by_thread.append(args))
    writer_at_rest.put(line(0))
    writer_at_rest.put(line(1))
    assert read_until(reader, "line 1") == ["line 0", "line 1"]
    assert not written_by_thread
    assert writer_at_rest.fill == 0.0


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="only Linux can write without waiting")
def test_lines_of_one_turn_of_the_loop_are_written_together(pipe, writer_at_rest, monkeypatch):
    reader, _ = pipe
    written = []
    write = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda *args: written.append(args[1]) or write(*args))

    async def log() -> None:
        for turn in range(2):
            writer_at_rest.put(b"one of %d\n" % turn)
            writer_at_rest.put(b"another of %d\n" % turn)
            await asyncio.sleep(0)

    asyncio.run(log())
    assert [bytes(piece) for (piece,) in written] == [b"one of 0\nanother of 0\n", b"one of 1\nanother of 1\n"]
    assert read_until(reader, "another of 1") == ["one of 0", "another of 0", "one of 1", "another of 1"]


def test_what_a_loop_that_has_ended_left_is_written_with_the_next_line(pipe, writer_at_rest):
    reader, _ = pipe

    loop = asyncio.new_event_loop()
    loop.call_soon(writer_at_rest.put, b"left\n")
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    writer_at_rest.put(b"next\n")
    assert read_until(reader, "next") == ["left", "next"]


def test_the_part_of_a_line_that_there_is_no_room_for_follows_in_order(pipe, writer_at_rest):
    reader, _ = pipe
    long = b"x" * 3000 + b"\n"
    for _ in range(3):
        writer_at_rest.put(long)
    writer_at_rest.put(b"last\n")
    assert [reader.readline() for _ in range(4)] == [long, long, long, b"last\n"]
    assert writer_at_rest.lost_count == 0


def test_lines_beyond_the_limit_are_counted_and_told_in_their_place(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, note)
    count = BYTES_MAX // LINE_BYTES + 500
    for number in range(count):
        writer.put(line(number))
    lost = writer.lost_count
    assert 400 < lost <= 500
    assert writer.fill <= 1
    flushing = threading.Thread(target=writer.flush, args=(60.0,))
    flushing.start()
    found = read_until(reader, f"lost {lost}")
    flushing.join()
    assert found == [*(f"line {number}" for number in range(count - lost)), f"lost {lost}"]
    writer.put(b"after\n")
    assert read_until(reader, "after") == ["after"]


def test_a_critical_line_is_kept_where_others_are_lost(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, note)
    for number in range(BYTES_MAX // LINE_BYTES + 10):
        writer.put(line(number))
    lost = writer.lost_count
    writer.put(b"fatal\n", is_critical=True)
    writer.put(b"not fatal\n")
    assert read_until(reader, "fatal")[-2:] == [f"lost {lost}", "fatal"]
    assert read_until(reader, "lost 1") == ["lost 1"]


def test_a_flush_has_a_deadline(pipe):
    _, descriptor = pipe
    writer = LogWriter(descriptor, note)
    for number in range(100):
        writer.put(line(number))
    assert not writer.flush(0.01)


def test_a_disk_that_was_full_gets_what_was_kept(pipe, monkeypatch):
    monkeypatch.setattr(log_writer, "_TRY_AGAIN_S", 0.01)
    monkeypatch.setattr(log_writer, "_NO_WAIT", 0)
    reader, descriptor = pipe
    is_full = True
    write = os.write

    def write_or_fail(number, content):
        if number == descriptor and is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(number, content)

    monkeypatch.setattr(os, "write", write_or_fail)
    writer = LogWriter(descriptor, note)
    writer.put(b"first\n")
    assert not writer.flush(20.0)
    writer.put(b"second\n")
    is_full = False
    assert read_until(reader, "second") == ["first", "second"]


def test_a_pipe_that_is_closed_is_tried_once_and_not_waited_for(pipe, monkeypatch):
    written_to: list[int] = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda *args: (written_to.append(args[0]), write(*args))[1])
    reader, descriptor = pipe
    reader.close()
    writer = LogWriter(descriptor, note)
    writer.put(b"into the void\n")
    assert not writer.flush(20.0)
    assert written_to.count(descriptor) == 1


def test_a_descriptor_that_somebody_made_non_blocking_is_waited_for(pipe):
    reader, descriptor = pipe
    os.set_blocking(descriptor, False)
    writer = LogWriter(descriptor, note)
    for number in range(20):
        writer.put(line(number))
    assert read_until(reader, "line 19") == [f"line {number}" for number in range(20)]
