"""The kinds that a member's watch reads in another form than a scheduler does.

Owns pods that take less memory, and the objects that decide how new pods are admitted.

Cost: the first pod with given labels, owners or status keeps them; each further one that equals it shares them.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from podium.objects.core import Node, NodeStatus, Pod
from podium.objects.meta import ClusterObject, NamespacedObject
from podium.objects.resource_types import NODES, PODS, PRIORITY_CLASSES, ResourceType

_SHARED_MAX: Final = 200_000
_NO_TEXTS: Final[dict[str, str]] = {}
_encode: Final = msgspec.msgpack.Encoder().encode


class _Shared:
    """Values by their content, each kept once."""

    def __init__(self) -> None:
        self._values: dict[tuple[type, bytes], Any] = {}

    def of(self, value: Any) -> Any:
        """Return the value that was first given with this content."""
        # Content that differs from pod to pod would fill it without end.
        if len(self._values) > _SHARED_MAX:
            self._values.clear()
        # Values without any field look alike, whatever they are.
        return self._values.setdefault((type(value), _encode(value)), value)


_shared: Final = _Shared()


class SharedPod(Pod, frozen=True, tag="Pod"):
    """A pod that shares with its replicas what they have in common.

    Differs: annotations are left out, and of a pod on a node also conditions and times: only its preemption would read
    them, and nothing is preempted here. The uid of a pod on a node is its key: only the uid of a pod that waits is
    compared with uids in other objects.
    """

    def __post_init__(self) -> None:
        """Share the parts."""
        super().__post_init__()
        metadata = self.metadata
        force_setattr(metadata, "namespace", sys.intern(metadata.namespace))
        force_setattr(metadata, "labels", _shared.of(metadata.labels))
        force_setattr(metadata, "owner_references", _shared.of(metadata.owner_references))
        force_setattr(metadata, "annotations", _NO_TEXTS)
        if self.node_name:
            force_setattr(metadata, "creation_timestamp", None)
            force_setattr(metadata, "uid", f"{metadata.namespace}/{metadata.name}")
            force_setattr(self, "node_name", sys.intern(self.node_name))
            status = msgspec.structs.replace(self.status, conditions=(), start_time=None)
            force_setattr(self, "status", _shared.of(status))

    @property
    def key(self) -> str:
        """`<namespace>/<name>`, for a pod on a node without a text of its own."""
        return self.metadata.uid if self.node_name else super().key


class SharedNode(Node, frozen=True, tag="Node"):
    """A node that shares with others what they have in common, such as their images.

    Differs: addresses, conditions and the capacity are left out, which no filter and no score reads.
    """

    def __post_init__(self) -> None:
        """Share the parts."""
        metadata, status = self.metadata, self.status
        labels = {name: sys.intern(value) for name, value in metadata.labels.items()}
        force_setattr(metadata, "labels", labels)
        force_setattr(metadata, "annotations", _shared.of(metadata.annotations))
        images = _shared.of(tuple(map(_shared.of, status.images)))
        allocatable = _shared.of(status.allocatable or status.capacity)
        features = status.declared_features
        shared_status = NodeStatus(allocatable=allocatable, images=images, declared_features=features)
        force_setattr(self, "status", _shared.of(shared_status))


class LimitRange(NamespacedObject, frozen=True):
    """The limits of a namespace, as on the wire."""

    spec: dict[str, Any] = {}


class ResourceQuota(NamespacedObject, frozen=True):
    """A quota of a namespace, as on the wire."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class ResourceClaimTemplate(NamespacedObject, frozen=True):
    """A template of claims to devices, as on the wire."""

    spec: dict[str, Any] = {}


class RuntimeClass(ClusterObject, frozen=True):
    """A runtime class, as on the wire."""

    handler: str = ""
    overhead: dict[str, Any] = {}
    scheduling: dict[str, Any] = {}


SHARED_PODS: Final = replace(PODS, type=SharedPod)
SHARED_NODES: Final = replace(NODES, type=SharedNode)
ADMITTING: Final[tuple[ResourceType[Any], ...]] = (
    PRIORITY_CLASSES,
    ResourceType("RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses", RuntimeClass),
    ResourceType("LimitRange", "/api/v1/limitranges", LimitRange),
    ResourceType("ResourceQuota", "/api/v1/resourcequotas", ResourceQuota),
    ResourceType("ResourceClaimTemplate", "/apis/resource.k8s.io/v1/resourceclaimtemplates", ResourceClaimTemplate),
)
"""The kinds that decide how new pods are admitted."""
