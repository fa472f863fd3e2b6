import os

import pytest

from benchmarks.processor_time import busy_s, peak_rss_bytes, rss_bytes


def test_busy_time_leaves_out_idle_waiting_and_stolen_time() -> None:
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    stat = "cpu  100 20 30 9000 800 4 5 700 60 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
    assert busy_s(stat) == pytest.approx((100 + 20 + 30 + 4 + 5) * tick_s)


def test_peak_memory_is_the_high_water_mark() -> None:
    status = "Name:\tx\nVmPeak:\t  999 kB\nVmHWM:\t    12 kB\nVmRSS:\t     3 kB\n"
    assert peak_rss_bytes(status) == 12 * 1024
    assert rss_bytes(status) == 3 * 1024
