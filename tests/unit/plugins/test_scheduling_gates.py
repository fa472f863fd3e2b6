from __future__ import annotations

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import unresolvable
from podium.plugins.scheduling_gates import SchedulingGates
from tests.builders import pod
from tests.unit.plugins.clusters import RecordingHandle

PLUGIN = SchedulingGates(None, RecordingHandle())


def test_gates_hold_a_pod_back_and_are_named() -> None:
    gated_pod = pod(spec={"schedulingGates": [{"name": "example.com/a"}, {"name": "b"}]})
    assert PLUGIN.pre_enqueue(gated_pod) == unresolvable("waiting for scheduling gates: [example.com/a b]")
    assert PLUGIN.pre_enqueue(pod()) is None


def test_only_the_pods_own_gates_matter() -> None:
    mine = pod("mine")
    assert PLUGIN.after_gates_eliminated(mine, mine, mine) is QueueingHint.QUEUE
    assert PLUGIN.after_gates_eliminated(mine, pod("other"), pod("other")) is QueueingHint.SKIP
    (registration,) = PLUGIN.events_to_register()
    assert registration.event.label == "TargetPodUpdatePodSchedulingGatesEliminated"
