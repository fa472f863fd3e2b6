"""Nodes to buy as a provider is asked for them: each under a name that follows from what it is bought for.

Owns the names. A plan that is made again, by the same process or by the next one, has the same names, so a provider
never buys a node twice.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from podium.objects.core import Pod
from podium.provisioner.apis.labels import INSTANCE_TYPE, NODE_POOL, SIMULATED
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.cloudprovider.instance_types import Offering
from podium.provisioner.provisioning.launches import Launch, launch_of
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.plans import Purchase, purchase_as_told
from podium.provisioner.scheduling.amounts import requests_of, total
from podium.provisioner.state.state_node import NODES

_POOL_LENGTH_MAX: Final = 40
_DIGEST_LENGTH: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class PlannedNode:
    """A node to buy.

    Attributes:
        launch: The cheapest way to buy it.
        pods: The pods that it is bought for.
        purchase: All ways to buy it; None if it is to be just this one.
    """

    name: str
    launch: Launch
    pods: tuple[Pod, ...]
    purchase: Purchase | None = None

    @property
    def pool(self) -> str:
        """The NodePool's name."""
        return self.launch.template.name

    @property
    def text(self) -> str:
        """What it is, for people."""
        launch = self.launch
        where = f"{launch.offering.zone}, {launch.offering.capacity_type}"
        cost = "" if launch.shown_price is None else f" for {launch.shown_price:.4f} per hour"
        return f"{launch.instance_type.name} ({where}) of NodePool {self.pool}{cost}"

    def requirements(self) -> list[dict[str, Any]]:
        """What the node must be like, as a NodeClaim says it."""
        if self.purchase is None:
            labels = self.launch.labels(self.name).items()
            return [
                {"key": key, "operator": "In", "values": [value]} for key, value in labels if key not in _NOT_REQUIRED
            ]
        told = purchase_as_told(self.purchase)
        types = {"values": sorted(told["types"])}
        return [each | types if each["key"] == INSTANCE_TYPE else each for each in told["requirements"]]

    def requests(self) -> Mapping[str, int]:
        """What its pods take of it, those of DaemonSets too."""
        return total(self.launch.group.overhead, *(requests_of(each) for each in self.pods))


_NOT_REQUIRED: Final = frozenset({"kubernetes.io/hostname", *SIMULATED})


def launched(basis: PlanBasis, purchases: Iterable[Purchase]) -> Iterator[tuple[Purchase, Launch]]:
    """Each purchase with the cheapest way to make it, as long as there is one."""
    groups: Mapping[str, tuple[DaemonGroup, ...]] = {template.name: found for template, found in basis.templates}
    taken: dict[Offering, int] = {}
    for each in purchases:
        template = each.claim.template
        launch = launch_of(
            template, groups[template.name], each.requirements, each.instance_types, basis.well_known, taken
        )
        if launch is not None:
            taken[launch.offering] = taken.get(launch.offering, 0) + 1
            yield each, launch


def planned_nodes(
    basis: PlanBasis, purchases: Iterable[Purchase], replaced: AbstractSet[str] = frozenset()
) -> tuple[PlannedNode, ...]:
    """The nodes to buy.

    Args:
        replaced: the names of the nodes whose place they take.
    """
    made = ((launch, tuple(purchase.claim.pods), purchase) for purchase, launch in launched(basis, purchases))
    return _named(basis.objects, made, replaced)


def within_node_limits(basis: PlanBasis, nodes: Iterable[PlannedNode]) -> tuple[PlannedNode, ...]:
    """The nodes that their NodePools may have, by the pools' limits of nodes; the pods of the others go on waiting.

    Source: karpenter pkg/controllers/provisioning/provisioner.go (Create), v1.15.0.
    Differs: a plan does not count its own nodes there either, and those that are being created may exceed the limit.
    """
    left = {pool: limits[NODES] for pool, limits in basis.limits.items() if NODES in limits}
    for node in basis.nodes:
        pool = node.labels.get(NODE_POOL, "")
        if pool in left and not node.is_leaving:
            left[pool] -= 1
    allowed: list[PlannedNode] = []
    for each in nodes:
        if each.pool in left:
            left[each.pool] -= 1
        if left.get(each.pool, 0) >= 0:
            allowed.append(each)
    return tuple(allowed)


def placed_nodes(
    basis: PlanBasis, launches: Mapping[str, Launch], pods: Mapping[str, tuple[Pod, ...]]
) -> tuple[PlannedNode, ...]:
    """The nodes to buy, for a plan that says by a node's name how to buy it, and which pods go there."""
    made = ((launch, pods.get(name, ()), None) for name, launch in launches.items())
    return _named(basis.objects, made, frozenset())


def _named(
    objects: ClusterObjects,
    made: Iterable[tuple[Launch, tuple[Pod, ...], Purchase | None]],
    replaced: AbstractSet[str],
) -> tuple[PlannedNode, ...]:
    known = {each.metadata.name for each in (*objects.nodes, *objects.node_claims)}
    found: list[PlannedNode] = []
    for launch, pods, purchase in made:
        found.append(PlannedNode(_free_name(launch, pods, replaced, known), launch, pods, purchase))
        known.add(found[-1].name)
    return tuple(found)


def _free_name(launch: Launch, pods: Iterable[Pod], replaced: AbstractSet[str], known: AbstractSet[str]) -> str:
    """A name that no node in the plan has.

    One that is there although the plan does not know it was bought for the same pods: by this plan, made before.
    """
    offering = launch.offering
    bought_for = (
        launch.template.name,
        launch.instance_type.name,
        offering.zone,
        offering.capacity_type,
        *sorted(each.uid for each in pods),
        *sorted(replaced),
    )
    pool = launch.template.name[:_POOL_LENGTH_MAX].rstrip("-.")
    names = (f"{pool}-{_digest(*bought_for, str(number))}" for number in itertools.count())
    return next(each for each in names if each not in known)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGEST_LENGTH]
