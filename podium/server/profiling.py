"""Measures what a thread spends its CPU time on, and what allocates memory, as profiles that speedscope opens.

Each function blocks until it is done, so it belongs into a thread. Never runs longer than it was told to.

Source: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Mapping
from threading import Event
from types import FrameType
from typing import Any, Final, NamedTuple, TypeAlias

_PERIOD_S: Final = 0.01
_DEPTH_MAX: Final = 100
_ALLOCATION_DEPTH: Final = 16
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


class Call(NamedTuple):
    """One call of a stack."""

    name: str
    file: str
    line: int


Stack: TypeAlias = tuple[Call, ...]
"""From the outermost call to the innermost."""

Document: TypeAlias = dict[str, Any]


def cpu_profile(thread_id: int, seconds: float, stop: Event) -> Document:
    """Look at the thread's stack 100 times a second, and count the CPU time that it used in between.

    Cost: about 2 % of a core, of a thread that is always busy. A stack is seen where the thread lets others run, which
    may be just after the line that used the time.
    """
    # The clock of that thread, so that waiting for the network does not count as work.
    clock = time.pthread_getcpuclockid(thread_id)
    usage: Counter[Stack] = Counter()
    before_s, ends_s = time.clock_gettime(clock), time.monotonic() + seconds
    while time.monotonic() < ends_s and not stop.wait(_PERIOD_S):
        frame = sys._current_frames().get(thread_id)
        now_s = time.clock_gettime(clock)
        if frame is not None and now_s > before_s:
            usage[_stack(frame)] += now_s - before_s  # type: ignore[assignment]
        before_s = now_s
    return _document(f"CPU time of the event loop in {seconds:g} s", "seconds", usage)


def memory_profile(seconds: float, stop: Event) -> Document:
    """Trace allocations for that time; what was not freed meanwhile is shown, by the lines that allocated it.

    Cost: while it lasts, an attempt takes about 16 times as long.
    """
    # The process may be tracing already, and that trace must go on.
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start(_ALLOCATION_DEPTH)
    try:
        stop.wait(seconds)
        snapshot = tracemalloc.take_snapshot()
    finally:
        if not was_tracing:
            tracemalloc.stop()
    sizes = {
        tuple(
            Call(f"{frame.filename}:{frame.lineno}", frame.filename, frame.lineno) for frame in statistic.traceback
        ): statistic.size
        for statistic in snapshot.statistics("traceback")
    }
    return _document(f"Memory allocated in {seconds:g} s and not freed", "bytes", sizes)


def _stack(frame: FrameType | None) -> Stack:
    calls: list[Call] = []
    while frame is not None and len(calls) < _DEPTH_MAX:
        code = frame.f_code
        calls.append(Call(code.co_qualname, code.co_filename, code.co_firstlineno))
        frame = frame.f_back
    return tuple(reversed(calls))


def _document(name: str, unit: str, weights: Mapping[Stack, float]) -> Document:
    numbers: dict[Call, int] = {}

    def numbers_of(stack: Iterable[Call]) -> list[int]:
        return [numbers.setdefault(call, len(numbers)) for call in stack]

    heaviest = sorted(weights.items(), key=lambda item: -item[1])
    samples = [numbers_of(stack) for stack, _ in heaviest]
    profile = {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(weights.values()),
        "samples": samples,
        "weights": [weight for _, weight in heaviest],
    }
    return {
        "$schema": _SCHEMA,
        "exporter": "podium",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [call._asdict() for call in numbers]},
        "profiles": [profile],
    }
