"""Encode requests to estimator servers.

Requests, affinity and tolerations are sent in both forms, as messages and as bytes, so that servers of every release
read them.

Source: karmada pkg/estimator/client/accurate.go and pkg/estimator/pb, v1.18.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podium.estimator.requirements import Component, NodeClaim, ReplicaRequirements, Requirements
from podium.estimator.server.messages import CLASSES
from podium.objects.quantity import canonical_text


def replicas_request(cluster: str, requirements: ReplicaRequirements | None) -> bytes:
    """Encode the request of MaxAvailableReplicas."""
    message = CLASSES["MaxAvailableReplicasRequest"](cluster=cluster)
    if requirements is not None:
        fields = _requirements("ReplicaRequirements", requirements)
        fields.namespace = requirements.namespace
        message.replicaRequirements.CopyFrom(fields)
    return _content(message)


def sets_request(cluster: str, components: Sequence[Component], namespace: str) -> bytes:
    """Encode the request of MaxAvailableComponentSets."""
    message = CLASSES["MaxAvailableComponentSetsRequest"](cluster=cluster, namespace=namespace)
    for component in components:
        part = message.components.add(name=component.name, replicas=component.replicas)
        if component.replica_requirements is not None:
            fields = _requirements("ComponentReplicaRequirements", component.replica_requirements)
            part.replicaRequirements.CopyFrom(fields)
    return _content(message)


def _requirements(kind: str, requirements: Requirements) -> Any:
    message = CLASSES[kind](priorityClassName=requirements.priority_class_name)
    for name, raw in requirements.resource_request.items():
        quantity = CLASSES["Quantity"](string=canonical_text(raw))
        message.resourceRequest[name].CopyFrom(quantity)
        message.resourceRequestBytes[name] = _content(quantity)
    if requirements.node_claim is not None:
        message.nodeClaim.CopyFrom(_claim(requirements.node_claim))
    return message


def _claim(claim: NodeClaim) -> Any:
    message = CLASSES["NodeClaim"](nodeSelector=claim.node_selector)
    if claim.hard_node_affinity is not None:
        affinity = CLASSES["NodeSelector"](**msgspec.to_builtins(claim.hard_node_affinity))
        message.nodeAffinity.CopyFrom(affinity)
        message.nodeAffinityBytes = _content(affinity)
    for item in claim.tolerations:
        toleration = CLASSES["Toleration"](**msgspec.to_builtins(item))
        message.tolerations.add().CopyFrom(toleration)
        message.tolerationsBytes.append(_content(toleration))
    return message


def _content(message: Any) -> bytes:
    content: bytes = message.SerializeToString()
    return content
