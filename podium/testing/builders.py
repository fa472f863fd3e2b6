"""Builds API objects. Every field has a good default, so that a test only names the fields that matter to it.

    pod("web-1", cpu="100m", memory="1Gi", node="n1", labels={"app": "web"}, priority=10, host_ports=[8080])
    node("n1", cpu="4", memory="8Gi", zone="a", taints=["dedicated=gpu:NoSchedule"])

Fields without a keyword are given as in the API, in `metadata`, `spec` and `status`:
`pod("web-1", spec={"nodeSelector": {...}})`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from podium.objects.core import Node, Pod
from podium.objects.meta import ObjectMeta
from podium.objects.node_metrics import (
    ANY_SOURCE,
    AVERAGE,
    DEVIATION,
    MetricsOfNode,
    MetricsWindow,
    NodeMetric,
    NodeMetricsReport,
    ReportedNodes,
)
from podium.objects.pod_groups import PodGroup

REGION_LABEL = "topology.kubernetes.io/region"
ZONE_LABEL = "topology.kubernetes.io/zone"


def pod(
    name: str = "web-1",
    *,
    namespace: str = "default",
    uid: str | None = None,
    cpu: str | None = None,
    memory: str | None = None,
    requests: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    node: str = "",
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
    host_ports: Iterable[int | Mapping[str, Any]] = (),
    images: Iterable[str] = ("app",),
    tolerations: Iterable[Mapping[str, Any]] = (),
    affinity: Mapping[str, Any] | None = None,
    gates: Iterable[str] = (),
    group: str = "",
    scheduler: str = "podium",
    nominated: str = "",
    terminating: bool = False,
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Pod:
    """Build a pod with one container per image; the first container has the requests, the limits and the host
    ports.

    A host port is a number (TCP on all addresses) or a port as in the API; without `uid` it is `uid-<name>`.
    """
    containers: list[dict[str, Any]] = [
        {"name": "app" if index == 0 else f"app-{index}", "image": image} for index, image in enumerate(images)
    ]
    amounts = {"cpu": cpu, "memory": memory, **(requests or {})}
    # Only the first has requests, so that sums in a test are the numbers that it names.
    containers[0]["resources"] = {
        "requests": {key: value for key, value in amounts.items() if value is not None},
        "limits": dict(limits or {}),
    }
    containers[0]["ports"] = [{"hostPort": port} if isinstance(port, int) else dict(port) for port in host_ports]
    # Through the decoder, so that a test's objects have the defaults and checks of those of an API server.
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{name}" if uid is None else uid,
                "labels": dict(labels or {}),
                "deletionTimestamp": "2026-01-01T00:00:00Z" if terminating else None,
                **(metadata or {}),
            },
            "spec": {
                "nodeName": node,
                "schedulerName": scheduler,
                "priority": priority,
                "containers": containers,
                "tolerations": [dict(toleration) for toleration in tolerations],
                "affinity": affinity,
                "schedulingGates": [{"name": gate} for gate in gates],
                "schedulingGroup": {"podGroupName": group} if group else None,
                **(spec or {}),
            },
            "status": {"nominatedNodeName": nominated, **(status or {})},
        },
        Pod,
    )


def pod_group(
    name: str = "group",
    *,
    namespace: str = "default",
    min_count: int | None = None,
    topology: str = "",
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> PodGroup:
    """Build a pod group: a gang if it has a minimum count; all its nodes share one value of the label `topology`."""
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    constraints = {"topology": [{"key": topology}]} if topology else None
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", **(metadata or {})},
            "spec": {"schedulingPolicy": policy, "schedulingConstraints": constraints, **(spec or {})},
            "status": status or {},
        },
        PodGroup,
    )


def node(
    name: str = "n1",
    *,
    uid: str | None = None,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int | str = 110,
    allocatable: Mapping[str, str | int] | None = None,
    zone: str | None = None,
    region: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str | Mapping[str, str]] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Node:
    """Build a node; a taint is `key=value:Effect`, `key:Effect` or as in the API, `images` are sizes in bytes by name.

    `allocatable` is added to cpu, memory and pods, and is the capacity, too. Without `uid` it is `uid-<name>`.
    """
    topology = {REGION_LABEL: region, ZONE_LABEL: zone}
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}" if uid is None else uid,
                "labels": {**{key: value for key, value in topology.items() if value is not None}, **(labels or {})},
                **(metadata or {}),
            },
            "spec": {"unschedulable": unschedulable, "taints": [_taint(taint) for taint in taints], **(spec or {})},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
                **(status or {}),
            },
        },
        Node,
    )


def node_metrics(
    averages: Mapping[str, Mapping[str, float]],
    *,
    deviations: Mapping[str, Mapping[str, float]] | None = None,
    end: int = 0,
) -> NodeMetricsReport:
    """Build what a source of measured loads says: for each node the average of each type of load, in percent.

    `node_metrics({"n1": {"CPU": 80, "Memory": 20}})` is the report of every source that a plugin asks for.

    Args:
        deviations: the standard deviations in the same form.
        end: the end of the measured time, in Unix seconds.
    """
    by_name: dict[str, list[NodeMetric]] = {}
    for operator, loads in ((AVERAGE, averages), (DEVIATION, deviations or {})):
        for name, values in loads.items():
            metrics = (NodeMetric(type=type_, operator=operator, value=value) for type_, value in values.items())
            by_name.setdefault(name, []).extend(metrics)
    return NodeMetricsReport(
        metadata=ObjectMeta(name=ANY_SOURCE),
        window=MetricsWindow(end=end),
        data=ReportedNodes(by_name={name: MetricsOfNode(metrics=tuple(items)) for name, items in by_name.items()}),
    )


def _taint(taint: str | Mapping[str, str]) -> dict[str, str]:
    if not isinstance(taint, str):
        return dict(taint)
    key_and_value, _, effect = taint.rpartition(":")
    key, _, value = key_and_value.partition("=")
    return {"key": key, "value": value, "effect": effect}
