"""Nodes that are bought without a cloud: objects that stand for machines, in a sandbox or a cluster of stand-ins.

Owns what such a node looks like, and the NodeClaim that stands for it where there is no Karpenter. Never
sends anything.

Invariant: everything that a provisioner has to know after a restart is written on the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.objects.meta import ObjectMeta
from podium.objects.times import format_time
from podium.provisioner.apis.labels import SIMULATED
from podium.provisioner.apis.objects import (
    READY_CLAIM,
    Condition,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    ProvidedNode,
)
from podium.provisioner.disruption.conditions import HASH, HASH_VERSION
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.scheduling.taints import DISRUPTED
from podium.provisioner.state.manifests import ANY_NODE_CLASS

REMOVED_SINCE: Final = "podium/removed-since"
"""The annotation of a node that is being removed: since when."""

_MACHINE: Final = "podium-sandbox://"
_READY: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "Bought",
    "message": "podium's sandbox provider has made this node",
}


def manifest_of(node_plan: NodePlan, now_s: float) -> Mapping[str, Any]:
    """Return the node as it is created.

    Args:
        now_s: the time, in seconds since the epoch.
    """
    pool, name = node_plan.template.pool, node_plan.name
    node = next(node_plan.node.manifests(name))
    template, time = pool.spec.template, format_time(now_s)
    pool_annotations = pool.metadata.annotations
    # Drift compares the hash of the NodePool when the node was made with that of now.
    hashes = {key: pool_annotations[key] for key in (HASH, HASH_VERSION) if key in pool_annotations}
    ready = {**_READY, "lastTransitionTime": time, "lastHeartbeatTime": time}
    metadata = {
        **node["metadata"],
        "labels": {**node["metadata"]["labels"], **dict.fromkeys(SIMULATED, "true")},
        "annotations": {**template.metadata.annotations, **hashes},
    }
    return {
        **node,
        "metadata": metadata,
        "spec": {**node["spec"], "providerID": f"{_MACHINE}{name}"},
        "status": {**node["status"], "conditions": [ready]},
    }


def is_bought_here(node: ProvidedNode) -> bool:
    """Return True if this provider has made the node."""
    return node.spec.provider_id == f"{_MACHINE}{node.name}"


def is_being_removed(node: ProvidedNode) -> bool:
    """Return True if the node is to go."""
    return REMOVED_SINCE in node.metadata.annotations or node.metadata.deletion_timestamp is not None


def removal_of(node: ProvidedNode, now_s: float) -> Mapping[str, Any]:
    """Return the change that begins to remove the node: no pod is placed on it any more."""
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.spec.taints]
    disrupted = {"key": DISRUPTED.key, "effect": DISRUPTED.effect}
    # A merge patch replaces the whole list, so that the other taints are sent along.
    other_taints = [taint for taint in taints if taint["key"] != DISRUPTED.key]
    return {
        "metadata": {"annotations": {REMOVED_SINCE: format_time(now_s)}},
        "spec": {"unschedulable": True, "taints": [*other_taints, disrupted]},
    }


def claim_of(node: ProvidedNode, last_pod_event_s: float | None) -> NodeClaim:
    """Return the NodeClaim that stands for a node of this provider.

    Args:
        last_pod_event_s: when a pod last came or went, in seconds since the epoch; None if none ever did.
    """
    creation_time, meta = node.metadata.creation_timestamp, node.metadata
    conditions = tuple(
        # A node of this provider is ready when it is created, so each condition is as old as the node.
        Condition(type=condition.type, status=condition.status, last_transition_time=creation_time)
        for condition in READY_CLAIM
    )
    leaving = meta.annotations.get(REMOVED_SINCE) or meta.deletion_timestamp
    return NodeClaim(
        metadata=ObjectMeta(
            name=node.name,
            uid=f"{meta.uid}/claim",
            labels=meta.labels,
            annotations=meta.annotations,
            creation_timestamp=creation_time,
            deletion_timestamp=leaving,
        ),
        spec=NodeClaimSpec(node_class_ref=ANY_NODE_CLASS),
        status=NodeClaimStatus(
            provider_id=node.spec.provider_id,
            capacity=node.status.capacity,
            allocatable=node.status.allocatable,
            conditions=conditions,
            last_pod_event_time=None if last_pod_event_s is None else format_time(last_pod_event_s),
        ),
    )
