from __future__ import annotations

import time

from podium.lib.system_clock import SystemClock


def test_the_system_clock_reads_the_machines_clocks() -> None:
    before_s, before_monotonic_s = time.time(), time.monotonic()
    clock = SystemClock()
    assert before_s <= clock.now() <= time.time()
    assert before_monotonic_s <= clock.monotonic() <= time.monotonic()
