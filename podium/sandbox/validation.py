"""Validate objects, to refuse those that no API server would store.

Differs: far fewer rules than upstream. An invalid quantity is 422 with its field; upstream answers 400.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from podium.sandbox.defaults import exact_requests
from podium.sandbox.errors import Cause, bad_request
from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.pod_validation import misfit_amounts, misused_label_keys
from podium.sandbox.quantities import parse_quantity
from podium.sandbox.resources import ResourceType
from podium.sandbox.selectors import match_label_selector

Json = dict[str, Any]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_RBAC_NAME = re.compile(r"[^/%]+")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_CHANGEABLE_POD_FIELDS = {
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
    "tolerations",
    "schedulingGates",
    "containers",
    "initContainers",
}
_CHANGEABLE_WHILE_GATED = {"nodeSelector", "affinity"}


# path -> the required JSON type of the field if it is present; `list` means a list of objects
_SHAPES: dict[tuple[str, ...], type] = {
    ("metadata",): dict,
    ("metadata", "labels"): dict,
    ("metadata", "annotations"): dict,
    ("spec",): dict,
    ("status",): dict,
    ("status", "capacity"): dict,
    ("status", "conditions"): list,
    ("spec", "containers"): list,
    ("spec", "initContainers"): list,
    ("spec", "tolerations"): list,
    ("spec", "taints"): list,
    ("spec", "selector"): dict,
    ("spec", "selector", "matchLabels"): dict,
    ("spec", "selector", "matchExpressions"): list,
    ("spec", "strategy"): dict,
    ("spec", "template"): dict,
    ("spec", "template", "metadata"): dict,
    ("spec", "template", "metadata", "labels"): dict,
    ("spec", "template", "spec"): dict,
    ("spec", "template", "spec", "containers"): list,
    ("spec", "template", "spec", "initContainers"): list,
    ("spec", "resourceClaims"): list,
    ("spec", "template", "spec", "resourceClaims"): list,
}
_SHAPES_BY_STORAGE: dict[str, dict[tuple[str, ...], type]] = {
    "pods": {
        ("status", "resourceClaimStatuses"): list,
        ("status", "extendedResourceClaimStatus"): dict,
        ("spec", "affinity"): dict,
        ("spec", "nodeSelector"): dict,
        ("spec", "overhead"): dict,
        ("spec", "resources"): dict,
        ("spec", "topologySpreadConstraints"): list,
        ("spec", "volumes"): list,
    },
    "limitranges": {("spec", "limits"): list},
    "runtimeclasses.node.k8s.io": {
        ("overhead",): dict,
        ("overhead", "podFixed"): dict,
        ("scheduling",): dict,
        ("scheduling", "nodeSelector"): dict,
        ("scheduling", "tolerations"): list,
    },
    "statefulsets.apps": {("spec", "volumeClaimTemplates"): list, ("spec", "updateStrategy"): dict},
    "daemonsets.apps": {("spec", "updateStrategy"): dict},
    "resourceclaims.resource.k8s.io": {
        ("spec", "devices"): dict,
        ("spec", "devices", "requests"): list,
        ("status", "reservedFor"): list,
    },
    "resourceclaimtemplates.resource.k8s.io": {
        ("spec", "metadata"): dict,
        ("spec", "spec"): dict,
        ("spec", "spec", "devices"): dict,
        ("spec", "spec", "devices", "requests"): list,
    },
}


def check_shape(resource: ResourceType, obj: Json) -> None:
    """Refuse an object that cannot be decoded to its type.

    Raises:
        ApiError: 400, with the path of the first wrong field.
    """
    # Before anything reads the object: defaults and admission rely on these shapes.
    for path, shape in (_SHAPES | _SHAPES_BY_STORAGE.get(resource.storage, {})).items():
        value: object = obj
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        misfit = value is not None and not isinstance(value, shape)
        if misfit or (isinstance(value, list) and not all(isinstance(item, dict) for item in value)):
            name = "object" if shape is dict else "list of objects"
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"{'.'.join(path)} is no {name}"
            )


def mapping(body: Json, field: str) -> Json:
    """Return the field of a body, which must be an object. An absent field is empty.

    Raises:
        ApiError: 400.
    """
    value = body.get(field)
    if value is not None and not isinstance(value, dict):
        raise bad_request(f"{field} is not an object")
    return value or {}


def validate(resource: ResourceType, obj: Json) -> list[Cause]:
    """Return all rules that the object violates. If the list is empty, the object may be stored."""
    causes = list(_metadata(resource, obj["metadata"]))
    check = _CHECKS.get(resource.storage)
    if check is not None:
        causes.extend(check(obj))
    if not causes and resource.storage in _WITH_PODS:
        # Only valid amounts can be compared.
        path, spec = ("spec", obj["spec"]) if resource.storage == "pods" else _template(obj)
        causes.extend(misfit_amounts(path, spec))
    return causes


def _template(workload: Json) -> tuple[str, Json]:
    return "spec.template.spec", mapping_at(workload, "spec", "template", "spec")


def validate_pod_update(old: Json, new: Json) -> list[Cause]:
    """Return the immutable fields that an update of a pod changes."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    changeable = set(_CHANGEABLE_POD_FIELDS)
    # KEP-3521 lets a gated pod's placement be narrowed; upstream also checks that it only becomes narrower.
    if old_spec.get("schedulingGates"):
        changeable |= _CHANGEABLE_WHILE_GATED
    changed_fields = {
        name for name in old_spec.keys() | new_spec.keys() if old_spec.get(name) != new_spec.get(name)
    } - changeable
    if _frozen_containers(old_spec) != _frozen_containers(new_spec):
        changed_fields.add("containers")
    message = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    message += "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    message += "existing tolerations),`spec.terminationGracePeriodSeconds`"
    causes = (
        [Cause("spec", f"{message} (changed: {', '.join(sorted(changed_fields))})", "FieldValueForbidden")]
        if changed_fields
        else []
    )
    present = old_spec.get("schedulingGates") or ()
    for index, gate in enumerate(new_spec.get("schedulingGates") or ()):
        # KEP-3521: gates are only ever removed.
        if gate not in present:
            reason = "Forbidden: only deletion is allowed, but found new scheduling gate"
            causes.append(Cause(f"spec.schedulingGates[{index}].name", reason, "FieldValueForbidden"))
    return causes


