"""Nodes on which a pod could ever run, whatever other pods leave; all other nodes are ruled out by proof.

The filters are asked about the cluster without the pods that can leave. What rejects the pod there rejects it beside
more pods, too, with two exceptions. Topology spread counts pods elsewhere, so only a missing label is a proof. Required
pod affinity needs pods that match: it is asked about beside each of those that can leave, and beside all of them. A pod
that waits is among them on the nodes on which it could run itself, and not at all if gates keep it from being tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from podium.cluster.affinity_terms import pod_terms
from podium.cluster.snapshot import BoolArray
from podium.engine.cluster import Cluster
from podium.insight.blockers import Blockers, blockers_of
from podium.objects.core import Pod
from podium.objects.resource_types import NAMESPACES, PODS

_POD_AFFINITY: Final = "InterPodAffinity"
_TOPOLOGY_SPREAD: Final = "PodTopologySpread"
_PARTNERS_MAX: Final = 30
"""The number of pods that the affinity selects that are tried one by one; with more of them affinity is no proof."""

_CHAIN_MAX: Final = 2


def possible_nodes(
    cluster: Cluster, emptied: Cluster, pod: Pod, absent: AbstractSet[str] = frozenset()
) -> Sequence[str]:
    """Return the names of the nodes that are not ruled out, in node order.

    Args:
        emptied: a fork of the cluster without the pods that can leave.
        absent: the keys of waiting pods that it is not to be near: they need this pod first.

    Raises:
        ScheduleError: a plugin failed.
    """
    blockers = _blockers(emptied, pod)
    possible = _not_ruled_out(blockers)
    if not pod_terms(pod).required_affinity:
        return _names(blockers, possible)
    # Longer chains of pods that need each other are no proof.
    beside = _beside_partners(cluster, emptied, pod, absent) if len(absent) < _CHAIN_MAX else None
    if beside is not None:
        possible |= beside
    else:
        possible = _not_ruled_out(blockers, without_affinity=True)
    return _names(blockers, possible)


def _beside_partners(cluster: Cluster, emptied: Cluster, pod: Pod, absent: AbstractSet[str]) -> BoolArray | None:
    """Return the nodes that are not ruled out beside pods that the affinity selects; None if these are not all known.

    Shape: one entry per row of the snapshot.
    """
    candidates = (item for item in partners_of(cluster, pod) if item.key not in absent)
    # Replicas share their spec, and one of them on a node is as good as another.
    partners = list(
        {
            (item.node_name, id(item.spec), item.metadata.namespace, *sorted(item.metadata.labels.items())): item
            for item in candidates
            if _may_have_node(cluster, item)
        }.values()
    )
    placed_partners = [partner for partner in partners if partner.node_name]
    if len(partners) > _PARTNERS_MAX or (partners != placed_partners and len(pod_terms(pod).required_affinity) > 1):
        return None
    groups = [*([partner] for partner in placed_partners), placed_partners]
    for partner in partners:
        if not partner.node_name:
            # One that is still to be placed may come to any node that is not ruled out for itself.
            names = possible_nodes(cluster, emptied, partner, {*absent, pod.key})
            if len(groups) + len(names) > _PARTNERS_MAX:
                return None
            groups += ([partner.on_node(name)] for name in names)
    possible = np.zeros(len(emptied.engine_to_ask.cache.snapshot().nodes), np.bool_)
    for stay in groups:
        world = emptied.fork()
        for partner in stay:
            if world.store.get(PODS, partner.key) is None:
                world.put(PODS, partner)
        possible |= _not_ruled_out(_blockers(world, pod))
    return possible


def _may_have_node(cluster: Cluster, pod: Pod) -> bool:
    """Return whether the pod has a node, or waits and is tried."""
    if pod.node_name:
        return True
    return pod.spec.scheduler_name in cluster.profiles and not pod.is_terminating and not cluster.gates_of(pod)


def partners_of(cluster: Cluster, pod: Pod) -> Iterator[Pod]:
    """Yield the other pods that a required affinity term of the pod selects."""
    namespaces = {item.key: item.metadata.labels for item in cluster.store.objects(NAMESPACES).values()}
    terms = pod_terms(pod).required_affinity
    for candidate in cluster.store.objects(PODS).values():
        metadata = candidate.metadata
        labels = namespaces.get(metadata.namespace, {})
        if candidate.uid != pod.uid and any(
            term.matches(metadata.namespace, metadata.labels, labels) for term in terms
        ):
            yield candidate


def _names(blockers: Blockers, rows: BoolArray) -> Sequence[str]:
    """Return the names of the nodes of these rows, in node order."""
    snapshot = blockers.snapshot
    return [snapshot.name(row) for row in snapshot.order[rows[snapshot.order]].tolist()]


def _not_ruled_out(blockers: Blockers, *, without_affinity: bool = False) -> BoolArray:
    impossible = np.zeros(len(blockers.snapshot.nodes), np.bool_)
    for plugin in blockers.plugins:
        rejection = blockers.rejected_by(plugin)
        if plugin == _TOPOLOGY_SPREAD:
            rejection &= blockers.unresolvable_by(plugin)
        elif plugin == _POD_AFFINITY and without_affinity:
            # What is left is anti-affinity, which a pod of the node that stays has, or excludes.
            rejection &= ~blockers.unresolvable_by(plugin)
        impossible |= rejection
    return ~impossible


def _blockers(cluster: Cluster, pod: Pod) -> Blockers:
    return blockers_of(cluster.engine_to_ask, cluster.framework_for(pod), pod)
