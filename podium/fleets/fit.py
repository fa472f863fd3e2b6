"""One member cluster: would its scheduler bind every pod of the workload, and where?

Owns the dry run: the cluster's pending pods and those of the workload are tried in queue order, without preemption. A
group whose pods must lie in one topology domain is tried in each domain, and is placed as a whole or not at all. Never
decides about a node: the engine does.

Cost: one attempt per pod. Few pods without claims are tried in the cluster itself, without an interruption, and taken
back. Otherwise they are tried in a copy, one at a step.
Differs: a scheduler places such a group in the domain with the best score; here in the first one that takes it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from podium.cluster.pod_groups import PodGroupState
from podium.engine.cluster import Cluster
from podium.engine.derivation.admission import Admission
from podium.engine.derivation.claims import may_have_claims
from podium.engine.errors import ClusterError
from podium.engine.gang_story import coscheduling_in
from podium.engine.gangs import domains_of, restrict
from podium.engine.pod_group_cycle import problem_of_group
from podium.engine.replicas import ClaimCreator, Replicas, no_claims
from podium.fleets.admission import admitted_pods
from podium.fleets.workload import Workload
from podium.framework.contract.status import ScheduleError
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.objects.coscheduling import gang_of
from podium.objects.pod_groups import group_of
from podium.objects.resource_types import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    ResourceType,
)
from podium.queues import in_queue_order

AT_ONCE_MAX: Final = 64
"""How many pods are tried without an interruption."""

_ALLOCATED: Final = frozenset({PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIMS, RESOURCE_SLICES})
"""The kinds whose objects change when a pod is placed."""

_Objects: TypeAlias = Sequence[tuple[ResourceType[Any], Any]]


@dataclass(frozen=True, slots=True)
class Fit:
    """The cluster takes the whole workload.

    Attributes:
        nodes: the node of each pod, by the pod's key, in the order in which they were placed.
        pods: the pods of the workload.
    """

    nodes: Mapping[str, str]
    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class Misfit:
    """The cluster does not take the whole workload.

    Attributes:
        reason: in the scheduler's or the API server's words.
        pod: the key of the first pod that fits on no node; "" if none was tried.
        placed_count: how many pods of the workload had a node by then.
    """

    reason: str
    pod: str = ""
    placed_count: int = 0


Outcome: TypeAlias = Fit | Misfit
Steps: TypeAlias = Generator[None, None, Outcome]
"""A running dry run. Other work may be done between two steps, but the cluster's nodes must not change."""


def fit_in_steps(cluster: Cluster, workload: Workload, waiting: Sequence[Pod], key: object = None) -> Steps:
    """Try the workload in the cluster, which is as before at each step.

    Args:
        waiting: the cluster's pending pods, in the order in which they entered the queue.
        key: as in `admission.admitted_pods`.
    """
    try:
        world = cluster
        if workload.control_objects:
            world, key = cluster.copy(), None
            world.admit_by(Admission(world.admission.objects.fork(workload.control_objects)))
        pods = admitted_pods(world, workload, key)
        objects = [
            (resource, item)
            for resource, item in map(world.read, workload.objects)
            # What the cluster has already stays as it is there.
            if world.store.get(resource, item.key) is None
        ]
        if world is cluster and not _may_be_lent(cluster, pods, waiting, objects):
            world = cluster.copy()
        if world is cluster:
            with _lent(cluster, objects):
                return _run(_place_all(cluster, pods, waiting, no_claims))
        for resource, item in objects:
            world.create(resource, item)
        for pod in pods if _knows_gangs(world, pods) else ():
            # Coscheduling counts the members of a gang in the cluster.
            world.put_pending(pod)
        return (yield from _place_all(world, pods, waiting, world.create_claims))
    except (ClusterError, ScheduleError) as error:
        return Misfit(str(error))


def fit(cluster: Cluster, workload: Workload, waiting: Sequence[Pod], key: object = None) -> Outcome:
    """Try the workload in the cluster, which is as before at the end. Args: as `fit_in_steps`."""
    return _run(fit_in_steps(cluster, workload, waiting, key))


def _run(steps: Steps) -> Outcome:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            outcome: Outcome = stop.value
            return outcome


def _may_be_lent(cluster: Cluster, pods: Sequence[Pod], waiting: Sequence[Pod], objects: _Objects) -> bool:
    """Return whether a dry run in the cluster itself is short, and leaves nothing behind."""
    return (
        len(pods) + len(waiting) <= AT_ONCE_MAX
        and not any(map(may_have_claims, (*pods, *waiting)))
        and not any(resource in _ALLOCATED for resource, _ in objects)
        and not _knows_gangs(cluster, pods)
    )


