"""Edits that may make a pod fit: what each changes, as a JSON Patch of a named object."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from podium.engine.manifests import as_manifest
from podium.insight.json_patch import Operation, operation, patched, pointer
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS


class EditKind(enum.Enum):
    """The kinds of edits, the least intrusive first.

    Objects that are missing, the pod's own wishes, nodes, and then other pods.
    """

    CREATE_CLAIM = "create-claim"
    RAISE_MAX_SKEW = "raise-max-skew"
    TOLERATE_TAINT = "tolerate-taint"
    CHANGE_HOST_PORT = "change-host-port"
    LOWER_REQUEST = "lower-request"
    WIDEN_NODE_AFFINITY = "widen-node-affinity"
    DROP_NODE_SELECTOR = "drop-node-selector"
    DROP_NODE_AFFINITY = "drop-node-affinity"
    DROP_SPREAD_CONSTRAINT = "drop-spread-constraint"
    DROP_POD_AFFINITY = "drop-pod-affinity-term"
    DROP_POD_ANTI_AFFINITY = "drop-pod-anti-affinity-term"
    CLEAR_NODE_NAME = "clear-node-name"
    UNCORDON = "uncordon"
    LABEL_NODE = "label-node"
    REMOVE_TAINT = "remove-taint"
    EVICT = "evict"
    ADD_NODE = "add-node"


INTRUSIVENESS: Final = {kind: rank for rank, kind in enumerate(EditKind)}
_WITHOUT_PATCH: Final = frozenset({EditKind.CREATE_CLAIM, EditKind.EVICT, EditKind.ADD_NODE})


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one object.

    Attributes:
        object_kind, namespace, name: the object.
        patch: empty for an eviction and an added node. For a claim to create it takes the claim out of the pod's spec,
            as the claim restricts nothing yet.
        text: what it does, in words.
        size: how large the change is among edits of its kind, from 0 to 1.
        manifest: the node to add.
    """

    kind: EditKind
    object_kind: str
    namespace: str
    name: str
    patch: tuple[Operation, ...]
    text: str
    size: float = 0.0
    manifest: Mapping[str, Any] | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Equal for edits that do the same."""
        return self.kind.value, self.namespace, self.name, repr(self.patch)

    @property
    def is_of_asked_pod(self) -> bool:
        """Whether the patch is one of the pod that is asked about."""
        return self.kind is EditKind.CREATE_CLAIM or (self.object_kind == "Pod" and self.kind is not EditKind.EVICT)

    @property
    def changes(self) -> tuple[Operation, ...]:
        """The patch of the named object; empty if it is created or deleted."""
        return () if self.kind in _WITHOUT_PATCH else self.patch

    def as_dict(self) -> dict[str, Any]:
        """The edit as JSON values, without its text."""
        of = {"kind": self.object_kind, "namespace": self.namespace, "name": self.name}
        found: dict[str, Any] = {"kind": self.kind.value, "object": of}
        if self.manifest is not None:
            found["manifest"] = self.manifest
        elif self.kind not in _WITHOUT_PATCH:
            found["patch"] = [dict(each) for each in self.patch]
        return found


def of_pod(kind: EditKind, pod: Pod, patch: Iterable[Operation], text: str, size: float = 0.0) -> Edit:
    """An edit of the pod."""
    return Edit(kind, "Pod", pod.metadata.namespace, pod.metadata.name, tuple(patch), text, size)


def of_node(kind: EditKind, node: Node, patch: Iterable[Operation], text: str) -> Edit:
    """An edit of the node."""
    return Edit(kind, "Node", "", node.name, tuple(patch), text)


def edited_pod(pod: Pod, patch: Iterable[Operation]) -> Pod:
    """The pod after a patch."""
    return msgspec.convert(patched(pod_manifest(pod), patch), Pod)


def pod_manifest(pod: Pod) -> dict[str, Any]:
    """The pod as a manifest."""
    return as_manifest(PODS, pod)


def node_manifest(node: Node, patch: Iterable[Operation] = ()) -> dict[str, Any]:
    """The node after a patch, as a manifest."""
    found: dict[str, Any] = patched(as_manifest(NODES, node), patch)
    return found


def into_map(known: Mapping[str, str], path: Sequence[str], changes: Mapping[str, str]) -> list[Operation]:
    """Operations that set members of a map that may be absent."""
    if not known:
        return [operation("add", pointer(*path), dict(changes))]
    return [operation("add", pointer(*path, key), value) for key, value in changes.items()]


def in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits in an order in which their patches apply: of one list, the last element is changed first."""
    return tuple(sorted(edits, key=_turn, reverse=True))


def _turn(edit: Edit) -> tuple[str, list[tuple[int, str]]]:
    path = edit.patch[-1]["path"] if edit.patch else ""
    parts = [(int(part), "") if part.isdigit() else (-1, part) for part in path.split("/")[1:]]
    return edit.object_kind, parts
