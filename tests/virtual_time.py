"""An event loop whose clock jumps to the next timer, so that an hour of waiting takes no time.

For code that waits for timers, not for sockets. In a test module:

    @pytest.fixture(scope="module")
    def anyio_backend() -> object:
        return VIRTUAL_TIME

A test in which everybody waits for somebody else fails instead of hanging. `LoopClock` is the clock to inject.
"""

from __future__ import annotations

import asyncio

from podium.recording.virtual_loop import VirtualLoop

START_S = 1_700_000_000.0


class VirtualTimeLoop(VirtualLoop):
    """A loop in virtual time that fails where nothing is left to wait for."""

    def _run_once(self) -> None:
        self._drop_cancelled()
        if not self._ready and not self._scheduled:  # type: ignore[attr-defined]
            raise RuntimeError("nobody is left who could wake anybody")
        super()._run_once()


class LoopClock:
    """The running loop's time; the wall clock starts at `START_S`."""

    def now(self) -> float:
        return START_S + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


VIRTUAL_TIME = ("asyncio", {"loop_factory": VirtualTimeLoop})
