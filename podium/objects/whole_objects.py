"""Pods and nodes together with their complete JSON, for consumers outside of podium such as extenders.

Owns the bytes next to the typed object. They are kept only on request (`Keep`), because podium itself does not read
them.

Cost: one copy of the bytes for each object that is kept whole, and about 3 us to decode it in two steps.
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


class WholePod(Pod, frozen=True):
    """A pod and its JSON, without `managedFields`."""

    whole: bytes = b""

    def on_node(self, node_name: str) -> Pod:
        """This pod as it is once bound to the node."""
        pod = _fields(self.whole)
        pod["spec"] = Raw(_encode({**_fields(pod.get("spec", b"{}")), "nodeName": node_name}))
        return whole_pod(super().on_node(node_name), _encode(pod))


class WholeNode(Node, frozen=True):
    """A node and its JSON."""

    whole: bytes = b""


def whole_pod(pod: Pod, content: bytes | Raw) -> Pod:
    """Keep all of a pod except `managedFields`, as kube-scheduler does."""
    whole = bytes(content)
    if b'"managedFields"' in whole:
        fields = _fields(whole)
        metadata = _fields(fields["metadata"])
        metadata.pop("managedFields", None)
        whole = _encode({**fields, "metadata": metadata})
    return WholePod(metadata=pod.metadata, spec=pod.spec, status=pod.status, node_name=pod.node_name, whole=whole)


def whole_pending_pod(pod: Pod, content: bytes | Raw) -> Pod:
    """As `whole_pod` for pods that are still to be scheduled; of other pods keep only what podium reads."""
    return pod if pod.node_name else whole_pod(pod, content)


def whole_node(node: Node, content: bytes | Raw) -> Node:
    """Keep all of a node."""
    return WholeNode(metadata=node.metadata, spec=node.spec, status=node.status, whole=bytes(content))


def json_of(item: Pod | Node) -> Raw:
    """The object as the API server has it, to be put into other JSON."""
    assert isinstance(item, WholePod | WholeNode), f"{item.key} was not kept whole"
    return Raw(item.whole)
