"""The files of a recording: segments of compressed blocks, each with its number and checksum.

Owns the format. Never knows what is in a block. A directory holds one recording; a segment begins with a header, so
that a foreign file, or one of another format, is told by its first bytes. Whatever ends the writer, all complete blocks
can be read.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from podium.lib.error_text import UserFacingError

FORMAT: Final = 2
"""The version of the format that is written, and the only one that is read."""
_MAGIC: Final = b"podium recording"
_HEADER: Final = struct.Struct(">16sHIII")
"""Magic, format, number of the segment, length and checksum of the description."""
_BLOCK: Final = struct.Struct(">IIII")
"""Number of the block in the recording, stored and original length, checksum of these three and the stored bytes."""
_LENGTHS: Final = struct.Struct(">III")
_NAME: Final = re.compile(r"\d{6}\.podium")
BLOCK_BYTES_MAX: Final = 1 << 25
"""Of the content of a block. One that claims more was not written by podium, and is not read into memory."""
_WINDOW_BYTES: Final = 1 << 15
"""Of what stands before a block in its segment: the block is compressed as its continuation, since a few attempts by
themselves hardly repeat anything."""
_LEFT_OUT_SHOWN: Final = 5
_OWNER_ONLY: Final = 0o700
_LEVEL: Final = 1
"""Of compression. Higher levels cost several times as much and save a tenth."""
_NO_HEADER: Final = -zlib.MAX_WBITS
"""Of zlib's: a block has a checksum of its own, and one of its content would cost as much as its compression."""


class RecordingError(UserFacingError):
    """A directory is not a recording that can be read, or a recording cannot be replayed."""


