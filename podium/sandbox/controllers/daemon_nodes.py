"""The nodes on which a DaemonSet runs a pod, and the tolerations of its pods.

Source: kubernetes v1.36, pkg/controller/daemon (NodeShouldRunDaemonPod), pkg/controller/daemon/util, component-helpers
scheduling/corev1/nodeaffinity.
Differs: tolerations that compare numbers tolerate nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.sandbox.fields import items_at, mapping_at

Json = dict[str, Any]

_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATION = ("node.kubernetes.io/network-unavailable", "NoSchedule")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def daemon_spec(spec: Json) -> Json:
    """Return the spec of a DaemonSet's template with the tolerations of daemons."""
    keys = [*_TOLERATIONS, *((_HOST_NETWORK_TOLERATION,) if spec.get("hostNetwork") else ())]
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    template_tolerations = [toleration for toleration in items_at(spec, "tolerations") if toleration not in tolerations]
    return spec | {"tolerations": [*template_tolerations, *tolerations]}


def for_node(spec: Json, node: str) -> Json:
    """Return the spec with the affinity to just this node, in place of the required one of the template."""
    affinity = mapping_at(spec, "affinity")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    node_affinity = {_REQUIRED: {"nodeSelectorTerms": [term]}}
    return spec | {"affinity": affinity | {"nodeAffinity": mapping_at(affinity, "nodeAffinity") | node_affinity}}


def target_node(pod: Json) -> str:
    """Return the node that a daemon is on, or is meant for."""
    if name := mapping_at(pod, "spec").get("nodeName"):
        return str(name)
    terms = items_at(pod, "spec", "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    for field in (field for term in terms for field in items_at(term, "matchFields")):
        if field.get("key") == "metadata.name" and field.get("values"):
            return str(field["values"][0])
    return ""


def should_run(spec: Json, node: Json) -> bool:
    """Return whether a pod of this spec, which has the tolerations of daemons, is to run on the node."""
    return _selects(spec, node) and _tolerates(spec, node, ("NoSchedule", "NoExecute"))


def may_stay(spec: Json, node: Json) -> bool:
    """Return whether a pod that is on the node may stay there: a taint NoSchedule does not drive it away."""
    return _selects(spec, node) and _tolerates(spec, node, ("NoExecute",))


def _selects(spec: Json, node: Json) -> bool:
    name, labels = node["metadata"]["name"], mapping_at(node, "metadata", "labels")
    if spec.get("nodeName") not in (None, "", name):
        return False
    if any(labels.get(key) != value for key, value in mapping_at(spec, "nodeSelector").items()):
        return False
    affinity = mapping_at(spec, "affinity", "nodeAffinity")
    if _REQUIRED not in affinity:
        return True
    fields = {"metadata.name": name}
    return any(
        (items_at(term, "matchExpressions") or items_at(term, "matchFields"))
        and all(_meets(expression, labels) for expression in items_at(term, "matchExpressions"))
        and all(_meets(expression, fields) for expression in items_at(term, "matchFields"))
        for term in items_at(affinity, _REQUIRED, "nodeSelectorTerms")
    )


def _meets(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement.get("key"), requirement.get("operator"), requirement.get("values") or []
    value = labels.get(str(key))
    if operator == "In":
        return bool(value in values)
    if operator == "NotIn":
        return bool(value not in values)
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) is bool(operator == "Exists")
    try:
        amount, limit = int(str(value)), int(values[0])
    except (IndexError, ValueError):
        return False
    return amount > limit if operator == "Gt" else (operator == "Lt" and amount < limit)


def _tolerates(spec: Json, node: Json, effects: tuple[str, ...]) -> bool:
    tolerations = items_at(spec, "tolerations")
    return all(
        taint.get("effect") not in effects or any(_is_tolerated(taint, toleration) for toleration in tolerations)
        for taint in items_at(node, "spec", "taints")
    )


def _is_tolerated(taint: Json, toleration: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or ""))