def _knows_gangs(cluster: Cluster, pods: Iterable[Pod]) -> bool:
    profiles = cluster.profiles.values()
    return any(gang_of(pod) is not None for pod in pods) and any(map(coscheduling_in, profiles))


@contextmanager
def _lent(cluster: Cluster, objects: _Objects) -> Iterator[None]:
    """Let plugins find the objects in the cluster while the context is open."""
    # Past the cluster, which would build its profiles anew; plugins follow each change of the store.
    store = cluster.store
    for resource, item in objects:
        store.put(resource, item)
    try:
        yield
    finally:
        for resource, item in objects:
            store.drop(resource, item)


def _place_all(world: Cluster, pods: Sequence[Pod], waiting: Sequence[Pod], create_claims: ClaimCreator) -> Steps:
    profiles = world.profiles
    # Whatever scheduler a pod names: in a fleet, pods of one name are scheduled by each member's own.
    default = next(iter(profiles.values()))
    replicas = Replicas(world.engine, default, create_claims, makes_room=False)
    nodes: dict[str, str] = {}
    try:
        if replicas.has_no_nodes():
            return Misfit("the cluster has no nodes")
        if problem := _problem_of_groups(world, pods):
            return Misfit(problem)
        for entry in _queue(world, pods, waiting, default):
            if entry.is_waiting:
                _place_waiting(replicas, entry.pods[0], profiles)
                yield
                continue
            outcome = yield from _place(replicas, entry, profiles)
            if isinstance(outcome, Misfit):
                return Misfit(outcome.reason, outcome.pod, len(nodes) + outcome.placed_count)
            nodes |= outcome.nodes
        return Fit(nodes, pods)
    finally:
        replicas.undo()


def _problem_of_groups(world: Cluster, pods: Sequence[Pod]) -> str:
    """Return why a scheduler tries no pod of a group at all; "" if it tries them."""
    members: dict[str, list[Pod]] = {}
    for pod in pods:
        if (key := group_of(pod)) is not None:
            members.setdefault(key, []).append(pod)
    groups = ((world.store.get(POD_GROUPS, key), pods_of_group) for key, pods_of_group in members.items())
    problems = (
        problem_of_group(group, pods_of_group, PodGroupState()) for group, pods_of_group in groups if group is not None
    )
    return next(filter(None, problems), "")


@dataclass(frozen=True, slots=True)
class _Entry:
    """Pods that are tried together.

    Attributes:
        domains: the node labels to try them with, one after the other.
        is_waiting: whether it is a pending pod of the cluster, which need not fit.
    """

    pods: list[Pod]
    domains: Sequence[Mapping[str, str]] = ({},)
    is_waiting: bool = False


def _queue(world: Cluster, pods: Sequence[Pod], waiting: Sequence[Pod], framework: Framework) -> Iterable[_Entry]:
    """Return the pods in queue order; those of a group with a topology constraint are one entry."""
    uids = {pod.uid for pod in pods}
    entries: dict[str, _Entry] = {}
    for pod in in_queue_order([*waiting, *pods], framework.queue_sort):
        group = world.store.get(POD_GROUPS, group_key) if (group_key := group_of(pod)) is not None else None
        if pod.uid not in uids:
            entries[pod.uid] = _Entry([pod], is_waiting=True)
        elif group is None or group.topology_key is None:
            entries[pod.uid] = _Entry([pod])
        elif group.key in entries:
            entries[group.key].pods.append(pod)
        else:
            entries[group.key] = _Entry([pod], domains_of(world, group.topology_key))
    return entries.values()


def _place_waiting(replicas: Replicas, pod: Pod, profiles: Mapping[str, Framework]) -> None:
    # A pod whose attempt fails stays pending, and is no reason against the workload.
    with suppress(ScheduleError):
        replicas.place_if_feasible(pod, profiles.get(pod.spec.scheduler_name))


def _place(replicas: Replicas, entry: _Entry, profiles: Mapping[str, Framework]) -> Steps:
    """Place all pods of the entry in one of its domains, or none."""
    best = Misfit("")
    for labels in entry.domains:
        nodes: dict[str, str] = {}
        for pod in entry.pods:
            outcome = replicas.attempt(restrict(pod, labels), profiles.get(pod.spec.scheduler_name))
            yield
            if isinstance(outcome, str):
                if not best.reason or len(nodes) > best.placed_count:
                    best = Misfit(outcome, pod.key, len(nodes))
                break
            nodes[pod.key] = outcome.node_name
        else:
            return Fit(nodes, entry.pods)
        for _ in nodes:
            replicas.take_back_last()
    return best
