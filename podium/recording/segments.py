"""The files of a recording: segments of compressed blocks, each with its number and checksum.

Owns the format. Never knows what is in a block. A directory holds one recording; a segment begins with a header, so
that a foreign file, or one of another format, is recognised by its first bytes. All complete blocks stay readable,
however the writer ends.
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
from podium.lib.plurals import count_of

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
"""The limit of a block's content. podium writes no larger block, so a larger one is not read into memory."""
_WINDOW_BYTES: Final = 1 << 15
"""A block is compressed as the continuation of this much content before it in its segment, since a few attempts by
themselves hardly repeat anything."""
_EXAMPLES_MAX: Final = 5
_OWNER_ONLY: Final = 0o700
_LEVEL: Final = 1
"""The compression level. Higher levels cost several times as much and save a tenth."""
_NO_HEADER: Final = -zlib.MAX_WBITS
"""Omit zlib's header: its checksum of the content would cost as much as the compression, and a block has its own."""


class RecordingError(UserFacingError):
    """A directory holds no readable recording, or a recording cannot be replayed."""


class SizeLimit(Exception):  # noqa: N818 - reaching the limit is no error
    """The next block would make the recording larger than it may be."""


class SegmentWriter:
    """Writes blocks into segments, and starts a new segment by size and age.

    Args:
        description: written at the head of every segment; JSON values.
        segment_bytes, segment_s: the size and age at which the next segment starts.
        bytes_max: the size of all segments together that no block may exceed; None for no limit.

    Raises: OSError from every method, if the directory or a file cannot be written.
    """

    def __init__(
        self,
        directory: Path,
        description: dict[str, Any],
        *,
        segment_bytes: int = 64 << 20,
        segment_s: float = 3600.0,
        bytes_max: int | None = None,
    ) -> None:
        # Other users may not even list it; see `_open`.
        directory.mkdir(_OWNER_ONLY, parents=True, exist_ok=True)
        if any(segment_paths(directory)):
            raise RecordingError(f"{directory} holds a recording already; choose a new or an empty directory")
        self._directory = directory
        self._description = msgspec.json.encode(description)
        self._head_bytes = _HEADER.size + len(self._description)
        self._segment_bytes, self._segment_s = segment_bytes, segment_s
        self._bytes_max = bytes_max
        self._segments = self._blocks = 0
        self._opened_at_s = 0.0
        self._file: BinaryIO | None = None
        self._window = b""
        self.bytes_total = 0

    def write(self, content: bytes, now_s: float) -> None:
        """Append a block; on return the operating system has it, so it survives the end of this process.

        Raises:
            ValueError: the content has more than `BLOCK_BYTES_MAX`.
            SizeLimit: the block was not written, since the recording would become too large.
        """
        # A bug rather than a user's mistake: the writer of the content cuts it.
        if len(content) > BLOCK_BYTES_MAX:
            raise ValueError(f"a block has {len(content)} bytes, and may have {BLOCK_BYTES_MAX}")
        file = self._open(now_s)
        packer = zlib.compressobj(_LEVEL, wbits=_NO_HEADER, zdict=self._window)
        payload = packer.compress(content) + packer.flush()
        self._window = _window(self._window, content)
        lengths = _LENGTHS.pack(self._blocks, len(payload), len(content))
        block = lengths + zlib.crc32(payload, zlib.crc32(lengths)).to_bytes(4, "big") + payload
        # The head of one more segment always fits.
        if self._bytes_max is not None and self.bytes_total + len(block) > self._bytes_max - self._head_bytes:
            raise SizeLimit(f"another block would make it larger than {self._bytes_max} bytes")
        file.write(block)
        # Flushed to the operating system, not to the disk: fsync would cost milliseconds per block.
        file.flush()
        self._demand_file(file)
        self._blocks += 1
        self.bytes_total += len(block)

    def _demand_file(self, file: BinaryIO) -> None:
        """Raise an OSError if the file was deleted: writing to it goes on without one, and keeps nothing."""
        path = self._path(self._segments)
        # Both, since some file systems count no links. A directory that is renamed keeps its files.
        if os.fstat(file.fileno()).st_nlink == 0 and not path.exists():
            raise FileNotFoundError(errno.ENOENT, "The file of the recording was deleted", str(path))

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
        path = self._path(self._segments + 1)
        # Only its owner may read it: names and labels may be confidential.
        # A new segment must be readable without the one before it, which may have been deleted.
        self._window = b""
        file = self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._segments, self._opened_at_s = self._segments + 1, now_s
        checksum = zlib.crc32(self._description)
        header = _HEADER.pack(_MAGIC, FORMAT, self._segments, len(self._description), checksum) + self._description
        file.write(header)
        self.bytes_total += len(header)
        return file

    def _path(self, segment: int) -> Path:
        return self._directory / f"{segment:06}.podium"


@dataclass(slots=True)
class LeftOutList:
    """The objects that a recording lacks.

    Attributes:
        count: their number.
        examples: the first of them, and why they were left out.
    """

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, left_out: object) -> None:
        """Count an object; its text names it and says why it was left out."""
        self.count += 1
        if len(self.examples) < _EXAMPLES_MAX:
            self.examples.append(str(left_out))

    def __str__(self) -> str:
        """Return a sentence for people; "" if no object is left out."""
        if not self.count:
            return ""
        remainder = f"; and {self.count - len(self.examples)} more" if self.count > len(self.examples) else ""
        return f"{count_of(self.count, 'object change')} left out: {'; '.join(self.examples)}{remainder}"


