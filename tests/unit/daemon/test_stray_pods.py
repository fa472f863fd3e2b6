from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from podium.daemon.stray_pods import StrayPods, similar_name
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.telemetry import Metrics
from tests.builders import pod

OURS = frozenset({"podium", "batch-scheduler"})
SAYS = "Pods wait for a scheduler of a similar name: is it misspelt?"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("podum", "podium"),
        ("Podium", "podium"),
        ("podium ", "podium"),
        ("podiun", "podium"),
        ("batch_scheduler", "batch-scheduler"),
        ("batchscheduler", "batch-scheduler"),
        ("podium", None),
        ("default-scheduler", None),
        ("volcano", None),
        ("", None),
        ("x" * 1_000_000, None),
    ],
)
def test_which_names_are_similar(name: str, suggestion: str | None) -> None:
    assert similar_name(name, OURS) == suggestion


class StrayPodsBench:
    def __init__(self) -> None:
        self.clock, self.metrics = ManualClock(), Metrics()
        self.strays = StrayPods(OURS, self.clock, self.metrics)

    def reports(self) -> list[tuple[str, str, int]]:
        with capture_logs() as logs:
            self.strays.report()
        return [(entry["scheduler_name"], entry["profile"], entry["pods"]) for entry in logs if entry["event"] == SAYS]


def stray(name: str, scheduler: str) -> Pod:
    return pod(name, scheduler=scheduler)


def test_pods_that_wait_long_under_a_similar_name_are_told_once_an_hour_for_each_name() -> None:
    bench = StrayPodsBench()
    for name, scheduler in (("a", "podum"), ("b", "podum"), ("c", "Podium"), ("d", "volcano"), ("e", "podum")):
        bench.strays.on_add(stray(name, scheduler))
    assert bench.reports() == []
    bench.strays.on_delete(stray("e", "podum"))
    bench.clock.advance(30)
    assert bench.reports() == [("podum", "podium", 2), ("Podium", "podium", 1)]
    bench.clock.advance(60)
    assert bench.reports() == []
    bench.clock.advance(3600)
    assert len(bench.reports()) == 2


def test_the_metric_counts_them_by_the_profile_that_may_be_meant() -> None:
    bench = StrayPodsBench()
    for number in range(500):
        bench.strays.on_add(stray(f"web-{number}", f"podium{number:03}"[:8]))
    assert bench.strays.counts() == {}
    bench.clock.advance(31)
    assert bench.strays.counts() == {"podium": 500.0}
    assert 'podium_stray_pods{profile="podium"} 500' in bench.metrics.render().decode()


def test_names_without_end_are_not_all_remembered() -> None:
    bench = StrayPodsBench()
    for number in range(5000):
        bench.strays.on_add(stray(f"web-{number}", f"other-{number}"))
    assert len(bench.strays._meant) <= 256
    assert not bench.strays._waiting


def test_a_pod_is_a_stray_until_it_is_bound() -> None:
    bench = StrayPodsBench()
    waiting = stray("web-1", "podum")
    bound_pod = waiting.on_node("n1")
    bench.strays.on_add(waiting)
    bench.clock.advance(60)
    assert bench.strays.counts() == {"podium": 1.0}
    bench.strays.on_update(waiting, bound_pod)
    assert bench.strays.counts() == {}
    bench.strays.on_update(bound_pod, waiting)
    bench.clock.advance(60)
    assert bench.strays.counts() == {"podium": 1.0}
    bench.strays.on_delete(waiting)
    assert bench.strays.counts() == {}
