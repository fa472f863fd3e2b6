"""Calls of functions that may never return, as the import of somebody's module: nothing has to wait for them.

Owns the thread of such a call. The thread does not keep the process from ending, unlike one of a pool.
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
    """Raised in a call that is to end; no exception that code is likely to catch."""


class ThreadCall(Generic[T]):
    """A function that has been called in a thread of its own."""

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
        """What it executes now; None if it has ended."""
        return sys._current_frames().get(self._thread.ident or 0)

    def interrupt(self) -> None:
        """Raise an `InterruptedCallError` in the call between two instructions of Python: it ends what spins.

        What waits for the system ends only once it has waited, and does no harm until then.
        """
        if not self._ended.is_set():
            identity = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(InterruptedCallError))

    def _run(self) -> None:
        # An interruption may come a moment after the call has ended, and a loop may have ended before.
        with suppress(InterruptedCallError, RuntimeError):
            try:
                self._result.append(self._call())
            except BaseException as error:  # noqa: BLE001 - given to who waits for the result
                self._error = error
            self._loop.call_soon_threadsafe(self._ended.set)
