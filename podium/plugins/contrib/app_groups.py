"""AppGroups and NetworkTopologies of diktyo.x-k8s.io: their types, where they are looked for, and the pods of a group.

Owns what NetworkOverhead and TopologicalSort read. Never decides anything.

Source: sigs.k8s.io/scheduler-plugins pkg/networkaware/util (for Kubernetes 1.35); the definitions of diktyo-io.
Differs: objects without a uid count, as in files. Lists are searched whatever their order; upstream misses entries of
lists that are not sorted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from podium.framework import contract as fwk
from podium.lib.error_text import cut
from podium.objects.core import Pod
from podium.objects.custom_resources import custom_resource
from podium.objects.meta import Int32, Int64, NamespacedObject, Value
from podium.objects.resource_types import PODS, ObjectT
from podium.plugins.shared.pods_by_key import PodsByKey

GROUP_LABEL: Final = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL: Final = "appgroup.diktyo.x-k8s.io.workload"


class Workload(Value, frozen=True):
    """A workload of a group; its selector is the value of the workload label of its pods."""

    name: str = ""
    selector: str = ""


class Dependency(Value, frozen=True):
    """A workload that another one talks to, and the network cost up to which it does so well."""

    workload: Workload = Workload()
    max_network_cost: Int64 = 0


class AppGroupWorkload(Value, frozen=True):
    """A workload and those that it depends on."""

    workload: Workload = Workload()
    dependencies: tuple[Dependency, ...] = ()


class AppGroupSpec(Value, frozen=True):
    """The workloads of a group."""

    workloads: tuple[AppGroupWorkload, ...] = ()


class TopologyOrder(Value, frozen=True):
    """The place of a workload in the order in which the group should start."""

    workload: Workload = Workload()
    index: Int32 = 0


class AppGroupStatus(Value, frozen=True):
    """The order that the group's own controller has computed."""

    topology_order: tuple[TopologyOrder, ...] = ()


class AppGroup(NamespacedObject, frozen=True):
    """Workloads that talk to each other."""

    spec: AppGroupSpec = AppGroupSpec()
    status: AppGroupStatus = AppGroupStatus()

    def dependencies_of(self, selector: str) -> tuple[Dependency, ...]:
        """Return the dependencies of every workload with that selector."""
        return tuple(
            dependency
            for item in self.spec.workloads
            if item.workload.selector == selector
            for dependency in item.dependencies
        )

    def order_of(self, selector: str) -> int:
        """Return the index of the workload with that selector; -1, before all others, if it has none."""
        orders = self.status.topology_order
        return next((order.index for order in orders if order.workload.selector == selector), -1)


class Cost(Value, frozen=True):
    """What it costs to reach a destination."""

    destination: str = ""
    network_cost: Int64 = 0


class Origin(Value, frozen=True):
    """The costs from one region or zone."""

    origin: str = ""
    cost_list: tuple[Cost, ...] = ()


class Topology(Value, frozen=True):
    """The costs between the values of one topology key."""

    topology_key: str = ""
    origin_list: tuple[Origin, ...] = ()

    def costs_from(self, origin: str) -> tuple[Cost, ...]:
        """Return the costs from that region or zone."""
        return next((item.cost_list for item in self.origin_list if item.origin == origin), ())


class Weights(Value, frozen=True):
    """One named set of costs."""

    name: str = ""
    topology_list: tuple[Topology, ...] = ()

    def costs_from(self, key: str, origin: str) -> tuple[Cost, ...]:
        """Return the costs from that region or zone, by the topology key."""
        topology = next((item for item in self.topology_list if item.topology_key == key), Topology())
        return topology.costs_from(origin)


class NetworkTopologySpec(Value, frozen=True):
    """The sets of costs."""

    weights: tuple[Weights, ...] = ()


class NetworkTopology(NamespacedObject, frozen=True):
    """Network costs between regions and between zones."""

    spec: NetworkTopologySpec = NetworkTopologySpec()

    def oddities(self) -> Iterator[str]:
        """Yield which costs are negative; they count all the same."""
        for number, weights in enumerate(self.spec.weights):
            path = f"NetworkTopology {self.key}: spec.weights[{number}]: networkCost of "
            for origin in itertools.chain.from_iterable(topology.origin_list for topology in weights.topology_list):
                for cost in origin.cost_list:
                    if cost.network_cost < 0:
                        yield f"{path}{cut(origin.origin)} to {cut(cost.destination)}: is negative"


APP_GROUPS = custom_resource("appgroup.diktyo.x-k8s.io/v1alpha1", "appgroups", AppGroup)
NETWORK_TOPOLOGIES = custom_resource("networktopology.diktyo.x-k8s.io/v1alpha1", "networktopologies", NetworkTopology)


def group_of(pod: Pod) -> str:
    """Return the name of the pod's group; "" if it has none."""
    return pod.metadata.labels.get(GROUP_LABEL, "")


def workload_of(pod: Pod) -> str:
    """Return the selector of the pod's workload; "" if it has none."""
    return pod.metadata.labels.get(WORKLOAD_LABEL, "")


def first_of(lister: fwk.Lister[ObjectT], namespaces: Iterable[str], name: str) -> ObjectT | None:
    """Return the object of that name in the first of the namespaces that has one."""
    objects = (lister.get(f"{namespace}/{name}") for namespace in namespaces)
    return next((item for item in objects if item is not None), None)


def pods_by_app_group(handle: fwk.Handle) -> PodsByKey:
    """Return the pods of every group, in all namespaces. Plugins share them by `handle.shared(pods_by_app_group)`."""
    return PodsByKey(handle.lister(PODS), group_of)
