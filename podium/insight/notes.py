"""Notes about a pod: terminating pods, a node that does not exist, claims that no provisioner will provision, and what
plugins decide by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from podium.engine.cluster import Cluster
from podium.framework.contract.node_metrics import Noting
from podium.framework.cycle.search import filter_all
from podium.insight.blockers import Blockers
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES
from podium.plugins.volumes.claims import SELECTED_NODE, WAIT_FOR_FIRST_CONSUMER, claims_used, class_of_claim

_SHOWN_MAX: Final = 5


def notes_about(
    cluster: Cluster, original: Pod, pending: Pod, blockers: Blockers, *, may_wait: bool
) -> tuple[str, ...]:
    """Return the notes, one sentence each.

    Args:
        original: the pod as the API server has it.
        pending: the pod as it was evaluated, which does not count in the cluster.
        blockers: those of the pending pod.
        may_wait: whether the pod fits nowhere, and waits for no victims of its own preemption.
    """
    notes = [
        *_missing_node_notes(cluster, original),
        *_provisioning_notes(cluster, original),
        *_plugin_notes(cluster, pending),
    ]
    if original.is_terminating and not original.node_name:
        notes.append(
            f"It is being deleted since {original.metadata.deletion_timestamp}: no scheduler places it any more"
        )
    if may_wait and (note := _about_ending(cluster, pending, blockers)):
        notes.append(note)
    return tuple(notes)


def _plugin_notes(cluster: Cluster, pod: Pod) -> Iterator[str]:
    """Yield what plugins of the pod's profile say about what they decide by."""
    for plugin in cluster.framework_for(pod).plugins.values():
        if isinstance(plugin, Noting):
            yield from (f"{plugin.name}: {note}" for note in plugin.notes())


def victims_awaited(cluster: Cluster, pod: Pod) -> str:
    """Return a sentence if pods of lower priority are terminating on the pod's nominated node; otherwise ""."""
    if not (node := pod.status.nominated_node_name):
        return ""
    victims = [
        victim for victim in _terminating_pods(cluster) if victim.node_name == node and victim.priority < pod.priority
    ]
    return (
        f"It is nominated to {node}, and waits for its victims there to end: {terminating_text(victims)}"
        if victims
        else ""
    )


def terminating_text(pods: Sequence[Pod]) -> str:
    """Return the names of terminating pods, each with its deletion time."""
    return _shorten([f"{pod.key} (since {pod.metadata.deletion_timestamp})" for pod in pods])


def _missing_node_notes(cluster: Cluster, pod: Pod) -> Iterator[str]:
    """Yield a note if the pod's own node does not exist."""
    # The pod garbage collector deletes pods of nodes that do not exist.
    if pod.node_name and not pod.has_ended and cluster.store.get(NODES, pod.node_name) is None:
        yield (
            f"spec.nodeName is {pod.node_name}, and there is no such node: no kubelet runs the pod, and garbage "
            "collection deletes it"
        )


def _provisioning_notes(cluster: Cluster, pod: Pod) -> Iterator[str]:
    """Yield a note for each claim that waits for a scheduler to choose a node, although the pod names its own."""
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
    """Return where the pod fits as soon as the terminating pods are gone.

    Cost: a few array operations; a fork and a call of every filter if terminating pods may be in the way.
    """
    terminating = _terminating_pods(cluster)
    if not terminating or not _may_be_in_the_way(terminating, pod, blockers):
        return ""
    world = cluster.fork()
    for other_pod in terminating:
        world.remove("Pod", other_pod.metadata.name, other_pod.metadata.namespace)
    cycle = world.engine.cycle(world.framework_for(pod), pod)
    rows = filter_all(cycle).rows
    if not len(rows):
        return ""
    nodes = {cycle.snapshot.name(row) for row in rows.tolist()}
    # Rather than all: most ending pods have nothing to do with this one.
    if pods := [other_pod for other_pod in terminating if other_pod.node_name in nodes]:
        names = _shorten(sorted({other_pod.node_name for other_pod in pods}))
        return f"It fits on {names} as soon as pods that are ending there are gone: {terminating_text(pods)}"
    names = _shorten(sorted(nodes))
    return f"It fits on {names} as soon as pods that are ending are gone: {terminating_text(terminating)}"


def _may_be_in_the_way(terminating: Sequence[Pod], pod: Pod, blockers: Blockers) -> bool:
    """Return whether only other pods keep the pod off some node that has enough capacity without these."""
    # Decides without a fork, which costs more than the whole answer on a large cluster.
    snapshot = blockers.snapshot
    may_fit = np.zeros(len(snapshot.nodes), np.bool_)
    may_fit[snapshot.order] = True
    for plugin in blockers.plugins:
        may_fit &= ~(blockers.rejected_by(plugin) & blockers.unresolvable_by(plugin))
    if not may_fit.any():
        return False
    rows = [
        (row, other_pod) for other_pod in terminating if (row := snapshot.row_of.get(other_pod.node_name)) is not None
    ]
    for resource, amount in filter_requests(pod.spec).items():
        free = snapshot.allocatable(resource) - snapshot.requested(resource)
        for row, other_pod in rows:
            free[row] += filter_requests(other_pod.spec).get(resource, 0)
        may_fit &= free >= amount
    return bool(may_fit.any())


def _terminating_pods(cluster: Cluster) -> list[Pod]:
    return [pod for pod in cluster.store.objects(PODS).values() if pod.node_name and pod.is_terminating]


def _shorten(names: list[str]) -> str:
    suffix = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + suffix