class SegmentWriter:
    """Writes blocks into segments that are rotated by size and age.

    Args:
        description: written at the head of every segment; JSON values.
        segment_bytes, segment_s: a segment that is larger or older is followed by the next one.

    Raises: OSError from every method, if the directory or a file cannot be written.
    """

    def __init__(
        self, directory: Path, description: dict[str, Any], *, segment_bytes: int = 64 << 20, segment_s: float = 3600.0
    ) -> None:
        # Others may not even list it: see `_open`.
        directory.mkdir(_OWNER_ONLY, parents=True, exist_ok=True)
        if any(segment_paths(directory)):
            raise RecordingError(f"{directory} holds a recording already; choose a new or an empty directory")
        self._directory = directory
        self._description = msgspec.json.encode(description)
        self._segment_bytes, self._segment_s = segment_bytes, segment_s
        self._segments = self._blocks = 0
        self._opened_at_s = 0.0
        self._file: BinaryIO | None = None
        self._before = b""
        self.bytes_total = 0

    def write(self, content: bytes, now_s: float) -> None:
        """Append a block; on return it is with the operating system, so it survives the end of this process.

        Raises:
            ValueError: the content has more than `BLOCK_BYTES_MAX`.
        """
        if len(content) > BLOCK_BYTES_MAX:
            raise ValueError(f"a block has {len(content)} bytes, and may have {BLOCK_BYTES_MAX}")
        file = self._open(now_s)
        packer = zlib.compressobj(_LEVEL, wbits=_NO_HEADER, zdict=self._before)
        stored = packer.compress(content) + packer.flush()
        self._before = _end_of(self._before, content)
        lengths = _LENGTHS.pack(self._blocks, len(stored), len(content))
        block = lengths + zlib.crc32(stored, zlib.crc32(lengths)).to_bytes(4, "big") + stored
        file.write(block)
        file.flush()
        self._blocks += 1
        self.bytes_total += len(block)

    def close(self) -> None:
        """Close the last segment."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, now_s: float) -> BinaryIO:
        file = self._file
        if file is not None and file.tell() < self._segment_bytes and now_s - self._opened_at_s < self._segment_s:
            return file
        self.close()
        path = self._directory / f"{self._segments + 1:06}.podium"
        # Its owner alone may read it: names and labels may be confidential.
        self._before = b""
        file = self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._segments, self._opened_at_s = self._segments + 1, now_s
        checksum = zlib.crc32(self._description)
        header = _HEADER.pack(_MAGIC, FORMAT, self._segments, len(self._description), checksum) + self._description
        file.write(header)
        self.bytes_total += len(header)
        return file


@dataclass(slots=True)
class LeftOutList:
    """What a recording lacks.

    Attributes:
        count: of objects; `shown` says what the first of them are.
    """

    count: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, left_out: object) -> None:
        """Count one more, which its text says."""
        self.count += 1
        if len(self.shown) < _LEFT_OUT_SHOWN:
            self.shown.append(str(left_out))

    def __str__(self) -> str:
        """A sentence for people; nothing if nothing is left out."""
        if not self.count:
            return ""
        more = f"; and {self.count - len(self.shown)} more" if self.count > len(self.shown) else ""
        return f"{self.count} change(s) of objects are left out: {'; '.join(self.shown)}{more}"


@dataclass(slots=True)
class Segments:
    """The blocks of a recording, read once from the first to the last that can be read.

    Attributes:
        description: from the head of the first segment.
        damage: why not everything could be read, and where; "" while nothing is wrong.
        is_cut: whether the only damage is that the last block is incomplete, as after a kill.
        left_out: what the recording, or this reading, does without.
    """

    directory: Path
    description: dict[str, Any]
    damage: str = ""
    is_cut: bool = False
    left_out: LeftOutList = field(default_factory=LeftOutList)

    def blocks(self) -> Iterator[bytes]:
        """The content of each block. Ends at the first damage, which it notes in `damage`."""
        try:
            yield from self._blocks()
        except OSError as error:
            self._note(f"{error.filename or self.directory}: {error.strerror}", is_cut=False)

    def _blocks(self) -> Iterator[bytes]:
        number = 0
        paths = segment_paths(self.directory)
        for place, path in enumerate(paths, 1):
            with _opened(path) as file:
                try:
                    description = _read_header(file, path, place)
                except RecordingError as error:
                    self._note(str(error), is_cut=place == len(paths) and path.stat().st_size < _HEADER.size)
                    return
                if description != self.description:
                    self._note(f"{path} belongs to another recording", is_cut=False)
                    return
                before = b""
                while True:
                    at = file.tell()
                    head = file.read(_BLOCK.size)
                    if not head:
                        break
                    content = self._content(file, head, number, before)
                    if isinstance(content, str):
                        is_cut = content == _INCOMPLETE and place == len(paths)
                        self._note(f"{path}: the block at byte {at} {content}", is_cut=is_cut)
                        return
                    number += 1
                    before = _end_of(before, content)
                    yield content

    def _note(self, damage: str, *, is_cut: bool) -> None:
        self.damage, self.is_cut = damage, is_cut

    def _content(self, file: BinaryIO, head: bytes, expected: int, before: bytes) -> bytes | str:
        """The content of the block with that head and what stands before it, or what is wrong with the block."""
        if len(head) < _BLOCK.size:
            return _INCOMPLETE
        number, stored_bytes, content_bytes, checksum = _BLOCK.unpack(head)
        if content_bytes > BLOCK_BYTES_MAX:
            return "has an impossible length"
        stored = _read(file, stored_bytes)
        if len(stored) < stored_bytes:
            return _INCOMPLETE
        if zlib.crc32(stored, zlib.crc32(head[: _LENGTHS.size])) != checksum:
            return "is damaged: its checksum does not match"
        if number != expected:
            return f"has number {number} where number {expected} was expected: blocks are missing"
        unpacker = zlib.decompressobj(_NO_HEADER, before)
        try:
            content = unpacker.decompress(stored, content_bytes)
        except zlib.error as error:
            return f"cannot be decompressed: {error}"
        if len(content) != content_bytes:
            return "is shorter or longer than it says"
        return content


_INCOMPLETE: Final = "is incomplete"


def _end_of(before: bytes, content: bytes) -> bytes:
    """What stands before the next block."""
    return (before + content)[-_WINDOW_BYTES:]


def open_segments(directory: Path) -> Segments:
    """The recording in the directory.

    Raises:
        RecordingError: there is none, or the first file is foreign, damaged at its head, or of another format.
    """
    paths = segment_paths(directory)
    if not paths:
        raise RecordingError(f"{directory} holds no recording: there is no file 000001.podium")
    with _opened(paths[0]) as file:
        return Segments(directory, _read_header(file, paths[0], 1))


def segment_paths(directory: Path) -> list[Path]:
    """The files of a recording, in order."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name))


def _opened(path: Path) -> BinaryIO:
    """The open file. Nobody waits for the other end of a pipe. Raises: OSError, among others if it is not a file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def _read(file: BinaryIO, length: int) -> bytes:
    """So many bytes, or what is left of the file: memory is not taken for more, whatever a damaged length says."""
    return file.read(min(length, os.fstat(file.fileno()).st_size - file.tell()))


def _read_header(file: BinaryIO, path: Path, place: int) -> dict[str, Any]:
    """The description at the head of a segment. Raises: RecordingError."""
    head = file.read(_HEADER.size)
    if not head.startswith(_MAGIC[: len(head)]) or not head:
        raise RecordingError(f"{path} is not a segment of a podium recording")
    if len(head) < _HEADER.size:
        raise RecordingError(f"{path} ends within its header, after {len(head)} bytes")
    _, version, number, length, checksum = _HEADER.unpack(head)
    if version != FORMAT:
        needed = "a newer podium is needed" if version > FORMAT else "replay it with the podium that recorded it"
        raise RecordingError(f"{path} has format {version}, and this podium reads format {FORMAT}: {needed}")
    if number != place:
        raise RecordingError(f"{path} is segment {number} where segment {place} was expected: segments are missing")
    description = _read(file, length)
    if len(description) < length or zlib.crc32(description) != checksum:
        raise RecordingError(f"{path}: the description in its header is damaged")
    try:
        found: dict[str, Any] = msgspec.json.decode(description, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordingError(f"{path}: the description in its header cannot be understood: {error}") from None
    return found