def validate_claim_update(old: Json, new: Json) -> list[Cause]:
    """Return the immutable fields that an update of a resource claim changes."""
    if old.get("spec") == new.get("spec"):
        return []
    return [Cause("spec", "Invalid value: field is immutable", "FieldValueInvalid")]


def _frozen_containers(spec: Json) -> list[Json]:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return [{name: value for name, value in item.items() if name != "image"} for item in containers]


def _metadata(resource: ResourceType, metadata: Json) -> Iterator[Cause]:
    name = metadata.get("name")
    if not name:
        yield Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")
    elif not isinstance(name, str) or len(name) > 253 or not _name_rule(resource).fullmatch(name):
        reason = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        yield Cause("metadata.name", f'Invalid value: "{name}": {reason}and must start and end with an alphanumeric')
    for key, value in (metadata.get("labels") or {}).items():
        if not _LABEL_NAME.fullmatch(key.rpartition("/")[2]):
            yield Cause("metadata.labels", f'Invalid value: "{key}": name part must be a label name')
        if not isinstance(value, str) or (value and not _LABEL_NAME.fullmatch(value)):
            yield Cause(
                "metadata.labels",
                f'Invalid value: "{value}": a valid label must be an empty string or '
                "consist of alphanumeric characters, '-', '_' or '.'",
            )


def _name_rule(resource: ResourceType) -> re.Pattern[str]:
    # RBAC names may hold colons, such as system:kube-scheduler.
    return _RBAC_NAME if resource.group == "rbac.authorization.k8s.io" else _NAME


