"""Gangs of a cluster: what a group requires, and whether all its members get a node, one after the other.

There are two kinds of groups: PodGroups of `scheduling.k8s.io`, which pods name in `spec.schedulingGroup`, and those of
the plugin Coscheduling, which pods name by a label. The members are placed in a fork, in the order in which they are
tried, without preemption. A group that must lie in one topology domain is tried in each.

Cost: an attempt for each member, except for members like one that has failed since the last was placed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podium.cluster.pod_groups import PodGroupState
from podium.engine.cluster import Cluster
from podium.engine.device_refusals import DEVICES, device_refusals
from podium.engine.errors import ClusterError
from podium.engine.gang_story import (
    COSCHEDULING,
    UPSTREAM,
    GangStory,
    coscheduling_in,
    longest_wait_s,
    no_group,
    no_size,
    too_few,
)
from podium.engine.placement import Placement
from podium.engine.pod_group_cycle import problem_of_group
from podium.framework.contract.status import ScheduleError
from podium.insight.blockers import blockers_of
from podium.insight.details import amounts, kind_of_blocker
from podium.objects.core import Pod
from podium.objects.coscheduling import gang_of as coscheduling_gang_of
from podium.objects.coscheduling import spec_of_gang
from podium.objects.pod_groups import GANG_TIMEOUT_S, group_of
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, NODES, POD_GROUPS, PODS

_MISSING_MAX: Final = 5
GROUPS: Final = (POD_GROUPS, COSCHEDULING_POD_GROUPS)
"""The kinds of groups."""


@dataclass(frozen=True, slots=True)
class Gang:
    """A group's requirements, and its members.

    Attributes:
        api: the API group of its PodGroup.
        min_count: how many members must have a node before any of them starts.
        members: all of them, in the order in which they are tried.
        topology_key: the label whose value all their nodes must share; None if the group has no such constraint.
        problem: why no member is tried, in words for users; "" if they are.
        is_sized: whether the number of members that it needs is known.
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

    @property
    def waiting_members(self) -> Sequence[Pod]:
        """The members without a node."""
        return [pod for pod in self.members if not pod.node_name]

    @property
    def placed_members(self) -> Sequence[Pod]:
        """The members with a node."""
        return [pod for pod in self.members if pod.node_name]


@dataclass(frozen=True)
class GangTrial:
    """The outcome of placing the waiting members one after the other.

    Attributes:
        world: the cluster with the members that were placed.
        nodes: the name of the node of each member that gets one.
        failures: for each other member, the reason.
        first_failed: the first member that gets no node; None if all get one.
        attempted_pod: that member as it was tried, with its claims.
        selector: the label that restricts the nodes; empty if none does.
    """

    world: Cluster
    nodes: Mapping[str, str]
    failures: Mapping[str, str]
    first_failed: Pod | None
    attempted_pod: Pod | None
    selector: Mapping[str, str]


def gang_of(cluster: Cluster, pod: Pod) -> Gang | None:
    """Return the pod's gang; None if the pod is in no group, or in one that need not start together.

    The pod counts as a member even if the cluster does not have it.
    """
    if (key := group_of(pod)) is not None:
        return _of_upstream(cluster, key, _members(cluster, pod, key, group_of(pod)))
    if (key := coscheduling_gang_of(pod)) is not None:
        return _of_coscheduling(cluster, pod, key)
    return None


def _of_upstream(cluster: Cluster, key: str, members: tuple[Pod, ...]) -> Gang | None:
    group = cluster.store.get(POD_GROUPS, key)
    # A dump does not say which gates the cluster has, and pods of a group schedule one by one without them.
    has_entries = cluster.release.queue.has_group_entries
    gates = "gate GenericWorkload" if has_entries else "gates GenericWorkload and GangScheduling"
    note = f"so it is with the feature {gates}"
    if group is None:
        problem = no_group(key)
        return Gang(key, UPSTREAM, len(members), members, None, GANG_TIMEOUT_S, problem, note, is_sized=False)
    if group.min_count is None:
        return None
    problem = too_few(len(members), group.min_count)
    if not problem and has_entries:
        problem = problem_of_group(group, members, PodGroupState()) or ""
    return Gang(key, UPSTREAM, group.min_count, members, group.topology_key, GANG_TIMEOUT_S, problem, note)


def _of_coscheduling(cluster: Cluster, pod: Pod, key: str) -> Gang | None:
    members = _members(cluster, pod, key, None)
    is_served = pod.spec.scheduler_name in cluster.profiles
    plugin = coscheduling_in(cluster.framework_for(pod)) if is_served else None
    note = "" if plugin is not None else "so it is with the plugin Coscheduling, which the profile that was asked lacks"
    spec = spec_of_gang(cluster.store.get(COSCHEDULING_POD_GROUPS, key), pod)
    if spec is None:
        problem = no_size(key)
        return Gang(key, COSCHEDULING, len(members), members, None, 0.0, problem, note, is_sized=False)
    wait_s = longest_wait_s(plugin, spec)
    problem = spec.problem or too_few(len(members), spec.min_member)
    is_sized = not spec.problem
    return Gang(key, COSCHEDULING, spec.min_member, members, None, wait_s, problem, note, is_sized=is_sized)


