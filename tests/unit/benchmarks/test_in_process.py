import pytest

from benchmarks.in_process import FullCluster, Rate, Size, checks, measure_in_turn, pods_of
from benchmarks.workloads import WORKLOADS, Place

ENGINE = [name for name, workload in WORKLOADS.items() if Place.ENGINE in workload.places]


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine_places_every_pod_of_a_workload(name: str) -> None:
    workload = WORKLOADS[name]
    cluster = FullCluster(20, workload.objects_before(20, 12), profile=workload.profile)
    for pod in pods_of(workload, 12):
        cluster.attempt(pod)
    assert cluster.placed == 12


@pytest.mark.parametrize("name", ENGINE)
def test_there_is_room_for_the_measured_pods_beside_many_that_run(name: str) -> None:
    cases = [(WORKLOADS[name], size) for size in (Size(60, running=180), Size(50))]
    rates = measure_in_turn(cases, attempts=2, rounds=3)
    assert [(rate.nodes, rate.attempts) for rate in rates] == [(60, 2), (50, 2)]
    assert (rates[0].running, rates[1].running) == (180, WORKLOADS[name].running_count(50))
    assert all(rate.cpu_s > 0 for rate in rates)


def test_a_rate_is_attempts_per_second_of_cpu() -> None:
    rate = Rate("plain", 1000, 0, attempts=200, cpu_s=0.05)
    assert rate.attempts_per_s == pytest.approx(4000)
    assert rate.us_per_attempt == pytest.approx(250)


def test_rates_are_held_against_their_targets() -> None:
    fast, slow = Rate("plain", 5000, 0, 6000, cpu_s=1.0), Rate("plain", 5000, 0, 4000, cpu_s=1.0)
    assert [check.is_met for check in checks([fast, slow, Rate("plain", 1000, 0, 1, cpu_s=1.0)])] == [True, False]
