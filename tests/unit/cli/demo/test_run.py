from __future__ import annotations

import pytest

from podium.cli.demo.run import Watcher
from podium.lib.clock import ManualClock
from tests.builders import pod

UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}

pytestmark = pytest.mark.anyio


class Steps:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def begin(self, stage: str, total: int) -> None:
        self.told.append((stage, total))

    def advance(self, count: int) -> None:
        self.told.append(count)

    def tell(self, text: str) -> None:
        self.told.append(text)


@pytest.fixture
async def watcher() -> Watcher:
    return Watcher(frozenset({"big"}), 2, Steps(), ManualClock())


async def test_the_time_ends_with_the_last_binding_not_with_the_last_word(watcher: Watcher) -> None:
    watcher.start()
    for pods in (pod("a", node="n1"), pod("b", node="n1")):
        watcher.clock.advance(2.0)  # type: ignore[attr-defined]
        watcher.on_update(pod("a"), pods)
    assert not watcher.completion.is_set()
    watcher.clock.advance(5.0)  # type: ignore[attr-defined]
    watcher.on_update(pod("big"), pod("big", status=UNSCHEDULABLE))
    assert watcher.completion.is_set()
    watcher.stop()
    assert watcher.duration_s == 4.0


async def test_a_pod_counts_once_however_often_it_changes(watcher: Watcher) -> None:
    watcher.start()
    for _ in range(3):
        watcher.on_update(pod("a"), pod("a", node="n1"))
    assert watcher.progress.told == [("binding pods", 2), 1]  # type: ignore[attr-defined]


async def test_a_pod_that_fits_is_not_done_with_when_it_is_reported_unschedulable(watcher: Watcher) -> None:
    watcher.start()
    watcher.on_add(pod("a", node="n1"))
    watcher.on_add(pod("big", status=UNSCHEDULABLE))
    watcher.on_update(pod("b"), pod("b", status=UNSCHEDULABLE))
    assert not watcher.completion.is_set()


async def test_without_the_last_binding_the_time_ends_with_the_stop(watcher: Watcher) -> None:
    watcher.start()
    watcher.clock.advance(3.0)  # type: ignore[attr-defined]
    watcher.stop()
    watcher.clock.advance(3.0)  # type: ignore[attr-defined]
    assert watcher.duration_s == 3.0


async def test_there_is_no_duration_before_the_start(watcher: Watcher) -> None:
    watcher.stop()
    assert watcher.duration_s == 0.0
