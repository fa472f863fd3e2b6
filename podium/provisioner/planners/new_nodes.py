"""The nodes that a plan adds to a cluster: their names, and the objects that come with each of them.

Owns what drivers publish of a new node: its storage, and its devices for resource claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.resource_types import NODES
from podium.provisioner.planners.local_storage import LocalStorage
from podium.provisioner.planners.planned_devices import slices_of
from podium.provisioner.provisioning.candidate_nodes import CandidateNode


class NewNodes:
    """The nodes that one search adds.

    Args:
        world: the cluster without them.
    """

    def __init__(self, world: Cluster) -> None:
        self._world = world
        self._storage = LocalStorage(world)
        self._numbers: dict[str, int] = {}

    def add(self, world: Cluster, name: str, candidate: CandidateNode) -> None:
        """Add a node to a fork of the cluster, with the pods of its DaemonSets, its storage and its devices."""
        for manifest in self.manifests(name, candidate):
            world.add(manifest)

    def manifests(self, name: str, candidate: CandidateNode) -> Iterator[Mapping[str, Any]]:
        """Yield the objects of a node, with the pods of its DaemonSets, its storage and its devices."""
        # Before the node: a pod that is tried there must find its storage and its devices.
        yield from self._storage.manifests(name, candidate.labels(name))
        # As the drivers of running nodes do, once for each node.
        yield from slices_of(candidate.instance_type, name)
        yield from candidate.manifests(name, self._storage.labels(name))

    def name(self, pool: str) -> str:
        """Return a name for a new node of the NodePool that no other node has."""
        name = self.next_name(pool)
        self._numbers[pool] += 1
        return name

    def next_name(self, pool: str) -> str:
        """Return the name that the next node of the NodePool will have."""
        number = self._numbers.get(pool, 0) + 1
        # A user may have a node of such a name; the plan must not replace it in the fork.
        while self._world.store.get(NODES, _name(pool, number)) is not None:
            number += 1
        self._numbers[pool] = number - 1
        return _name(pool, number)

    def renumber(self, candidates: Mapping[str, CandidateNode]) -> dict[str, CandidateNode]:
        """Return the nodes in the same order, with names that leave no numbers out."""
        # Tries have taken numbers that no node of the plan has.
        self._numbers.clear()
        return {self.name(node.template.name): node for _, node in sorted(candidates.items())}

    def warnings(self, candidates: Mapping[str, CandidateNode], pods: Mapping[str, Iterable[Pod]]) -> Iterator[str]:
        """Yield a sentence about what is taken for granted for the pods on each of the nodes."""
        for name, candidate in sorted(candidates.items()):
            yield from self._storage.warnings(name, candidate.labels(name), pods.get(name, ()))


def _name(pool: str, number: int) -> str:
    return f"{pool}-new-{number:04d}"
