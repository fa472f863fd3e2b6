"""The defaults of the types, which the API server fills in as it decodes an object.

Source: kubernetes pkg/apis/core/v1/defaults.go (v1.36).
Differs: only the defaults that schedulers and kubectl read; no service account token volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.sandbox.amounts import container_sums, is_hugepages, is_pod_level
from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]


def set_defaults(resource: ResourceType, obj: Json) -> None:
    """Fill in the type's defaults in place. A second call changes nothing."""
    setter = _SETTERS.get(resource.storage)
    if setter is not None:
        setter(obj)


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
    if mapping_at(spec, "resources"):
        _pod_level(spec)


def _pod_level(spec: Json) -> None:
    """Complete pod-level resources that are given in part.

    A hugepages limit defaults to the containers' sum. If there is any limit, the requests of cpu and memory default to
    the containers' sums, and what is still missing then to the limits.
    """
    limits, requests = (dict(mapping_at(spec, "resources", field)) for field in ("limits", "requests"))
    if not limits and not requests:
        return
    try:
        sums, limit_sums = container_sums(spec, "requests"), container_sums(spec, "limits")
    except ValueError:
        return  # Validation names the field.
    for name, amount in limit_sums.items():
        # Huge pages cannot be overcommitted, so the pod's limit is what its containers may use.
        if is_hugepages(name) and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        of_containers = {name: amount for name, amount in sums.items() if name in ("cpu", "memory")}
        of_limits = {name: amount for name, amount in limits.items() if is_pod_level(name)}
        requests = of_limits | of_containers | requests
    filled_fields = {field: amounts for field, amounts in (("limits", limits), ("requests", requests)) if amounts}
    spec["resources"] = spec["resources"] | filled_fields


def _containers(spec: Json) -> Iterable[Json]:
    for field in ("containers", "initContainers"):
        yield from (item for item in spec.get(field) or () if isinstance(item, dict))


def _container(container: Json, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    # A digest names one image for good, so pulling it again would be in vain.
    latest = "@" not in image and tag in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    if isinstance(resources.get("limits"), dict):
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network:
            # With hostNetwork the container's ports are the node's.
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


def _limit_range(limit_range: Json) -> None:
    """Complete the items for containers: from max to default to defaultRequest, then from min."""
    for item in items_at(limit_range, "spec", "limits"):
        if item.get("type") == "Container":
            limits = mapping_at(item, "max") | mapping_at(item, "default")
            item["defaultRequest"] = mapping_at(item, "min") | limits | mapping_at(item, "defaultRequest")
            item["default"] = limits


def _deployment(deployment: Json) -> None:
    spec = deployment.setdefault("spec", {})
    for name, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
        spec.setdefault(name, value)
    strategy = spec["strategy"] = dict(spec.get("strategy") or {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        limits = {"maxSurge": "25%", "maxUnavailable": "25%"}
        strategy["rollingUpdate"] = limits | (strategy.get("rollingUpdate") or {})


def _stateful_set(stateful_set: Json) -> None:
    spec = stateful_set.setdefault("spec", {})
    for name, value in (("replicas", 1), ("podManagementPolicy", "OrderedReady"), ("revisionHistoryLimit", 10)):
        spec.setdefault(name, value)
    strategy = spec["updateStrategy"] = dict(mapping_at(spec, "updateStrategy"))
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0} | mapping_at(strategy, "rollingUpdate")
    retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    spec["persistentVolumeClaimRetentionPolicy"] = retention | mapping_at(spec, "persistentVolumeClaimRetentionPolicy")


def _daemon_set(daemon_set: Json) -> None:
    spec = daemon_set.setdefault("spec", {})
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec["updateStrategy"] = dict(mapping_at(spec, "updateStrategy"))
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        limits = {"maxUnavailable": 1, "maxSurge": 0}
        strategy["rollingUpdate"] = limits | mapping_at(strategy, "rollingUpdate")


def _default_replicas(workload: Json) -> None:
    workload.setdefault("spec", {}).setdefault("replicas", 1)


def _job(job: Json) -> None:
    spec = job.setdefault("spec", {})
    # Both absent means one pod; either alone leaves the other open.
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
    """Return the alternatives of a request for devices: its `exactly`, or its `firstAvailable`."""
    alternatives = [request.get("exactly"), *(request.get("firstAvailable") or ())]
    return [alternative for alternative in alternatives if isinstance(alternative, dict)]


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
    "limitranges": _limit_range,
    "deployments.apps": _deployment,
    "replicasets.apps": _default_replicas,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "replicationcontrollers": _default_replicas,
    "jobs.batch": _job,
}
