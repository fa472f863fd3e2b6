"""What was written is read; what was cut, damaged or is foreign is told, with all that is readable before it."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from podium.recording.segments import FORMAT, RecordingError, SegmentWriter, open_segments, segment_paths

BLOCKS = [bytes([number]) * 50 * (number + 1) for number in range(8)]
DESCRIPTION = {"podium": "1.2.3"}


def write(directory: Path, blocks: list[bytes] = BLOCKS, segment_bytes: int = 1 << 20) -> None:
    writer = SegmentWriter(directory, DESCRIPTION, segment_bytes=segment_bytes, segment_s=100.0)
    for block in blocks:
        writer.write(block, 0.0)
    writer.close()


def test_random_blocks_are_read_as_they_were_written(tmp_path: Path) -> None:
    for seed in range(20):
        random = Random(seed)
        blocks = [random.randbytes(random.choice((0, 1, 100, 5000))) for _ in range(random.randrange(12))]
        directory = tmp_path / str(seed)
        write(directory, blocks or [b""], segment_bytes=random.choice((1, 300, 1 << 20)))
        segments = open_segments(directory)
        assert list(segments.blocks()) == (blocks or [b""])
        assert (segments.description, segments.damage) == (DESCRIPTION, "")


def test_what_an_earlier_block_holds_takes_hardly_any_room(tmp_path: Path) -> None:
    writer, content = SegmentWriter(tmp_path, {}), Random(1).randbytes(10_000)
    writer.write(content, 0.0)
    first = writer.bytes_total
    writer.write(b"more" + content, 1.0)
    assert writer.bytes_total - first < 300
    writer.close()
    assert list(open_segments(tmp_path).blocks()) == [content, b"more" + content]


def test_segments_are_rotated_by_age(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, DESCRIPTION, segment_bytes=1 << 20, segment_s=100.0)
    for now_s in (0.0, 99.0, 100.0, 201.0):
        writer.write(b"content", now_s)
    assert len(segment_paths(tmp_path)) == 3
    assert len(list(open_segments(tmp_path).blocks())) == 4, "readable while it is written"
    writer.close()


def test_recording_that_was_cut_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    write(tmp_path / "whole")
    content = (tmp_path / "whole/000001.podium").read_bytes()
    head = len(content) - sum(len(block) for block in stored_blocks(tmp_path / "whole"))
    (tmp_path / "cut").mkdir()
    read_before = 0
    for size in range(head, len(content)):
        (tmp_path / "cut/000001.podium").write_bytes(content[:size])
        segments = open_segments(tmp_path / "cut")
        read = list(segments.blocks())
        assert read == BLOCKS[: len(read)]
        assert read_before <= len(read) < len(BLOCKS)
        assert segments.is_cut == bool(segments.damage)
        read_before = len(read)
    assert read_before == len(BLOCKS) - 1


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "000001.podium"
    content = path.read_bytes()
    for place in range(len(content)):
        corrupt = bytearray(content)
        corrupt[place] ^= 0x10
        path.write_bytes(corrupt)
        read, damage = read_all(tmp_path)
        assert read == BLOCKS[: len(read)]
        assert len(read) < len(BLOCKS)
        assert str(path) in damage


def test_block_that_is_left_out_is_missed(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "000001.podium"
    content, blocks = path.read_bytes(), stored_blocks(tmp_path)
    path.write_bytes(content.replace(blocks[3], b""))
    segments = open_segments(tmp_path)
    assert list(segments.blocks()) == BLOCKS[:3]
    assert "has number 4 where number 3 was expected: blocks are missing" in segments.damage
    assert not segments.is_cut


def test_missing_segment_is_named(tmp_path: Path) -> None:
    write(tmp_path, segment_bytes=1)
    (tmp_path / "000004.podium").unlink()
    segments = open_segments(tmp_path)
    assert list(segments.blocks()) == BLOCKS[:3]
    assert "000005.podium is segment 5 where segment 4 was expected" in segments.damage
    assert not segments.is_cut


def test_segment_of_another_recording_ends_the_reading(tmp_path: Path) -> None:
    write(tmp_path / "one", segment_bytes=1)
    writer = SegmentWriter(tmp_path / "two", {"podium": "other"}, segment_bytes=1)
    for block in BLOCKS:
        writer.write(block, 0.0)
    writer.close()
    (tmp_path / "one/000002.podium").write_bytes((tmp_path / "two/000002.podium").read_bytes())
    segments = open_segments(tmp_path / "one")
    assert list(segments.blocks()) == BLOCKS[:1]
    assert "belongs to another recording" in segments.damage


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a segment of a podium recording"),
        (b"apiVersion: v1\n", "is not a segment of a podium recording"),
        (b"podium recording", "ends within its header, after 16 bytes"),
        (b"podium recording" + (FORMAT + 1).to_bytes(2, "big") + bytes(12), "a newer podium is needed"),
        (b"podium recording" + (FORMAT - 1).to_bytes(2, "big") + bytes(12), "with the podium that recorded it"),
    ],
)
def test_file_that_is_no_segment_says_what_is_wrong(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "000001.podium").write_bytes(content)
    with pytest.raises(RecordingError, match=problem):
        open_segments(tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A pipe would be waited for without end."""
    make(tmp_path / "000001.podium")
    with pytest.raises(OSError, match="Not a regular file") as failure:
        open_segments(tmp_path)
    assert failure.value.filename == str(tmp_path / "000001.podium")


