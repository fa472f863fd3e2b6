"""Edits that may make a pod fit, each a JSON Patch of a named object."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from podium.engine.manifests import as_manifest
from podium.insight.json_patch import Operation, apply_patch, operation, pointer
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS


class EditKind(enum.Enum):
    # The declaration order is the ranking: what touches the pod alone first, what takes others down last.
    """The kinds of edits, the least intrusive first.

    Missing objects come first, then what the pod itself asks for, nodes, and other pods.
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
        stand_ins: the objects that stand for the added node in a trial: with what the pods of DaemonSets leave of it,
            and with its devices; empty if the manifest does.
    """

    kind: EditKind
    object_kind: str
    namespace: str
    name: str
    patch: tuple[Operation, ...]
    text: str
    size: float = 0.0
    manifest: Mapping[str, Any] | None = None
    stand_ins: tuple[Mapping[str, Any], ...] = ()

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Identifies an edit: equal edits make the same change."""
        return self.kind.value, self.namespace, self.name, repr(self.patch)

    @property
    def is_of_pod(self) -> bool:
        """True if the patch changes the pod in question."""
        return self.kind is EditKind.CREATE_CLAIM or (self.object_kind == "Pod" and self.kind is not EditKind.EVICT)

    @property
    def changes(self) -> tuple[Operation, ...]:
        """The patch of the named object; empty if it is created or deleted."""
        return () if self.kind in _WITHOUT_PATCH else self.patch

    def as_dict(self) -> dict[str, Any]:
        """Return the edit as JSON values, without its text."""
        object_fields = {"kind": self.object_kind, "namespace": self.namespace, "name": self.name}
        answer: dict[str, Any] = {"kind": self.kind.value, "object": object_fields}
        if self.manifest is not None:
            answer["manifest"] = self.manifest
        elif self.kind not in _WITHOUT_PATCH:
            answer["patch"] = [dict(change) for change in self.patch]
        return answer


EditSet: TypeAlias = tuple[Edit, ...]


def pod_edit(kind: EditKind, pod: Pod, patch: Iterable[Operation], text: str, size: float = 0.0) -> Edit:
    """Make an edit of the pod."""
    return Edit(kind, "Pod", pod.metadata.namespace, pod.metadata.name, tuple(patch), text, size)


def node_edit(kind: EditKind, node: Node, patch: Iterable[Operation], text: str) -> Edit:
    """Make an edit of the node."""
    return Edit(kind, "Node", "", node.name, tuple(patch), text)


def patch_pod(pod: Pod, patch: Iterable[Operation]) -> Pod:
    """Return the pod after a patch."""
    return msgspec.convert(apply_patch(pod_manifest(pod), patch), Pod)


def pod_manifest(pod: Pod) -> dict[str, Any]:
    """Return the pod as a manifest."""
    return as_manifest(PODS, pod)


def node_manifest(node: Node, patch: Iterable[Operation] = ()) -> dict[str, Any]:
    """Return the node after a patch, as a manifest."""
    manifest: dict[str, Any] = apply_patch(as_manifest(NODES, node), patch)
    return manifest


def into_map(members: Mapping[str, str], path: Sequence[str], changes: Mapping[str, str]) -> list[Operation]:
    """Return operations that set members of a map that may be absent."""
    if not members:
        return [operation("add", pointer(*path), dict(changes))]
    return [operation("add", pointer(*path, key), value) for key, value in changes.items()]


def in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits in an order in which their patches apply: the last element of a list is changed first."""
    return tuple(sorted(edits, key=_turn, reverse=True))


def _turn(edit: Edit) -> tuple[str, list[tuple[int, str]]]:
    # Removals and additions at list indexes must not shift those of the edits that follow.
    path = edit.patch[-1]["path"] if edit.patch else ""
    parts = [(int(part), "") if part.isdigit() else (-1, part) for part in path.split("/")[1:]]
    return edit.object_kind, parts