@dataclass(slots=True)
class Segments:
    """The blocks of a recording, which are read once, up to the first damage.

    Attributes:
        description: from the head of the first segment.
        damage: where reading stopped, and why; "" if there is no damage.
        is_cut: the only damage is an incomplete last block, as after a kill.
        left_out: the objects that were not written, or cannot be read.
    """

    directory: Path
    description: dict[str, Any]
    damage: str = ""
    is_cut: bool = False
    left_out: LeftOutList = field(default_factory=LeftOutList)

    def blocks(self) -> Iterator[bytes]:
        """Yield the content of each block. Ends at the first damage, and describes it in `damage`."""
        try:
            yield from self._blocks()
        except OSError as error:
            self._note(f"{error.filename or self.directory}: {error.strerror}", is_cut=False)

    def _blocks(self) -> Iterator[bytes]:
        number = 0
        paths = segment_paths(self.directory)
        for place, path in enumerate(paths, 1):
            with _open_file(path) as file:
                try:
                    description = _read_header(file, path, place)
                except RecordingError as error:
                    # A crash while the last segment was begun leaves a part of its header.
                    self._note(str(error), is_cut=place == len(paths) and path.stat().st_size < _HEADER.size)
                    return
                if description != self.description:
                    self._note(f"{path} belongs to another recording", is_cut=False)
                    return
                window = b""
                while True:
                    offset = file.tell()
                    head = file.read(_BLOCK.size)
                    if not head:
                        break
                    content = self._content(file, head, number, window)
                    if isinstance(content, str):
                        # Only the end of the last segment may be missing; elsewhere the same bytes are damage.
                        is_cut = content == _INCOMPLETE and place == len(paths)
                        self._note(f"{path}: the block at byte {offset} {content}", is_cut=is_cut)
                        return
                    number += 1
                    window = _window(window, content)
                    yield content

    def _note(self, damage: str, *, is_cut: bool) -> None:
        self.damage, self.is_cut = damage, is_cut

    def _content(self, file: BinaryIO, head: bytes, block_number: int, window: bytes) -> bytes | str:
        """Return the content of the block with that head, or what is wrong with the block."""
        if len(head) < _BLOCK.size:
            return _INCOMPLETE
        number, payload_bytes, content_bytes, checksum = _BLOCK.unpack(head)
        # Before anything is decompressed: few bytes can claim to be gigabytes.
        if content_bytes > BLOCK_BYTES_MAX:
            return "has an impossible length"
        payload = _read(file, payload_bytes)
        if len(payload) < payload_bytes:
            return _INCOMPLETE
        if zlib.crc32(payload, zlib.crc32(head[: _LENGTHS.size])) != checksum:
            return "is damaged: its checksum does not match"
        if number != block_number:
            return f"has number {number} where number {block_number} was expected: blocks are missing"
        unpacker = zlib.decompressobj(_NO_HEADER, window)
        try:
            # The limit makes zlib stop where the block claims to end, whatever the payload holds.
            content = unpacker.decompress(payload, content_bytes)
        except zlib.error as error:
            return f"cannot be decompressed: {error}"
        if len(content) != content_bytes:
            return "is shorter or longer than it says"
        return content


_INCOMPLETE: Final = "is incomplete"


def _window(window: bytes, content: bytes) -> bytes:
    """Return the content that the next block continues."""
    return (window + content)[-_WINDOW_BYTES:]


def open_segments(directory: Path) -> Segments:
    """Open the recording in the directory.

    Raises:
        RecordingError: it holds no recording, or the first file is foreign, damaged at its head, or of another format.
    """
    paths = segment_paths(directory)
    if not paths:
        raise RecordingError(f"{directory} holds no recording: there is no file 000001.podium")
    with _open_file(paths[0]) as file:
        return Segments(directory, _read_header(file, paths[0], 1))


def segment_paths(directory: Path) -> list[Path]:
    """Return the files of a recording, in order."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name))


def _open_file(path: Path) -> BinaryIO:
    """Open a regular file without waiting for the other end of a pipe. Raises: OSError, also if it is no file."""
    # O_NONBLOCK: opening a pipe that nothing writes to would hang.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def _read(file: BinaryIO, length: int) -> bytes:
    """Read at most the rest of the file: a damaged length must not allocate memory."""
    return file.read(min(length, os.fstat(file.fileno()).st_size - file.tell()))


def _read_header(file: BinaryIO, path: Path, place: int) -> dict[str, Any]:
    """Read the description at the head of a segment. Raises: RecordingError."""
    head = file.read(_HEADER.size)
    if not head.startswith(_MAGIC[: len(head)]) or not head:
        raise RecordingError(f"{path} is not a segment of a podium recording")
    if len(head) < _HEADER.size:
        raise RecordingError(f"{path} ends within its header, after {len(head)} bytes")
    _, version, number, length, checksum = _HEADER.unpack(head)
    if version != FORMAT:
        remedy = "a newer podium is needed" if version > FORMAT else "replay it with the podium that recorded it"
        raise RecordingError(f"{path} has format {version}, and this podium reads format {FORMAT}: {remedy}")
    if number != place:
        raise RecordingError(f"{path} is segment {number} where segment {place} was expected: segments are missing")
    content = _read(file, length)
    if len(content) < length or zlib.crc32(content) != checksum:
        raise RecordingError(f"{path}: the description in its header is damaged")
    try:
        description: dict[str, Any] = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordingError(f"{path}: the description in its header cannot be understood: {error}") from None
    return description
