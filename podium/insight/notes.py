"""What else has to be known about a pod that waits: pods that are ending, and claims that nobody will provision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from podium.engine.cluster import Cluster
from podium.framework.cycle.search import filter_all
from podium.insight.blockers import Blockers
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES
from podium.plugins.volumes.claims import SELECTED_NODE, WAIT_FOR_FIRST_CONSUMER, claims_used, class_of_claim

_SHOWN_MAX: Final = 5


def notes_about(cluster: Cluster, asked: Pod, pending: Pod, blockers: Blockers, *, may_wait: bool) -> tuple[str, ...]:
    """A sentence for each such fact.

    Args:
        asked: the pod as the API server has it.
        pending: the pod as it was evaluated, which does not count in the cluster.
        blockers: what keeps it off each node.
        may_wait: whether the pod fits nowhere, and it is not known to wait for victims.
    """
    notes = list(_unprovisioned(cluster, asked))
    if asked.is_terminating and not asked.node_name:
        notes.append(f"It is being deleted since {asked.metadata.deletion_timestamp}: no scheduler places it any more")
    if may_wait and (note := _about_ending(cluster, pending, blockers)):
        notes.append(note)
    return tuple(notes)


def victims_awaited(cluster: Cluster, pod: Pod) -> str:
    """A sentence if pods of lower priority are ending on the node to which the pod is nominated; otherwise ""."""
    if not (node := pod.status.nominated_node_name):
        return ""
    victims = [each for each in _ending(cluster) if each.node_name == node and each.priority < pod.priority]
    return f"It is nominated to {node}, and waits for its victims there to end: {shown(victims)}" if victims else ""


def shown(pods: Sequence[Pod]) -> str:
    """Pods that are ending, each with the time since when."""
    return _first([f"{each.key} (since {each.metadata.deletion_timestamp})" for each in pods])


def _unprovisioned(cluster: Cluster, pod: Pod) -> Iterator[str]:
    """Claims whose volumes wait for a scheduler to choose a node, which a pod that names its node never meets."""
    if not pod.node_name or pod.has_ended:
        return
    for use in claims_used(pod):
        claim = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, f"{pod.metadata.namespace}/{use.name}")
        if claim is None or claim.spec.volume_name or SELECTED_NODE in claim.metadata.annotations:
            continue
        storage_class = cluster.store.get(STORAGE_CLASSES, class_of_claim(claim))
        if storage_class is None or storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            continue
        yield (
            f"spec.nodeName is {pod.node_name}, so no scheduler tells the provisioner of {claim.key} where its volume "
            f"is needed (WaitForFirstConsumer): provisioning never starts, and the pod never runs; select the node "
            "with nodeSelector or node affinity instead of spec.nodeName"
        )


def _about_ending(cluster: Cluster, pod: Pod, blockers: Blockers) -> str:
    """Where the pod fits as soon as those that are ending are gone.

    Cost: a few array operations; a fork and a call of every filter if there are such pods where they may be in the way.
    """
    ending = _ending(cluster)
    if not ending or not _may_be_in_the_way(ending, pod, blockers):
        return ""
    world = cluster.fork()
    for each in ending:
        world.remove("Pod", each.metadata.name, each.metadata.namespace)
    cycle = world.engine.cycle(world.framework_for(pod), pod)
    rows = filter_all(cycle).rows
    if not len(rows):
        return ""
    nodes = {cycle.snapshot.name(row) for row in rows.tolist()}
    if there := [each for each in ending if each.node_name in nodes]:
        names = sorted({each.node_name for each in there})
        return f"It fits on {_first(names)} as soon as pods that are ending there are gone: {shown(there)}"
    return f"It fits on {_first(sorted(nodes))} as soon as pods that are ending are gone: {shown(ending)}"


def _may_be_in_the_way(ending: Sequence[Pod], pod: Pod, blockers: Blockers) -> bool:
    """Whether there is a node that nothing but other pods keeps the pod off, and that has enough without these pods."""
    snapshot = blockers.snapshot
    may_fit = np.zeros(len(snapshot.nodes), np.bool_)
    may_fit[snapshot.order] = True
    for plugin in blockers.plugins:
        may_fit &= ~(blockers.rejected_by(plugin) & blockers.unresolvable_by(plugin))
    if not may_fit.any():
        return False
    freed = [(snapshot.row_of[each.node_name], each) for each in ending if each.node_name in snapshot.row_of]
    for resource, amount in filter_requests(pod.spec).items():
        free = snapshot.allocatable(resource) - snapshot.requested(resource)
        for row, each in freed:
            free[row] += filter_requests(each.spec).get(resource, 0)
        may_fit &= free >= amount
    return bool(may_fit.any())


def _ending(cluster: Cluster) -> list[Pod]:
    return [each for each in cluster.store.objects(PODS).values() if each.node_name and each.is_terminating]


def _first(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more
