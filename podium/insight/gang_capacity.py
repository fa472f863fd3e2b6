"""Answers how many more whole gangs fit: the pods of a gang count together, if need be in one topology domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from podium.engine.cluster import Cluster
from podium.engine.gang_story import coscheduling_in
from podium.engine.gangs import Gang, domains_of, restrict
from podium.engine.replicas import PLACED_MAX
from podium.insight.capacity import Capacity, GangCapacity
from podium.objects.core import Pod

ClusterT = TypeVar("ClusterT", bound=Cluster)
CapacityOf = Callable[[Pod], Capacity]
"""Returns how many copies of a pod fit."""


def with_siblings(cluster: ClusterT, pod: Pod, gang: Gang) -> ClusterT:
    """Return the cluster with as many waiting members as the gang needs; Coscheduling tries no member before."""
    # It rejects every member of a gang that is too small in PreEnqueue, so no copy would be placed at all.
    if coscheduling_in(cluster.framework_for(pod)) is None:
        return cluster
    world = cluster.fork()
    for number in range(min(gang.min_count - len(gang.members) + 1, PLACED_MAX)):
        name = f"{pod.metadata.name}-sibling-{number}"
        metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"{pod.uid}-sibling-{number}")
        world.put_pending(Pod(metadata=metadata, spec=pod.spec))
    return world


def gangs_among(gang: Gang, count: Capacity) -> GangCapacity:
    """Return how many whole gangs the copies are that were placed beside copies of other pods."""
    size = max(gang.min_count, 1)
    if not gang.is_sized:
        return GangCapacity(gang.key, 0, 0, problem=gang.problem)
    if (key := gang.topology_key) is not None:
        problem = f"all its pods have to lie in one {key}, which is counted only for a pod by itself"
        return GangCapacity(gang.key, size, 0, domain_key=key, problem=problem)
    return GangCapacity(gang.key, size, count.fits // size, count.is_at_least)


def gang_capacity(cluster: Cluster, pod: Pod, gang: Gang, capacity_of: CapacityOf) -> GangCapacity:
    """Return how many gangs fit. Copies of the pod are placed one after the other, so they fill one gang at a time.

    Args:
        cluster: as `with_siblings` returns it.
        capacity_of: counts copies.
    """
    if not gang.is_sized:
        return GangCapacity(gang.key, 0, 0, problem=gang.problem)
    size = max(gang.min_count, 1)
    if gang.topology_key is None:
        counts = [capacity_of(pod)]
    else:
        counts = [capacity_of(restrict(pod, labels)) for labels in domains_of(cluster, gang.topology_key)]
    fits = sum(count.fits // size for count in counts)
    return GangCapacity(gang.key, size, fits, any(count.is_at_least for count in counts), gang.topology_key or "")
