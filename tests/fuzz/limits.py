"""What one input may cost: CPU time without a break, and an end to everything."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from podium.lib.garbage_collection import rare_collections
from tests.virtual_time import START_S, VirtualTimeLoop

STALL_S: Final = 0.1
HANG_S: Final = 20.0
_AGAIN_S: Final = 0.1
_TRIALS: Final = 3
_WORK_S: Final = 0.01
"""What `_work` takes on a machine on which the limits hold; a slower one, or one that is busy, is given more."""


class Hang(BaseException):
    """It goes on and on."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Interrupt what uses the processor for longer than `HANG_S`."""

    def interrupt(_number: int, _frame: Any) -> None:
        raise Hang

    handler = signal.signal(signal.SIGVTALRM, interrupt)
    # Again and again: the first may be raised in a callback of the garbage collector, which swallows it.
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S, _AGAIN_S)
    try:
        yield
    except (Hang, BaseExceptionGroup) as error:
        if not isinstance(error, Hang) and error.subgroup(Hang) is None:
            raise
        raise AssertionError(f"a hang: more than {HANG_S} s of CPU time") from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)


def stall_s(run: Callable[[], float], allowed_s: float = STALL_S) -> float:
    """The longest stretch of CPU time that `run` tells of; what is too long is measured again, for others' noise.

    Args:
        allowed_s: on a machine of usual speed.
    """
    shortest = float("inf")
    for _ in range(_TRIALS):
        # As in the daemon: what else lives in this process is not scanned.
        with no_hang(), rare_collections():
            shortest = min(shortest, run())
        if shortest <= allowed_s:
            break
    else:
        allowed_s *= max(1.0, _work() / _WORK_S)
    assert shortest <= allowed_s, f"a stall: {shortest * 1e3:.0f} ms of CPU time without a break"
    return shortest


def _work() -> float:
    """How much CPU time a fixed piece of work takes just now."""
    started_s = time.process_time()
    number = 0
    for index in range(200_000):
        number += index & 7
    return time.process_time() - started_s


class MeasuringLoop(VirtualTimeLoop):
    """A virtual-time loop that knows the longest time for which one callback has kept all others waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = 0.0

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_soon(self._measure, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_at(when, self._measure, callback, *args, context=context)

    def _measure(self, callback: Any, *args: Any) -> None:
        started_s = time.process_time()
        try:
            callback(*args)
        finally:
            self.longest_s = max(self.longest_s, time.process_time() - started_s)


class WorkingClock:
    """The running loop's time and the CPU time spent, so that who counts on turns being short finds that they are."""

    def now(self) -> float:
        return START_S + self.monotonic()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + time.process_time()
