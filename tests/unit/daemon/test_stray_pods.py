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
    ("name", "meant"),
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
def test_which_names_are_similar(name: str, meant: str | None) -> None:
    assert similar_name(name, OURS) == meant


class World:
    def __init__(self) -> None:
        self.clock, self.metrics = ManualClock(), Metrics()
        self.strays = StrayPods(OURS, self.clock, self.metrics)

    def told(self) -> list[tuple[str, str, int]]:
        with capture_logs() as logs:
            self.strays.tell()
        return [(each["scheduler_name"], each["profile"], each["pods"]) for each in logs if each["event"] == SAYS]


def stray(name: str, scheduler: str) -> Pod:
    return pod(name, scheduler=scheduler)


def test_pods_that_wait_long_under_a_similar_name_are_told_once_an_hour_for_each_name() -> None:
    world = World()
    for name, scheduler in (("a", "podum"), ("b", "podum"), ("c", "Podium"), ("d", "volcano"), ("e", "podum")):
        world.strays.seen(stray(name, scheduler))
    assert world.told() == []
    world.strays.gone(stray("e", "podum").uid)
    world.clock.advance(30)
    assert world.told() == [("podum", "podium", 2), ("Podium", "podium", 1)]
    world.clock.advance(60)
    assert world.told() == []
    world.clock.advance(3600)
    assert len(world.told()) == 2


def test_the_metric_counts_them_by_the_profile_that_may_be_meant() -> None:
    world = World()
    for number in range(500):
        world.strays.seen(stray(f"web-{number}", f"podium{number:03}"[:8]))
    assert world.strays.counts() == {}
    world.clock.advance(31)
    assert world.strays.counts() == {"podium": 500.0}
    assert 'podium_stray_pods{profile="podium"} 500' in world.metrics.render().decode()


def test_names_without_end_are_not_all_remembered() -> None:
    world = World()
    for number in range(5000):
        world.strays.seen(stray(f"web-{number}", f"other-{number}"))
    assert len(world.strays._meant) <= 256
    assert not world.strays._waiting
