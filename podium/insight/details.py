"""What exactly is in the way of a pod on a node, beyond the reasons of a status: taints, labels, amounts."""

from __future__ import annotations

from podium.cluster import Snapshot
from podium.cluster.matching.node_selectors import required_terms
from podium.framework.contract.status import Status
from podium.insight.pod_edits import untolerated
from podium.objects.amounts import amount_text
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.tolerations import taint_text


def kind_of_blocker(pod: Pod, snapshot: Snapshot, row: int, status: Status) -> str:
    """The status with what is alike on many nodes: every taint, every key of the selector that does not match."""
    node = snapshot.nodes[row]
    assert node is not None
    more: list[str] = []
    if status.plugin == "TaintToleration":
        more = [taint_text(each) for group in untolerated(pod, node).values() for each in group]
        more = [each for each in more if any(each == taint_text(taint) for taint in node.spec.taints)]
    elif status.plugin == "NodeAffinity":
        labels = node.metadata.labels
        more = [f"{key}={value}" for key, value in pod.spec.node_selector.items() if labels.get(key) != value]
        if not more and required_terms(pod.spec) is not None:
            more = ["required node affinity"]
    return f"{status.message} ({', '.join(more)})" if more else status.message


def amounts(pod: Pod, snapshot: Snapshot, row: int, status: Status) -> str:
    """What is asked for and what is left of each resource that is missing; "" for other statuses."""
    if status.plugin != "NodeResourcesFit":
        return ""
    found = []
    for resource, amount in filter_requests(pod.spec).items():
        free = int(snapshot.allocatable(resource)[row] - snapshot.requested(resource)[row])
        if amount > free:
            asked, left = amount_text(resource, amount), amount_text(resource, max(free, 0))
            found.append(f"asks for {asked} {resource}, {left} left")
    if snapshot.pod_count[row] >= snapshot.allowed_pods[row]:
        found.append(f"has {int(snapshot.pod_count[row])} pods and takes {int(snapshot.allowed_pods[row])}")
    return "; ".join(found)
