"""Pods and nodes together with their complete JSON, for consumers outside of podium such as extenders.

Owns the bytes next to the typed object. They are kept only on request (`Keep`), because podium itself does not read
them.

Cost: one copy of the bytes for each object that is kept, and about 3 us to decode it in two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Raw

from podium.objects.core import Node, Pod
from podium.objects.resource_types import ObjectT

Keep: TypeAlias = Callable[[ObjectT, bytes | Raw], ObjectT]
"""(object, its bytes) → the object to keep, with or without the bytes."""

_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class PodWithJson(Pod, frozen=True):
    """A pod and its JSON, without `managedFields`."""

    json: bytes = b""

    def on_node(self, node_name: str) -> Pod:
        """Return the pod as it will be once bound to the node."""
        pod = _fields(self.json)
        pod["spec"] = Raw(_encode({**_fields(pod.get("spec", b"{}")), "nodeName": node_name}))
        return pod_with_json(super().on_node(node_name), _encode(pod))


class NodeWithJson(Node, frozen=True):
    """A node and its JSON."""

    json: bytes = b""


def pod_with_json(pod: Pod, content: bytes | Raw) -> Pod:
    """Keep all of a pod except `managedFields`, as kube-scheduler does."""
    document = bytes(content)
    if b'"managedFields"' in document:
        fields = _fields(document)
        metadata = _fields(fields["metadata"])
        metadata.pop("managedFields", None)
        document = _encode({**fields, "metadata": metadata})
    return PodWithJson(metadata=pod.metadata, spec=pod.spec, status=pod.status, node_name=pod.node_name, json=document)


def pending_pod_with_json(pod: Pod, content: bytes | Raw) -> Pod:
    """Keep the JSON of pods that are still to be scheduled, like `pod_with_json`; other pods are kept without it."""
    return pod if pod.node_name else pod_with_json(pod, content)


def node_with_json(node: Node, content: bytes | Raw) -> Node:
    """Keep all of a node."""
    return NodeWithJson(metadata=node.metadata, spec=node.spec, status=node.status, json=bytes(content))


def json_of(item: Pod | Node) -> Raw:
    """Return the object as the API server has it, to be put into other JSON."""
    assert isinstance(item, PodWithJson | NodeWithJson), f"{item.key} was not kept with its JSON"
    return Raw(item.json)
