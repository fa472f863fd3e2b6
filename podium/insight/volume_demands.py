"""What the bound volumes of a pod demand of a node's labels."""

from __future__ import annotations

from collections.abc import Sequence

from podium.engine.store import ObjectStore
from podium.objects.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from podium.plugins.volume_zone import zones_of
from podium.plugins.volumes.claims import named_claims


def volume_demands(store: ObjectStore, pod: Pod) -> Sequence[NodeSelector]:
    """The node affinity and the zones of the volumes that the pod's claims are bound to."""
    found = []
    for name in named_claims(pod):
        claim = store.get(PERSISTENT_VOLUME_CLAIMS, f"{pod.metadata.namespace}/{name}")
        volume = store.get(PERSISTENT_VOLUMES, claim.spec.volume_name) if claim is not None else None
        if volume is None:
            continue
        affinity = volume.spec.node_affinity
        if affinity is not None and affinity.required is not None:
            found.append(affinity.required)
        for zones in zones_of(volume):
            demand = NodeSelectorRequirement(key=zones.label, operator="In", values=tuple(sorted(zones.values)))
            found.append(NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(demand,)),)))
    return found
