"""Node selectors of a pod's volumes: of those that its claims are bound to, and of those that they may still get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.cluster.matching.volume_zones import zones_of
from podium.engine.store import ObjectStore
from podium.framework.contract.status import PluginError
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.core import Pod
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim
from podium.plugins.volumes.claims import claims_used, class_of_claim
from podium.plugins.volumes.free_volumes import VolumeIndex
from podium.plugins.volumes.matching import choice_for
from podium.plugins.volumes.provisioning import can_provision


def volume_demands(store: ObjectStore, pod: Pod) -> Sequence[NodeSelector]:
    """Return the node selectors that a node must match so that every volume of the pod can be attached."""
    demands: list[NodeSelector] = []
    for use in claims_used(pod):
        claim = store.get(PERSISTENT_VOLUME_CLAIMS, f"{pod.metadata.namespace}/{use.name}")
        if claim is None:
            continue
        volume = store.get(PERSISTENT_VOLUMES, claim.spec.volume_name)
        if volume is not None:
            # VolumeZone does not look at generic ephemeral volumes, as upstream.
            demands += _of_bound(volume, in_zones=not use.is_ephemeral)
        elif terms := _of_waiting(store, claim):
            demands.append(NodeSelector(node_selector_terms=tuple(terms)))
    return demands


def _of_bound(volume: PersistentVolume, *, in_zones: bool) -> Iterator[NodeSelector]:
    """Yield the node affinity and the zones of the volume."""
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        yield affinity.required
    if in_zones:
        for zones in zones_of(volume):
            yield NodeSelector(node_selector_terms=(_term((zones.label, tuple(sorted(zones.values)))),))


def _of_waiting(store: ObjectStore, claim: PersistentVolumeClaim) -> list[NodeSelectorTerm]:
    """Return the terms of the nodes where a volume may be bound or provisioned for the claim; empty for all nodes."""
    index = VolumeIndex()
    for volume in store.objects(PERSISTENT_VOLUMES).values():
        index.put(volume)
    try:
        choice = choice_for(claim, index)
    except PluginError:
        return []
    terms: list[NodeSelectorTerm] = []
    for volume in choice.all():
        affinity = volume.spec.node_affinity
        # A volume without affinity can be used anywhere, so nothing is demanded.
        if affinity is None or affinity.required is None:
            return []
        terms += affinity.required.node_selector_terms
    storage_class = store.get(STORAGE_CLASSES, class_of_claim(claim))
    if storage_class is not None and can_provision(storage_class):
        if not storage_class.allowed_topologies:
            return []
        terms += [
            _term(*((expression.key, expression.values) for expression in topology.match_label_expressions))
            for topology in storage_class.allowed_topologies
        ]
    return terms


def _term(*demands: tuple[str, tuple[str, ...]]) -> NodeSelectorTerm:
    """Return a term that requires each of these labels to have one of its values."""
    parts = (NodeSelectorRequirement(key=label, operator="In", values=values) for label, values in demands)
    return NodeSelectorTerm(match_expressions=tuple(parts))
