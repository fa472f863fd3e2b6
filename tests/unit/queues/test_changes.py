from __future__ import annotations

from typing import Any

import pytest

from podium.objects.core import (
    Container,
    ContainerStatus,
    ExtendedResourceClaimStatus,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SchedulingGate,
    Taint,
    Toleration,
)
from podium.queues import node_changes, pod_changes


def pod(*, labels: dict[str, str] | None = None, node: str = "", status: PodStatus | None = None, **spec: Any) -> Pod:
    requests = spec.pop("requests", None)
    if requests is not None:
        spec["containers"] = (Container(name="c", resources=ResourceRequirements(requests=requests)),)
    return Pod(
        metadata=ObjectMeta(labels=labels or {}), spec=PodSpec(**spec), status=status or PodStatus(), node_name=node
    )


def pod_labels(old: Pod, new: Pod) -> list[str]:
    return [event.label for event in pod_changes(old, new)]


GATES = tuple(SchedulingGate(name=name) for name in "ab")
TOLERATION = Toleration(key="a", operator="Exists")
CLAIMED = PodStatus(resource_claim_statuses=(PodResourceClaimStatus(name="gpu", resource_claim_name="gpu-x"),))
EXTENDED = PodStatus(extended_resource_claim_status=ExtendedResourceClaimStatus(resource_claim_name="x"))


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        (pod(), pod(labels={"a": "b"}), "UpdatePodLabel"),
        (pod(requests={"cpu": "2"}), pod(requests={"cpu": "1999m"}), "UpdatePodScaleDown"),
        (pod(requests={"cpu": "2", "x/y": "1"}), pod(requests={"cpu": "2"}), "UpdatePodScaleDown"),
        (pod(scheduling_gates=GATES), pod(), "UpdatePodSchedulingGatesEliminated"),
        (pod(), pod(tolerations=(TOLERATION,)), "UpdatePodToleration"),
        (pod(), pod(status=CLAIMED), "UpdatePodGeneratedResourceClaim"),
        (pod(), pod(status=EXTENDED), "UpdatePodGeneratedResourceClaim"),
        (pod(), pod(), "Update"),
        (pod(scheduling_gates=GATES), pod(scheduling_gates=GATES[:1]), "Update"),
        (pod(), pod(scheduling_gates=GATES), "Update"),
        (pod(requests={"cpu": "1"}), pod(requests={"cpu": "2"}), "Update"),
        (pod(requests={"cpu": "1"}), pod(requests={"cpu": "1000m"}), "Update"),
        (pod(tolerations=(TOLERATION,)), pod(tolerations=(Toleration(key="b"),)), "Update"),
        (pod(), pod(status=PodStatus(phase="Pending")), "Update"),
    ],
)
def test_a_pods_change_has_a_name(old: Pod, new: Pod, action: str) -> None:
    assert pod_labels(old, new) == [f"UnschedulablePod{action}"]


def test_changes_of_a_bound_pod_are_those_of_an_assigned_one() -> None:
    assert pod_labels(pod(), pod(node="n1")) == ["AssignedPodUpdate"]
    assert pod_labels(pod(node="n1"), pod(node="n1", labels={"a": "b"})) == ["AssignedPodUpdatePodLabel"]


def test_all_changes_are_told_in_their_order() -> None:
    old = pod(scheduling_gates=GATES, requests={"cpu": "2"})
    new = pod(labels={"a": "b"}, tolerations=(TOLERATION,), requests={"cpu": "1"}, status=CLAIMED)
    assert pod_labels(old, new) == [
        "UnschedulablePodUpdatePodLabel",
        "UnschedulablePodUpdatePodScaleDown",
        "UnschedulablePodUpdatePodSchedulingGatesEliminated",
        "UnschedulablePodUpdatePodToleration",
        "UnschedulablePodUpdatePodGeneratedResourceClaim",
    ]


def test_a_resize_scales_down_only_once_it_is_carried_out() -> None:
    def holding(cpu: str) -> PodStatus:
        resources = ResourceRequirements(requests={"cpu": cpu})
        held = ContainerStatus(name="c", resources=resources, allocated_resources={"cpu": cpu})
        return PodStatus(container_statuses=(held,))

    running = pod(node="n1", requests={"cpu": "2"}, status=holding("2"))
    asked = pod(node="n1", requests={"cpu": "1"}, status=holding("2"))
    done = pod(node="n1", requests={"cpu": "1"}, status=holding("1"))
    assert pod_labels(running, asked) == ["AssignedPodUpdate"]
    assert pod_labels(asked, done) == ["AssignedPodUpdatePodScaleDown"]


def test_requests_that_cannot_be_read_count_as_scaled_down() -> None:
    assert pod_labels(pod(requests={"cpu": "lots"}), pod(requests={"cpu": "1"})) == [
        "UnschedulablePodUpdatePodScaleDown"
    ]


# ---------------------------------------------------------------- nodes


def node(
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    cordoned: bool = False,
    taints: tuple[Taint, ...] = (),
    **status: Any,
) -> Node:
    return Node(
        metadata=ObjectMeta(name="n1", labels=labels or {}, annotations=annotations or {}),
        spec=NodeSpec(unschedulable=cordoned, taints=taints),
        status=NodeStatus(**status),
    )


def node_labels(old: Node, new: Node) -> list[str]:
    return [event.label.removeprefix("NodeUpdate") for event in node_changes(old, new)]


TAINT = Taint(key="a", effect="NoSchedule")
READY, NOT_READY = (NodeCondition(type="Ready", status=status) for status in ("True", "False"))
PRESSURE = NodeCondition(type="MemoryPressure", status="False")


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (node(cordoned=True), node(), ["NodeTaint"]),
        (node(), node(cordoned=True), []),
        (node(), node(taints=(TAINT,)), ["NodeTaint"]),
        (node(cordoned=True, taints=(TAINT,)), node(), ["NodeTaint", "NodeTaint"]),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "2"}), ["NodeAllocatable"]),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "1", "x/y": "0"}), ["NodeAllocatable"]),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "1000m"}), []),
        (node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "lots"}), ["NodeAllocatable"]),
        (node(), node(labels={"a": "b"}), ["NodeLabel"]),
        (node(conditions=(READY,)), node(conditions=(NOT_READY,)), ["NodeCondition"]),
        (node(conditions=(READY, PRESSURE)), node(conditions=(PRESSURE, READY)), []),
        (node(), node(annotations={"a": "b"}), ["NodeAnnotation"]),
        (node(), node(declared_features=("X",)), ["NodeDeclaredFeature"]),
        (node(), node(), []),
    ],
)
def test_a_nodes_change_has_a_name(old: Node, new: Node, changes: list[str]) -> None:
    assert node_labels(old, new) == changes


def test_all_changes_of_a_node_are_told_in_their_order() -> None:
    new = node(
        labels={"a": "b"},
        annotations={"a": "b"},
        taints=(TAINT,),
        allocatable={"cpu": "1"},
        conditions=(READY,),
        declared_features=("X",),
    )
    assert node_labels(node(cordoned=True), new) == [
        "NodeTaint",
        "NodeAllocatable",
        "NodeLabel",
        "NodeTaint",
        "NodeCondition",
        "NodeAnnotation",
        "NodeDeclaredFeature",
    ]
