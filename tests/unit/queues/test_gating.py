from __future__ import annotations

from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Status, error_status, unschedulable
from podium.objects.core import Pod
from podium.queues.gating import PreEnqueueCheck
from tests.builders import pod
from tests.unit.queues.builders import PROFILE, Recorder


class Door(PreEnqueuePlugin):
    """Answers what it is told to, and counts how often it was asked."""

    def __init__(self, name: str, status: Status | None = None) -> None:
        self.name = name  # type: ignore[misc]
        self.status = status
        self.asked = 0

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked += 1
        return self.status


class BrokenDoor(Door):
    def pre_enqueue(self, pod: Pod) -> Status | None:
        raise OSError("stuck")


class House:
    def __init__(self, *doors: Door) -> None:
        self.recorder = Recorder()
        self.pre_enqueue_check = PreEnqueueCheck({PROFILE: doors}, self.recorder)
        self.info = QueuedPodInfo(pod(), 0.0)

    def admits(self) -> bool:
        return self.pre_enqueue_check.admits(self.info)


def test_a_pod_that_every_plugin_lets_through_is_admitted() -> None:
    house = House(Door("A"), Door("B"))
    assert house.admits()
    assert not house.info.is_gated


def test_the_first_plugin_that_objects_gates_the_pod() -> None:
    first, second = Door("A", unschedulable("no")), Door("B", unschedulable("no"))
    house = House(first, second)
    assert not house.admits()
    assert house.info.gating_plugin == "A"
    assert house.info.unschedulable_plugins == {"A"}
    assert second.asked == 0


def test_the_plugin_that_gated_it_is_asked_first() -> None:
    first, second = Door("A"), Door("B", unschedulable("no"))
    house = House(first, second)
    house.admits()
    house.admits()
    assert (first.asked, second.asked) == (1, 2)


def test_a_pod_may_pass_from_one_gate_to_the_next() -> None:
    first, second = Door("A"), Door("B", unschedulable("no"))
    house = House(first, second)
    house.admits()
    first.status, second.status = unschedulable("no"), None
    assert not house.admits()
    assert house.info.gating_plugin == "A"
    assert house.info.unschedulable_plugins == {"A", "B"}


def test_a_plugin_that_gated_it_stays_among_its_rejectors_once_it_passes() -> None:
    door = Door("A", unschedulable("no"))
    house = House(door)
    house.admits()
    door.status = None
    assert house.admits()
    assert house.info.gating_plugin == ""
    assert house.info.unschedulable_plugins == {"A"}


def test_each_rejector_is_counted_once() -> None:
    house = House(Door("A", unschedulable("no")))
    house.admits()
    house.admits()
    assert house.recorder.unschedulable == {"A": 1}


def test_a_plugin_that_rejected_it_already_is_not_counted_again() -> None:
    house = House(Door("A", unschedulable("no")))
    house.info.pending_plugins = {"A"}
    house.admits()
    assert house.recorder.unschedulable == {}


def test_an_error_does_not_gate_and_is_reported() -> None:
    house = House(Door("A", error_status("out of order")))
    assert not house.admits()
    assert (house.info.gating_plugin, house.info.has_failed_at_gate) == ("", True)
    assert house.info.unschedulable_plugins == set()
    assert house.recorder.failures == [("A", "PreEnqueue", "out of order")]


def test_an_exception_does_not_gate_and_is_reported() -> None:
    house = House(BrokenDoor("A"))
    assert not house.admits()
    assert (house.info.gating_plugin, house.info.has_failed_at_gate) == ("", True)
    assert house.recorder.failures == [("A", "PreEnqueue", "stuck")]
