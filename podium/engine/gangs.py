"""Gangs of a cluster: what a group requires, and its members placed one after the other.

There are two kinds of groups: PodGroups of `scheduling.k8s.io`, which pods name in `spec.schedulingGroup`, and those of
the plugin Coscheduling, which pods name by a label. The members are placed in a fork, in the order in which they are
tried, without preemption. A group that must lie in one topology domain is tried in each.

Cost: an attempt for each member, except for members like one that has failed since the last was placed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import msgspec

from podium.cluster.pod_groups import PodGroupState
from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.engine.gang_story import (
    COSCHEDULING,
    UPSTREAM,
    coscheduling_in,
    longest_wait_s,
    no_group,
    no_size,
    too_few,
)
from podium.engine.placement import Placement
from podium.engine.pod_group_cycle import problem_of_group
from podium.engine.store import ObjectStore
from podium.objects.core import Pod
from podium.objects.coscheduling import gang_of as coscheduling_gang_of
from podium.objects.coscheduling import spec_of_gang
from podium.objects.pod_groups import GANG_TIMEOUT_S, group_of
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, NODES, POD_GROUPS, PODS

GROUPS: Final = (POD_GROUPS, COSCHEDULING_POD_GROUPS)
"""The kinds of PodGroups."""

GroupKey: TypeAlias = tuple[str, str]
"""The API group of a PodGroup, and its namespace and name."""


@dataclass(frozen=True, slots=True)
class Gang:
    """A group's requirements, and its members.

    Attributes:
        api: the API group of its PodGroup.
        min_count: how many members must have a node before any of them starts; 0 if each starts by itself.
        members: all of them, in the order in which they are tried.
        topology_key: the label whose value all their nodes must share; None if the group has no such constraint.
        problem: why no member is tried, in words for users; "" if they are.
        is_sized: whether the number of members that it needs is known.
        is_enforced: whether the pod's profile lets its members start together only.
    """

    key: str
    api: str
    min_count: int
    members: tuple[Pod, ...]
    topology_key: str | None = None
    wait_s: float = 0.0
    problem: str = ""
    note: str = ""
    is_sized: bool = True
    is_enforced: bool = True

    @property
    def waiting_members(self) -> Sequence[Pod]:
        """The members without a node."""
        return [pod for pod in self.members if not pod.node_name]

    @property
    def placed_members(self) -> Sequence[Pod]:
        """The members with a node."""
        return [pod for pod in self.members if pod.node_name]

    def starts_in(self, trial: GangTrial) -> bool:
        """Return whether as many members get a node in this trial as the gang needs."""
        return len(self.placed_members) + len(trial.nodes) >= self.min_count


@dataclass(frozen=True)
class GangTrial:
    """The outcome of placing the waiting members one after the other.

    Attributes:
        world: the cluster with the members that were placed.
        nodes: the name of the node of each member that gets one.
        failures: for each other member, the reason.
        failed_pods: of members that are alike one each that gets no node, as it was tried, with its claims.
        selector: the label that restricts the nodes; empty if none does.
    """

    world: Cluster
    nodes: Mapping[str, str]
    failures: Mapping[str, str]
    failed_pods: Sequence[Pod]
    selector: Mapping[str, str]


def gang_of(cluster: Cluster, pod: Pod) -> Gang | None:
    """Return the pod's gang; None if the pod is in no group, or in one that need not start together.

    The pod counts as a member even if the cluster does not have it.
    """
    if (key := group_key(pod)) is None:
        return None
    members = {member.key: member for member in cluster.store.objects(PODS).values() if group_key(member) == key}
    # The pod in question may not be in the dump.
    members.setdefault(pod.key, pod)
    gang = _gang(cluster.store, key, pod, members.values())
    return None if gang is None else under_profile(cluster, gang, pod)


def enforced_gang_of(cluster: Cluster, pod: Pod) -> Gang | None:
    """Return the pod's gang as `gang_of`; None also if the pod's profile lets its members start one by one."""
    gang = gang_of(cluster, pod)
    return gang if gang is not None and gang.is_enforced else None


def gangs_of(store: ObjectStore, pods: Iterable[Pod]) -> list[Gang]:
    """Return the gangs among these pods, which are all members that there are, in order of their first pods.

    Groups of the basic policy whose members must lie in one domain are among them; they need no member.

    Args:
        store: has the PodGroups.
    """
    members: dict[GroupKey, list[Pod]] = {}
    for pod in pods:
        if (key := group_key(pod)) is not None:
            members.setdefault(key, []).append(pod)
    gangs = (
        _gang(store, key, pods_of_group[0], pods_of_group) or _tied_group(store, key, pods_of_group)
        for key, pods_of_group in members.items()
    )
    return [gang for gang in gangs if gang is not None]


def group_key(pod: Pod) -> GroupKey | None:
    """Return the pod's group of either kind, even if there is no such PodGroup; None for a pod without a group."""
    if (key := group_of(pod)) is not None:
        return UPSTREAM, key
    if (key := coscheduling_gang_of(pod)) is not None:
        return COSCHEDULING, key
    return None


def _gang(store: ObjectStore, group: GroupKey, pod: Pod, pods: Iterable[Pod]) -> Gang | None:
    """Return the gang of these members; None if its group is none.

    Args:
        pod: the member whose annotation says how large a gang of Coscheduling is, if no PodGroup does.
    """
    api, key = group
    members = tuple(sorted(pods, key=_turn))
    if api == UPSTREAM:
        pod_group = store.get(POD_GROUPS, key)
        if pod_group is None:
            problem = no_group(key)
            return Gang(key, api, len(members), members, None, GANG_TIMEOUT_S, problem, is_sized=False)
        if pod_group.min_count is None:
            return None
        problem = too_few(len(members), pod_group.min_count)
        return Gang(key, api, pod_group.min_count, members, pod_group.topology_key, GANG_TIMEOUT_S, problem)
    spec = spec_of_gang(store.get(COSCHEDULING_POD_GROUPS, key), pod)
    if spec is None:
        return Gang(key, api, len(members), members, problem=no_size(key), is_sized=False)
    problem = spec.problem or too_few(len(members), spec.min_member)
    return Gang(key, api, spec.min_member, members, problem=problem, is_sized=not spec.problem)


