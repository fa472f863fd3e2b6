from __future__ import annotations

from typing import Any

import pytest

from podium.config import NEWEST, RELEASES
from podium.objects.core import Node, Pod
from podium.queues import node_changes, pod_changes
from tests.builders import node, pod

RULES, RULES_1_36 = NEWEST, RELEASES["1.36"]


def pod_labels(old: Pod, new: Pod) -> list[str]:
    return [event.label for event in pod_changes(old, new, RULES)]


GATES = ("a", "b")
TOLERATION = {"key": "a", "operator": "Exists"}
CLAIMED = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-x"}]}
EXTENDED = {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        (pod(), pod(labels={"a": "b"}), "UpdatePodLabel"),
        (pod(requests={"cpu": "2"}), pod(requests={"cpu": "1999m"}), "UpdatePodScaleDown"),
        (pod(requests={"cpu": "2", "x/y": "1"}), pod(requests={"cpu": "2"}), "UpdatePodScaleDown"),
        (pod(gates=GATES), pod(), "UpdatePodSchedulingGatesEliminated"),
        (pod(), pod(tolerations=(TOLERATION,)), "UpdatePodToleration"),
        (pod(), pod(status=CLAIMED), "UpdatePodGeneratedResourceClaim"),
        (pod(), pod(status=EXTENDED), "UpdatePodGeneratedResourceClaim"),
        (pod(), pod(), "Update"),
        (pod(gates=GATES), pod(gates=GATES[:1]), "Update"),
        (pod(), pod(gates=GATES), "Update"),
        (pod(requests={"cpu": "1"}), pod(requests={"cpu": "2"}), "UpdatePodScaleUp"),
        (pod(requests={"cpu": "1"}), pod(requests={"cpu": "1", "x/y": "1"}), "UpdatePodScaleUp"),
        (pod(requests={"cpu": "1"}), pod(requests={"cpu": "1000m"}), "Update"),
        (pod(tolerations=(TOLERATION,)), pod(tolerations=({"key": "b"},)), "Update"),
        (pod(), pod(status={"phase": "Pending"}), "Update"),
    ],
)
def test_a_pods_change_has_a_name(old: Pod, new: Pod, action: str) -> None:
    assert pod_labels(old, new) == [f"TargetPod{action}"]


def test_changes_of_a_bound_pod_are_those_of_an_assigned_one() -> None:
    assert pod_labels(pod(), pod(node="n1")) == ["AssignedPodUpdate"]
    assert pod_labels(pod(node="n1"), pod(node="n1", labels={"a": "b"})) == ["AssignedPodUpdatePodLabel"]


def test_changes_of_another_waiting_pod_are_those_of_an_unscheduled_one() -> None:
    (event,) = pod_changes(pod(), pod(labels={"a": "b"}), RULES, is_own=False)
    assert event.label == "UnscheduledPodUpdatePodLabel"


@pytest.mark.parametrize("is_own", [True, False])
def test_in_1_36_all_waiting_pods_are_unschedulable_ones(is_own: bool) -> None:
    (event,) = pod_changes(pod(), pod(labels={"a": "b"}), RULES_1_36, is_own=is_own)
    assert event.label == "UnschedulablePodUpdatePodLabel"


def test_in_1_36_a_pod_that_grows_is_only_updated() -> None:
    old, new = pod(node="n1", requests={"cpu": "1"}), pod(node="n1", requests={"cpu": "2"})
    assert [event.label for event in pod_changes(old, new, RULES_1_36)] == ["AssignedPodUpdate"]


def test_a_pod_may_shrink_and_grow_at_once() -> None:
    old, new = pod(requests={"cpu": "1", "memory": "2Gi"}), pod(requests={"cpu": "2", "memory": "1Gi"})
    assert pod_labels(old, new) == ["TargetPodUpdatePodScaleDown", "TargetPodUpdatePodScaleUp"]


