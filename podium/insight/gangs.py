"""Gangs of a cluster: what a group asks for, and whether its members all get a node, one after the other.

Two kinds of groups are known: PodGroups of `scheduling.k8s.io`, which pods name in `spec.schedulingGroup`, and those of
the plugin Coscheduling, which pods name by a label. The members are placed in a fork, in the order in which they are
tried, without preemption. A group that has to lie in one topology domain is tried in each.

Cost: an attempt for each member, and none for a member that is like one that has failed since the last was placed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

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
    """What a group asks for, and its members.

    Attributes:
        api: the API group of its PodGroup.
        needed: how many members must have a node before any of them starts.
        members: all of them, in the order in which they are tried.
        topology_key: the label of which all their nodes must share a value; None if there is none.
        problem: why no member is tried, in words for users; "" if they are.
        is_sized: whether it is known how many members it needs.
    """

    key: str
    api: str
    needed: int
    members: tuple[Pod, ...]
    topology_key: str | None = None
    wait_s: float = 0.0
    problem: str = ""
    note: str = ""
    is_sized: bool = True

    @property
    def waiting(self) -> Sequence[Pod]:
        """The members without a node."""
        return [pod for pod in self.members if not pod.node_name]

    @property
    def placed(self) -> Sequence[Pod]:
        """The members with a node."""
        return [pod for pod in self.members if pod.node_name]


@dataclass(frozen=True)
class GangTrial:
    """What becomes of the members that wait, if they are placed one after the other.

    Attributes:
        world: the cluster with those that were placed.
        nodes: the members that get a node, with its name.
        failed: the others, each with the reason.
        first_failed: the first of them, and `tried` as it was tried, with its claims; None if there is none.
        selector: the label that restricts the nodes, if there is one.
    """

    world: Cluster
    nodes: Mapping[str, str]
    failed: Mapping[str, str]
    first_failed: Pod | None
    tried: Pod | None
    selector: Mapping[str, str]


def gang_of(cluster: Cluster, pod: Pod) -> Gang | None:
    """The gang that the pod is a member of; None if it is in none, or in a group that need not start together.

    The pod counts as a member even if the cluster does not have it.
    """
    if (key := group_of(pod)) is not None:
        return _of_upstream(cluster, key, _members(cluster, pod, key, group_of(pod)))
    if (key := coscheduling_gang_of(pod)) is not None:
        return _of_coscheduling(cluster, pod, key)
    return None


def _of_upstream(cluster: Cluster, key: str, members: tuple[Pod, ...]) -> Gang | None:
    group = cluster.store.get(POD_GROUPS, key)
    note = "so it is with the feature gates GenericWorkload and GangScheduling"
    if group is None:
        problem = no_group(key)
        return Gang(key, UPSTREAM, len(members), members, None, GANG_TIMEOUT_S, problem, note, is_sized=False)
    if group.min_count is None:
        return None
    problem = too_few(len(members), group.min_count)
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
    """The pods of the group: those with a higher priority first, then the older ones."""
    key_of = coscheduling_gang_of if upstream is None else group_of
    members = {member.key: member for member in cluster.store.objects(PODS).values() if key_of(member) == key}
    members.setdefault(pod.key, pod)
    return tuple(sorted(members.values(), key=_turn))


def _turn(pod: Pod) -> tuple[int, str, str]:
    return -pod.priority, pod.metadata.creation_timestamp or "", pod.key


def try_gang(cluster: Cluster, gang: Gang) -> GangTrial:
    """Place the members that wait in a fork; of several topology domains the one that takes most of them.

    Raises:
        ScheduleError, ClusterError: an attempt failed.
    """
    trials = (_try_with(cluster, gang, selector) for selector in _domains(cluster, gang))
    best: GangTrial | None = None
    for trial in trials:
        if best is None or len(trial.nodes) > len(best.nodes):
            best = trial
        if not trial.failed:
            break
    assert best is not None
    return best


def _domains(cluster: Cluster, gang: Gang) -> Sequence[Mapping[str, str]]:
    """The node labels to which the gang may be restricted: one if some of its members have a node."""
    if gang.topology_key is None:
        return [{}]
    return domains_of(cluster, gang.topology_key, {pod.node_name for pod in gang.placed})


def domains_of(cluster: Cluster, key: str, node_names: Collection[str] = ()) -> Sequence[Mapping[str, str]]:
    """The label with each value that it has on these nodes, of all if none is named; with "" if it has none."""
    nodes = cluster.store.objects(NODES).values()
    where = [node for node in nodes if node.name in node_names] or nodes
    values = sorted({node.metadata.labels[key] for node in where if key in node.metadata.labels})
    return [{key: value} for value in values or ("",)]


def _try_with(cluster: Cluster, gang: Gang, selector: Mapping[str, str]) -> GangTrial:
    world = cluster.fork()
    nodes: dict[str, str] = {}
    failed: dict[str, str] = {}
    first: Pod | None = None
    tried: Pod | None = None
    alike: dict[bytes, str] = {}
    for pod in gang.waiting:
        look = msgspec.msgpack.encode((pod.spec, pod.metadata.labels))
        message = alike.get(look)
        if message is None:
            placement = _place(world, restricted(pod, selector))
            if placement.node is not None:
                nodes[pod.key] = placement.node
                alike.clear()
                continue
            message = alike[look] = placement.message
            if first is None:
                first, tried = pod, placement.pod
        failed[pod.key] = message
    return GangTrial(world, nodes, failed, first, tried, selector)


def _place(world: Cluster, pod: Pod) -> Placement:
    """Place the pod; one that no profile serves is not placed."""
    try:
        return world.place_without_preemption(pod)
    except ClusterError as error:
        return Placement(pod, None, str(error))


def restricted(pod: Pod, selector: Mapping[str, str]) -> Pod:
    """The pod, if need be restricted to nodes with these labels as well."""
    if not selector:
        return pod
    spec = msgspec.structs.replace(pod.spec, node_selector={**pod.spec.node_selector, **selector})
    return Pod(metadata=pod.metadata, spec=spec, status=pod.status)


def story_of(cluster: Cluster, gang: Gang) -> GangStory:
    """How far the gang has come, and what it lacks.

    Raises:
        ScheduleError: a plugin failed.
    """
    placed = {pod.key: pod.node_name for pod in gang.placed}
    trial = try_gang(cluster, gang)
    missing: Iterable[tuple[int, str]] = ()
    preemption = ""
    if trial.first_failed is not None and len(placed) + len(trial.nodes) < gang.needed:
        missing, preemption = _missing(trial), _preemption(trial)
    return GangStory(
        gang.key,
        gang.api,
        gang.needed,
        placed,
        trial.nodes,
        trial.failed,
        tuple(missing)[:_MISSING_MAX],
        preemption,
        gang.wait_s,
        holds_nodes=gang.api == COSCHEDULING,
        domain=", ".join(f"{key}={value}" for key, value in trial.selector.items()),
        problem=gang.problem,
        note=gang.note,
    )


def _preemption(trial: GangTrial) -> str:
    """How preemption would make room for the first member without a node; "" if it would not."""
    pod = trial.tried
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
    """What keeps the first member without a node off the nodes, beside those that were placed."""
    pod = trial.tried
    assert pod is not None
    try:
        framework = trial.world.framework_for(pod)
        blockers = blockers_of(trial.world.engine, framework, pod)
    except (ScheduleError, ClusterError):
        return ()
    snapshot, counts = blockers.snapshot, dict[str, int]()
    details: dict[str, str] = {}
    by_row = blockers.by_row()
    refusals = device_refusals(framework, pod, snapshot, ((row, one) for row, all_ in by_row.items() for one in all_))
    for row, statuses in by_row.items():
        for status in statuses:
            text = kind_of_blocker(pod, snapshot, row, status)
            if status.plugin == DEVICES and (refusal := refusals.get(snapshot.name(row))) is not None:
                text = f"{text} ({refusal.text})"
            counts[text] = counts.get(text, 0) + 1
            if text not in details and (detail := amounts(pod, snapshot, row, status)):
                details[text] = f"{detail} on {snapshot.name(row)}"
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(count, f"{text} ({details[text]})" if text in details else text) for text, count in ordered]
