"""Details of what keeps a pod off a group of nodes: the most that is free, the pods in the way, claims.

Where the nodes differ, one of them stands for the group and is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from podium.cluster import Snapshot, host_ports
from podium.engine.explanation import Group
from podium.engine.rejection_details import asked_and_free
from podium.engine.store import ObjectStore
from podium.framework.cycle.details import details_text
from podium.framework.profile.runtime import Framework
from podium.insight.details import IN_TEXT
from podium.insight.evictions import Evictions
from podium.objects.core import Pod
from podium.objects.meta import LabelSelector
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS
from podium.plugins.volumes.claims import claims_used, class_of_claim

_SHOWN_MAX: Final = 3
_OF_VOLUMES: Final = frozenset({"VolumeBinding", "VolumeZone", "VolumeRestrictions"})


def with_details(
    groups: Iterable[Group],
    pod: Pod,
    framework: Framework,
    store: ObjectStore,
    snapshot: Snapshot,
    evictions: Evictions,
) -> tuple[Group, ...]:
    """Return the groups with their details.

    Args:
        evictions: of the pod in this snapshot.
    """
    return tuple(
        replace(
            group,
            detail=_detail(group, pod, store, snapshot, evictions) or _own_detail(group, pod, framework, snapshot),
        )
        for group in groups
    )


def _detail(group: Group, pod: Pod, store: ObjectStore, snapshot: Snapshot, evictions: Evictions) -> str:
    plugin, row = group.plugin, snapshot.row_of[group.nodes[0]]
    if plugin == "NodeResourcesFit":
        return asked_and_free(pod, snapshot, [snapshot.row_of[name] for name in group.nodes])
    if plugin == "NodePorts":
        ports = sorted({port.port for port in host_ports(pod.spec)})
        holders = _pods(evictions.port_holders(row), group.nodes[0])
        return f"of {', '.join(map(str, ports))}; taken by {holders}" if holders else ""
    if plugin == "InterPodAffinity":
        return _affinity(pod) if "pod affinity" in group.text else _pods(evictions.kept_apart(row), group.nodes[0])
    if plugin == "PodTopologySpread":
        return "; ".join(
            f"over {constraint.topology_key} with maxSkew {constraint.max_skew}"
            for constraint in pod.spec.topology_spread_constraints
            if constraint.when_unsatisfiable != "ScheduleAnyway"
        )
    if plugin == "NodeName":
        return f"spec.nodeName is {pod.node_name}"
    return "; ".join(_claims(pod, store)) if plugin in _OF_VOLUMES else ""


def _own_detail(group: Group, pod: Pod, framework: Framework, snapshot: Snapshot) -> str:
    """Return what the plugin itself says about the nodes."""
    if group.plugin in IN_TEXT:
        return ""
    rows = np.array([snapshot.row_of[name] for name in group.nodes])
    return details_text(framework, group.plugin, pod, snapshot, rows)


def _pods(pods: Iterable[Pod], node: str) -> str:
    """Return the pods that are in the way on a node; "" if there are none."""
    names = list(dict.fromkeys(pod.key for pod in pods))
    suffix = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return f"{', '.join(names[:_SHOWN_MAX])}{suffix} ({node})" if names else ""


def _affinity(pod: Pod) -> str:
    """Return the terms of the pod's required affinity in words."""
    affinity = pod.spec.affinity
    rules = affinity.pod_affinity if affinity is not None else None
    return "; ".join(
        f"wants pods with {_selector(term.label_selector)} in the same {term.topology_key}"
        for term in (rules.required if rules is not None else ())
    )


def _selector(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no labels"
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for requirement in selector.match_expressions:
        values = f" ({', '.join(requirement.values)})" if requirement.values else ""
        parts.append(f"{requirement.key} {requirement.operator}{values}")
    return ", ".join(parts) or "any labels"


def _claims(pod: Pod, store: ObjectStore) -> Iterator[str]:
    """Yield each claim, with its volume, or with the size and the class that it asks for."""
    for use in claims_used(pod):
        claim = store.get(PERSISTENT_VOLUME_CLAIMS, f"{pod.metadata.namespace}/{use.name}")
        if claim is None:
            continue
        if claim.spec.volume_name:
            yield f"claim {claim.key} has the volume {claim.spec.volume_name}"
        else:
            size = claim.spec.resources.requests.get("storage", "?")
            yield f"claim {claim.key} asks for {size} of class {class_of_claim(claim) or 'none'}"
