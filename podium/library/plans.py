"""Plans of nodes to buy for the library's cluster. The module is loaded with the first plan only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from podium.engine.asked_pods import PodLike
from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import resource_of
from podium.engine.object_files import PathLike
from podium.insight import cluster as insight
from podium.lib.system_clock import SystemClock
from podium.lib.time_limit import TimeLimit
from podium.library.new_nodes import NewNodeCapacity, capacities_of, new_nodes_for
from podium.library.planned_objects import NODE_POOL, Originals, objects_to_plan
from podium.objects.errors import FieldError
from podium.objects.resource_types import PODS
from podium.objects.topology_labels import ZONE
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue, built_in_catalogue, zones_of
from podium.provisioner.cloudprovider.imports import import_catalogue
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.cases import read_settings
from podium.provisioner.reports.plan import PlanReport
from podium.provisioner.scheduling.device_use import DeviceUse
from podium.provisioner.state.adoption import adopt_nodes
from podium.provisioner.state.manifests import NODE_CLAIMS, NODE_POOLS, pods_of_workloads, read_cluster
from podium.provisioner.state.settings import UnknownLabels

Rules: TypeAlias = Literal["karpenter", "podium"]
InstanceTypes: TypeAlias = PathLike | Mapping[str, Any] | Sequence[Any]
"""The path of a catalogue of instance types, or its content as parsed from JSON."""
ONLY_PLANNED: Final = (NODE_POOLS, NODE_CLAIMS)
"""The kinds that only plans read."""


@dataclass(frozen=True, kw_only=True)
class PlanQuestion:
    """The arguments of `podium.Cluster.plan`."""

    node_pools: Sequence[LocatedManifest] | None
    adopt_nodes: bool
    catalogue: InstanceTypes | None
    workloads: Sequence[LocatedManifest]
    assume_unschedulable: bool
    ignore_unknown_labels: bool
    rules: str

    def answer(self, cluster: Cluster, originals: Originals) -> PlanReport:
        """Plan the nodes to buy. The cluster is not changed.

        Args:
            originals: as `objects_to_plan` takes it.

        Raises:
            ClusterError: there are no NodePools, or the arguments cannot be read.
        """
        if self.rules not in ("karpenter", "podium"):
            raise ClusterError(f"rules: expected karpenter or podium, got {self.rules!r}")
        if self.node_pools is not None and self.adopt_nodes:
            raise ClusterError("give either node_pools or adopt_nodes")
        try:
            documents = objects_to_plan(cluster, originals)
            if self.node_pools is not None:
                documents = [document for document in documents if document.manifest["kind"] != NODE_POOL] + list(
                    self.node_pools
                )
            workload_pods = list(pods_of_workloads(self.workloads, "add", documents)) if self.workloads else []
            objects = read_cluster([*documents, *workload_pods], assume_unschedulable=self.assume_unschedulable)
            labels: UnknownLabels = "ignored" if self.ignore_unknown_labels else "refused"
            basis = PlanBasis(
                *self._purchasable(objects), replace(read_settings({}), node_class=None, unknown_labels=labels)
            )
            now_s = SystemClock().now()
            if self.rules == "karpenter":
                return PlanReport.by_karpenter(basis, now_s, DeviceUse.in_store(cluster.store))
            return PlanReport(basis, plan_with_podium(basis, _with_pods(cluster, workload_pods), now_s))
        except (FieldError, OSError) as error:
            raise ClusterError(str(error)) from error

    def _purchasable(self, objects: ClusterObjects) -> tuple[ClusterObjects, Catalogue]:
        """Return the objects with NodePools, and the instance types to buy from."""
        types = self._instance_types(objects)
        if self.adopt_nodes:
            if objects.node_pools or not objects.nodes:
                problem = "has NodePools" if objects.node_pools else "has no nodes"
                raise ClusterError(f"adopt_nodes: this cluster {problem}, so there is nothing to adopt")
            adoption = adopt_nodes(objects.nodes, types)
            adopted_objects: Mapping[str, Any] = {"node_pools": adoption.node_pools, "node_claims": adoption.claims}
            return replace(objects, nodes=adoption.nodes, **adopted_objects), adoption.catalogue
        if not objects.node_pools:
            raise ClusterError(
                "there are no NodePools, so nothing can be bought: give node_pools, or adopt_nodes=True to buy nodes "
                "like the existing ones"
            )
        return objects, types

    def _instance_types(self, objects: ClusterObjects) -> Catalogue:
        return built_in_catalogue(objects) if self.catalogue is None else read_types(self.catalogue, zones_of(objects))


def read_types(catalogue: InstanceTypes, zones: Iterable[str]) -> Catalogue:
    """Return the instance types of a file or of parsed JSON.

    Raises:
        FieldError, ClusterError, OSError: they cannot be read.
    """
    if not isinstance(catalogue, (str, os.PathLike)):
        return import_catalogue([("catalogue", catalogue)], zones)
    text = Path(catalogue).expanduser().read_bytes()
    try:
        return import_catalogue([(f"{catalogue}: ", json.loads(text))], zones)
    except ValueError as error:
        raise ClusterError(f"{catalogue}: not JSON: {error}") from error


def new_node_capacities(
    cluster: insight.Cluster,
    pod: PodLike,
    catalogue: InstanceTypes,
    node_pools: Sequence[LocatedManifest],
    limit: TimeLimit,
) -> list[NewNodeCapacity]:
    """Answer `podium.Cluster.new_nodes`."""
    typed_pod = cluster.read_pod(pod)
    zones = sorted({node.metadata.labels[ZONE] for node in cluster.nodes if ZONE in node.metadata.labels})
    try:
        nodes = new_nodes_for(cluster, typed_pod, read_types(catalogue, zones), node_pools)
    except (FieldError, OSError) as error:
        raise ClusterError(str(error)) from error
    return capacities_of(cluster, typed_pod, nodes, limit)


def _with_pods(cluster: Cluster, documents: Sequence[LocatedManifest]) -> Cluster:
    """Return a fork of the cluster with these pods pending, and with their claims."""
    world = cluster.fork()
    for document in documents:
        resource = resource_of(document.manifest)
        if resource is PODS:
            world.put_pending(world.read_pod(document.manifest))
        elif resource is not None:
            world.put(*world.read(document.manifest))
    return world
