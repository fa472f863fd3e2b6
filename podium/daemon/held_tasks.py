"""Tasks that begin a few at a time, so that many of them do not keep the event loop from others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final, Protocol, TypeAlias

from anyio.lowlevel import checkpoint

_Work: TypeAlias = Coroutine[Any, Any, None]

_TASKS_AT_ONCE: Final = 16
"""The number of binding cycles whose first steps together take a few milliseconds."""


class Starter(Protocol):
    """Starts tasks; `asyncio.TaskGroup` is one."""

    def create_task(self, coro: _Work, *, name: str | None = None) -> object:
        """Start a task, or have it started soon."""


class HeldTasks:
    """Keeps tasks until they are started together. Implements `Starter`."""

    def __init__(self) -> None:
        self._tasks: deque[tuple[_Work, str | None]] = deque()

    def create_task(self, coro: _Work, *, name: str | None = None) -> None:
        """Add a task to start."""
        self._tasks.append((coro, name))

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the tasks in the order in which they were added; other tasks run in between."""
        try:
            while self._tasks:
                for _ in range(min(_TASKS_AT_ONCE, len(self._tasks))):
                    work, name = self._tasks.popleft()
                    tasks.create_task(work, name=name)
                await checkpoint()
        finally:
            # If this is cancelled, so is the task group.
            for work, _ in self._tasks:
                work.close()