def _members(cluster: Cluster, pod: Pod, key: str, upstream: str | None) -> tuple[Pod, ...]:
    """Return the pods of the group: those with a higher priority first, then the older ones."""
    key_of = coscheduling_gang_of if upstream is None else group_of
    members = {member.key: member for member in cluster.store.objects(PODS).values() if key_of(member) == key}
    # The pod in question may not be in the dump.
    members.setdefault(pod.key, pod)
    return tuple(sorted(members.values(), key=_turn))


def _turn(pod: Pod) -> tuple[int, str, str]:
    return -pod.priority, pod.metadata.creation_timestamp or "", pod.key


def try_gang(cluster: Cluster, gang: Gang) -> GangTrial:
    """Place the waiting members in a fork; of several topology domains, choose the one that takes most of them.

    Raises:
        ScheduleError, ClusterError: an attempt failed.
    """
    trials = (_try_with(cluster, gang, selector) for selector in _domains(cluster, gang))
    best: GangTrial | None = None
    for trial in trials:
        if best is None or len(trial.nodes) > len(best.nodes):
            best = trial
        if not trial.failures:
            break
    assert best is not None
    return best


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


def _try_with(cluster: Cluster, gang: Gang, selector: Mapping[str, str]) -> GangTrial:
    world = cluster.fork()
    nodes: dict[str, str] = {}
    failures: dict[str, str] = {}
    first: Pod | None = None
    attempted_pod: Pod | None = None
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
            if first is None:
                first, attempted_pod = pod, placement.pod
        failures[pod.key] = message
    return GangTrial(world, nodes, failures, first, attempted_pod, selector)


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


def story_of(cluster: Cluster, gang: Gang) -> GangStory:
    """Return which members have a node, which would get one, and what the others lack.

    Raises:
        ScheduleError: a plugin failed.
    """
    nodes_now = {pod.key: pod.node_name for pod in gang.placed_members}
    trial = try_gang(cluster, gang)
    missing: Iterable[tuple[int, str]] = ()
    preemption = ""
    if trial.first_failed is not None and len(nodes_now) + len(trial.nodes) < gang.min_count:
        missing, preemption = _missing(trial), _preemption(trial)
    return GangStory(
        gang.key,
        gang.api,
        gang.min_count,
        nodes_now,
        trial.nodes,
        trial.failures,
        tuple(missing)[:_MISSING_MAX],
        preemption,
        gang.wait_s,
        holds_nodes=gang.api == COSCHEDULING,
        domain=", ".join(f"{key}={value}" for key, value in trial.selector.items()),
        problem=gang.problem,
        note=gang.note,
    )


def _preemption(trial: GangTrial) -> str:
    """Return how preemption would make room for the first member without a node; "" if it would not."""
    pod = trial.attempted_pod
    assert pod is not None
    try:
        answer = trial.world.evaluate(pod).as_dict()
    except (ScheduleError, ClusterError):
        return ""
    if "nominated" not in answer:
        return ""
    victims = ", ".join(answer["victims"])
    return f"preemption would make room for {pod.key} on {answer['nominated']} by evicting {victims}"


def _missing(trial: GangTrial) -> Sequence[tuple[int, str]]:
    """Return what keeps the first member without a node off the nodes, once the others are placed."""
    pod = trial.attempted_pod
    assert pod is not None
    try:
        framework = trial.world.framework_for(pod)
        blockers = blockers_of(trial.world.engine, framework, pod)
    except (ScheduleError, ClusterError):
        return ()
    snapshot, counts = blockers.snapshot, dict[str, int]()
    details: dict[str, str] = {}
    by_row = blockers.by_row()
    refusals = device_refusals(
        framework, pod, snapshot, ((row, status) for row, all_ in by_row.items() for status in all_)
    )
    for row, statuses in by_row.items():
        for status in statuses:
            text = kind_of_blocker(pod, snapshot, row, status)
            if status.plugin == DEVICES and (refusal := refusals.get(snapshot.name(row))) is not None:
                text = f"{text} ({refusal.text})"
            counts[text] = counts.get(text, 0) + 1
            if text not in details and (detail := amounts(framework, pod, snapshot, row, status)):
                details[text] = f"{detail} on {snapshot.name(row)}"
    ranking = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(count, f"{text} ({details[text]})" if text in details else text) for text, count in ranking]
