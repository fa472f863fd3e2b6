"""Plans of nodes to buy for the library's cluster. Loaded only when one is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.engine.files import Found
from podium.engine.manifests import resource_of
from podium.engine.object_files import PathLike
from podium.lib.system_clock import SystemClock
from podium.library.planned_objects import NODE_POOL, Kept, objects_to_plan
from podium.objects.errors import FieldError
from podium.objects.resource_types import PODS
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue, built_in_catalogue, read_catalogue
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.cases import read_settings
from podium.provisioner.reports.purchase_plans import PlacedPurchases, PurchasePlan
from podium.provisioner.scheduling.device_use import DeviceUse
from podium.provisioner.state.adoption import adopt_nodes
from podium.provisioner.state.manifests import NODE_CLAIMS, NODE_POOLS, pods_of_workloads, read_cluster

Rules: TypeAlias = Literal["karpenter", "podium"]
InstanceTypes: TypeAlias = PathLike | Mapping[str, Any] | Sequence[Any]
"""The path of a catalogue of instance types, or its content as parsed from JSON."""
Plan: TypeAlias = PurchasePlan | PlacedPurchases
ONLY_PLANNED: Final = (NODE_POOLS, NODE_CLAIMS)
"""The kinds that only plans read."""


@dataclass(frozen=True, kw_only=True)
class PlanQuestion:
    """What is to be planned, as `podium.Cluster.plan` takes it."""

    node_pools: Sequence[Found] | None
    adopt_nodes: bool
    catalogue: InstanceTypes | None
    added: Sequence[Found]
    assume_unschedulable: bool
    rules: str

    def answer(self, cluster: Cluster, kept: Kept) -> Plan:
        """The plan. The cluster is not changed.

        Args:
            kept: as `objects_to_plan` takes it.

        Raises:
            ClusterError: there is none.
        """
        if self.rules not in ("karpenter", "podium"):
            raise ClusterError(f"rules: expected karpenter or podium, got {self.rules!r}")
        if self.node_pools is not None and self.adopt_nodes:
            raise ClusterError("give either node_pools or adopt_nodes")
        try:
            found = objects_to_plan(cluster, kept)
            if self.node_pools is not None:
                found = [each for each in found if each.manifest["kind"] != NODE_POOL] + list(self.node_pools)
            added = list(pods_of_workloads(self.added, "add", found)) if self.added else []
            objects = read_cluster([*found, *added], assume_unschedulable=self.assume_unschedulable)
            basis = PlanBasis(*self._purchasable(objects), replace(read_settings({}), node_class=None))
            now = SystemClock().now()
            if self.rules == "karpenter":
                return PurchasePlan.of(basis, now, DeviceUse.in_store(cluster.store))
            return PlacedPurchases(basis, plan_with_podium(basis, _with_pods(cluster, added), now))
        except (FieldError, OSError) as error:
            raise ClusterError(str(error)) from error

    def _purchasable(self, objects: ClusterObjects) -> tuple[ClusterObjects, Catalogue]:
        """The objects with NodePools, and the instance types that these buy."""
        types = self._instance_types(objects)
        if self.adopt_nodes:
            if objects.node_pools or not objects.nodes:
                what = "has NodePools" if objects.node_pools else "has no nodes"
                raise ClusterError(f"adopt_nodes: this cluster {what}, so there is nothing to adopt")
            adopted = adopt_nodes(objects.nodes, types)
            more: Mapping[str, Any] = {"node_pools": adopted.node_pools, "node_claims": adopted.claims}
            return replace(objects, nodes=adopted.nodes, **more), adopted.catalogue
        if not objects.node_pools:
            raise ClusterError(
                "there are no NodePools, so nothing can be bought: give node_pools, or adopt_nodes=True to buy nodes "
                "like those that are there"
            )
        return objects, types

    def _instance_types(self, objects: ClusterObjects) -> Catalogue:
        if self.catalogue is None:
            return built_in_catalogue(objects)
        if not isinstance(self.catalogue, (str, os.PathLike)):
            return read_catalogue(self.catalogue, "catalogue")
        text = Path(self.catalogue).expanduser().read_bytes()
        try:
            return read_catalogue(json.loads(text), "")
        except ValueError as error:
            raise ClusterError(f"{self.catalogue}: not JSON: {error}") from error


def _with_pods(cluster: Cluster, added: Sequence[Found]) -> Cluster:
    """The cluster with these pods pending, and with their claims."""
    world = cluster.fork()
    for each in added:
        resource = resource_of(each.manifest)
        if resource is PODS:
            world.put_pending(world.read_pod(each.manifest))
        elif resource is not None:
            world.put(*world.read(each.manifest))
    return world
