"""A bell that one task waits for and anybody may ring."""

from __future__ import annotations

import anyio


class WakeUp:
    """Remembers a ring until it has been heard, so that none is missed between looking and waiting."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        """Wake the waiting task, or keep the next wait from waiting."""
        self._rung.set()

    async def wait(self, seconds_max: float | None = None) -> None:
        """Wait for a ring, at most so long."""
        if not self._rung.is_set():
            with anyio.move_on_after(seconds_max):
                await self._rung.wait()
        self._rung = anyio.Event()