def _tied_group(store: ObjectStore, group: GroupKey, pods: Iterable[Pod]) -> Gang | None:
    """Return the group of the basic policy, if its members must lie in one domain."""
    api, key = group
    # A group of Coscheduling without a size is no group of the basic policy.
    pod_group = store.get(POD_GROUPS, key) if api == UPSTREAM else None
    if pod_group is None or pod_group.min_count is not None or pod_group.topology_key is None:
        return None
    return Gang(key, api, 0, tuple(sorted(pods, key=_turn)), pod_group.topology_key)


def under_profile(cluster: Cluster, gang: Gang, pod: Pod) -> Gang:
    """Return the gang with what the pod's profile adds: problems, and how long members wait for each other."""
    if gang.api == UPSTREAM:
        group = cluster.store.get(POD_GROUPS, gang.key)
        # A dump does not say which gates the cluster has, and pods of a group schedule one by one without them.
        has_entries = cluster.release.queue.has_group_entries
        gates = "gate GenericWorkload" if has_entries else "gates GenericWorkload and GangScheduling"
        problem = gang.problem
        if not problem and has_entries and group is not None:
            problem = problem_of_group(group, gang.members, PodGroupState()) or ""
        return replace(gang, problem=problem, note=f"so it is with the feature {gates}")
    framework = cluster.profiles.get(pod.spec.scheduler_name)
    plugin = None if framework is None else coscheduling_in(framework)
    note = "" if plugin is not None else "so it is with the plugin Coscheduling, which the profile that was asked lacks"
    spec = spec_of_gang(cluster.store.get(COSCHEDULING_POD_GROUPS, gang.key), pod)
    wait_s = 0.0 if spec is None else longest_wait_s(plugin, spec)
    return replace(gang, wait_s=wait_s, note=note, is_enforced=plugin is not None)


def _turn(pod: Pod) -> tuple[int, str, str]:
    return -pod.priority, pod.metadata.creation_timestamp or "", pod.key


def try_gang(cluster: Cluster, gang: Gang) -> GangTrial:
    """Place the waiting members in a fork; of several topology domains, choose the one that takes most of them.

    Raises:
        ScheduleError, ClusterError: an attempt failed.
    """
    best: GangTrial | None = None
    for trial in gang_trials(cluster, gang):
        if best is None or len(trial.nodes) > len(best.nodes):
            best = trial
        if not trial.failures:
            break
    assert best is not None
    return best


def gang_trials(cluster: Cluster, gang: Gang) -> Iterator[GangTrial]:
    """Yield the outcome of placing the waiting members in each topology domain that the gang may use."""
    return (try_in_domain(cluster, gang, selector) for selector in _domains(cluster, gang))


def _domains(cluster: Cluster, gang: Gang) -> Sequence[Mapping[str, str]]:
    """Return the domains to try, as node labels: only those of members that have a node, if any has one."""
    if gang.topology_key is None:
        return [{}]
    return domains_of(cluster, gang.topology_key, {pod.node_name for pod in gang.placed_members})


def domains_of(cluster: Cluster, key: str, node_names: Collection[str] = ()) -> Sequence[Mapping[str, str]]:
    """Return the label with each of its values on these nodes, by default on all; with "" if no node has it."""
    nodes = cluster.store.objects(NODES).values()
    # Members that run already tie the rest of the gang to their domain.
    domain_nodes = [node for node in nodes if node.name in node_names] or nodes
    values = sorted({node.metadata.labels[key] for node in domain_nodes if key in node.metadata.labels})
    return [{key: value} for value in values or ("",)]


def try_in_domain(cluster: Cluster, gang: Gang, selector: Mapping[str, str]) -> GangTrial:
    """Place the waiting members in a fork, on nodes with these labels."""
    world = cluster.fork()
    nodes: dict[str, str] = {}
    failures: dict[str, str] = {}
    failed_pods: dict[bytes, Pod] = {}
    alike: dict[bytes, str] = {}
    # Replicas of a template fail alike until a pod is placed, which may help by affinity.
    for pod in gang.waiting_members:
        look = msgspec.msgpack.encode((pod.spec, pod.metadata.labels))
        message = alike.get(look)
        if message is None:
            placement = _place(world, restrict(pod, selector))
            if placement.node is not None:
                nodes[pod.key] = placement.node
                alike.clear()
                continue
            message = alike[look] = placement.message
            failed_pods.setdefault(look, placement.pod)
        failures[pod.key] = message
    return GangTrial(world, nodes, failures, list(failed_pods.values()), selector)


def _place(world: Cluster, pod: Pod) -> Placement:
    """Place the pod, unless no profile serves it."""
    try:
        return world.place_without_preemption(pod)
    except ClusterError as error:
        return Placement(pod, None, str(error))


def restrict(pod: Pod, selector: Mapping[str, str]) -> Pod:
    """Return the pod with these labels added to its node selector."""
    if not selector:
        return pod
    spec = msgspec.structs.replace(pod.spec, node_selector={**pod.spec.node_selector, **selector})
    return Pod(metadata=pod.metadata, spec=spec, status=pod.status)
