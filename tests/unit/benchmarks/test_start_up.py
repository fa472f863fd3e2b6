import io
from dataclasses import replace

from rich.console import Console

from benchmarks.start_up import NODES, PODS, SIZES, StartUp, checks, medians, sizes, table

PODIUM = StartUp(
    scheduler="podium",
    nodes=NODES,
    pods=PODS,
    until_ready_s=4.0,
    cpu_s=3.0,
    servers_cores=0.5,
    machine_cores=1.5,
    peak_rss_mib=300.0,
    rss_mib=250.0,
    pods_per_s=700.0,
    cpu_ms_per_pod=0.6,
    loop_stalls=0,
)
OTHER = replace(PODIUM, scheduler="kube-scheduler", until_ready_s=6.0, peak_rss_mib=400.0)


def test_each_figure_is_the_median_of_its_own_by_scheduler() -> None:
    starts = [PODIUM, OTHER, replace(PODIUM, until_ready_s=9.0, cpu_s=1.0), replace(PODIUM, cpu_s=2.0)]
    podium, kube_scheduler = medians(starts)
    assert (podium.scheduler, podium.until_ready_s, podium.cpu_s) == ("podium", 4.0, 2.0)
    assert kube_scheduler == OTHER


def test_readiness_is_held_against_five_seconds_and_memory_against_the_other() -> None:
    assert [check.is_met for check in checks([PODIUM, OTHER])] == [True] * 3
    slow_and_large = replace(PODIUM, until_ready_s=5.1, peak_rss_mib=401.0, loop_stalls=1)
    assert [check.is_met for check in checks([slow_and_large, OTHER])] == [False] * 3


def test_a_smaller_cluster_has_no_limit_of_time() -> None:
    assert [check.about for check in checks([replace(PODIUM, pods=10)])] == [
        "start with 5,000 nodes and 10 pods: loop stalls over 50 ms"
    ]
    assert list(checks([OTHER])) == []


def test_each_size_is_judged_by_itself() -> None:
    large = replace(PODIUM, nodes=15_000, pods=100_000, peak_rss_mib=500.0)
    figures = medians([PODIUM, OTHER, large, replace(OTHER, nodes=15_000, pods=100_000, peak_rss_mib=499.0)])
    assert [check.about for check in checks(figures) if not check.is_met] == [
        "start with 15,000 nodes and 100,000 pods: peak memory"
    ]


def test_the_sizes_are_those_asked_for() -> None:
    assert sizes(None, None) == SIZES
    assert sizes([10, 20], None) == [(10, PODS), (20, PODS)]
    assert sizes(None, 7) == [(NODES, 7)]


def test_the_table_has_a_row_for_each_scheduler() -> None:
    output = io.StringIO()
    Console(file=output, width=200).print(table([PODIUM, OTHER]))
    rows = [line for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [row.split("│")[3].strip() for row in rows] == ["podium", "kube-scheduler"]
