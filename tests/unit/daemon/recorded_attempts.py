"""A recorder that knows two attempts, and the pages of a podium that knows three pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from podium.daemon.recorder_pages import RecorderPages
from podium.engine.explanation import Group
from podium.engine.flight_recorder import FlightRecorder
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from tests.builders import node, pod
from tests.unit.engine.flight_recorder.recording import FULL, TAINTED, Cluster, place, reject, rejection, scores
from tests.unit.queues.builders import QueueBench

ObjectT = TypeVar("ObjectT", Node, Pod)


class KnownObjects(Generic[ObjectT]):
    """What an informer knows."""

    def __init__(self, *objects: ObjectT) -> None:
        self._objects = {item.key: item for item in objects}

    def get(self, key: str) -> ObjectT | None:
        return self._objects.get(key)

    def list(self) -> list[ObjectT]:
        return list(self._objects.values())


def flight_recorder() -> FlightRecorder:
    """A scheduled pod, and one that fits nowhere."""
    recorder, cluster = FlightRecorder(2 << 20), Cluster("n0", "n1", "n2")
    decision_scores = scores([1, 2], Fit=[70, 50], Spread=[100, 90])
    place(recorder, cluster, pod("web"), 1, rejection([0], TAINTED), scores=decision_scores)
    recorder.on_bound(pod("web"), 0.25)
    reject(recorder, cluster, pod("big", namespace="shop"), rejection([0, 2], FULL), rejection([1], TAINTED))
    return recorder


def recorder_pages(
    recorder: FlightRecorder | None,
    bench: QueueBench,
    leader: str | None = None,
    profiles: tuple[str, ...] = (),
    detail_of: Callable[[Pod, Group], str] = lambda *_: "",
) -> RecorderPages:
    """The pages of a podium with three nodes and three pods: default/web, shop/big and default/new."""
    pods = KnownObjects(pod("web", node="n1"), pod("big", namespace="shop"), pod("new"))
    nodes = KnownObjects(*(node(name) for name in ("n0", "n1", "n2")))
    clock = ManualClock(0.0)
    return RecorderPages(
        recorder,
        bench.queue.listing,
        pods,
        nodes,
        clock,
        lambda: leader,
        profiles=lambda: profiles,
        detail_of=detail_of,
    )
