"""The pod subresources `binding` and `eviction`.

Source: kubernetes pkg/registry/core/pod/storage (v1.36).
Differs: eviction reads only a budget's status. This module does not compute it.
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.errors import ApiError, Cause, bad_request, conflict, too_many_requests
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.selectors import match_label_selector
from podium.sandbox.store import Store, timestamp
from podium.sandbox.validation import mapping

Json = dict[str, Any]

_PODS = resource_named("pods")
_BUDGETS = resource_named("poddisruptionbudgets")
_SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(store: Store, namespace: str, name: str, binding: Json) -> Json:
    """Bind a pod to a node. As in the real API server, the node need not exist.

    Raises:
        ApiError: 400; 404; 409, the pod has a node, is being deleted, is gated or has another UID.
    """
    node = mapping(binding, "target").get("name")
    if not node:
        raise bad_request("binding.target.name: Required value")
    record = store.record(_PODS, namespace, name)
    pod = record.obj
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    binding_metadata = mapping(binding, "metadata")
    _check_bindable(metadata, spec, binding_metadata)
    metadata = metadata | {
        field: (metadata.get(field) or {}) | mapping(binding_metadata, field)
        for field in ("annotations", "labels")
        if binding_metadata.get(field)
    }
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    status = {field: value for field, value in status.items() if field != "nominatedNodeName"}
    status["conditions"] = with_condition(
        status.get("conditions") or [], scheduled | {"lastTransitionTime": timestamp(store.now())}
    )
    store.replace_record(
        _PODS,
        record,
        pod
        | {
            "metadata": metadata,
            "spec": spec | {"nodeName": node},
            "status": status,
        },
    )
    return _SUCCESS


def _check_bindable(metadata: Json, spec: Json, binding_metadata: Json) -> None:
    name = metadata["name"]
    if binding_metadata.get("uid") and binding_metadata["uid"] != metadata.get("uid"):
        reason = (
            f"Precondition failed: UID in precondition: {binding_metadata['uid']}, "
            f"UID in object meta: {metadata.get('uid')}"
        )
        raise conflict(_PODS, name, reason)
    if binding_metadata.get("resourceVersion") and binding_metadata["resourceVersion"] != metadata["resourceVersion"]:
        raise conflict(_PODS, name, "Precondition failed: resourceVersion does not match")
    if "deletionTimestamp" in metadata:
        raise _binding_conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _binding_conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _binding_conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _binding_conflict(name: str, reason: str) -> ApiError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {reason}'
    return ApiError(409, "Conflict", message, details={"name": name, "kind": "pods/binding"})


def with_condition(conditions: list[Json], condition: Json) -> list[Json]:
    """Return the conditions with one of them set. Its transition time changes only if its status changes."""
    result = []
    for present in conditions:
        if present.get("type") != condition["type"]:
            result.append(present)
        elif present.get("status") == condition["status"]:
            transition_time = present.get("lastTransitionTime") or condition.get("lastTransitionTime")
            condition = condition | {"lastTransitionTime": transition_time}
    return [*result, condition]


def evict(store: Store, namespace: str, name: str, eviction: Json) -> Json:
    """Delete a pod unless a PodDisruptionBudget forbids it now.

    Raises:
        ApiError: 404; 429, a budget allows no disruption; 500, two budgets select the pod.
    """
    record = store.record(_PODS, namespace, name)
    options = mapping(eviction, "deleteOptions")
    if _counts_against_budget(record.obj):
        budgets = _budgets_of(store, record.obj)
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "InternalError", message)
        for budget in budgets:
            _take_disruption(store, budget, name)
    store.delete_record(_PODS, record, options)
    return _SUCCESS


def _counts_against_budget(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed", "Pending") and "deletionTimestamp" not in pod["metadata"]


def _budgets_of(store: Store, pod: Json) -> list[Record]:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    return [
        record
        for (namespace, _), record in store.collection(_BUDGETS).records.items()
        if namespace == metadata["namespace"]
        and (selector := (record.obj.get("spec") or {}).get("selector")) is not None
        and match_label_selector(selector, labels)
    ]


def _take_disruption(store: Store, budget: Record, pod_name: str) -> None:
    status = budget.obj.get("status") or {}
    disruptions_allowed = status.get("disruptionsAllowed", 0)
    if disruptions_allowed <= 0:
        name = budget.obj["metadata"]["name"]
        needs = f"needs {status.get('desiredHealthy', 0)} healthy pods and has {status.get('currentHealthy', 0)}"
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        cause = Cause("", f"The disruption budget {name} {needs} currently", "DisruptionBudget")
        # No Retry-After: kubectl drain would wait ten times that long, inside one request, before it prints anything.
        raise too_many_requests(message, None, [cause])
    disrupted = (status.get("disruptedPods") or {}) | {pod_name: timestamp(store.now())}
    new_status = status | {"disruptionsAllowed": disruptions_allowed - 1, "disruptedPods": disrupted}
    metadata = dict(budget.obj["metadata"])
    store.replace_record(_BUDGETS, budget, budget.obj | {"metadata": metadata, "status": new_status})
