"""Nodes that no plan may remove, though nothing says so in Karpenter's words.

Owns why a node is left out where every node counts as one that may be bought and removed. Changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from podium.objects.core import Pod
from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.state.evictions import is_active
from podium.provisioner.state.usable import node_fault
from podium.provisioner.state.validation import is_mirror

_CONTROL_PLANE: Final = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/controlplane",
    "node-role.kubernetes.io/etcd",
    "node-role.kubernetes.io/api-server",
    "node.kubernetes.io/microk8s-controlplane",
)
"""Labels, and keys of taints, of the nodes that run a control plane."""

_ROLES: Final = ("master", "control-plane")
_VIRTUAL: Final = (("type", "virtual-kubelet"), ("eks.amazonaws.com/compute-type", "fargate"))
_MIRROR: Final = "kubernetes.io/config.mirror"
_KEPT_NODE: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_KEPT_POD: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_CONTROL_PLANE_TIER: Final = ("tier", "control-plane")


def left_out(nodes: Sequence[ProvidedNode], pods: Iterable[Pod]) -> Mapping[str, str]:
    """Return by name of a node why it is left out."""
    pods_on: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.node_name and not pod.has_ended:
            pods_on[pod.node_name].append(pod)
    on_every_node = _static_on_every_node(nodes, pods_on)
    reasons = {node.name: _reason(node, pods_on[node.name], on_every_node) for node in nodes}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def is_example(node: ProvidedNode) -> bool:
    """Return True if a node like it might be bought: it is a machine for pods."""
    return has_capacity(node) and _control_plane_mark(node) is None and _virtual_mark(node) is None


def has_capacity(node: ProvidedNode) -> bool:
    """Return True if the node says how large it is."""
    return bool(node.status.allocatable or node.status.capacity)


def _virtual_mark(node: ProvidedNode) -> str | None:
    labels = node.metadata.labels
    return next((f"label {key}={value}" for key, value in _VIRTUAL if labels.get(key) == value), None)


def _control_plane_mark(node: ProvidedNode) -> str | None:
    labels = node.metadata.labels
    marks = [f"label {key}" for key in _CONTROL_PLANE if key in labels and labels[key] != "false"]
    marks += [f"label kubernetes.io/role={role}" for role in _ROLES if labels.get("kubernetes.io/role") == role]
    marks += [f"taint {taint.key}" for taint in node.spec.taints if taint.key in _CONTROL_PLANE]
    return next(iter(marks), None)


def _reason(node: ProvidedNode, pods: Sequence[Pod], on_every_node: frozenset[str]) -> str | None:
    if mark := _control_plane_mark(node):
        return f"It is a node of the control plane ({mark})"
    if mark := _virtual_mark(node):
        return f"It is not a machine ({mark})"
    # Whoever wrote it meant Cluster Autoscaler, and would mean the same of any other.
    if node.metadata.annotations.get(_KEPT_NODE) == "true":
        return f"Its annotation {_KEPT_NODE} keeps it"
    if fault := node_fault(node, pods):
        return f"{fault} cannot be judged"
    if not has_capacity(node):
        return "It cannot be judged: it reports no capacity"
    if not any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions):
        return "It cannot be judged: it is not ready"
    for pod in pods:
        if _is_static(pod) and _manifest_name(pod) not in on_every_node:
            of_control_plane = pod.metadata.labels.get(_CONTROL_PLANE_TIER[0]) == _CONTROL_PLANE_TIER[1]
            kind = "a static pod of the control plane" if of_control_plane else "a static pod"
            return f"Pod {pod.key} is {kind}: it runs on this node and nowhere else"
        if is_active(pod) and pod.metadata.annotations.get(_KEPT_POD) == "false":
            return f"The annotation {_KEPT_POD} of pod {pod.key} keeps it"
    return None


def _static_on_every_node(nodes: Sequence[ProvidedNode], pods_on: Mapping[str, Sequence[Pod]]) -> frozenset[str]:
    """Return the static pods that every node has which is no node of the control plane; a new node has them as well."""
    workers = [node.name for node in nodes if _control_plane_mark(node) is None]
    if len(workers) < 2:
        # Of one node alone nothing says what others would have.
        return frozenset({"kube-proxy"})
    names = [{_manifest_name(pod) for pod in pods_on.get(name, ()) if _is_static(pod)} for name in workers]
    return frozenset(set.intersection(*names) | {"kube-proxy"})


def _is_static(pod: Pod) -> bool:
    return is_mirror(pod) or _MIRROR in pod.metadata.annotations


def _manifest_name(pod: Pod) -> str:
    """Return the name in the static pod's file: the kubelet appends the node's name."""
    return pod.metadata.name.removesuffix(f"-{pod.node_name}")