def test_pipe_amid_a_recording_ends_the_reading(tmp_path: Path) -> None:
    write(tmp_path, segment_bytes=1)
    (tmp_path / "000002.podium").unlink()
    os.mkfifo(tmp_path / "000002.podium")
    assert read_all(tmp_path) == (BLOCKS[:1], f"{tmp_path}/000002.podium: Not a regular file")


def test_description_that_is_nested_too_deep_is_an_error(tmp_path: Path) -> None:
    description = b'{"a":' * 100_000
    head = struct.pack(">16sHIII", b"podium recording", FORMAT, 1, len(description), zlib.crc32(description))
    (tmp_path / "000001.podium").write_bytes(head + description)
    with pytest.raises(RecordingError, match="the description in its header cannot be understood"):
        open_segments(tmp_path)


@pytest.mark.parametrize("lengths", [(1 << 28, 10), (10, 1 << 28), (1 << 28, 1 << 28)])
def test_block_that_claims_to_be_very_long_takes_no_memory(tmp_path: Path, lengths: tuple[int, int]) -> None:
    write(tmp_path)
    with (tmp_path / "000001.podium").open("ab") as file:
        file.write(struct.pack(">IIII", len(BLOCKS), *lengths, 0) + b"x" * 100)
    tracemalloc.start()
    try:
        blocks, damage = read_all(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert blocks == BLOCKS
    assert "is incomplete" in damage or "has an impossible length" in damage


def test_description_that_claims_to_be_very_long_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "000001.podium").write_bytes(
        struct.pack(">16sHIII", b"podium recording", FORMAT, 1, 1 << 28, 0) + b"{}"
    )
    tracemalloc.start()
    try:
        assert "the description in its header is damaged" in read_all(tmp_path)[1]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_directory_without_a_recording_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="holds no recording"):
        open_segments(tmp_path)


def test_recording_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(RecordingError, match="holds a recording already"):
        write(tmp_path)


def read_all(directory: Path) -> tuple[list[bytes], str]:
    """All readable blocks, and what is wrong with the others."""
    try:
        segments = open_segments(directory)
    except RecordingError as error:
        return [], str(error)
    return list(segments.blocks()), segments.damage


def stored_blocks(directory: Path) -> list[bytes]:
    """The blocks of a recording with one segment, as they are stored."""
    content = (directory / "000001.podium").read_bytes()
    at, blocks = 30 + int.from_bytes(content[22:26], "big"), []
    while at < len(content):
        size = 16 + int.from_bytes(content[at + 4 : at + 8], "big")
        blocks.append(content[at : at + size])
        at += size
    return blocks
