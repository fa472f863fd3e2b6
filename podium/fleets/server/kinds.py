"""The kinds that a member's watch reads in another form than a scheduler does.

Owns pods that take less memory, and the objects that decide how new pods are admitted.

Cost: the first pod with given labels, owners or status keeps them; each further one that equals it shares them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from podium.objects.core import Node, NodeStatus, Pod
from podium.objects.meta import ClusterObject, NamespacedObject, ObjectMeta
from podium.objects.resource_types import NODES, PODS, PRIORITY_CLASSES, ResourceType

_SHARED_MAX: Final = 200_000
_NO_TEXTS: Final[dict[str, str]] = {}
_encode: Final = msgspec.msgpack.Encoder().encode


class _Shared:
    """Values by the hash of their content, each kept once."""

    def __init__(self) -> None:
        self._values: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return the value that was first given with this content."""
        # Content that differs from pod to pod would fill it without end.
        if len(self._values) > _SHARED_MAX:
            self._values.clear()
        shared_value = self._values.setdefault(hash((type(value), _encode(value))), value)
        return shared_value if type(shared_value) is type(value) and shared_value == value else value


_shared: Final = _Shared()


_stored_metadata: Final[Any] = Pod.metadata
"""The metadata that a pod holds itself, where `SharedPod.metadata` may be made on demand."""
_DIGITS_MAX: Final = 18


class SharedPod(Pod, frozen=True, tag="Pod"):
    """A pod that shares with its replicas what they have in common.

    Once it is on a node, its own are only key, version and node; the rest of its metadata is one object for all
    replicas, and `metadata` is made when it is asked for.

    Differs: annotations are left out, and of a pod on a node also generation, conditions and times: only its preemption
    would read them, and nothing is preempted here. The uid of a pod on a node is its key: only the uid of a pod that
    waits is compared with uids in other objects.
    """

    # No API server writes fields of such names.
    bound_key: str = msgspec.field(default="", name="#key")
    version: int | str = msgspec.field(default="", name="#version")

    def __post_init__(self) -> None:
        """Share the parts."""
        super().__post_init__()
        if self.bound_key:
            return
        wire_metadata = _stored_metadata.__get__(self)
        if not self.node_name:
            force_setattr(wire_metadata, "namespace", sys.intern(wire_metadata.namespace))
            force_setattr(wire_metadata, "labels", _shared.of(wire_metadata.labels))
            force_setattr(wire_metadata, "owner_references", _shared.of(wire_metadata.owner_references))
            force_setattr(wire_metadata, "annotations", _NO_TEXTS)
            return
        metadata = ObjectMeta(
            namespace=sys.intern(wire_metadata.namespace),
            labels=wire_metadata.labels,
            annotations=_NO_TEXTS,
            owner_references=wire_metadata.owner_references,
            deletion_timestamp=wire_metadata.deletion_timestamp,
        )
        # No other pod has the time of a deletion, and all of them would be kept.
        _stored_metadata.__set__(self, metadata if metadata.deletion_timestamp else _shared.of(metadata))
        status = msgspec.structs.replace(self.status, conditions=(), start_time=None)
        force_setattr(self, "status", _shared.of(status))
        force_setattr(self, "node_name", sys.intern(self.node_name))
        force_setattr(self, "bound_key", f"{wire_metadata.namespace}/{wire_metadata.name}")
        force_setattr(self, "version", _packed_version(wire_metadata.resource_version))

    @property  # type: ignore[misc]
    def metadata(self) -> ObjectMeta:
        """The metadata. Cost: 1 us for a pod on a node."""
        common: ObjectMeta = _stored_metadata.__get__(self)
        if not self.bound_key:
            return common
        return ObjectMeta(
            name=self.bound_key[len(common.namespace) + 1 :],
            namespace=common.namespace,
            uid=self.bound_key,
            resource_version=str(self.version),
            labels=common.labels,
            annotations=_NO_TEXTS,
            owner_references=common.owner_references,
            deletion_timestamp=common.deletion_timestamp,
        )

    @property
    def key(self) -> str:
        """`<namespace>/<name>`, for a pod on a node without a text of its own."""
        return self.bound_key or super().key

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.bound_key or super().uid

    @property
    def is_terminating(self) -> bool:
        """The pod is being deleted."""
        return _stored_metadata.__get__(self).deletion_timestamp is not None


def _labels_of(labels: Mapping[str, str], name: str) -> Any:
    return NodeLabels(_shared.of({label: None if value == name else value for label, value in labels.items()}), name)


def _packed_version(version: str) -> int | str:
    """Return the version as a number, which takes half as much, if that gives back the same text."""
    is_number = version.isascii() and version.isdecimal() and version[0] != "0" and len(version) <= _DIGITS_MAX
    return int(version) if is_number else version


class NodeLabels(Mapping[str, str]):
    """The labels of a node. Nodes that differ only in labels whose value is their name share the others.

    Args:
        template: the labels, with None for the node's name.
    """

    __slots__ = ("_name", "_template")

    def __init__(self, template: Mapping[str, str | None], name: str) -> None:
        self._template = template
        self._name = name

    def __getitem__(self, label: str) -> str:
        value = self._template[label]
        return self._name if value is None else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._template)

    def __len__(self) -> int:
        return len(self._template)

    def __contains__(self, label: object) -> bool:
        return label in self._template

    def __eq__(self, labels: object) -> bool:
        if isinstance(labels, NodeLabels) and self._template is labels._template:
            return self._name == labels._name
        return super().__eq__(labels)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self))


class SharedNode(Node, frozen=True, tag="Node"):
    """A node that shares with others what they have in common, such as their images.

    Differs: addresses, conditions, the capacity and times are left out, which no filter and no score reads. The uid is
    the name.
    """

    def __post_init__(self) -> None:
        """Share the parts."""
        wire_metadata, status = self.metadata, self.status
        name = sys.intern(wire_metadata.name)
        metadata = ObjectMeta(
            name=name,
            uid=name,
            namespace=wire_metadata.namespace,
            resource_version=wire_metadata.resource_version,
            labels=_labels_of(wire_metadata.labels, name),
            annotations=_shared.of(wire_metadata.annotations),
            owner_references=_shared.of(wire_metadata.owner_references),
            deletion_timestamp=wire_metadata.deletion_timestamp,
        )
        force_setattr(self, "metadata", metadata)
        force_setattr(self, "spec", _shared.of(self.spec))
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
