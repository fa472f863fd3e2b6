"""A time limit for the import of plugins at the start, when no event loop runs yet.

Owns the timer, which interrupts even an import that sleeps or spins, and the messages meanwhile. The import runs in the
main thread, since modules may need that. `daemon.reload` has the limit for imports while a scheduler runs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from podium.cli.output import say
from podium.plugins.loading.discovery import LOAD_S_MAX, SAY_AFTER_S, reference_being_loaded

_TICK_S: Final = 1.0


class TookTooLongError(BaseException):
    """Raised in an import that has lasted for too long; its text is part of a sentence."""

    def __str__(self) -> str:
        """Say what is wrong with the module."""
        return f"its import did not end within {LOAD_S_MAX:.0f} s"


def _say(reference: str, seconds: float) -> None:
    say(f"podium still imports {reference}, for {seconds:.0f} s by now", err=True)


@contextmanager
def limited_loading(notify: Callable[[str, float], None] = _say) -> Iterator[None]:
    """Limit the time of imports within the block. Within another such block, and in other threads, it does nothing.

    Args:
        notify: called with the plugin that is being imported, and the seconds since the beginning.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return
    ticks = 0

    def tick(_: int, frame: FrameType | None) -> None:
        nonlocal ticks
        ticks += 1
        seconds = ticks * _TICK_S
        reference = "" if frame is None else reference_being_loaded(frame)
        if not reference:
            return
        if seconds % SAY_AFTER_S == 0:
            notify(reference, seconds)
        if seconds >= LOAD_S_MAX:
            raise TookTooLongError

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
