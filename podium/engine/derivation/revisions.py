"""Reads off workloads and their pods which templates are older, and which pods were refused."""

from __future__ import annotations

from typing import Any, Final

from podium.engine.derivation.control_objects import ControlObjects, items_at, mapping_at
from podium.engine.derivation.pods import REVISION
from podium.engine.derivation.workload_parts import GENERATION_LABEL, WorkloadId, template_from
from podium.engine.manifests import Manifest
from podium.objects.core import Pod

_GENERATION: Final = "deprecated.daemonset.template.generation"


def is_of_older_template(pod: Pod, workload: Manifest) -> bool:
    """Return whether the pod's labels name an older revision than that of its StatefulSet or DaemonSet."""
    if workload.get("kind") == "StatefulSet":
        pod_revision, newest = pod.metadata.labels.get(REVISION), mapping_at(workload, "status").get("updateRevision")
    else:
        pod_revision = pod.metadata.labels.get(GENERATION_LABEL)
        newest = mapping_at(workload, "metadata", "annotations").get(_GENERATION)
    return bool(pod_revision and newest) and pod_revision != newest


def named_template(kind: str, pod: Pod, objects: ControlObjects) -> dict[str, Any]:
    """Derive a pod template from a pod, with the name of its PriorityClass instead of the priority."""
    template = template_from(kind, pod)
    priority = template["spec"].pop("priority", None)
    classes = objects.of_kind("PriorityClass")
    class_name = next(
        (name for name, priority_class in classes.items() if priority_class.get("value") == priority), None
    )
    if class_name is not None:
        template["spec"]["priorityClassName"] = class_name
    elif priority is not None and not classes:
        template["spec"]["priority"] = priority
    return template


def refused_workloads(objects: ControlObjects) -> list[WorkloadId]:
    """Return the workloads whose conditions say that the API server refuses their pods."""
    return [
        (kind, key)
        for kind in ("ReplicaSet", "ReplicationController")
        for key, workload in objects.of_kind(kind).items()
        for condition in items_at(workload, "status", "conditions")
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True"
    ]
