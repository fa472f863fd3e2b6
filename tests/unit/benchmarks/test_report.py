import dataclasses
import io

import pytest
from rich.console import Console

from benchmarks.measure import Run
from benchmarks.report import MIB, as_json, medians, notes, ratios, table

RUN = Run(
    workload="plain",
    nodes=1000,
    pods=2000,
    scheduler="podium",
    until_ready_s=1.5,
    interval_s=4.0,
    cpu_interval_s=1.0,
    cpu_tail_s=0.2,
    cpu_total_s=3.0,
    apiserver_cores=1.0,
    etcd_cores=0.25,
    harness_cores=0.01,
    machine_cores=1.53,
    peak_rss_bytes=100 * MIB,
    events=2000,
    attempts=2000,
    attempt_p50_ms=2.0,
    attempt_p99_ms=4.0,
    algorithm_p99_ms=1.0,
    binding_p99_ms=3.0,
    loop_stalls=0,
)


def run(**changes: object) -> Run:
    return dataclasses.replace(RUN, **changes)  # type: ignore[arg-type]


def test_rates_are_over_the_interval_and_noise_is_what_nobody_we_know_has_spent() -> None:
    assert RUN.pods_per_s == 500
    assert RUN.cpu_ms_per_pod == 0.5
    assert RUN.cpu_ms_per_pod_with_tail == pytest.approx(0.6)
    assert RUN.servers_cores == 1.25
    assert RUN.others_cores == pytest.approx(0.02)


def test_each_figure_is_the_median_of_its_own() -> None:
    slow_but_cheap = run(interval_s=8.0, cpu_interval_s=0.5)
    fast_but_dear = run(interval_s=2.0, cpu_interval_s=4.0)
    (figures,) = medians([slow_but_cheap, RUN, fast_but_dear])
    assert figures.runs == 3
    assert figures.pods_per_s == 500
    assert figures.cpu_ms_per_pod == 0.5


def test_no_stall_of_any_run_is_passed_over() -> None:
    (figures,) = medians([RUN, run(loop_stalls=2), RUN])
    assert figures.loop_stalls == 2


def test_runs_are_kept_apart_by_workload_size_and_scheduler() -> None:
    runs = [RUN, run(nodes=5000), run(scheduler="kube-scheduler"), run(workload="node-affinity"), RUN]
    keys = [(median.workload, median.nodes, median.scheduler, median.runs) for median in medians(runs)]
    assert keys == [
        ("plain", 1000, "podium", 2),
        ("plain", 5000, "podium", 1),
        ("plain", 1000, "kube-scheduler", 1),
        ("node-affinity", 1000, "podium", 1),
    ]


def test_a_ratio_is_podium_over_kube_scheduler_whoever_ran_first() -> None:
    kube_scheduler = run(scheduler="kube-scheduler", interval_s=8.0, cpu_interval_s=4.0, peak_rss_bytes=200 * MIB)
    for order in ([RUN, kube_scheduler], [kube_scheduler, RUN]):
        (ratio,) = ratios(medians(order))
        assert ratio.pods_per_s == 2.0
        assert ratio.cpu_ms_per_pod == 0.25
        assert ratio.peak_rss_mib == 0.5


def test_a_size_that_only_one_scheduler_has_run_has_no_ratio() -> None:
    assert ratios(medians([RUN, run(scheduler="kube-scheduler", nodes=5000)])) == []


def test_the_table_shows_both_schedulers_and_their_ratio_under_them() -> None:
    output = io.StringIO()
    figures = medians([RUN, run(scheduler="kube-scheduler", interval_s=8.0)])
    Console(file=output, width=180).print(table(figures, cores=2))
    rows = [line for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [row.split("│")[3].strip() for row in rows[-3:]] == ["podium", "kube-scheduler", "ratio"]
    assert "2.00×" in rows[-1]


def test_nothing_is_noted_about_a_quiet_run_with_all_its_events() -> None:
    assert notes(medians([RUN])) == []


def test_missing_events_and_a_busy_machine_are_noted() -> None:
    text = "\n".join(notes(medians([run(events=1000, machine_cores=2.01)])))
    assert "wrote 0.50 Events per pod" in text
    assert "0.50 cores" in text


def test_json_holds_runs_medians_ratios_and_the_machine() -> None:
    content = as_json([RUN, run(scheduler="kube-scheduler")], {"cores": 2})
    assert content["machine"] == {"cores": 2}
    assert [run["scheduler"] for run in content["runs"]] == ["podium", "kube-scheduler"]
    assert content["ratios"][0]["pods_per_s"] == 1.0
    assert content["medians"][0]["pods_per_s"] == 500