def _pod(pod: Json) -> Iterator[Cause]:
    yield from pod_spec("spec", pod["spec"])


def pod_spec(path: str, spec: Json) -> Iterator[Cause]:
    """Validate the pod spec at this path."""
    if not spec.get("containers"):
        yield Cause(f"{path}.containers", "Required value", "FieldValueRequired")
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container(f"{path}.{field}[{index}]", container)
    yield from _quantities(f"{path}.overhead", spec.get("overhead"))
    for resource_field in ("requests", "limits"):
        yield from _quantities(f"{path}.resources.{resource_field}", mapping_at(spec, "resources", resource_field))
    yield from misused_label_keys(path, spec)
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(f"{path}.tolerations[{index}]", toleration)


def _container(path: str, container: Json) -> Iterator[Cause]:
    if not container.get("name"):
        yield Cause(f"{path}.name", "Required value", "FieldValueRequired")
    if not container.get("image"):
        yield Cause(f"{path}.image", "Required value", "FieldValueRequired")
    resources = container.get("resources") or {}
    for field in ("requests", "limits"):
        yield from _quantities(f"{path}.resources.{field}", resources.get(field))


def _toleration(path: str, toleration: Json) -> Iterator[Cause]:
    operator = toleration.get("operator") or "Equal"
    # Lt and Gt are KEP-5471's.
    if operator not in ("Equal", "Exists", "Lt", "Gt"):
        supported = 'supported values: "Equal", "Exists"'
        yield Cause(f"{path}.operator", f'Unsupported value: "{operator}": {supported}', "FieldValueNotSupported")
    if not toleration.get("key") and operator != "Exists":
        yield Cause(f"{path}.operator", "Invalid value: operator must be Exists when `key` is empty")
    if toleration.get("effect", "") not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        yield Cause(f"{path}.effect", f'Unsupported value: "{toleration["effect"]}"', "FieldValueNotSupported")


def _node(node: Json) -> Iterator[Cause]:
    for field in ("capacity", "allocatable"):
        yield from _quantities(f"status.{field}", node["status"].get(field))
    for index, taint in enumerate(node["spec"].get("taints") or ()):
        if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            reason = f'Unsupported value: "{taint.get("effect", "")}"'
            yield Cause(f"metadata.taints[{index}].effect", reason, "FieldValueNotSupported")


def _quantities(path: str, amounts: object) -> Iterator[Cause]:
    for name, value in (amounts if isinstance(amounts, dict) else {}).items():
        try:
            amount = parse_quantity(value)
        except ValueError as error:
            yield Cause(f"{path}[{name}]", f'Invalid value: "{value}": {error}')
            continue
        if amount < 0:
            yield Cause(f"{path}[{name}]", f'Invalid value: "{value}": must be greater than or equal to 0')


