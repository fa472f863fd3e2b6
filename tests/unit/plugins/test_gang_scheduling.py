from __future__ import annotations

from typing import Any

import pytest

from podium.config import NEWEST, RELEASES, Release
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.pod_groups import SimulatedGroup
from podium.framework.contract.status import Code, PluginError, Status, unresolvable
from podium.objects.core import Pod
from podium.objects.resource_types import POD_GROUPS
from podium.plugins.gang_scheduling import GangScheduling
from tests.builders import pod, pod_group
from tests.unit.plugins.clusters import GroupsOfPods, RecordingHandle

A, B, C = (pod(name, group="gang") for name in "abc")
TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
WAIT = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class Waiting:
    """Pods that wait at Permit."""

    def __init__(self) -> None:
        self.allowed: list[str] = []

    def get(self, uid: str) -> Any:
        uids = self.allowed

        class One:
            def allow(self, plugin: str) -> None:
                uids.append(f"{plugin} {uid}")

        return One() if uid == "uid-a" else None


def handle_of(*pods: Pod, groups: Any = None, release: Release = NEWEST) -> RecordingHandle:
    group_objects = [pod_group("gang", min_count=2)] if groups is None else groups
    return RecordingHandle(
        pod_groups=GroupsOfPods(pods),
        objects={POD_GROUPS: group_objects},
        waiting_pods=Waiting(),
        release=release,
    )


def gate(item: Pod, handle: RecordingHandle) -> Status | None:
    return GangScheduling(None, handle).pre_enqueue(item)


def test_a_gang_enters_the_queue_once_it_is_complete() -> None:
    assert gate(A, handle_of(A)) == TOO_FEW
    assert gate(A, handle_of(A, B)) is None
    assert gate(A, handle_of(A, pod("b", group="gang", node="n1"))) is None


def test_pods_in_no_gang_are_not_held_back() -> None:
    assert gate(pod(), handle_of(pod())) is None
    assert gate(A, handle_of(A, groups=[pod_group("gang")])) is None


def test_a_pod_waits_for_its_group_to_be_created() -> None:
    answer = gate(A, handle_of(A, B, groups=[pod_group("other")]))
    assert answer == unresolvable('waiting for pods\'s pod group "gang" to appear in scheduling queue')


def test_a_pod_that_is_in_no_known_group_is_an_error() -> None:
    answer = gate(A, handle_of())
    assert answer is not None
    assert answer.message == "pod group state not found for pod group default/gang"


@pytest.mark.parametrize(("minor", "activated"), [("1.36", [B.key]), ("1.37", [])])
def test_pods_wait_until_the_gang_has_its_nodes_and_in_1_36_siblings_that_wait_one_by_one_are_tried(
    minor: str, activated: list[str]
) -> None:
    handle = handle_of(A, B, release=RELEASES[minor])
    handle.pod_groups.states.assume(A.on_node("n1"))
    plugin = GangScheduling(None, handle)
    assert plugin.permit(CycleState(), A, "n1") == (WAIT, 300.0)
    assert handle.pod_groups.activated == activated
    assert handle.waiting_pods.allowed == []


def test_the_last_pod_lets_the_others_go() -> None:
    handle = handle_of(A, B)
    for member in (A, B):
        handle.pod_groups.states.assume(member.on_node("n1"))
    assert GangScheduling(None, handle).permit(CycleState(), B, "n1") == (None, 0.0)
    assert handle.waiting_pods.allowed == ["GangScheduling uid-a"]


def test_in_a_simulation_the_simulated_pods_count() -> None:
    handle = handle_of(A, B)
    state = handle.pod_groups.states.get("default/gang")
    assert state is not None
    simulated_state, cycle_state = state.copy(), CycleState()
    cycle_state.write(SimulatedGroup(simulated_state))
    plugin = GangScheduling(None, handle)
    simulated_state.assume(A.on_node("n1"))
    assert plugin.permit(cycle_state, A, "n1") == (WAIT, 300.0)
    assert handle.pod_groups.activated == []
    simulated_state.assume(B.on_node("n1"))
    assert plugin.permit(cycle_state, B, "n1") == (None, 0.0)
    cycle_state.write(SimulatedGroup(None))
    assert plugin.permit(cycle_state, B, "n1") == (WAIT, 300.0)


def test_permit_fails_without_the_group() -> None:
    status, _ = GangScheduling(None, handle_of(A, groups=[])).permit(CycleState(), A, "n1")
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message == 'failed to get podGroup default/gang: podgroup.scheduling.k8s.io "gang" not found'
    status, _ = GangScheduling(None, handle_of()).permit(CycleState(), A, "n1")
    assert status is not None
    assert status.code is Code.ERROR


def test_other_pods_are_let_through() -> None:
    plugin = GangScheduling(None, handle_of(A, groups=[pod_group("gang")]))
    assert plugin.permit(CycleState(), A, "n1") == plugin.permit(CycleState(), pod(), "n1") == (None, 0.0)


def test_without_the_feature_gate_the_plugin_is_refused() -> None:
    handle = handle_of()
    handle.pod_groups = None  # type: ignore[assignment]
    with pytest.raises(PluginError, match="GangScheduling needs the feature gate GenericWorkload"):
        GangScheduling(None, handle)
