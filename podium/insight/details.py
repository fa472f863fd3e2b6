"""Details of what keeps a pod off a node, beyond the reasons of a status: taints, labels, amounts."""

from __future__ import annotations

from typing import Final

import numpy as np

from podium.cluster import Snapshot
from podium.cluster.matching.node_selectors import required_terms
from podium.framework.contract.status import Status
from podium.framework.cycle.details import details_text
from podium.framework.profile.runtime import Framework
from podium.insight.pod_edits import untolerated_taints
from podium.objects.amounts import amount_text
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.tolerations import taint_text

IN_TEXT: Final = ("TaintToleration", "NodeAffinity")
"""The plugins whose details are part of the blocker's text."""


def kind_of_blocker(pod: Pod, snapshot: Snapshot, row: int, status: Status) -> str:
    """Return the status's message with the untolerated taints, or the labels that the node selector does not match."""
    node = snapshot.nodes[row]
    assert node is not None
    details: list[str] = []
    # A cordon appears as a taint that the node may not have yet; only what stands on the node is named.
    if status.plugin == "TaintToleration":
        details = [taint_text(taint) for group in untolerated_taints(pod, node).values() for taint in group]
        details = [text for text in details if any(text == taint_text(taint) for taint in node.spec.taints)]
    elif status.plugin == "NodeAffinity":
        labels = node.metadata.labels
        details = [f"{key}={value}" for key, value in pod.spec.node_selector.items() if labels.get(key) != value]
        if not details and required_terms(pod.spec) is not None:
            details = ["required node affinity"]
    return f"{status.message} ({', '.join(details)})" if details else status.message


def amounts(framework: Framework, pod: Pod, snapshot: Snapshot, row: int, status: Status) -> str:
    """Return the request for each resource that is short, and what is free of it; for others the plugin's details."""
    if status.plugin in IN_TEXT:
        return ""
    if status.plugin != "NodeResourcesFit":
        return details_text(framework, status.plugin, pod, snapshot, np.array([row]))
    shortages = []
    for resource, amount in filter_requests(pod.spec).items():
        free = int(snapshot.allocatable(resource)[row] - snapshot.requested(resource)[row])
        if amount > free:
            request, remainder = amount_text(resource, amount), amount_text(resource, max(free, 0))
            shortages.append(f"asks for {request} {resource}, {remainder} left")
    # `pods` is no resource that the pod requests, but it is one that a node runs out of.
    if snapshot.pod_count[row] >= snapshot.allowed_pods[row]:
        shortages.append(f"has {int(snapshot.pod_count[row])} pods and takes {int(snapshot.allowed_pods[row])}")
    return "; ".join(shortages)
