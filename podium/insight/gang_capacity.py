"""How many more whole gangs fit: so many pods at a time as one of them needs, if need be in one topology domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from podium.engine.cluster import Cluster
from podium.engine.gang_story import coscheduling_in
from podium.engine.replicas import PLACED_MAX
from podium.insight.capacity import Capacity, GangCapacity
from podium.insight.gangs import Gang, domains_of, restricted
from podium.objects.core import Pod

ClusterT = TypeVar("ClusterT", bound=Cluster)
CapacityOf = Callable[[Pod], Capacity]
"""How many copies of a pod fit, each by itself."""


def with_siblings(cluster: ClusterT, pod: Pod, gang: Gang) -> ClusterT:
    """The cluster with as many waiting members of the gang as it needs: Coscheduling tries none before they exist."""
    if coscheduling_in(cluster.framework_for(pod)) is None:
        return cluster
    world = cluster.fork()
    for number in range(min(gang.needed - len(gang.members) + 1, PLACED_MAX)):
        name = f"{pod.metadata.name}-sibling-{number}"
        metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"{pod.uid}-sibling-{number}")
        world.put_pending(Pod(metadata=metadata, spec=pod.spec))
    return world


def gangs_among(gang: Gang, count: Capacity) -> GangCapacity:
    """How many whole gangs the copies are that were placed beside copies of other pods."""
    size = max(gang.needed, 1)
    if not gang.is_sized:
        return GangCapacity(gang.key, 0, 0, problem=gang.problem)
    if (key := gang.topology_key) is not None:
        problem = f"all its pods have to lie in one {key}, which is counted only for a pod by itself"
        return GangCapacity(gang.key, size, 0, domain_key=key, problem=problem)
    return GangCapacity(gang.key, size, count.fits // size, count.is_at_least)


def gang_capacity(cluster: Cluster, pod: Pod, gang: Gang, capacity_of: CapacityOf) -> GangCapacity:
    """How many gangs fit: pods that are placed one after the other are those of one gang after the other.

    Args:
        cluster: as `with_siblings` returns it.
        capacity_of: counts copies.
    """
    if not gang.is_sized:
        return GangCapacity(gang.key, 0, 0, problem=gang.problem)
    size = max(gang.needed, 1)
    if gang.topology_key is None:
        counts = [capacity_of(pod)]
    else:
        counts = [capacity_of(restricted(pod, labels)) for labels in domains_of(cluster, gang.topology_key)]
    fits = sum(count.fits // size for count in counts)
    return GangCapacity(gang.key, size, fits, any(count.is_at_least for count in counts), gang.topology_key or "")
