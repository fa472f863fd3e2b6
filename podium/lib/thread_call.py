"""Calls functions that may never return, such as the import of a user's module, without blocking the caller.

Owns the thread of such a call. Unlike a pool's thread, it does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class InterruptedCallError(BaseException):
    """Raised in a call to end it; a BaseException, since called code rarely catches these."""


class ThreadCall(Generic[T]):
    """A running call of a function in a thread of its own."""

    def __init__(self, call: Callable[[], T], name: str) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._ended = anyio.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def result(self) -> T:
        """Wait for the end; may be cancelled and called again. Raises: what the function raises."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result[0]

    def frame(self) -> FrameType | None:
        """Return the frame that the call executes now; None if it has ended."""
        return sys._current_frames().get(self._thread.ident or 0)

    def interrupt(self) -> None:
        """Raise an `InterruptedCallError` in the call between two Python instructions, which ends a busy loop.

        A call that waits for the system ends only after that wait, and does no harm until then.
        """
        if not self._ended.is_set():
            identity = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(InterruptedCallError))

    def _run(self) -> None:
        # An interruption may come a moment after the call has ended, and a loop may have ended before.
        with suppress(InterruptedCallError, RuntimeError):
            try:
                self._result.append(self._call())
            except BaseException as error:  # noqa: BLE001 - `result` raises it
                self._error = error
            self._loop.call_soon_threadsafe(self._ended.set)
