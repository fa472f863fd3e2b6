import io
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.storm import CALM, ELSEWHERE, STORM, Phase, checks, medians, notes, shares_kept, summary, table

PODIUM = Phase(
    scheduler="podium",
    load=STORM,
    nodes=1000,
    pods=3000,
    pods_per_s=400.0,
    updates_per_s=1000.0,
    scheduler_cores=0.4,
    apiserver_cores=0.9,
    etcd_cores=0.3,
    harness_cores=0.1,
    machine_cores=1.8,
    phase_s=30.0,
    hint_cpu_s=0.2,
    hint_calls=30_000.0,
    events_seen=30_000.0,
)
ELSEWHERE_PODIUM = replace(PODIUM, load=ELSEWHERE, pods_per_s=450.0, events_seen=0.0)
CALM_PODIUM = replace(ELSEWHERE_PODIUM, load=CALM, pods_per_s=500.0, updates_per_s=0.0)
OTHER = replace(PODIUM, scheduler="kube-scheduler", pods_per_s=50.0)
PHASES = [CALM_PODIUM, ELSEWHERE_PODIUM, PODIUM, OTHER]


def test_each_figure_is_the_median_of_its_own_by_scheduler_and_load() -> None:
    more_phases = [replace(PODIUM, scheduler_cores=0.9), replace(PODIUM, hint_cpu_s=0.3)]
    calm, elsewhere, storm, kube_scheduler = medians([*PHASES, *more_phases])
    assert (calm, elsewhere, kube_scheduler) == (CALM_PODIUM, ELSEWHERE_PODIUM, OTHER)
    assert (storm.load, storm.scheduler_cores, storm.hint_cpu_s) == (STORM, 0.4, 0.2)


def test_what_is_kept_is_a_share_of_the_rate_in_calm_where_that_is_known() -> None:
    assert shares_kept(PHASES) == {("podium", CALM): 1.0, ("podium", ELSEWHERE): 0.9, ("podium", STORM): 0.8}


@pytest.mark.parametrize(
    ("pods_per_s", "are_met"), [(350.0, [True, True]), (349.0, [False, True]), (314.0, [False, False])]
)
def test_podium_is_to_keep_seven_tenths_of_its_rate_and_of_what_the_servers_leave(
    pods_per_s: float, are_met: list[bool]
) -> None:
    figures = [CALM_PODIUM, ELSEWHERE_PODIUM, replace(PODIUM, pods_per_s=pods_per_s), OTHER]
    assert [check.is_met for check in checks(figures)] == are_met


def test_without_calm_there_is_nothing_to_check() -> None:
    assert list(checks([PODIUM, OTHER])) == []


def test_the_table_has_a_row_for_each_scheduler_and_load() -> None:
    output = io.StringIO()
    Console(file=output, width=220).print(table(PHASES))
    rows = [[cell.strip() for cell in line.split("│")] for line in output.getvalue().splitlines() if "│" in line]
    assert [row[1:5] for row in rows] == [
        ["podium", "calm", "500", "1.00×"],
        ["podium", "updates elsewhere", "450", "0.90×"],
        ["podium", "storm", "400", "0.80×"],
        ["kube-scheduler", "storm", "50", ""],
    ]


def test_other_work_on_the_machine_makes_a_figure_doubtful() -> None:
    assert list(notes(PHASES)) == []
    assert list(notes([CALM_PODIUM, replace(OTHER, machine_cores=1.95)])) == [
        "kube-scheduler, storm: other processes used 0.25 cores meanwhile; measure again"
    ]


def test_a_phase_is_summed_up_in_a_line() -> None:
    assert summary(PODIUM) == (
        "podium, storm: 400 pods/s, 1,000 updates/s; cores: 0.40 scheduler, 0.90 API server, 0.30 etcd, "
        "0.10 benchmark, 1.80 whole machine; 0.20 s in hints"
    )
