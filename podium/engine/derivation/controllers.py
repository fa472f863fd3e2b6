"""Decides what the controllers of workloads do next: the pods that they create and delete.

Each function is one sync of one controller, a pure function of the workload, its pods and the nodes. The caller carries
the answers out, decides when pods become ready, and syncs again until nothing is left to do.

Source: kubernetes pkg/controller/{replicaset,deployment,statefulset,daemon,job}, v1.36.2.
Differs: no time passes, so minReadySeconds, backoffs, deadlines and progress are not considered.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.engine.derivation.control_objects import count_at, items_at, mapping_at
from podium.engine.derivation.daemon_nodes import DaemonNodes
from podium.engine.derivation.job_failures import replaces_failed_only
from podium.engine.derivation.pods import (
    COMPLETION_INDEX,
    daemon_set_pod,
    generated_name,
    job_pod,
    pod_of,
    stateful_set_pod,
)
from podium.engine.derivation.scale_down import Restarts, is_ready, replica_set_victims, youngest_victims
from podium.engine.derivation.workload_kinds import REPLICAS_MAX
from podium.engine.manifests import Manifest
from podium.objects.core import Node, Pod


@dataclass(frozen=True, slots=True)
class Sync:
    """The actions of a controller in one sync."""

    create: tuple[Manifest, ...] = ()
    delete: tuple[Pod, ...] = ()
    adopt: tuple[Pod, ...] = ()
    """Pods that had no controller, with a reference to this one."""


@dataclass(frozen=True, slots=True)
class SyncContext:
    """The input that all controllers share.

    Attributes:
        now_s: the time of the question.
        serial: a number that makes the names that one question generates unique.
    """

    now_s: float
    restarts: Restarts
    serial: int


def desired_replicas(workload: Manifest) -> int:
    """Return the number of pods in the spec."""
    # A typing error such as replicas: 1e9 must not use up the memory.
    return min(count_at(workload, "spec", "replicas", default=1), REPLICAS_MAX)


def sync_replica_set(
    replica_set: Manifest, pods: Sequence[Pod], sibling_pods: Iterable[Pod], context: SyncContext
) -> Sync:
    """Sync a ReplicaSet or ReplicationController."""
    # As upstream: a pod that is being deleted is replaced at once, unlike that of a StatefulSet.
    active = [pod for pod in pods if not pod.is_terminating]
    missing = desired_replicas(replica_set) - len(active)
    if missing < 0:
        victims = replica_set_victims(active, sibling_pods, -missing, context.now_s, context.restarts)
        return Sync(delete=tuple(victims))
    template, name = mapping_at(replica_set, "spec", "template"), _name(replica_set)
    return Sync(tuple(pod_of(replica_set, template, _pod_name(name, context, number)) for number in range(missing)))


def ordinals_kept(stateful_set: Manifest) -> range:
    """Return the ordinals below the partition of a rolling update, whose pods are not updated."""
    start = count_at(stateful_set, "spec", "ordinals", "start", default=0)
    return range(start, start + min(_partition(stateful_set), desired_replicas(stateful_set)))


def _partition(stateful_set: Manifest) -> int:
    return count_at(stateful_set, "spec", "updateStrategy", "rollingUpdate", "partition", default=0)


def sync_stateful_set(
    stateful_set: Manifest, pods: Sequence[Pod], outdated: Collection[str], former: Manifest | None = None
) -> Sync:
    """Sync a StatefulSet.

    Args:
        outdated: the keys of pods that an older revision of the template has made.
        former: the template of that revision, which pods below the partition get again.
    """
    partition_ordinals = ordinals_kept(stateful_set) if former is not None else ()
    former_set = {**stateful_set, "spec": {**mapping_at(stateful_set, "spec"), "template": former}}
    start = count_at(stateful_set, "spec", "ordinals", "start", default=0)
    is_ordered = mapping_at(stateful_set, "spec").get("podManagementPolicy") != "Parallel"
    # Terminating pods are included: the next pod of an ordinal needs its name, which is free only afterwards.
    by_ordinal = {ordinal: pod for pod in pods if (ordinal := _ordinal(pod)) is not None}
    ordinals = range(start, start + desired_replicas(stateful_set))
    missing = [ordinal for ordinal in ordinals if ordinal not in by_ordinal]
    if not is_ordered:
        if missing:
            return Sync(
                tuple(
                    stateful_set_pod(former_set if ordinal in partition_ordinals else stateful_set, ordinal)
                    for ordinal in missing
                )
            )
    else:
        # OrderedReady: one pod after the other, each only once those below it are ready.
        for ordinal in ordinals:
            if ordinal not in by_ordinal:
                return Sync((stateful_set_pod(former_set if ordinal in partition_ordinals else stateful_set, ordinal),))
            if not is_ready(by_ordinal[ordinal]):
                return Sync()
    condemned = sorted((ordinal for ordinal in by_ordinal if ordinal not in ordinals), reverse=True)
    if condemned:
        sync = _delete_condemned(by_ordinal, condemned, ordinals, is_ordered=is_ordered)
        # With Parallel, a rollout goes on while surplus pods end.
        if is_ordered or sync.delete:
            return sync
    return _replace_outdated(stateful_set, [by_ordinal[ordinal] for ordinal in ordinals], outdated)


def _delete_condemned(
    by_ordinal: Mapping[int, Pod], condemned: Sequence[int], replica_ordinals: range, *, is_ordered: bool
) -> Sync:
    """Delete pods beyond the replicas, the highest ordinal first. In order, an unready pod blocks those above it."""
    if not is_ordered:
        return Sync(delete=tuple(pod for ordinal in condemned if not (pod := by_ordinal[ordinal]).is_terminating))
    if by_ordinal[condemned[0]].is_terminating:
        return Sync()
    ordinals = (*replica_ordinals, *reversed(condemned))
    # Upstream deletes an unready pod only if it is the first of them, so that it never lacks two.
    first_unready = next((ordinal for ordinal in ordinals if not is_ready(by_ordinal[ordinal])), None)
    highest = condemned[0]
    if not is_ready(by_ordinal[highest]) and highest != first_unready:
        return Sync()
    return Sync(delete=(by_ordinal[highest],))


def _replace_outdated(stateful_set: Manifest, pods: Sequence[Pod], outdated: Collection[str]) -> Sync:
    """Delete the next pod that a rolling update replaces, from the highest ordinal down."""
    if mapping_at(stateful_set, "spec", "updateStrategy").get("type") == "OnDelete":
        return Sync()
    for pod in reversed(pods[_partition(stateful_set) :]):
        if pod.key in outdated and not pod.is_terminating:
            return Sync(delete=(pod,))
        # At most one pod is unavailable during the rollout.
        if not is_ready(pod):
            return Sync()
    return Sync()


def sync_daemon_set(
    daemon_set: Manifest, pods: Sequence[Pod], nodes: Collection[Node], outdated: Collection[str], context: SyncContext
) -> Sync:
    """Sync a DaemonSet.

    Args:
        outdated: the keys of the pods of an older revision of the template.
    """
    update = mapping_at(daemon_set, "spec", "updateStrategy", "rollingUpdate")
    daemon_nodes = DaemonNodes(daemon_set)
    names = {node.name for node in daemon_nodes.for_new_pods(nodes)}
    surge = _resolve(update.get("maxSurge", 0), len(names), up=True)
    on_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if not pod.is_terminating:
            on_node.setdefault(_target_node(pod), []).append(pod)
    # A node's next pod is created once the last one is gone, unless the node may have two.
    ending = set() if surge else {_target_node(pod) for pod in pods} - on_node.keys()
    create = _new_daemons(daemon_set, names - on_node.keys() - ending, context)
    allowed_nodes = {node.name for node in daemon_nodes.for_existing_pods(nodes)}
    misplaced = tuple(pod for node, daemons in sorted(on_node.items()) if node not in allowed_nodes for pod in daemons)
    # Updates follow in a later sync, when these pods count.
    if create or misplaced:
        return Sync(create, misplaced)
    if mapping_at(daemon_set, "spec", "updateStrategy").get("type") == "OnDelete":
        return Sync()
    daemons_by_node = [
        _NodeDaemons(
            node,
            next((pod for pod in daemons if pod.key in outdated), None),
            next((pod for pod in daemons if pod.key not in outdated), None),
        )
        for node, daemons in sorted(on_node.items())
    ]
    if surge:
        return _surge_daemons(daemon_set, daemons_by_node, surge, context)
    # Upstream refuses zero for both amounts, so that a rollout always moves.
    unavailable_max = max(_resolve(update.get("maxUnavailable", 1), len(names), up=True), 1)
    return _replace_daemons(daemons_by_node, unavailable_max - len(ending))


@dataclass(frozen=True, slots=True)
class _NodeDaemons:
    """The pods of a DaemonSet on a node: one of an older revision of the template, and one of the newest."""

    node: str
    old: Pod | None
    new: Pod | None


def _new_daemons(daemon_set: Manifest, nodes: Collection[str], context: SyncContext) -> tuple[Manifest, ...]:
    prefix = f"{_name(daemon_set)}-"
    return tuple(
        daemon_set_pod(daemon_set, generated_name(prefix, node, context.serial), node) for node in sorted(nodes)
    )


def _replace_daemons(daemons: Sequence[_NodeDaemons], unavailable_max: int) -> Sync:
    """Delete old pods before new ones are created: all unready ones, and ready ones within `unavailable_max`."""
    old = [daemon.old for daemon in daemons if daemon.old is not None]
    unready_old = [pod for pod in old if not is_ready(pod)]
    unready_new = sum(daemon.new is not None and not is_ready(daemon.new) for daemon in daemons)
    room = max(unavailable_max - unready_new - len(unready_old), 0)
    return Sync(delete=(*unready_old, *[pod for pod in old if is_ready(pod)][:room]))


def _surge_daemons(daemon_set: Manifest, daemons: Sequence[_NodeDaemons], surge: int, context: SyncContext) -> Sync:
    """Create new pods before old ones are deleted: beside all unready old ones, and beside `surge` ready ones."""
    pairs = [daemon for daemon in daemons if daemon.old is not None and daemon.new is not None]
    delete = tuple(
        daemon.old for daemon in pairs if daemon.old is not None and daemon.new is not None and is_ready(daemon.new)
    )
    # A pair whose new pod is not ready yet uses up the surge.
    room = max(surge - (len(pairs) - len(delete)), 0)
    old_only = [daemon for daemon in daemons if daemon.old is not None and daemon.new is None]
    urgent = [daemon.node for daemon in old_only if daemon.old is not None and not is_ready(daemon.old)]
    waiting = [daemon.node for daemon in old_only if daemon.node not in urgent]
    return Sync(_new_daemons(daemon_set, {*urgent, *waiting[:room]}, context), delete)


def sync_job(job: Manifest, pods: Sequence[Pod], context: SyncContext, *, is_held: bool | None = None) -> Sync:
    """Sync a Job whose pods do not end by themselves. Pods that are being deleted count as failed.

    Args:
        is_held: whether the Job waits after a failure; None if no time passes, so that terminating pods end first.
    """
    active = [pod for pod in pods if not pod.is_terminating]
    spec = mapping_at(job, "spec")
    if any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in items_at(job, "status", "conditions")
    ):
        return Sync()
    if spec.get("suspend") is True:
        return Sync(delete=tuple(active))
    success_count = count_at(job, "status", "succeeded", default=0)
    pod_count = min(count_at(spec, "parallelism", default=1), REPLICAS_MAX)
    is_indexed = spec.get("completionMode") == "Indexed"
    completions = spec.get("completions")
    # As upstream: without completions, no further pod is created once one has succeeded.
    if isinstance(completions, int):
        pod_count = max(min(pod_count, completions - success_count), 0)
    elif success_count:
        pod_count = len(active)
    if len(active) > pod_count:
        return Sync(delete=tuple(youngest_victims(active, len(active) - pod_count, context.restarts)))
    ending_count = len(pods) - len(active)
    # After a failure no pod is created until the backoff ends. Without time, terminating pods are gone by then.
    if is_held or (is_held is None and ending_count):
        return Sync()
    if replaces_failed_only(job):
        pod_count = max(pod_count - ending_count, len(active))
    name = _name(job)
    if not is_indexed:
        new = range(pod_count - len(active))
        return Sync(tuple(job_pod(job, _pod_name(name, context, number)) for number in new))
    active_indexes = {pod.metadata.annotations.get(COMPLETION_INDEX) for pod in active}
    completed_indexes = _indexes(str(mapping_at(job, "status").get("completedIndexes") or ""))
    free = [
        index
        for index in range(completions or 0)
        if str(index) not in active_indexes and index not in completed_indexes
    ]
    return Sync(
        tuple(
            job_pod(job, _pod_name(f"{name}-{index}", context, index), index)
            for index in free[: pod_count - len(active)]
        )
    )


# ---------------------------------------------------------------- Deployments


@dataclass(frozen=True, slots=True)
class ReplicaSetState:
    """A ReplicaSet of a Deployment, and the number of its ready pods."""

    manifest: Manifest
    ready: int

    @property
    def replicas(self) -> int:
        """The number of pods in its spec."""
        return desired_replicas(self.manifest)


def sync_deployment(
    deployment: Manifest, new: ReplicaSetState, old: Sequence[ReplicaSetState], pod_count: int
) -> dict[str, int]:
    """Return the new numbers of replicas of its ReplicaSets, by name; empty if none changes.

    Args:
        old: the ReplicaSets of older templates, the oldest first.
        pod_count: the number of pods that the old ones still have.
    """
    replicas = desired_replicas(deployment)
    strategy = mapping_at(deployment, "spec", "strategy")
    active = [state for state in old if state.replicas]
    if not active:
        # Recreate waits until the old pods are gone.
        waits = strategy.get("type") == "Recreate" and pod_count
        return {} if new.replicas == replicas or waits else {_name(new.manifest): replicas}
    if strategy.get("type") == "Recreate":
        return {_name(state.manifest): 0 for state in active}
    surge, unavailable = _fenceposts(strategy, replicas)
    total = new.replicas + sum(state.replicas for state in active)
    if new.replicas > replicas:
        return {_name(new.manifest): replicas}
    if total < replicas + surge and new.replicas < replicas:
        return {_name(new.manifest): min(new.replicas + replicas + surge - total, replicas)}
    return _scale_down(new, active, total, replicas - unavailable)


def scale_in_proportion(
    deployment: Manifest, old_deployment: Manifest, replica_sets: Sequence[Manifest]
) -> dict[str, int]:
    """Return the new numbers of replicas of a Deployment's ReplicaSets after it was scaled, by name.

    A single one gets all. Amid a rolling update each keeps its share, and the largest gets the remainder of rounding.

    Args:
        old_deployment: the Deployment before it was scaled.
        replica_sets: those with replicas, the oldest first.
    """
    replicas = desired_replicas(deployment)
    if len(replica_sets) == 1:
        return {_name(replica_sets[0]): replicas}
    strategy = mapping_at(deployment, "spec", "strategy")
    if strategy.get("type") == "Recreate":
        return {}
    pods_max = replicas + _fenceposts(strategy, replicas)[0] if replicas else 0
    most_before = desired_replicas(old_deployment) + _fenceposts(strategy, desired_replicas(old_deployment))[0]
    additional = pods_max - sum(map(desired_replicas, replica_sets))
    # The largest first; of equal ones the newest gets pods first, and the oldest loses them first.
    by_age = list(reversed(replica_sets)) if additional > 0 else list(replica_sets)
    largest_first = sorted(by_age, key=desired_replicas, reverse=True)
    sizes, total = {}, 0
    for replica_set in largest_first:
        size = desired_replicas(replica_set)
        # Rounded half up as in Go; Python's round goes to the even number.
        share = math.floor(size * pods_max / max(most_before, 1) + 0.5) - size if replicas else -size
        change = min(share, additional - total) if additional > 0 else max(share, additional - total)
        sizes[_name(replica_set)] = size + change
        total += change
    # Rounding leaves a rest, which upstream gives to the largest.
    largest = _name(largest_first[0])
    sizes[largest] = max(sizes[largest] + additional - total, 0)
    return sizes


def _scale_down(new: ReplicaSetState, old: Sequence[ReplicaSetState], total: int, least_ready: int) -> dict[str, int]:
    """Scale old ReplicaSets down: first by their unready pods, then by the ready ones that may be unavailable."""
    room = total - least_ready - (new.replicas - new.ready)
    if room <= 0:
        return {}
    replicas = {_name(state.manifest): state.replicas for state in old}
    for state in old:
        unready = min(max(state.replicas - state.ready, 0), room)
        replicas[_name(state.manifest)] -= unready
        room -= unready
    # Unready pods serve no one, so they went first; ready ones only as far as enough remain.
    spare = new.ready + sum(state.ready for state in old) - least_ready
    for state in old:
        name = _name(state.manifest)
        reduction = max(min(replicas[name], spare), 0)
        replicas[name] -= reduction
        spare -= reduction
    return {name: count for name, count in replicas.items() if count != _replicas_of(old, name)}


def _replicas_of(states: Sequence[ReplicaSetState], name: str) -> int:
    return next(state.replicas for state in states if _name(state.manifest) == name)


def _fenceposts(strategy: Mapping[str, Any], replicas: int) -> tuple[int, int]:
    """Return how many additional pods may exist, and how many pods may be unavailable."""
    update = mapping_at(strategy, "rollingUpdate")
    surge = _resolve(update.get("maxSurge", "25%"), replicas, up=True)
    unavailable = min(_resolve(update.get("maxUnavailable", "25%"), replicas, up=False), replicas)
    # Upstream: if both round to zero, one pod may be unavailable, or the rollout could never begin.
    return surge, unavailable if surge or unavailable else 1


def _resolve(amount: Any, total: int, *, up: bool) -> int:
    """Resolve a number, or a percentage of the total."""
    if isinstance(amount, str) and amount.endswith("%") and amount[:-1].isdecimal():
        share = int(amount[:-1]) * total / 100
        return math.ceil(share) if up else math.floor(share)
    return amount if isinstance(amount, int) and not isinstance(amount, bool) and amount >= 0 else 0


# ---------------------------------------------------------------- names


def _name(workload: Manifest) -> str:
    return str(mapping_at(workload, "metadata").get("name") or "")


def _pod_name(prefix: str, context: SyncContext, number: int) -> str:
    return generated_name(f"{prefix}-", context.serial, number)


def _ordinal(pod: Pod) -> int | None:
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isascii() and text.isdecimal() else None


def _target_node(pod: Pod) -> str:
    """Return the node on which a daemon is, or to which its affinity restricts it."""
    if pod.node_name:
        return pod.node_name
    affinity = pod.spec.affinity
    selector = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    for term in selector.node_selector_terms if selector is not None else ():
        for field in term.match_fields:
            if field.key == "metadata.name" and field.values:
                return field.values[0]
    return ""


def _indexes(text: str) -> set[int]:
    """Parse the indexes in a text such as `1,3-5,7`."""
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            # The text comes from a status of unknown origin, whose ranges may be of any size.
            indexes.update(range(int(first), min(int(last or first), REPLICAS_MAX) + 1))
    return indexes
