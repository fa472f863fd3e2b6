import io
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.storm import Storm, checks, medians, summary, table

PODIUM = Storm(
    scheduler="podium",
    nodes=1000,
    pods=3000,
    calm_pods_per_s=500.0,
    storm_pods_per_s=400.0,
    calm_cpu_ms_per_pod=1.0,
    storm_s=30.0,
    updates_per_s=1000.0,
    cpu_cores=0.4,
    hint_cpu_s=0.2,
    hint_calls=30_000.0,
    events_seen=30_000.0,
)
OTHER = replace(PODIUM, scheduler="kube-scheduler", storm_pods_per_s=50.0)


def test_each_figure_is_the_median_of_its_own_by_scheduler() -> None:
    podium, other = medians([PODIUM, OTHER, replace(PODIUM, cpu_cores=0.9), replace(PODIUM, hint_cpu_s=0.3)])
    assert (podium.scheduler, podium.cpu_cores, podium.hint_cpu_s) == ("podium", 0.4, 0.2)
    assert other == OTHER


@pytest.mark.parametrize(("storm_pods_per_s", "is_met"), [(350.0, True), (349.0, False)])
def test_podium_is_to_keep_seven_tenths_of_its_rate(storm_pods_per_s: float, is_met: bool) -> None:
    (check,) = checks([replace(PODIUM, storm_pods_per_s=storm_pods_per_s), OTHER])
    assert check.is_met is is_met


def test_the_table_has_a_row_for_each_scheduler() -> None:
    output = io.StringIO()
    Console(file=output, width=160).print(table([PODIUM, OTHER]))
    rows = [line for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["podium", "kube-scheduler"]
    assert "0.80×" in rows[0]


def test_a_storm_is_summed_up_in_a_line() -> None:
    assert summary(PODIUM) == (
        "podium, 500 pods/s in calm, 400 in a storm of 1,000 updates/s; 0.40 cores, 0.20 s in hints"
    )
