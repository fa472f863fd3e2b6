"""A watch line of a pod, read only as far as it takes to see whether this member has anything to do with the pod.

Owns which fields of a pod may concern members that neither decide on it nor own its node. Every field is decoded with
its type, so that no text elsewhere in the pod, such as an annotation, can pass for one of them. What is in doubt counts
as a pod that concerns all members.

Cost: 3 us for each line.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from podium.objects.core import Pod
from podium.objects.coscheduling import GROUP_LABEL
from podium.objects.wire import ADDED, DELETED, MODIFIED, NOT_DECODED
from podium.shards.pods import CONDITION

_CHANGES: Final = frozenset((ADDED, MODIFIED, DELETED))
_ABSENT: Final = Raw()
_MANAGED_BYTES_MIN: Final = 64
"""Shorter ones need not be left out."""
_MANAGED_FIELDS: Final = b'"managedFields":'


class _Value(Struct, rename="camel", gc=False, frozen=True):
    """Base of every part. A field that is null is not as expected, so that the pod is decoded in full."""


class _Present(_Value, frozen=True):
    """An object of which it matters only that it is there."""


class _Owner(_Value, frozen=True):
    uid: str = ""
    controller: bool = False


class _Labels(_Value, frozen=True):
    group: str | None = field(default=None, name=GROUP_LABEL)


class OutlineMeta(_Value, frozen=True):
    """The metadata of a pod that is not decoded."""

    name: str
    uid: str
    namespace: str
    resource_version: str
    labels: _Labels = _Labels()
    owner_references: tuple[_Owner, ...] = ()
    managed_fields: Raw = _ABSENT

    @property
    def controller(self) -> _Owner | None:
        """The object that manages the pod."""
        for reference in self.owner_references:
            if reference.controller:
                return reference
        return None


class _Affinity(_Value, frozen=True):
    pod_affinity: _Present | None = None
    pod_anti_affinity: _Present | None = None


class _Container(_Value, frozen=True):
    resources: Raw = _ABSENT


def _names_extended_resources(amounts: Raw) -> bool:
    if amounts is _ABSENT:
        return False
    # The name of an extended resource, which devices may provide, has a slash; a backslash may stand for one.
    text = bytes(amounts)
    return b"/" in text or b"\\" in text


class _Volume(_Value, frozen=True):
    persistent_volume_claim: _Present | None = None
    ephemeral: _Present | None = None


class _Spec(_Value, frozen=True):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()
    resources: Raw = _ABSENT
    overhead: Raw = _ABSENT
    affinity: _Affinity = _Affinity()
    topology_spread_constraints: tuple[_Present, ...] = ()
    resource_claims: tuple[_Present, ...] = ()
    scheduling_group: _Present | None = None

    def may_use_devices(self) -> bool:
        """Return whether the pod may request extended resources."""
        for container in self.containers:
            if _names_extended_resources(container.resources):
                return True
        for container in self.init_containers:
            if _names_extended_resources(container.resources):
                return True
        return _names_extended_resources(self.resources) or _names_extended_resources(self.overhead)


class _Condition(_Value, frozen=True):
    type: str = ""


class _Status(_Value, frozen=True):
    nominated_node_name: str = ""
    conditions: tuple[_Condition, ...] = ()


class PodOutline(_Value, frozen=True):
    """A pod that is not decoded, but for what says whom it concerns."""

    metadata: OutlineMeta
    spec: _Spec
    kind: str = ""
    status: _Status = _Status()

    @property
    def key(self) -> str:
        """`<namespace>/<name>`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def node_name(self) -> str:
        """The node that it is bound to; "" while it is pending."""
        return self.spec.node_name

    @property
    def concerns_all(self) -> bool:
        """Whether members may have to know the pod that neither decide on it nor own its node.

        It has rules or claims that reach over nodes, or members have written about it.
        """
        spec, status, affinity = self.spec, self.status, self.spec.affinity
        if affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None:
            return True
        if spec.topology_spread_constraints or spec.resource_claims or spec.scheduling_group is not None:
            return True
        if self.metadata.labels.group is not None or status.nominated_node_name:
            return True
        for condition in status.conditions:
            if condition.type == CONDITION:
                return True
        for volume in spec.volumes:
            # A claim may be for one pod of the cluster only.
            if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
                return True
        return spec.may_use_devices()


class OutlineChange(_Value, frozen=True):
    """A line of the watch of pods."""

    type: str
    object: PodOutline

    @property
    def is_deletion(self) -> bool:
        """Whether the pod is gone."""
        return self.type == DELETED


_decode = msgspec.json.Decoder(OutlineChange).decode


def outline_of(line: bytes) -> OutlineChange | None:
    """Return the outline of a watch line; None for a bookmark, an error, and what is not as expected of a pod."""
    try:
        change = _decode(line)
    except NOT_DECODED:
        return None
    outline, metadata = change.object, change.object.metadata
    is_pod = change.type in _CHANGES and outline.kind in ("", Pod.__name__)
    # Other invalid names are found when the pod is decoded; these would be keys of other pods.
    is_named = metadata.name and metadata.uid and "/" not in metadata.name and "/" not in metadata.namespace
    return change if is_pod and is_named else None


def line_to_keep(line: bytes, outline: PodOutline) -> bytes:
    """Return a watch line of the same pod that takes less memory: without who has written which field of it."""
    managed_fields = bytes(outline.metadata.managed_fields)
    if len(managed_fields) < _MANAGED_BYTES_MIN:
        return line
    # With its quotes the name cannot be a part of a string, and nowhere else does a field of that name matter.
    start = line.find(_MANAGED_FIELDS) + len(_MANAGED_FIELDS)
    if not line.startswith(managed_fields, start):
        return line
    return b"".join((line[:start], b"[]", line[start + len(managed_fields) :]))
