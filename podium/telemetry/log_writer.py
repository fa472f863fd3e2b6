"""Writes log lines without ever waiting for the reader of the log.

The logging thread itself writes as much as fits into a pipe or socket; within an event loop, all lines of one
iteration together. Waking a thread for it would take the interpreter lock from the loop, which costs more than the
write. The rest is written by a separate thread.

Owns the lines that are not written yet: at most `BYTES_MAX` of them, in order. A pipe whose reader has stopped, a full
disk or a closed pipe costs lines, never time: lines beyond the limit are counted, and a note takes their place as soon
as writing works again.

Writes to the descriptor, not to a stream: a stream's lock, held by a thread that waits for a reader, would also block
the exit of the process.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, cast

BYTES_MAX: Final = 4 * 1024 * 1024
_CRITICAL_BYTES_MAX: Final = BYTES_MAX + 256 * 1024
# Lines within this time are written together: waking the thread for each would cost more than the line.
_GATHER_S: Final = 0.01
_TRY_AGAIN_S: Final = 1.0
_PIECE_BYTES_MAX: Final = 64 * 1024
# Linux only: a write that does not block although the descriptor, which other processes may share, is blocking.
_NO_WAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)

Note = Callable[[int], bytes]
"""Makes the line that takes the place of that many lost lines."""


class LogWriter:
    """Accepts lines from any thread and writes them to a descriptor.

    Args:
        note: makes the line about lost lines; called by the writing thread.

    Cost: 1 us for a line, and one write for all lines of an iteration of the loop, or of 10 ms in the thread.
    """

    def __init__(self, descriptor: int, note: Note) -> None:
        self.descriptor = descriptor
        self._note = note
        # A bare lock: entering it runs no Python code.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # A number stands for that many lines that were lost at this place.
        self._lines: deque[bytes | int] = deque()
        self._pending_bytes = 0
        self._can_write_at_once = _NO_WAIT != 0
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that writes the pending lines at the end of its iteration."""
        self._is_refusing = False
        self._is_asleep = False
        self._is_hurried = False
        self._is_writing = False
        self._is_failing = False
        self._unwritten = memoryview(b"")
        self._piece_bytes = 0
        self._lost = 0
        self._untold = 0
        threading.Thread(target=self._run, name="log writer", daemon=True).start()

    @property
    def lost_count(self) -> int:
        """The number of lines that were dropped."""
        return self._lost

    @property
    def fill(self) -> float:
        """The fraction of the space for pending lines that is used; 1 is full."""
        return self._pending_bytes / BYTES_MAX

    def put(self, line: bytes, *, is_critical: bool = False) -> None:
        """Queue a line for writing; it is lost if too many are pending. Critical lines have extra space."""
        with self._lock:
            pending_bytes = self._pending_bytes + len(line)
            if (self._is_refusing or pending_bytes > BYTES_MAX) and not self._has_room(pending_bytes, is_critical):
                self._is_refusing = True
                self._lost += 1
                self._untold += 1
                return
            if self._untold:
                self._mark_gap()
            self._lines.append(line)
            self._pending_bytes = pending_bytes
            if self._is_asleep:
                self._see_to_it()

    def _has_room(self, pending_bytes: int, is_critical: bool) -> bool:
        """Return True if a line that makes the pending ones that large is accepted although space is, or was, full."""
        if is_critical:
            return pending_bytes <= _CRITICAL_BYTES_MAX
        # Once full, half must be written first: that makes one gap now and then, not one between any two lines.
        self._is_refusing = self._is_refusing and self._pending_bytes > BYTES_MAX // 2
        return not self._is_refusing and pending_bytes <= BYTES_MAX

    def _see_to_it(self) -> None:
        """Have pending lines written: now, at the end of the loop's iteration, or by the thread, which sleeps."""
        if not self._can_write_at_once or self._pending_bytes > _PIECE_BYTES_MAX:
            self._wake()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._write_at_once()
            return
        if loop is not self._loop:
            self._loop = loop
            loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        with self._lock:
            self._loop = None
            if self._is_asleep and self._lines:
                self._write_at_once()

    def _write_at_once(self) -> None:
        """Write what fits without blocking, and leave the rest to the thread, which sleeps."""
        content = b"".join(cast(Iterable[bytes], self._lines))
        size = 0
        try:
            size = os.pwritev(self.descriptor, (content,), -1, _NO_WAIT)
        except BlockingIOError:
            pass
        except OSError:
            # It is a file or a terminal, which may block, or the reader is gone: only the thread writes now.
            self._can_write_at_once = False
        self._lines.clear()
        self._pending_bytes = len(content) - size
        if self._pending_bytes:
            self._lines.append(content[size:])
            self._wake()

    def _wake(self) -> None:
        self._is_asleep = False
        self._changed.notify_all()

    def flush(self, seconds_max: float) -> bool:
        """Wait, at most for that long, until everything is written or cannot be, and return whether it is written."""
        with self._changed:
            self._is_hurried = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_writing and (self._is_failing or not self._lines), seconds_max)
            self._is_hurried = False
            return not (self._is_writing or self._is_failing or self._lines)

    def _mark_gap(self) -> None:
        if self._untold:
            self._lines.append(self._untold)
            self._untold = 0

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        while True:
            self._gather()
            while not self._is_failing and (piece := self._next_piece()) is not None:
                self._write(piece)
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    def _gather(self) -> None:
        """Wait for lines, and briefly for more of them; after a failure, until the next try is due."""
        with self._changed:
            if self._is_failing:
                self._changed.wait_for(lambda: self._is_hurried, _TRY_AGAIN_S)
            else:
                while not self._lines:
                    self._is_asleep = True
                    self._changed.wait()
                self._is_asleep = False
                self._changed.wait_for(lambda: self._is_hurried, _GATHER_S)
            # One try for each `flush`: a failure is final for it.
            self._is_hurried = self._is_failing = False
            self._is_writing = True

    def _next_piece(self) -> memoryview | None:
        """Return the next bytes to write, or None if there are none."""
        if self._unwritten:
            return self._unwritten
        with self._changed:
            self._pending_bytes -= self._piece_bytes
            self._piece_bytes = 0
            if not self._lines:
                # Lines lost with no line after them: note them now, not with the next line.
                self._mark_gap()
            pieces: list[bytes] = []
            while self._lines and self._piece_bytes < _PIECE_BYTES_MAX:
                line = self._lines.popleft()
                if isinstance(line, int):
                    pieces.append(self._note(line))
                else:
                    pieces.append(line)
                    self._piece_bytes += len(line)
        return memoryview(b"".join(pieces)) if pieces else None

    def _write(self, piece: memoryview) -> None:
        remainder = piece
        try:
            while remainder:
                remainder = remainder[self._write_some(remainder) :]
        except OSError:
            # The disk is full, or the reader is gone.
            self._is_failing = True
        self._unwritten = remainder

    def _write_some(self, content: memoryview) -> int:
        while True:
            try:
                return os.write(self.descriptor, content)
            except BlockingIOError:
                # Another process that shares the descriptor has made it non-blocking.
                writable = select.poll()
                writable.register(self.descriptor, select.POLLOUT)
                writable.poll()
