"""Clusters whose nodes Karpenter manages, for the tests of disruption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podium.objects.times import format_time
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.reports.disruption_report import plan_disruption
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    NOW,
    ZONE,
    Document,
    catalogue,
    instance_type,
    read_with_groups,
)
from tests.unit.provisioner.clusters import node_pool as any_node_pool

TYPES = tuple(instance_type(f"c-{cpu}", cpu, f"{2 * cpu}Gi", 50) for cpu in (1, 2, 4, 8, 16))
"""Each costs 0.1 an hour for each core on demand, and 0.07 as spot."""

NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
NODE_POOL = "karpenter.sh/nodepool"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def node_pool(
    name: str = "pool",
    *,
    consolidate_after: str = "0s",
    policy: str = "WhenEmptyOrUnderutilized",
    nodes: str = "100%",
    **fields: Any,
) -> Document:
    """A NodePool whose budget allows this many nodes to be disrupted."""
    budgets = fields.pop("budgets", [{"nodes": nodes}])
    disruption = {"consolidateAfter": consolidate_after, "consolidationPolicy": policy, "budgets": budgets}
    return any_node_pool(name, disruption=disruption, **fields)


def ago(seconds: float) -> str:
    """A time before now."""
    return format_time(NOW - seconds)


def machine(
    name: str,
    size: int = 4,
    *,
    pool: str = "pool",
    zone: str = "zone-1",
    capacity_type: str = "on-demand",
    stage: str = "initialized",
    ready: bool = True,
    created_s_ago: float = 1800,
    pod_event_s_ago: float | None = None,
    conditions: Mapping[str, str] | None = None,
    claim: Mapping[str, Any] | None = None,
    claim_spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **labels: str,
) -> list[Document]:
    """A NodeClaim `claim-<name>` and its Node of the instance type `c-<size>`.

    Args:
        joined: how far the node is: `claimed`, `registered` or `initialized`.
        conditions: more conditions of the NodeClaim, by type, with the reason of each.
        claim: more metadata of the NodeClaim.
    """
    own = {
        NODE_POOL: pool,
        ZONE: zone,
        CAPACITY_TYPE: capacity_type,
        INSTANCE_TYPE: f"c-{size}",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        **labels,
    }
    is_initialized = stage == "initialized"
    states = {"Launched": "Launched", "Registered": "Registered"} | (
        {"Initialized": "Initialized"} if is_initialized else {}
    )
    amounts = {"cpu": str(size), "memory": f"{2 * size}Gi", "pods": "50"}
    creation = {"creationTimestamp": ago(created_s_ago)}
    status: Document = {
        "providerID": f"kwok://{name}",
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [
            {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": ago(created_s_ago)}
            for kind, reason in {**states, **(conditions or {})}.items()
        ],
    }
    if pod_event_s_ago is not None:
        status["lastPodEventTime"] = ago(pod_event_s_ago)
    documents: list[Document] = [
        {
            "kind": "NodeClaim",
            "metadata": {"name": f"claim-{name}", "labels": dict(own), **creation, **(claim or {})},
            "spec": {"nodeClassRef": NODE_CLASS, **(claim_spec or {})},
            "status": status,
        }
    ]
    if stage == "claimed":
        return documents
    progress = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": str(is_initialized).lower()}
    node = {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**own, HOSTNAME: name, **progress},
            "annotations": dict(annotations or {}),
            **creation,
        },
        "spec": {"providerID": f"kwok://{name}"},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }
    return [*documents, node]


def cluster(*objects: Document | Sequence[Document]) -> list[Document]:
    """The objects of all parts, with one NodePool if none is among them."""
    documents = [document for part in objects for document in ([part] if isinstance(part, dict) else part)]
    if not any(document["kind"] == "NodePool" for document in documents):
        documents.append(node_pool())
    return documents


def state_of(
    *objects: Document | Sequence[Document], types: Iterable[Document] = TYPES, **settings: Any
) -> DisruptionState:
    """The cluster now."""
    return DisruptionState.of(read_with_groups(cluster(*objects)), catalogue(*types), Settings(**settings), NOW)


def disruption_plan(
    *objects: Document | Sequence[Document], types: Iterable[Document] = TYPES, **settings: Any
) -> Document:
    """Return Karpenter's disruption plan for these objects."""
    return plan_disruption(read_objects(cluster(*objects)), catalogue(*types), Settings(**settings), NOW)


def candidate_names(state: DisruptionState) -> list[str]:
    """The names of the nodes that nothing blocks."""
    return [candidate.name for candidate in state.candidates]
