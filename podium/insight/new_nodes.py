"""What comes with a node that a question adds: its devices, pods of DaemonSets, and the capacity that they leave."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.engine.derivation.daemon_nodes import DaemonNodes
from podium.engine.derivation.pods import daemon_set_pod
from podium.engine.manifests import Manifest, as_manifest
from podium.engine.replicas import pinned_spec
from podium.insight.edits import Edit, node_manifest
from podium.insight.node_edits import HOSTNAME, NOTHING, added_node
from podium.objects.core import Node, Pod
from podium.objects.meta import ObjectMeta
from podium.objects.quantity import parse
from podium.objects.requests import node_allocatable, pod_requests
from podium.objects.resource_names import CPU
from podium.objects.resource_types import NODES, RESOURCE_SLICES


def without_daemons(cluster: Cluster, node: Node, like: Node) -> Node:
    """Return the new node with its allocatable reduced by the requests of the DaemonSets' pods.

    Args:
        like: the node that it is a copy of. Its pods stand for DaemonSets that the cluster's objects lack.
    """
    daemons = [*_known_daemons(cluster, node), *_unknown_daemons(cluster, node, like)]
    if not daemons:
        return node
    remainder, pods = dict(node_allocatable(node)[0]), node_allocatable(node)[1]
    for pod in daemons:
        for resource, amount in pod_requests(pod.spec).items():
            # A resource that the node lacks cannot be reserved on it; the DaemonSet's pod would not run there.
            if resource in remainder:
                remainder[resource] = max(remainder[resource] - amount, 0)
    texts = {resource: f"{amount}m" if resource == CPU else str(amount) for resource, amount in remainder.items()}
    allocatable = {**node.status.allocatable, **texts, "pods": str(max(pods - len(daemons), 0))}
    return replace(node, status=replace(node.status, allocatable=allocatable))


def node_like(cluster: Cluster, like: Node, names: Collection[str], overrides: Mapping[str, int] = NOTHING) -> Edit:
    """Make the edit that adds a node like this one, with the devices that its drivers will publish.

    Args and Returns: as `added_node`.
    """
    node, edit = added_node(like, names, overrides)
    manifest = node_manifest(without_daemons(cluster, node, like))
    return dataclasses.replace(edit, stand_ins=(*devices_alike(cluster, node.name, like), manifest))


def another_like(cluster: Cluster, edit: Edit, names: Collection[str]) -> Edit | None:
    """Make the edit that adds one more node like that of this edit, which `node_like` has made; None if it has not.

    Args:
        names: those of the nodes that exist.
    """
    like = cluster.store.get(NODES, edit.name.rpartition("-like-")[0])
    if like is None or edit.manifest is None:
        return None
    allocatable, allocatable_before = edit.manifest["status"]["allocatable"], like.status.allocatable
    has = {name: amount for name, amount in allocatable.items() if amount != allocatable_before.get(name)}
    return node_like(cluster, like, names, {name: parse(amount).value for name, amount in has.items()})


def devices_alike(cluster: Cluster, node_name: str, like: Node) -> Iterator[Manifest]:
    """Yield slices of a new node with the devices that slices list on `like` alone."""
    for resource_slice in cluster.store.objects(RESOURCE_SLICES).values():
        spec = resource_slice.spec
        if spec.node_name == like.name:
            pool = replace(spec.pool, name=f"{spec.pool.name}-of-{node_name}")
            metadata = ObjectMeta(name=f"{resource_slice.metadata.name}-of-{node_name}")
            new = replace(resource_slice, metadata=metadata, spec=replace(spec, node_name=node_name, pool=pool))
            yield as_manifest(RESOURCE_SLICES, new)


def daemons_alike(cluster: Cluster, node_name: str, like: Node) -> list[Pod]:
    """Return copies for a new node of the pods on `like` whose DaemonSets the cluster's objects lack."""
    node = Node(metadata=replace(like.metadata, name=node_name))
    return list(_unknown_daemons(cluster, node, like))


def _known_daemons(cluster: Cluster, node: Node) -> Iterator[Pod]:
    for key, daemon_set in cluster.admission.objects.of_kind("DaemonSet").items():
        if DaemonNodes(daemon_set).for_new_pods([node]):
            name = f"{key.partition('/')[2]}-{node.name}"
            yield cluster.read_pod(daemon_set_pod(daemon_set, name, node.name))


def _unknown_daemons(cluster: Cluster, node: Node, like: Node) -> Iterator[Pod]:
    objects, snapshot = cluster.admission.objects, cluster.engine_to_ask.cache.snapshot()
    row = snapshot.row_of.get(like.name)
    pods = () if row is None else snapshot.pods[row].values()
    for pod in sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name)):
        owner = pod.metadata.controller
        if owner is None or owner.kind != "DaemonSet":
            continue
        # Its DaemonSet is in no dump, so the pods of it on a node of this kind are what is known.
        if objects.get("DaemonSet", owner.name, pod.metadata.namespace) is None:
            yield _for_node(pod, node.name)


def _for_node(pod: Pod, node_name: str) -> Pod:
    """Return a copy of the pod with affinity to another node."""
    name = f"{pod.metadata.name}-{node_name}"
    metadata = replace(pod.metadata, name=name, uid=f"Pod/{pod.metadata.namespace}/{name}")
    return Pod(metadata=metadata, spec=pinned_spec(pod.spec, node_name))


class NodeShapes:
    """Nodes of equal labels, taints and resources."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        equal: dict[object, list[Node]] = {}
        for node in nodes:
            # Hostnames differ on every node, and would make each node a shape of its own.
            labels = frozenset(label for label in node.metadata.labels.items() if label[0] != HOSTNAME)
            equal.setdefault((labels, node.spec.taints, frozenset(node.status.allocatable.items())), []).append(node)
        self._equal = list(equal.values())
        frequency: Counter[tuple[str, str]] = Counter()
        for group in self._equal:
            for label in group[0].metadata.labels.items():
                frequency[label] += len(group)
        self._single = frozenset(label for label, count in frequency.items() if count == 1)
        self._single_keys = {key for key, _ in self._single}
        self._by_keys: dict[frozenset[str], list[Node]] = {}

    def one_of_each(self, pod: Pod) -> list[Node]:
        """Return one node of each shape, the most frequent first. Labels of one node count if the pod names them."""
        spec_text = repr(pod.spec)
        named_keys = frozenset(key for key in self._single_keys if key in spec_text)
        if named_keys not in self._by_keys:
            self._by_keys[named_keys] = self._of_each(named_keys)
        return self._by_keys[named_keys]

    def _of_each(self, named_keys: frozenset[str]) -> list[Node]:
        shapes: dict[object, list[Node]] = {}
        for group in self._equal:
            first = group[0]
            labels = frozenset(
                label
                for label in first.metadata.labels.items()
                # A label of a single node, such as an id, does not make a shape unless the pod asks for it.
                if label[0] != HOSTNAME and (label not in self._single or label[0] in named_keys)
            )
            shape = labels, first.spec.taints, tuple(sorted((k, str(v)) for k, v in first.status.allocatable.items()))
            shapes.setdefault(shape, []).extend(group)
        return [group[0] for group in sorted(shapes.values(), key=lambda group: -len(group))]
