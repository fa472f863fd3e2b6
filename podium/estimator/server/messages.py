"""Encode and decode Karmada's protobuf messages of every release since v1.5.

Owns the wire format. Requests, affinity and tolerations come as bytes of serialised objects (since v1.18), as messages
(until v1.18), or both. For each field the bytes take precedence. The field numbers are the union of all releases.

Source: karmada pkg/estimator/pb, v1.5 to v1.18.
Differs: fields that current releases no longer send are still decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from podium.estimator.requirements import (
    MAX_INT32,
    AssumedWorkload,
    Component,
    ComponentReplicaRequirements,
    NodeClaim,
    ObjectReference,
    ReplicaRequirements,
)
from podium.estimator.server.message_classes import Message, Messages, message_classes
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.core import Toleration
from podium.objects.meta import ResourceList

_PACKAGE: Final = "github.com.karmada_io.karmada.pkg.estimator.pb"
_NANOSECONDS: Final = 1e9

_MESSAGES: Final[Messages] = {
    "Quantity": {"string": (1, "string")},
    "NodeSelectorRequirement": {"key": (1, "string"), "operator": (2, "string"), "values": (3, "*string")},
    "NodeSelectorTerm": {
        "matchExpressions": (1, "*NodeSelectorRequirement"),
        "matchFields": (2, "*NodeSelectorRequirement"),
    },
    "NodeSelector": {"nodeSelectorTerms": (1, "*NodeSelectorTerm")},
    "Toleration": {
        "key": (1, "string"),
        "operator": (2, "string"),
        "value": (3, "string"),
        "effect": (4, "string"),
        "tolerationSeconds": (5, "int64"),
    },
    "NodeClaim": {
        "nodeAffinity": (1, "NodeSelector"),
        "nodeSelector": (2, "<string>"),
        "tolerations": (3, "*Toleration"),
        "nodeAffinityBytes": (4, "bytes"),
        "tolerationsBytes": (5, "*bytes"),
    },
    "ReplicaRequirements": {
        "nodeClaim": (1, "NodeClaim"),
        "resourceRequest": (2, "<Quantity>"),
        "namespace": (3, "string"),
        "priorityClassName": (4, "string"),
        "resourceRequestBytes": (5, "<bytes>"),
    },
    "ComponentReplicaRequirements": {
        "nodeClaim": (1, "NodeClaim"),
        "resourceRequest": (2, "<Quantity>"),
        "priorityClassName": (3, "string"),
        "resourceRequestBytes": (4, "<bytes>"),
    },
    "Component": {
        "name": (1, "string"),
        "replicaRequirements": (2, "ComponentReplicaRequirements"),
        "replicas": (3, "int32"),
    },
    "AssumedWorkload": {"namespace": (1, "string"), "components": (2, "*Component")},
    "MaxAvailableReplicasRequest": {
        "cluster": (1, "string"),
        "replicaRequirements": (2, "ReplicaRequirements"),
        "assumedWorkloads": (3, "*AssumedWorkload"),
    },
    "MaxAvailableReplicasResponse": {"maxReplicas": (1, "int32")},
    "MaxAvailableComponentSetsRequest": {
        "cluster": (1, "string"),
        "components": (2, "*Component"),
        "namespace": (3, "string"),
        "assumedWorkloads": (4, "*AssumedWorkload"),
    },
    "MaxAvailableComponentSetsResponse": {"maxSets": (1, "int32")},
    "ObjectReference": {
        "apiVersion": (1, "string"),
        "kind": (2, "string"),
        "namespace": (3, "string"),
        "name": (4, "string"),
    },
    "UnschedulableReplicasRequest": {
        "cluster": (1, "string"),
        "resource": (2, "ObjectReference"),
        "unschedulableThreshold": (3, "int64"),
    },
    "UnschedulableReplicasResponse": {"unschedulableReplicas": (1, "int32")},
    # Stands for any response: protobuf cuts off what is too large for the type of the field.
    "WideResponse": {"count": (1, "int64")},
}

_WORKLOAD: Final = re.compile(r"kind=([^,]+), name=([^/]*)/(.+)")


class MessageError(Exception):
    """The bytes are not a valid message. The text names the faulty part."""


class PartError(Exception):
    """An object within a message cannot be read. The text names it."""


@dataclass(frozen=True, slots=True)
class ReplicasRequest:
    """The request of MaxAvailableReplicas."""

    cluster: str
    requirements: ReplicaRequirements | None
    assumed_workloads: tuple[AssumedWorkload, ...]


@dataclass(frozen=True, slots=True)
class SetsRequest:
    """The request of MaxAvailableComponentSets."""

    cluster: str
    components: tuple[Component, ...]
    namespace: str
    assumed_workloads: tuple[AssumedWorkload, ...]


@dataclass(frozen=True, slots=True)
class UnschedulableRequest:
    """The request of GetUnschedulableReplicas."""

    cluster: str
    workload: ObjectReference | None
    threshold_s: float


CLASSES: Final = message_classes("estimator.proto", _PACKAGE, _MESSAGES)


# ---------------------------------------------------------------- requests


def read_replicas_request(content: bytes) -> ReplicasRequest:
    """Decode the request of MaxAvailableReplicas.

    Raises:
        MessageError, PartError: the request, or an object in it, cannot be read.
    """
    message = _parse("MaxAvailableReplicasRequest", content)
    fields = message.replicaRequirements if message.HasField("replicaRequirements") else None
    requirements = None
    if fields is not None:
        requirements = ReplicaRequirements(
            node_claim=_claim(fields),
            resource_request=_request(fields),
            namespace=fields.namespace,
            priority_class_name=fields.priorityClassName,
        )
    return ReplicasRequest(message.cluster, requirements, _workloads_of(message))


def read_sets_request(content: bytes) -> SetsRequest:
    """Decode the request of MaxAvailableComponentSets.

    Raises:
        MessageError, PartError: the request, or an object in it, cannot be read.
    """
    message = _parse("MaxAvailableComponentSetsRequest", content)
    return SetsRequest(message.cluster, _components(message.components), message.namespace, _workloads_of(message))


def read_unschedulable_request(content: bytes) -> UnschedulableRequest:
    """Decode the request of GetUnschedulableReplicas.

    Raises:
        MessageError: the request cannot be read.
    """
    message = _parse("UnschedulableReplicasRequest", content)
    workload = None
    if message.HasField("resource"):
        resource = message.resource
        workload = ObjectReference(
            api_version=resource.apiVersion, kind=resource.kind, namespace=resource.namespace, name=resource.name
        )
    return UnschedulableRequest(message.cluster, workload, message.unschedulableThreshold / _NANOSECONDS)


def workload_named(text: str) -> ObjectReference | None:
    """Parse the workload that a client names in the gRPC metadata `object`; None if it names none."""
    match = _WORKLOAD.fullmatch(text)
    return ObjectReference(kind=match[1], namespace=match[2], name=match[3]) if match is not None else None


def _parse(name: str, content: bytes) -> Message:
    try:
        return CLASSES[name].FromString(content)
    except DecodeError as error:
        raise MessageError(f"{name}: {error}") from error


def _part(name: str, content: bytes, field: str) -> Message:
    try:
        return CLASSES[name].FromString(content)
    except DecodeError as error:
        raise PartError(f"failed to unmarshal {field}: {error}") from error


def _request(requirements: Message) -> ResourceList:
    # Newer clients send bytes as well as fields, and bytes count.
    if requirements.resourceRequestBytes:
        return {
            name: _part("Quantity", content, f"resource request {name}").string
            for name, content in requirements.resourceRequestBytes.items()
        }
    return {name: quantity.string for name, quantity in requirements.resourceRequest.items()}


def _claim(requirements: Message) -> NodeClaim | None:
    if not requirements.HasField("nodeClaim"):
        return None
    claim = requirements.nodeClaim
    affinity = None
    if claim.nodeAffinityBytes:
        affinity = _selector(_part("NodeSelector", claim.nodeAffinityBytes, "node affinity"))
    elif claim.HasField("nodeAffinity"):
        affinity = _selector(claim.nodeAffinity)
    tolerations = [_part("Toleration", content, "toleration") for content in claim.tolerationsBytes]
    return NodeClaim(
        hard_node_affinity=affinity,
        node_selector=dict(claim.nodeSelector),
        tolerations=tuple(
            Toleration(
                key=toleration.key, operator=toleration.operator, value=toleration.value, effect=toleration.effect
            )
            # Bytes replace the messages altogether; a client never mixes them.
            for toleration in tolerations or claim.tolerations
        ),
    )


def _selector(selector: Message) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=_expressions(term.matchExpressions), match_fields=_expressions(term.matchFields)
            )
            for term in selector.nodeSelectorTerms
        )
    )


def _expressions(expressions: Iterable[Message]) -> tuple[NodeSelectorRequirement, ...]:
    return tuple(
        NodeSelectorRequirement(key=expression.key, operator=expression.operator, values=tuple(expression.values))
        for expression in expressions
    )


def _components(components: Iterable[Message]) -> tuple[Component, ...]:
    return tuple(
        Component(
            name=component.name, replicas=component.replicas, replica_requirements=_component_requirements(component)
        )
        for component in components
    )


def _component_requirements(component: Message) -> ComponentReplicaRequirements | None:
    if not component.HasField("replicaRequirements"):
        return None
    requirements = component.replicaRequirements
    return ComponentReplicaRequirements(
        node_claim=_claim(requirements),
        resource_request=_request(requirements),
        priority_class_name=requirements.priorityClassName,
    )


def _workloads_of(message: Message) -> tuple[AssumedWorkload, ...]:
    return tuple(
        AssumedWorkload(namespace=workload.namespace, components=_components(workload.components))
        for workload in message.assumedWorkloads
    )


# ---------------------------------------------------------------- responses


def replicas_response(count: int) -> bytes:
    """Encode the response of MaxAvailableReplicas."""
    return _bytes("MaxAvailableReplicasResponse", maxReplicas=count)


def sets_response(count: int) -> bytes:
    """Encode the response of MaxAvailableComponentSets."""
    return _bytes("MaxAvailableComponentSetsResponse", maxSets=count)


def read_count(content: bytes) -> int:
    """Decode the number in the response to any question. A response without one says 0.

    Raises:
        MessageError: it is no such response, or the number has more than 32 bits.
    """
    try:
        response = CLASSES["WideResponse"].FromString(content)
    except DecodeError as error:
        raise MessageError(str(error)) from error
    unknown_fields = UnknownFieldSet(response)
    if any(unknown_fields[index].field_number == 1 for index in range(len(unknown_fields))):
        raise MessageError("its number has another type")
    count = int(response.count)
    if not ~MAX_INT32 <= count <= MAX_INT32:
        raise MessageError(f"{count} has more than 32 bits")
    return count


def unschedulable_response(count: int) -> bytes:
    """Encode the response of GetUnschedulableReplicas."""
    return _bytes("UnschedulableReplicasResponse", unschedulableReplicas=count)


def _bytes(name: str, **fields: int) -> bytes:
    content: bytes = CLASSES[name](**fields).SerializeToString()
    return content
