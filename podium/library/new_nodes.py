"""Nodes of a catalogue's instance types, as questions add them: with their devices and the pods of DaemonSets.

Owns which of them are asked about: one of each instance type that may suit the pod, in its cheapest offering. NodePools
say what else nodes are like; without any they have no taints, and the labels of their type alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from podium.engine.files import LocatedManifest
from podium.engine.gangs import restrict
from podium.engine.manifests import Manifest
from podium.insight.applied_edits import apply_edits
from podium.insight.cluster import Cluster
from podium.insight.edits import Edit, EditKind
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.library.planned_objects import NODE_POOL, objects_to_plan
from podium.objects.core import Pod
from podium.provisioner.apis.labels import HOSTNAME
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.planners.new_nodes import NewNodes
from podium.provisioner.planners.node_options import NodeOptions
from podium.provisioner.planners.planned_devices import PlannedDevices
from podium.provisioner.provisioning.candidate_nodes import CandidateNode
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.cases import read_settings
from podium.provisioner.state.manifests import read_cluster, ready_pool

_POOL: Final = "catalogue"
"""Stands for the NodePool of nodes for which none is given."""


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node of an instance type, which the cluster does not have.

    Attributes:
        type: the name of the instance type.
        pool: the name of the NodePool; "" if none was given.
        price: per hour; None if it is not known.
        edit: adds the node.
    """

    type: str
    pool: str
    zone: str
    capacity_type: str
    price: float | None
    edit: Edit


@dataclass(frozen=True, slots=True)
class NewNodeCapacity:
    """The number of copies of a pod that fit on a new node, and what blocks the next one."""

    node: NewNode
    fits: int
    limit: str

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        node = self.node
        return {
            "type": node.type,
            "pool": node.pool,
            "zone": node.zone,
            "capacity_type": node.capacity_type,
            "price": node.price,
            "fits": self.fits,
            "limit": self.limit,
        }


def new_nodes_for(
    cluster: Cluster,
    pod: Pod,
    catalogue: Catalogue,
    node_pools: Iterable[LocatedManifest] = (),
    on_fault: Callable[[str], None] | None = None,
) -> list[NewNode]:
    """Return a node of each instance type that may suit the pod, within the NodePools' limits, the cheapest first.

    Args:
        on_fault: receives a sentence about each object that planning cannot use; else it is an error.

    Raises:
        FieldError: a NodePool or an object of the cluster has a value that has no meaning.
        ClusterError: no profile serves the pod.
    """
    # Otherwise a pod that no profile serves would look like one that suits no type.
    cluster.framework_for(pod)
    documents = [item for item in objects_to_plan(cluster, {}) if item.manifest.get("kind") != NODE_POOL]
    objects = read_cluster([*documents, *node_pools], on_fault=on_fault)
    if not objects.node_pools and not objects.closed_pools:
        objects = replace(objects, node_pools=(ready_pool(_POOL, {}, (), {}),))
    settings = replace(read_settings({}), node_class=None)
    options = NodeOptions(PlanBasis(objects, catalogue, settings), cluster.profiles, PlannedDevices(cluster))
    by_type: dict[tuple[str, str], CandidateNode] = {}
    for option in sorted(options.of_all_pools(pod, {}), key=lambda option: (option.price, option.instance_type.name)):
        by_type.setdefault((option.template.name, option.instance_type.name), option)
    new_nodes = NewNodes(cluster)
    return [_new_node(new_nodes, candidate, index / len(by_type)) for index, candidate in enumerate(by_type.values())]


def capacities_of(
    cluster: Cluster, pod: Pod, new_nodes: Sequence[NewNode], limit: TimeLimit = UNLIMITED
) -> list[NewNodeCapacity]:
    """Return how many copies of the pod fit on each of the nodes alone, beside the pods that run. Nothing changes.

    Args:
        limit: when to end with the nodes counted by then.

    Raises: as `podium.Cluster.capacity`.
    """
    capacities: list[NewNodeCapacity] = []
    for node in limit.take(new_nodes):
        world = cluster.fork()
        apply_edits(world, [node.edit])
        capacity = world.capacity(restrict(pod, {HOSTNAME: node.edit.name}), limit=limit)
        entry = next(entry for entry in capacity.nodes if entry.node == node.edit.name)
        capacities.append(NewNodeCapacity(node, entry.fits, entry.limit))
    return capacities


def _new_node(new_nodes: NewNodes, candidate: CandidateNode, size: float) -> NewNode:
    name_of_pool = candidate.template.name
    name = new_nodes.name(name_of_pool)
    manifests = tuple(new_nodes.manifests(name, candidate))
    node = NewNode(
        type=candidate.instance_type.name,
        pool="" if name_of_pool == _POOL else name_of_pool,
        zone=candidate.offering.zone,
        capacity_type=candidate.offering.capacity_type,
        price=candidate.shown_price,
        edit=Edit(EditKind.ADD_NODE, "Node", "", name, (), "", size, manifest=_node_in(manifests), stand_ins=manifests),
    )
    cost = "" if node.price is None else f" for {node.price:.4f} per hour"
    of_pool = f" of NodePool {node.pool}" if node.pool else ""
    text = f"add one node of type {node.type} ({node.zone}, {node.capacity_type}){of_pool}{cost}"
    return replace(node, edit=replace(node.edit, text=text))


def _node_in(manifests: Iterable[Manifest]) -> Manifest:
    return next(manifest for manifest in manifests if manifest["kind"] == "Node")
