"""Traces of operations that took long, with their steps."""

from __future__ import annotations

from structlog.testing import capture_logs

from podium.lib.log import get_logger
from podium.telemetry.slow_trace import log_if_long


def test_an_operation_of_a_tenth_of_a_second_is_logged_with_the_time_of_each_step() -> None:
    with capture_logs() as logs:
        log_if_long(get_logger("x"), "Scheduling", 10.0, [("A done", 10.08), ("B done", 10.1)], 10.11, name="web")
    [entry] = logs
    assert (entry["event"], entry["trace"], entry["name"], entry["log_level"]) == ("Trace", "Scheduling", "web", "info")
    assert (entry["total_ms"], entry["steps_ms"]) == (110, {"A done": 80, "B done": 20})


def test_a_shorter_operation_is_not_logged() -> None:
    with capture_logs() as logs:
        log_if_long(get_logger("x"), "Scheduling", 10.0, [("A done", 10.09)], 10.09)
    assert logs == []
