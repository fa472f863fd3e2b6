from __future__ import annotations

import time

import pytest

from podium.lib.clock import ManualClock, SystemClock


def test_a_manual_clock_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock(1000.0)
    assert (clock.now(), clock.monotonic()) == (1000.0, 0.0)
    clock.advance(2.5)
    assert (clock.now(), clock.monotonic()) == (1002.5, 2.5)


def test_a_manual_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="time does not go back"):
        ManualClock().advance(-1)


def test_the_system_clock_reads_the_machines_clocks() -> None:
    before_s, before_monotonic_s = time.time(), time.monotonic()
    clock = SystemClock()
    assert before_s <= clock.now() <= time.time()
    assert before_monotonic_s <= clock.monotonic() <= time.monotonic()
