import io
from dataclasses import replace

from rich.console import Console

from benchmarks.report import Figures, medians
from benchmarks.targets import at_least, at_most, on_api_server, servers_are_the_limit, table
from tests.unit.benchmarks.test_report import run

PODIUM, OTHER = medians(
    [
        run(nodes=5000, interval_s=4.0, cpu_interval_s=1.0, cpu_tail_s=0.0, machine_cores=2.0),
        run(nodes=5000, interval_s=8.0, cpu_interval_s=4.0, cpu_tail_s=0.0, scheduler="kube-scheduler"),
    ]
)


def verdicts(podium: Figures) -> dict[str, bool]:
    return {check.about.partition(": ")[2]: check.is_met for check in on_api_server([podium, OTHER], cores=2)}


def test_a_target_is_met_up_to_its_bound() -> None:
    assert at_least("", 2.0, 2.0).is_met
    assert not at_least("", 1.99, 2.0).is_met
    assert at_most("", 0.4, 0.4).is_met
    assert not at_most("", 0.41, 0.4).is_met


def test_ratios_are_held_against_their_targets() -> None:
    assert len(verdicts(PODIUM)) == 5
    assert set(verdicts(PODIUM).values()) == {True}
    slow = replace(PODIUM, pods_per_s=OTHER.pods_per_s, cpu_ms_per_pod_with_tail=9.0)
    slow = replace(slow, attempt_p99_ms=5.1, algorithm_p99_ms=5.1, loop_stalls=1)
    assert set(verdicts(replace(slow, servers_cores=0.5)).values()) == {False}


def test_a_slow_attempt_is_shown_beside_what_the_api_server_took_of_it() -> None:
    slow = replace(PODIUM, attempt_p99_ms=30.0, binding_p99_ms=12.0)
    (text,) = [check.measured for check in on_api_server([slow, OTHER], cores=2) if "binding" in check.about]
    assert text == "30 ms, API server's own part 12 ms"


def test_pods_per_second_do_not_count_where_the_servers_have_all_the_cpu_that_podium_leaves() -> None:
    half_a_core = replace(PODIUM, pods_per_s=500.0, cpu_ms_per_pod=1.0)
    assert servers_are_the_limit(replace(half_a_core, servers_cores=1.4), cores=2)
    assert not servers_are_the_limit(replace(half_a_core, servers_cores=1.3), cores=2)
    slow = replace(PODIUM, pods_per_s=OTHER.pods_per_s, servers_cores=1.9)
    assert verdicts(slow)["pods/s"]
    assert not verdicts(replace(slow, servers_cores=1.2))["pods/s"]


def test_a_podium_that_is_busy_itself_is_the_limit() -> None:
    busy = replace(PODIUM, pods_per_s=900.0, cpu_ms_per_pod=1.0, servers_cores=1.1)
    assert not servers_are_the_limit(busy, cores=2)


def test_what_has_no_target_is_not_judged() -> None:
    assert list(on_api_server([replace(PODIUM, workload="gated"), replace(OTHER, workload="gated")], cores=2)) == []
    assert list(on_api_server([PODIUM], cores=2)) == []


def test_the_table_says_which_targets_are_missed() -> None:
    output = io.StringIO()
    Console(file=output, width=100).print(table([at_least("speed", 3, 2), at_most("cost", 3, 2)]))
    speed, cost = [line for line in output.getvalue().splitlines() if "speed" in line or "cost" in line]
    assert "met" in speed
    assert "missed" in cost
