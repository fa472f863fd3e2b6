"""Places the members of a gang on the nodes that a trial has: as many as the gang needs, or none.

Owns the choice among the topology domains of a group that has to lie in one of them: as kube-scheduler's placement
plugins, the one that takes most members and is fullest with them. Decides nothing about a single pod.

Source: kubernetes pkg/scheduler/schedule_one_podgroup.go, v1.37.2.
Differs: pods are not preempted for a gang.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from podium.cluster.pod_groups import PodGroupState
from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang, gangs_of, restrict, under_profile
from podium.engine.placement import Placement
from podium.framework.contract.placements import PlacementScorePlugin
from podium.framework.contract.pod_groups import Placement as Domain
from podium.framework.contract.pod_groups import ProposedGroup
from podium.framework.contract.score import MAX_NODE_SCORE
from podium.framework.contract.status import ScheduleError
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.plugins.node_resources_fit import NodeResourcesFit


def place_gang(world: Cluster, gang: Gang, pods: Sequence[Pod]) -> list[Placement]:
    """Place these members of the gang if it then has as many as it needs, and otherwise none of them.

    Args:
        pods: the members without a node.

    Returns: their placements, in this order.
    """
    if gang.problem:
        return [Placement(pod, None, gang.problem) for pod in pods]
    running = running_members(world, gang, pods)
    needed_count = gang.min_count - len(running)
    selectors = list(_selectors(world, gang, running))
    if len(selectors) > 1:
        selectors = [_best_selector(world, pods, selectors, needed_count)]
    placements = place_members(world, pods, selectors[0], misses_max=len(pods) - max(needed_count, 0))
    if sum(placement.node is not None for placement in placements) < needed_count:
        take_back(world, placements)
        text = _shortage(gang, len(running), placements)
        return [Placement(pod, None, text) for pod in pods]
    return [replace(placement, pod=pod) for placement, pod in zip(placements, pods, strict=True)]


def place_members(
    world: Cluster, pods: Sequence[Pod], selector: Mapping[str, str], misses_max: int | None = None
) -> list[Placement]:
    """Place the pods one after the other on nodes with this label, without preemption.

    Args:
        misses_max: of how many pods without a node on the others are not tried; None for any number.

    Returns: a placement for each pod; those that were not tried have no message.
    """
    placements: list[Placement] = []
    misses = 0
    failure: Placement | None = None
    for pod in pods:
        if misses_max is not None and misses > misses_max:
            placements.append(Placement(pod, None))
            continue
        # Replicas of a template fail alike until another pod has a place.
        if failure is not None and failure.pod.spec == pod.spec:
            placements.append(Placement(pod, None, failure.message))
            misses += 1
            continue
        placement = place_without_preemption(world, restrict(pod, selector))
        placements.append(placement)
        failure = None if placement.node is not None else replace(placement, pod=pod)
        misses += placement.node is None
    return placements


def take_back(world: Cluster, placements: Sequence[Placement]) -> None:
    """Undo the placements, the latest first."""
    for placement in reversed(placements):
        if placement.node is not None:
            world.undo(placement)


def place_without_preemption(world: Cluster, pod: Pod) -> Placement:
    """Place the pod without preemption; what fails its attempt is why it stays."""
    if pod.spec.scheduler_name not in world.profiles:
        return Placement(pod, None, f"no profile is named {pod.spec.scheduler_name!r}")
    try:
        return world.place_without_preemption(pod)
    except ScheduleError as error:
        return Placement(pod, None, str(error).removeprefix(f"{pod.key}: "))


def running_members(world: Cluster, gang: Gang, waiting: Collection[Pod]) -> list[Pod]:
    """Return the members that have a node in the world, without those that wait."""
    waiting_keys = {pod.key for pod in waiting}
    members = (world.store.get(PODS, pod.key) for pod in gang.members if pod.key not in waiting_keys)
    return [pod for pod in members if pod is not None and pod.node_name]


def _shortage(gang: Gang, running_count: int, placements: Sequence[Placement]) -> str:
    """Return the sentence why none of the members is placed."""
    count = running_count + sum(placement.node is not None for placement in placements)
    reason = next((placement.message for placement in placements if placement.message), "")
    return f"{count} of the {gang.min_count} members that the gang {gang.key} needs fit" + (reason and f": {reason}")


def tied_text(gang: Gang, placement: Placement) -> str:
    """Return why a member has no node in the domain of its group; empty if the group is in no domain."""
    if gang.topology_key is None:
        return ""
    return f"the members of {gang.key} share one value of {gang.topology_key}: {placement.message}"


# ---------------------------------------------------------------- topology


def _selectors(world: Cluster, gang: Gang, running: Sequence[Pod]) -> Iterator[Mapping[str, str]]:
    """Yield the domains in which the gang is tried, as labels, in the order of their first nodes."""
    key = gang.topology_key
    if key is None:
        yield {}
        return
    nodes = [world.store.get(NODES, pod.node_name) for pod in running]
    values = [node.metadata.labels[key] for node in nodes if node is not None and key in node.metadata.labels]
    if not values:
        snapshot = world.engine_to_ask.cache.snapshot()
        labels = (snapshot.node(row).labels.get(key) for row in snapshot.order.tolist())
        values = [value for value in labels if value is not None]
    # No node has the empty value, so that no member fits where there is no domain.
    yield from ({key: value} for value in dict.fromkeys(values or [""]))


def _best_selector(
    world: Cluster, pods: Sequence[Pod], selectors: Sequence[Mapping[str, str]], needed_count: int
) -> Mapping[str, str]:
    """Return the domain where the gang fits with the highest score; else the one that takes most members."""
    placed_pods: list[list[Pod]] = []
    for selector in selectors:
        placements = place_members(world, pods, selector, misses_max=len(pods) - max(needed_count, 0))
        placed_pods.append([placement.pod for placement in placements if placement.node is not None])
        take_back(world, placements)
    count_max = max(map(len, placed_pods))
    if count_max < max(needed_count, 1):
        return selectors[[*map(len, placed_pods)].index(count_max)]
    scores = [
        len(domain_pods) * MAX_NODE_SCORE // count_max + _fullness(world, domain_pods, selector)
        if len(domain_pods) >= needed_count
        else -1
        for domain_pods, selector in zip(placed_pods, selectors, strict=True)
    ]
    return selectors[scores.index(max(scores))]


def _fullness(world: Cluster, pods: Sequence[Pod], selector: Mapping[str, str]) -> int:
    """Return how full the pods would make the nodes of the domain together; 0 if the profile does not score that."""
    plugin = world.framework_for(pods[0]).plugins.get(NodeResourcesFit.name) if pods else None
    if not isinstance(plugin, PlacementScorePlugin):
        return 0
    # Before the members are placed: the score adds what they request.
    snapshot = world.engine_to_ask.cache.snapshot()
    ((key, value),) = selector.items()
    rows = [row for row in snapshot.order.tolist() if snapshot.node(row).labels.get(key) == value]
    return plugin.score_placement(
        ProposedGroup(PodGroupState(), Domain(value, np.array(rows, np.intp)), pods), snapshot
    )


def gangs_of_waiting(cluster: Cluster, waiting: Iterable[Pod]) -> dict[str, Gang]:
    """Return the gangs of these pods, by the key of each."""
    pods = {pod.key: pod for pod in cluster.pods} | {pod.key: pod for pod in waiting}
    gangs = (under_profile(cluster, gang, gang.members[0]) for gang in gangs_of(cluster.store, pods.values()))
    return {pod.key: gang for gang in gangs for pod in gang.members if not pod.node_name}
