"""podium as `podium run` starts it, whose CPU time is split by subsystem from the signal `BEGIN` until SIGTERM.

Run as a program: `python -m benchmarks.sampled_run OUTPUT [options of podium run]`.

A timer of CPU time interrupts the process; the time since the last interruption belongs to the subsystem of the code
that runs then. So the parts add up to the CPU time of the process, however long a call in C delays an interruption.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from benchmarks.subsystems import BEGIN, GARBAGE, Split, subsystem_of
from podium.cli import run

_INTERVAL_S: Final = 0.001
_FRAMES_MAX: Final = 60
"""How many frames of a stack are looked at, the innermost first."""


class Sampler:
    """Adds up CPU time by subsystem, and by function.

    Args:
        cpu_time: returns the CPU time of the process in seconds.
    """

    def __init__(self, cpu_time: Callable[[], float] = time.process_time) -> None:
        self._cpu_time = cpu_time
        self._seconds: Counter[str] = Counter()
        self._functions: Counter[tuple[str, str]] = Counter()
        self._started_s = self._sampled_s = 0.0
        self._is_collecting = False
        self._subsystems: dict[tuple[str, ...], str] = {}

    def start(self) -> None:
        """Begin."""
        self._started_s = self._sampled_s = self._cpu_time()
        gc.callbacks.append(self._on_garbage)
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL_S, _INTERVAL_S)

    def stop(self) -> Split:
        """End, and return what was added up."""
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self._sample(signal.SIGPROF, None)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        gc.callbacks.remove(self._on_garbage)
        functions = [(part, name, seconds) for (part, name), seconds in self._functions.most_common()]
        return Split(dict(self._seconds), functions, self._cpu_time() - self._started_s)

    def _on_garbage(self, phase: str, info: dict[str, int]) -> None:
        del info
        # The time before a collection belongs to what has caused it. An interruption comes only after the collection.
        self._sample(signal.SIGPROF, sys._getframe(1))
        self._is_collecting = phase == "start"

    def _sample(self, number: int, frame: FrameType | None) -> None:
        del number
        now_s = self._cpu_time()
        seconds, self._sampled_s = now_s - self._sampled_s, now_s
        if self._is_collecting:
            self._seconds[GARBAGE] += seconds
            return
        stack = []
        while frame is not None and len(stack) < 2 * _FRAMES_MAX:
            stack.append(frame.f_code.co_filename)
            stack.append(frame.f_code.co_name)
            frame = frame.f_back
        key = tuple(stack)
        subsystem = self._subsystems.get(key)
        if subsystem is None:
            subsystem = self._subsystems[key] = subsystem_of(list(zip(key[::2], key[1::2], strict=True)))
        self._seconds[subsystem] += seconds
        self._functions[subsystem, f"{key[0]}:{key[1]}" if key else ""] += seconds


def main() -> None:
    """Write the split when podium has ended."""
    output, *options = sys.argv[1:]
    sampler = Sampler()
    signal.signal(BEGIN, lambda *_: sampler.start())
    try:
        run.command.main(options, standalone_mode=False)
    finally:
        Path(output).write_bytes(msgspec.json.encode(sampler.stop()))


if __name__ == "__main__":
    main()
