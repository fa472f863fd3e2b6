"""Pods: their priority, the tolerations of lost nodes, and what the registry fills in.

Source: kubernetes v1.37, plugin/pkg/admission/{priority,defaulttolerationseconds}, pkg/registry/core/pod/strategy.go,
pkg/apis/core/helper/qos.
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.admission.label_keys import merge_label_keys
from podium.sandbox.admission.lookup import Lookup
from podium.sandbox.errors import forbidden
from podium.sandbox.fields import mapping_at
from podium.sandbox.quantities import parse_quantity
from podium.sandbox.resources import ResourceType, resource_named

Json = dict[str, Any]

_PODS = resource_named("pods")
_POD_GROUPS = resource_named("podgroups.scheduling.k8s.io")
_NODE_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def set_priority(pod: Json, lookup: Lookup) -> None:
    """Set the priority and the preemption policy of the pod's class, or of the default class.

    Raises:
        ApiError: 403, its priority class does not exist.
    """
    spec = pod["spec"]
    priority_class = _priority_class(_PODS, pod, lookup)
    if priority_class is not None:
        spec["priorityClassName"] = priority_class["metadata"]["name"]
        spec["priority"] = priority_class.get("value", 0)
        spec.setdefault("preemptionPolicy", priority_class.get("preemptionPolicy", "PreemptLowerPriority"))
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def set_group_priority(group: Json, lookup: Lookup) -> None:
    """Set the priority of the PodGroup's class, or of the default class.

    Raises:
        ApiError: 403, its priority class does not exist, or has another priority than the group.
    """
    spec = group.setdefault("spec", {})
    priority_class = _priority_class(_POD_GROUPS, group, lookup)
    value = 0 if priority_class is None else priority_class.get("value", 0)
    if spec.get("priority") not in (None, value):
        text = (
            f"priority set in the pod group ({spec['priority']}) must match the priority computed ({value}) based on "
            "the priority class set in the spec"
        )
        raise forbidden(_POD_GROUPS, group, text)
    if priority_class is not None:
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    spec["priority"] = value


def _priority_class(resource: ResourceType, obj: Json, lookup: Lookup) -> Json | None:
    """Return the object's priority class, or the default class; None if there is none.

    Raises:
        ApiError: 403, its priority class does not exist.
    """
    name = obj["spec"].get("priorityClassName")
    if not name:
        classes = lookup.all_of("priorityclasses")
        return next((candidate for candidate in classes if candidate.get("globalDefault")), None)
    priority_class = lookup.named("priorityclasses", name)
    if priority_class is None:
        raise forbidden(resource, obj, f"no PriorityClass with name {name} was found")
    return priority_class


def prepare_pod(pod: Json) -> None:
    """Set the status of a new pod and merge its label keys into selectors."""
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
        pod["status"]["conditions"] = [condition | {"lastProbeTime": None, "lastTransitionTime": None}]
    merge_label_keys(spec, mapping_at(pod, "metadata", "labels"))


def admit_pod_update(pod: Json, previous: Json) -> None:
    """Apply admission to an update of a pod, in place: an update cannot remove the priority."""
    spec = pod["spec"]
    for name in ("priority", "preemptionPolicy"):
        if name in (previous.get("spec") or {}):
            spec.setdefault(name, previous["spec"][name])
    add_node_lost_tolerations(spec)


def add_node_lost_tolerations(spec: Json) -> None:
    """Tolerate an unready or unreachable node for 300 s, unless the pod has its own toleration for it."""
    tolerations = list(spec.get("tolerations") or ())
    for key in _NODE_LOST:
        if not any(_speaks_about(toleration, key) for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations


def _speaks_about(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


def qos_class(spec: Json) -> str:
    """Return Guaranteed, Burstable or BestEffort, from the pod's own cpu and memory or its containers'."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    pod_resources = mapping_at(spec, "resources")
    if mapping_at(pod_resources, "requests") or mapping_at(pod_resources, "limits"):
        containers = [{"resources": pod_resources}]
    requests = [_computing(container, "requests") for container in containers]
    limits = [_computing(container, "limits") for container in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(len(limit) == 2 and request == limit for request, limit in zip(requests, limits, strict=True)):
        return "Guaranteed"
    return "Burstable"


def _computing(container: Json, field: str) -> Json:
    resources = mapping_at(container, "resources", field)
    amounts = {}
    for name in ("cpu", "memory"):
        try:
            amount = parse_quantity(resources.get(name))
        except ValueError:
            continue
        if amount > 0:
            amounts[name] = amount
    return amounts
