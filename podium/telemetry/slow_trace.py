"""A log line with the steps of an operation that took long.

Source: k8s.io/utils/trace, and its uses in kubernetes pkg/scheduler/schedule_one.go (v1.36.2) and karmada
pkg/estimator/server/estimate.go (v1.18).
Differs: one structured line has the steps, all of them, where upstream writes a line for each step that took more than
its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from structlog.typing import FilteringBoundLogger

LONG_S: Final = 0.1
"""An operation that takes as long as this is logged."""

Step = tuple[str, float]
"""A step that was done, and the time when it ended."""


def log_if_long(
    log: FilteringBoundLogger, trace: str, started_s: float, steps: Sequence[Step], ended_s: float, /, **fields: Any
) -> None:
    """Log an operation that took `LONG_S` or more, with the milliseconds of each step and in total.

    Args:
        trace: the name of the operation.
        fields: what the operation was about.
    """
    if ended_s - started_s < LONG_S:
        return
    took_ms: dict[str, int] = {}
    before_s = started_s
    for step, done_s in steps:
        took_ms[step] = _milliseconds(done_s - before_s)
        before_s = done_s
    log.info("Trace", trace=trace, **fields, total_ms=_milliseconds(ended_s - started_s), steps_ms=took_ms)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
