"""What ends a recording ends nothing else; tests/simulation/test_recordings.py replays whole ones."""

from __future__ import annotations

import errno
import os
import shutil
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from podium.lib.clock import ManualClock
from podium.recording import columns
from podium.recording import recorder as recorder_module
from podium.recording.entries import END, MONOTONIC, NOW, READ, SIGNAL, Times
from podium.recording.recorder import Recorder
from podium.recording.replay import entries_of
from podium.recording.segments import SegmentWriter, open_segments
from tests.patience import PATIENCE_S


def test_reader_returns_the_recorded_entries(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, {})
    clock = recorder.clock(ManualClock())
    readings = [clock.monotonic(), clock.now(), clock.monotonic()]
    assert recorder.reading(lambda: 7)() == 7
    recorder.stopping()
    recorder.reading(lambda: 8)()
    recorder.close()
    entries = list(entries_of(open_segments(tmp_path)))
    assert [entry[0] for entry in entries] == [MONOTONIC, NOW, MONOTONIC, READ, END]
    monotonic_times, wall_times = Times(), Times()
    assert [
        monotonic_times.take(entries[0][1]),
        wall_times.take(entries[1][1]),
        monotonic_times.take(entries[2][1]),
    ] == readings


def test_more_random_bits_than_an_entry_holds_are_several_draws(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, {})
    bits = recorder.random(Random(1)).getrandbits(128)
    recorder.close()
    high, low = (entry[1] for entry in entries_of(open_segments(tmp_path)))
    assert high << 64 | low == bits
    assert max(high, low) < 1 << 64


def test_many_entries_at_once_are_written_in_several_blocks(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, {})
    for number in range(25_000):
        recorder.note(SIGNAL, number)
    recorder.close()
    blocks = list(open_segments(tmp_path).blocks())
    assert max(len(columns.entries_of(block)) for block in blocks) == 4_000
    assert [entry[1] for entry in entries_of(open_segments(tmp_path))] == list(range(25_000))


def test_full_disk_ends_the_recording_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(SegmentWriter, "write", refuse)
    with capture_logs() as logs:
        recorder = Recorder(tmp_path, {})
        recorder.note(READ, 1)
        recorder.close()
    (entry,) = logs
    assert (entry["log_level"], "No space left on device" in entry["error"]) == ("warning", True)
    assert "No space left on device" in recorder.failure
    assert recorder.reading(lambda: 7)() == 7


@pytest.fixture
def write_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have only the test write, not the thread, until the recording is closed."""
    monkeypatch.setattr(recorder_module, "_FLUSH_EVERY_S", PATIENCE_S)


@pytest.mark.usefixtures("write_on_demand")
def test_directory_that_vanishes_ends_the_recording_with_one_warning(tmp_path: Path) -> None:
    """Or its owner would notice only with the next segment, an hour later, that nothing is kept."""
    directory = tmp_path / "recording"
    with capture_logs() as logs:
        recorder = Recorder(directory, {})
        for number in range(3):
            recorder.note(SIGNAL, number)
            recorder._write_waiting_or_give_up()
            if number == 0:
                shutil.rmtree(directory)
        recorder.close()
    (entry,) = logs
    path = directory / "000001.podium"
    assert entry["error"] == f"FileNotFoundError: [Errno 2] The file of the recording was deleted: '{path}'"
    assert (entry["directory"], recorder.failure) == (str(directory), entry["error"])


@pytest.mark.usefixtures("write_on_demand")
def test_directory_that_is_renamed_keeps_the_recording(tmp_path: Path) -> None:
    with capture_logs() as logs:
        recorder = Recorder(tmp_path / "recording", {})
        for number in range(3):
            recorder.note(SIGNAL, number)
            recorder._write_waiting_or_give_up()
            if number == 0:
                (tmp_path / "recording").rename(tmp_path / "renamed")
        recorder.close()
    assert not logs
    assert [entry[1] for entry in entries_of(open_segments(tmp_path / "renamed"))] == [0, 1, 2]


@pytest.mark.usefixtures("write_on_demand")
def test_fault_of_the_writer_ends_the_recording_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the thread that takes them, entries would fill the memory."""

    def fail(*_: Any) -> None:
        raise KeyError("nobody thought of it")

    monkeypatch.setattr(columns.ColumnWriter, "contents", fail)
    with capture_logs() as logs:
        recorder = Recorder(tmp_path, {})
        for number in range(2):
            recorder.note(SIGNAL, number)
            recorder._write_waiting_or_give_up()
        assert not len(recorder._buffer)
        recorder.close()
    (entry,) = logs
    assert entry["error"] == recorder.failure == "KeyError: 'nobody thought of it'"


@pytest.mark.parametrize("segment_bytes", [1 << 30, 3_000], ids=["one segment", "many segments"])
def test_recording_ends_at_its_limit_with_one_warning_and_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int
) -> None:
    monkeypatch.setattr(recorder_module, "SegmentWriter", partial(SegmentWriter, segment_bytes=segment_bytes))
    monkeypatch.setattr(recorder_module, "_BLOCK_ENTRIES_MAX", 20)
    bytes_max = 10_000
    draws = Random(1)
    with capture_logs() as logs:
        recorder = Recorder(tmp_path, {"some": "description"}, bytes_max=bytes_max)
        for _ in range(2_000):
            recorder.note(READ, draws.getrandbits(60))
        recorder.close()
    (entry,) = logs
    assert (entry["event"], entry["log_level"]) == ("The recording has ended: it is full", "warning")
    assert (recorder.is_full, recorder.failure) == (True, "")
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert bytes_max / 2 < size <= bytes_max
    segments, draws = open_segments(tmp_path), Random(1)
    values = [entry[1] for entry in entries_of(segments)]
    assert values == [draws.getrandbits(60) for _ in values]
    assert len(values) > 100
    assert segments.damage == ""


@pytest.mark.usefixtures("write_on_demand")
def test_disk_that_is_too_slow_ends_the_recording_with_one_warning_and_nothing_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "_WAITING_MAX", 100)
    with capture_logs() as logs:
        recorder = Recorder(tmp_path, {})
        for _ in range(2):
            for number in range(101):
                recorder.note(SIGNAL, number)
            recorder._write_waiting_or_give_up()
        assert not len(recorder._buffer)
        recorder.close()
    (entry,) = logs
    assert "does not take entries as fast" in entry["error"]


def test_object_that_cannot_be_encoded_ends_the_recording(tmp_path: Path) -> None:
    with capture_logs() as logs:
        recorder = Recorder(tmp_path, {})
        recorder.note(READ, 10**30)
        recorder.close()
    assert [entry["event"] for entry in logs] == ["The recording has ended: it cannot be written"]
