"""Storage of single nodes, as new nodes will have it: drivers publish the capacity of nodes that are there only.

Owns the capacity that a new node gets: that of its like, the nodes of the same instance type or else of the same
NodePool. Without any like the capacity is taken as enough, which a plan has to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from podium.engine.cluster import Cluster
from podium.objects.core import Node, Pod
from podium.objects.resource_types import (
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
)
from podium.objects.storage import CSIStorageCapacity
from podium.plugins.volumes.claims import ephemeral_claim_name
from podium.plugins.volumes.provisioning import volume_limit
from podium.provisioner.apis.labels import HOSTNAME, INSTANCE_TYPE, NODE_POOL

ENOUGH: Final = 2**62
"""Bytes of a node of whose like nothing is known."""
_NAMESPACE: Final = "kube-system"


@dataclass(frozen=True, slots=True)
class _LocalClass:
    """A storage class whose volumes are on single nodes.

    Attributes:
        label: The label by which its driver tells nodes apart.
        by_like: The most that a node has, by instance type and by NodePool.
    """

    name: str
    label: str
    by_like: Mapping[tuple[str, str], int]

    def amount_on(self, labels: Mapping[str, str]) -> int | None:
        """Return what a node with these labels is expected to have, or None if there is none like it."""
        likes = ((key, labels.get(key, "")) for key in (INSTANCE_TYPE, NODE_POOL))
        return next((self.by_like[like] for like in likes if like in self.by_like), None)


class LocalStorage:
    """The storage that new nodes bring to a cluster."""

    def __init__(self, world: Cluster) -> None:
        self._claims = world.store.objects(PERSISTENT_VOLUME_CLAIMS)
        drivers = world.store.objects(CSI_DRIVERS)
        nodes = {name: node for node in world.store.objects(NODES).values() for name in _names_of(node)}
        capacities = world.store.objects(CSI_STORAGE_CAPACITIES).values()
        self._classes: dict[str, _LocalClass] = {}
        for storage_class in world.store.objects(STORAGE_CLASSES).values():
            driver = drivers.get(storage_class.provisioner)
            # Of a driver that publishes no capacity, there is enough for everybody.
            if driver is not None and driver.spec.storage_capacity:
                name = storage_class.metadata.name
                of_class = [capacity for capacity in capacities if capacity.storage_class_name == name]
                local_class = _local_class(name, of_class, nodes)
                if local_class is not None:
                    self._classes[name] = local_class

    def labels(self, name: str) -> dict[str, str]:
        """Return the labels that drivers give a node of this name."""
        return {local_class.label: name for local_class in self._classes.values()}

    def manifests(self, name: str, labels: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Yield the published capacity of a new node."""
        for local_class in self._classes.values():
            amount = local_class.amount_on(labels)
            yield {
                "apiVersion": "storage.k8s.io/v1",
                "kind": CSI_STORAGE_CAPACITIES.kind,
                "metadata": {"name": f"{name}-{local_class.name}", "namespace": _NAMESPACE},
                "storageClassName": local_class.name,
                "nodeTopology": {"matchLabels": {local_class.label: name}},
                "capacity": str(ENOUGH if amount is None else amount),
            }

    def warnings(self, name: str, labels: Mapping[str, str], pods: Iterable[Pod]) -> Iterator[str]:
        """Yield a sentence for each class of which a new node is taken to have enough for these pods."""
        pods_by_class: dict[str, list[str]] = {}
        for pod in pods:
            for class_name in sorted(self._class_names(pod)):
                pods_by_class.setdefault(class_name, []).append(pod.key)
        for class_name, keys in pods_by_class.items():
            if class_name in self._classes and self._classes[class_name].amount_on(labels) is None:
                yield (
                    f"node {name} is taken to have enough storage of class {class_name} for {', '.join(keys)}, since "
                    "no node like it publishes its capacity"
                )

    def _class_names(self, pod: Pod) -> set[str]:
        names: set[str] = set()
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            name = source.claim_name if source else ephemeral_claim_name(pod, volume.name) if volume.ephemeral else ""
            claim = self._claims.get(f"{pod.metadata.namespace}/{name}")
            # A bound claim needs no new volume.
            if claim is not None and not claim.spec.volume_name:
                names.add(claim.spec.storage_class_name or "")
        return names


def _local_class(name: str, capacities: Iterable[CSIStorageCapacity], nodes: Mapping[str, Node]) -> _LocalClass | None:
    """Return the class if no part of its storage is reached from several nodes, or nothing is published of it."""
    # Without any published capacity, nothing says by which label the driver tells nodes apart.
    label, by_like = HOSTNAME, dict[tuple[str, str], int]()
    for capacity in capacities:
        topology = capacity.node_topology
        labels = (topology.match_labels if topology else None) or {}
        if len(labels) != 1 or (topology is not None and topology.match_expressions):
            return None
        ((label, node_name),) = labels.items()
        # A label that names no node is that of a zone or a rack, whose storage new nodes share with others.
        node = nodes.get(node_name)
        if node is None:
            return None
        for key in (INSTANCE_TYPE, NODE_POOL):
            like = key, node.metadata.labels.get(key, "")
            if like[1]:
                by_like[like] = max(by_like.get(like, 0), volume_limit(capacity) or 0)
    return _LocalClass(name, label, by_like)


def _names_of(node: Node) -> set[str]:
    return {node.name, node.metadata.labels.get(HOSTNAME) or node.name}