def _workload(workload: Json) -> Iterator[Cause]:
    spec = workload["spec"]
    yield from _counts(spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
    selector, template = spec.get("selector") or {}, spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector:
        yield Cause("spec.selector", "Required value", "FieldValueRequired")
    elif not match_label_selector(selector, labels):
        reason = f"Invalid value: {labels}: `selector` does not match template `labels`"
        yield Cause("spec.template.metadata.labels", reason)
    yield from pod_spec("spec.template.spec", template.get("spec") or {})


def _job(job: Json) -> Iterator[Cause]:
    spec = job["spec"]
    yield from _counts(spec, "parallelism", "completions", "backoffLimit")
    template = (spec.get("template") or {}).get("spec") or {}
    if template.get("restartPolicy") not in ("OnFailure", "Never"):
        reason = f'Required value: valid values: "OnFailure", "Never" (found "{template.get("restartPolicy", "")}")'
        yield Cause("spec.template.spec.restartPolicy", reason, "FieldValueRequired")
    yield from pod_spec("spec.template.spec", template)


def _budget(budget: Json) -> Iterator[Cause]:
    spec = budget.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield Cause("spec", "Invalid value: minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        amount = spec.get(name)
        is_share = isinstance(amount, str) and re.fullmatch("[0-9]{1,3}%", amount)
        if amount is not None and not is_share and not _is_count(amount):
            yield Cause(f"spec.{name}", f'Invalid value: "{amount}": a count, or a percentage such as 50%')


def _claim(claim: Json) -> Iterator[Cause]:
    yield from _device_requests("spec", claim["spec"])


def _claim_template(template: Json) -> Iterator[Cause]:
    yield from _device_requests("spec.spec", template["spec"].get("spec") or {})


def _device_requests(path: str, spec: Json) -> Iterator[Cause]:
    """Validate the requests of the claim's spec at this path."""
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        request_path = f"{path}.devices.requests[{index}]"
        if not request.get("name"):
            yield Cause(f"{request_path}.name", "Required value", "FieldValueRequired")
        alternatives = exact_requests(request)
        if not alternatives or (request.get("exactly") and request.get("firstAvailable")):
            reason = "Required value: exactly one of `exactly` or `firstAvailable` is required"
            yield Cause(request_path, reason, "FieldValueRequired")
        for alternative in alternatives:
            if not alternative.get("deviceClassName"):
                yield Cause(f"{request_path}.deviceClassName", "Required value", "FieldValueRequired")
            if alternative["allocationMode"] not in ("ExactCount", "All"):
                reason = f'Unsupported value: "{alternative["allocationMode"]}": supported values: "All", "ExactCount"'
                yield Cause(f"{request_path}.allocationMode", reason, "FieldValueNotSupported")


def _counts(spec: Json, *names: str) -> Iterator[Cause]:
    for name in names:
        amount = spec.get(name)
        if amount is not None and not _is_count(amount):
            yield Cause(f"spec.{name}", f'Invalid value: "{amount}": must be greater than or equal to 0')


# bool is an int in Python.
def _is_count(amount: object) -> bool:
    return isinstance(amount, int) and not isinstance(amount, bool) and amount >= 0


def _limit_range(limit_range: Json) -> Iterator[Cause]:
    for index, item in enumerate(items_at(limit_range, "spec", "limits")):
        path = f"spec.limits[{index}]"
        if item.get("type") not in ("Container", "Pod", "PersistentVolumeClaim"):
            reason = f'Unsupported value: "{item.get("type", "")}"'
            yield Cause(f"{path}.type", reason, "FieldValueNotSupported")
        for field in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"):
            yield from _quantities(f"{path}.{field}", item.get(field))


def _runtime_class(runtime_class: Json) -> Iterator[Cause]:
    if not runtime_class.get("handler"):
        yield Cause("handler", "Required value", "FieldValueRequired")
    yield from _quantities("overhead.podFixed", mapping_at(runtime_class, "overhead", "podFixed"))
    for index, toleration in enumerate(items_at(runtime_class, "scheduling", "tolerations")):
        yield from _toleration(f"scheduling.tolerations[{index}]", toleration)


def _volume_claim(claim: Json) -> Iterator[Cause]:
    yield from _quantities("spec.resources.requests", mapping_at(claim, "spec", "resources", "requests"))


_WITH_PODS = ("pods", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch")
_CHECKS: dict[str, Callable[[Json], Iterator[Cause]]] = {
    "pods": _pod,
    "nodes": _node,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "statefulsets.apps": _workload,
    "daemonsets.apps": _workload,
    "jobs.batch": _job,
    "limitranges": _limit_range,
    "runtimeclasses.node.k8s.io": _runtime_class,
    "persistentvolumeclaims": _volume_claim,
    "poddisruptionbudgets.policy": _budget,
    "resourceclaims.resource.k8s.io": _claim,
    "resourceclaimtemplates.resource.k8s.io": _claim_template,
}