def test_all_changes_become_events_in_order() -> None:
    old = pod(gates=GATES, requests={"cpu": "2"})
    new = pod(labels={"a": "b"}, tolerations=(TOLERATION,), requests={"cpu": "1", "x/y": "1"}, status=CLAIMED)
    assert pod_labels(old, new) == [
        "TargetPodUpdatePodLabel",
        "TargetPodUpdatePodScaleDown",
        "TargetPodUpdatePodScaleUp",
        "TargetPodUpdatePodSchedulingGatesEliminated",
        "TargetPodUpdatePodToleration",
        "TargetPodUpdatePodGeneratedResourceClaim",
    ]


def test_a_resize_scales_down_only_once_it_is_carried_out() -> None:
    def holding(cpu: str) -> dict[str, Any]:
        container_status = {"name": "app", "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
        return {"containerStatuses": [container_status]}

    running = pod(node="n1", requests={"cpu": "2"}, status=holding("2"))
    pod_before = pod(node="n1", requests={"cpu": "1"}, status=holding("2"))
    pod_after = pod(node="n1", requests={"cpu": "1"}, status=holding("1"))
    assert pod_labels(running, pod_before) == ["AssignedPodUpdate"]
    assert pod_labels(pod_before, pod_after) == ["AssignedPodUpdatePodScaleDown"]


def test_requests_that_cannot_be_read_count_as_scaled_down() -> None:
    assert pod_labels(pod(requests={"cpu": "lots"}), pod(requests={"cpu": "1"})) == ["TargetPodUpdatePodScaleDown"]


# ---------------------------------------------------------------- nodes


def node_labels(old: Node, new: Node) -> list[str]:
    return [event.label.removeprefix("NodeUpdate") for event in node_changes(old, new)]


READY, NOT_READY = ({"type": "Ready", "status": status} for status in ("True", "False"))
POLICY = {"disableResizePreemption": ["vpa.example.com"]}
PRESSURE = {"type": "MemoryPressure", "status": "False"}


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (node(unschedulable=True), node(), ["NodeTaint"]),
        (node(), node(unschedulable=True), []),
        (node(), node(taints=["a:NoSchedule"]), ["NodeTaint"]),
        (node(unschedulable=True, taints=["a:NoSchedule"]), node(), ["NodeTaint", "NodeTaint"]),
        (node(cpu="1"), node(cpu="2"), ["NodeAllocatable"]),
        (node(cpu="1"), node(cpu="1", allocatable={"x/y": "0"}), ["NodeAllocatable"]),
        (node(cpu="1"), node(cpu="1000m"), []),
        (node(cpu="1"), node(cpu="lots"), ["NodeAllocatable"]),
        (node(), node(labels={"a": "b"}), ["NodeLabel"]),
        (node(status={"conditions": [READY]}), node(status={"conditions": [NOT_READY]}), ["NodeCondition"]),
        (node(status={"conditions": [READY, PRESSURE]}), node(status={"conditions": [PRESSURE, READY]}), []),
        (node(), node(metadata={"annotations": {"a": "b"}}), ["NodeAnnotation"]),
        (node(), node(spec={"podPreemptionPolicy": POLICY}), ["NodePreemptionPolicy"]),
        (node(spec={"podPreemptionPolicy": POLICY}), node(), ["NodePreemptionPolicy"]),
        (node(spec={"podPreemptionPolicy": POLICY}), node(spec={"podPreemptionPolicy": POLICY}), []),
        (node(), node(status={"declaredFeatures": ["X"]}), ["NodeDeclaredFeature"]),
        (node(), node(), []),
    ],
)
def test_a_nodes_change_has_a_name(old: Node, new: Node, changes: list[str]) -> None:
    assert node_labels(old, new) == changes


def test_all_changes_of_a_node_become_events_in_order() -> None:
    new = node(
        labels={"a": "b"},
        metadata={"annotations": {"a": "b"}},
        taints=["a:NoSchedule"],
        cpu="1",
        spec={"podPreemptionPolicy": POLICY},
        status={"conditions": [READY], "declaredFeatures": ["X"]},
    )
    assert node_labels(node(unschedulable=True), new) == [
        "NodeTaint",
        "NodeAllocatable",
        "NodeLabel",
        "NodeTaint",
        "NodeCondition",
        "NodeAnnotation",
        "NodePreemptionPolicy",
        "NodeDeclaredFeature",
    ]
