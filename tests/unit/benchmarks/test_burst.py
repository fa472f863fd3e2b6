from dataclasses import replace

import pytest

from benchmarks import burst
from benchmarks.burst import Burst

BURST = Burst(
    workload="plain",
    nodes=1_000,
    waits_s=[number / 1_000 for number in range(1, 5_001)],
    cpu_s=2.5,
    events=5_000,
    conflicts=0,
    server_cores=0.3,
    others_cores=0.0,
)


def test_the_rate_is_that_until_the_last_pod_is_bound() -> None:
    assert BURST.pods_per_s == pytest.approx(1_000.0)


def test_figures_are_medians_of_the_bursts_of_one_size() -> None:
    slower = replace(BURST, waits_s=[3.0 * wait_s for wait_s in BURST.waits_s], cpu_s=5.0)
    other_size = replace(BURST, nodes=5_000)
    figures, other_figures = burst.medians([BURST, slower, replace(slower, conflicts=2), other_size])
    assert (figures.nodes, figures.pods, other_figures.nodes) == (1_000, 5_000, 5_000)
    assert figures.pods_per_s == pytest.approx(333.3, abs=0.1)
    assert figures.p99_s == pytest.approx(14.85, abs=0.01)
    assert figures.cpu_ms_per_pod == pytest.approx(1.0)
    # The worst, since there is to be none.
    assert figures.conflicts == 2


def test_slow_bursts_miss_their_targets() -> None:
    rate, p99 = burst.checks(burst.medians([BURST]))
    assert not rate.is_met
    assert not p99.is_met
    fast = replace(BURST, waits_s=[wait_s / 2.1 for wait_s in BURST.waits_s])
    assert all(check.is_met for check in burst.checks(burst.medians([fast])))


def test_other_work_on_the_machine_is_noted() -> None:
    assert burst.notes(burst.medians([BURST])) == []
    assert "measure again" in burst.notes(burst.medians([replace(BURST, others_cores=0.5)]))[0]


def test_the_table_has_a_row_for_each_size() -> None:
    assert burst.table(burst.medians([BURST, replace(BURST, nodes=5_000)])).row_count == 2
