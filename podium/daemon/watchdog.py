"""A thread that detects a stuck event loop, logs what blocks it, and ends a process that cannot stop any more.

The whole scheduler runs on one event loop. A plugin that never returns blocks everything: no request is read, no probe
is answered, and SIGTERM, which asyncio only queues for the loop, has no effect. This thread pings the loop twice a
second. After 5 s without a response it logs plugin, extension point, pod and stack, and answers probes in the loop's
place. A process that was told to stop and still runs 15 s later is ended with status 1.

Never ends a process that was not told to stop: the kubelet, which probes /livez, decides whether to restart it.

Source: the time limits of a stop are those of `daemon.app`; a pod's grace period is 20 s in `deploy/`.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, Protocol

from podium.daemon.running_plugin import RunningPlugin, running_plugin
from podium.lib.error_text import error_text
from podium.lib.log import get_logger
from podium.telemetry import Metrics, flush_log

log = get_logger("watchdog")

STUCK_S: Final = 5.0
STOP_S_MAX: Final = 15.0
"""The sum of the time limits of a stop: 6 s for binding cycles, 2 s more for Events, the lease 2 s, requests 5 s."""
_LOOK_EVERY_S: Final = 0.5
_SAY_AGAIN_S: Final = 60.0
_LAST_WORDS_S: Final = 2.0


class StandIn(Protocol):
    """Answers probes while the loop cannot."""

    def answer_until(self, is_over: Callable[[], bool]) -> None:
        """Answer requests until `is_over` returns true."""


class Watchdog:
    """Watches the event loop of the thread that starts it.

    Args:
        end: ends the process.
        arm: ends the process after that many seconds from a thread that does not need the interpreter lock.

    Cost: two wake-ups a second.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        stuck_s: float = STUCK_S,
        stop_s_max: float = STOP_S_MAX,
        end: Callable[[int], Any] = os._exit,
        arm: Callable[[float], None] | None = None,
    ) -> None:
        self._metrics = metrics
        self._stuck_s = stuck_s
        self._stop_s_max = stop_s_max
        self._end = end
        self._arm = arm or _end_without_the_interpreter
        self._stand_in: StandIn | None = None
        self._asked_s: float | None = None
        self._stop_at_s: float | None = None
        self._is_over = threading.Event()
        self._is_stuck = False

    def stand_in(self, stand_in: StandIn) -> None:
        """Set what answers probes while the loop is stuck."""
        self._stand_in = stand_in

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the running loop until the block ends."""
        loop, main = asyncio.get_running_loop(), threading.get_ident()
        thread = threading.Thread(target=self._run, args=(loop, main), name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()

    @contextmanager
    def handling_signals(self, *signals: signal.Signals) -> Iterator[None]:
        """See these signals even if the loop does not; to be called after the loop has installed its own handlers.

        The main thread runs Python signal handlers between any two bytecodes, so also in the middle of a plugin call.
        """
        handlers = {number: signal.getsignal(number) for number in signals}

        def notice(number: int, frame: FrameType | None) -> None:
            self.stop_requested()
            handler = handlers[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)

        for number in signals:
            signal.signal(number, notice)
        try:
            yield
        finally:
            _restore(handlers.items())

    def stop_requested(self) -> None:
        """Start the stop deadline. A second call while the loop is stuck ends the process at once."""
        if self._stop_at_s is None:
            self._stop_at_s = time.monotonic() + self._stop_s_max
            self._arm(self._stop_s_max + _LAST_WORDS_S)
        elif self._is_stuck:
            self._stop_at_s = time.monotonic()

    # ------------------------------------------------------------ the thread

    def _run(self, loop: asyncio.AbstractEventLoop, main: int) -> None:
        looked_s = time.monotonic()
        while not self._is_over.wait(_LOOK_EVERY_S):
            now_s = time.monotonic()
            if now_s - looked_s > self._stuck_s:
                self._asked_s = None  # This thread has not run either: the process or the machine was suspended.
            looked_s = now_s
            if self._stop_at_s is not None and now_s >= self._stop_at_s:
                self._give_up(main)
            if not self._asks(loop, now_s):
                return
            if self._asked_s is not None and now_s - self._asked_s >= self._stuck_s:
                self._while_stuck(loop, main, self._asked_s)
                looked_s = time.monotonic()

    def _asks(self, loop: asyncio.AbstractEventLoop, now_s: float) -> bool:
        """Ping the loop, unless the last ping is unanswered; False if the loop is closed."""
        if self._asked_s is None:
            self._asked_s = now_s
            try:
                loop.call_soon_threadsafe(self._note_answer)
            except RuntimeError:
                return False
        return True

    def _note_answer(self) -> None:
        self._asked_s = None

    def _while_stuck(self, loop: asyncio.AbstractEventLoop, main: int, since_s: float) -> None:
        """Log it from time to time and answer probes, until the loop responds again or the process ends."""
        self._is_stuck = True
        busy = _busy(main)
        _call_later(loop, self._metrics.count_stuck_loop, busy.plugin, busy.extension_point)
        self._say(busy, since_s)
        said_s = time.monotonic()

        def is_over() -> bool:
            nonlocal said_s
            if self._asked_s is None or self._is_over.is_set():
                return True
            now_s = time.monotonic()
            if self._stop_at_s is not None and now_s >= self._stop_at_s:
                self._give_up(main)
            if now_s - said_s >= _SAY_AGAIN_S:
                said_s = now_s
                self._say(_busy(main), since_s)
            return False

        if self._stand_in is not None:
            self._stand_in.answer_until(is_over)
        while not is_over():
            self._is_over.wait(_LOOK_EVERY_S)
        self._is_stuck = False
        log.warning("The event loop responds again", **_busy_fields(busy), seconds=round(time.monotonic() - since_s, 1))

    @staticmethod
    def _say(busy: RunningPlugin, since_s: float) -> None:
        seconds = round(time.monotonic() - since_s, 1)
        log.error("The event loop is stuck", **_busy_fields(busy), seconds=seconds, stack="\n".join(busy.stack))

    def _give_up(self, main: int) -> None:
        busy = _busy(main)
        log.critical(
            "Still running after the stop deadline: exiting",
            **_busy_fields(busy),
            seconds=self._stop_s_max,
            stack="\n".join(busy.stack),
        )
        flush_log(_LAST_WORDS_S)
        self._end(1)


def _busy_fields(busy: RunningPlugin) -> dict[str, str]:
    return {"plugin": busy.plugin, "extension_point": busy.extension_point, "pod": busy.pod}


def _busy(thread: int) -> RunningPlugin:
    frame = sys._current_frames().get(thread)
    if frame is None:
        return RunningPlugin("", "", "", ())
    try:
        return running_plugin(frame)
    except Exception as error:  # noqa: BLE001 - frames hold plugins' objects, and this thread must survive them
        return RunningPlugin("", "", "", (f"the stack cannot be read: {error_text(error)}",))


def _call_later(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *args: object) -> None:
    """Call it on the loop once the loop responds: only the loop's thread may touch metrics."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *args)


def _end_without_the_interpreter(seconds: float) -> None:
    """End the process from a native thread: for a call that never releases the interpreter lock."""
    try:
        output = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        output = os.open(os.devnull, os.O_WRONLY)
    faulthandler.dump_traceback_later(seconds, exit=True, file=output)


def _restore(handlers: Iterable[tuple[signal.Signals, Any]]) -> None:
    for number, handler in handlers:
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
