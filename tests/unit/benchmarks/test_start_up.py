import io
from dataclasses import replace

from rich.console import Console

from benchmarks.start_up import NODES, PODS, StartUp, checks, medians, table

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


def test_the_table_has_a_row_for_each_scheduler() -> None:
    output = io.StringIO()
    Console(file=output, width=120).print(table([PODIUM, OTHER]))
    rows = [line for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["podium", "kube-scheduler"]
