"""The defaults that the API server fills in: those of the types, and those of its admission plugins.

Source: kubernetes pkg/apis/core/v1/defaults.go, plugin/pkg/admission/{priority,defaulttolerationseconds} (v1.36).
Differs: only the defaults that schedulers and kubectl read; no service account token volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.sandbox.errors import ApiError
from podium.sandbox.quantities import parse_quantity
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]
PriorityLookup = Callable[[str | None], Json | None]  # a class by name; None asks for the global default

_NODE_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def set_defaults(resource: ResourceType, obj: Json) -> None:
    """Fill in the type's defaults in place. A second call changes nothing."""
    setter = _SETTERS.get(resource.storage)
    if setter is not None:
        setter(obj)


def admit_pod(pod: Json, priority_class: PriorityLookup) -> None:
    """Apply admission to a pod that is being created, in place.

    Raises:
        ApiError: 403, its priority class does not exist.
    """
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    found = priority_class(name)
    if name and found is None:
        message = f"no PriorityClass with name {name} was found"
        raise ApiError(403, "Forbidden", f'pods "{pod["metadata"].get("name", "")}" is forbidden: {message}')
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
        spec["priority"] = found.get("value", 0)
        spec.setdefault("preemptionPolicy", found.get("preemptionPolicy", "PreemptLowerPriority"))
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    add_node_lost_tolerations(spec)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
        pod["status"]["conditions"] = [gated | {"lastProbeTime": None, "lastTransitionTime": None}]


def admit_pod_update(pod: Json, before: Json) -> None:
    """Apply admission to an update of a pod, in place: an update cannot remove the priority."""
    spec = pod["spec"]
    for name in ("priority", "preemptionPolicy"):
        if name in (before.get("spec") or {}):
            spec.setdefault(name, before["spec"][name])
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
    """Guaranteed, Burstable or BestEffort, from the containers' cpu and memory."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests = [_computing(container, "requests") for container in containers]
    limits = [_computing(container, "limits") for container in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(len(limit) == 2 and request == limit for request, limit in zip(requests, limits, strict=True)):
        return "Guaranteed"
    return "Burstable"


def _computing(container: Json, which: str) -> Json:
    listed = (container.get("resources") or {}).get(which) or {}
    found = {}
    for name in ("cpu", "memory"):
        try:
            amount = parse_quantity(listed.get(name))
        except ValueError:
            continue
        if amount > 0:
            found[name] = amount
    return found


def _pod(pod: Json) -> None:
    spec = pod.setdefault("spec", {})
    for name, value in (
        ("restartPolicy", "Always"),
        ("dnsPolicy", "ClusterFirst"),
        ("terminationGracePeriodSeconds", 30),
        ("schedulerName", "default-scheduler"),
        ("enableServiceLinks", True),
        ("serviceAccountName", "default"),
    ):
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in _containers(spec):
        _container(container, host_network=bool(spec.get("hostNetwork")))


def _containers(spec: Json) -> Iterable[Json]:
    for field in ("containers", "initContainers"):
        yield from (item for item in spec.get(field) or () if isinstance(item, dict))


def _container(container: Json, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    if isinstance(resources.get("limits"), dict):
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network:
            port.setdefault("hostPort", port.get("containerPort"))


def _node(node: Json) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _namespace(namespace: Json) -> None:
    namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    namespace.setdefault("status", {}).setdefault("phase", "Active")
    labels = namespace["metadata"].setdefault("labels", {})
    labels.setdefault("kubernetes.io/metadata.name", namespace["metadata"].get("name", ""))


def _priority_class(priority_class: Json) -> None:
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _volume_claim(claim: Json) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def _volume(volume: Json) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume.setdefault("status", {}).setdefault("phase", "Pending")


def _storage_class(storage_class: Json) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def _secret(secret: Json) -> None:
    secret.setdefault("type", "Opaque")


def _deployment(deployment: Json) -> None:
    spec = deployment.setdefault("spec", {})
    for name, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
        spec.setdefault(name, value)
    strategy = spec["strategy"] = dict(spec.get("strategy") or {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        limits = {"maxSurge": "25%", "maxUnavailable": "25%"}
        strategy["rollingUpdate"] = limits | (strategy.get("rollingUpdate") or {})


def _replicated(workload: Json) -> None:
    workload.setdefault("spec", {}).setdefault("replicas", 1)


def _job(job: Json) -> None:
    spec = job.setdefault("spec", {})
    if spec.get("parallelism") is None and spec.get("completions") is None:
        spec["completions"] = 1
    for name, value in (("parallelism", 1), ("backoffLimit", 6), ("completionMode", "NonIndexed"), ("suspend", False)):
        spec.setdefault(name, value)


def _resource_claim(claim: Json) -> None:
    devices = claim.setdefault("spec", {}).get("devices") or {}
    for request in devices.get("requests") or ():
        for exact in exact_requests(request):
            exact["allocationMode"] = exact.get("allocationMode") or "ExactCount"
            if exact["allocationMode"] == "ExactCount":
                exact["count"] = exact.get("count") or 1
            for toleration in exact.get("tolerations") or ():
                toleration.setdefault("operator", "Equal")


def _claim_template(template: Json) -> None:
    _resource_claim(template.setdefault("spec", {}))


def exact_requests(request: Json) -> list[Json]:
    """The alternatives of a request for devices: its `exactly`, or its `firstAvailable`."""
    listed = [request.get("exactly"), *(request.get("firstAvailable") or ())]
    return [each for each in listed if isinstance(each, dict)]


_SETTERS: dict[str, Callable[[Json], None]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "persistentvolumeclaims": _volume_claim,
    "persistentvolumes": _volume,
    "storageclasses.storage.k8s.io": _storage_class,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourceclaimtemplates.resource.k8s.io": _claim_template,
    "secrets": _secret,
    "deployments.apps": _deployment,
    "replicasets.apps": _replicated,
    "statefulsets.apps": _replicated,
    "replicationcontrollers": _replicated,
    "jobs.batch": _job,
}
