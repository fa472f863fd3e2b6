"""Reads the parts of workloads and their pods that the controller manager needs: owners, selectors, templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from podium.engine.derivation.control_objects import items_at, mapping_at
from podium.engine.derivation.pods import REVISION, TEMPLATE_HASH
from podium.engine.manifests import Manifest, as_manifest
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector, OwnerReference
from podium.objects.resource_types import PODS
from podium.objects.selectors import NOTHING, Selector, compile_selector, selector_of_labels

GENERATION_LABEL: Final = "pod-template-generation"
"""The label by which a DaemonSet's pods of older templates are told apart."""
_OF_REVISION: Final = (REVISION, GENERATION_LABEL)
_REVISION: Final = "deployment.kubernetes.io/revision"
WorkloadId = tuple[str, str]
"""The kind and key of a workload."""


def template_from(kind: str, pod: Pod) -> dict[str, Any]:
    """Make a pod template from a pod, for pods like it."""
    manifest = as_manifest(PODS, pod)
    spec = {name: value for name, value in mapping_at(manifest, "spec").items() if name != "nodeName"}
    if kind == "DaemonSet":
        spec.pop("affinity", None)
    labels = {key: value for key, value in pod.metadata.labels.items() if key not in _OF_REVISION}
    metadata = {"labels": labels, "annotations": dict(pod.metadata.annotations)}
    return {"metadata": metadata, "spec": spec}


def selector_of(workload: Manifest) -> Selector:
    """Return the selector of the workload; without a valid one, return a selector that matches nothing."""
    selector = mapping_at(workload, "spec").get("selector")
    if not isinstance(selector, Mapping) or not selector:
        return NOTHING
    if workload.get("kind") == "ReplicationController":
        return selector_of_labels(selector)
    try:
        return compile_selector(msgspec.convert(selector, LabelSelector))
    except (msgspec.ValidationError, FieldError):
        return NOTHING


def owner_id(pod: Pod) -> WorkloadId | None:
    """Return the workload that controls the pod; None for a pod without a controller."""
    owner: OwnerReference | None = pod.metadata.controller
    return None if owner is None else (owner.kind, f"{pod.metadata.namespace}/{owner.name}")


def controller_of(workload: Manifest) -> str | None:
    """Return the name of the workload's controller; None without a controller."""
    return next(
        (
            str(reference.get("name"))
            for reference in items_at(workload, "metadata", "ownerReferences")
            if reference.get("controller")
        ),
        None,
    )


def revision_of(replica_set: Manifest) -> tuple[int, str]:
    """Return the sort key of a Deployment's ReplicaSets, the oldest revision first."""
    metadata = mapping_at(replica_set, "metadata")
    text = str(mapping_at(metadata, "annotations").get(_REVISION) or "")
    is_old = bool(metadata.get("uid"))
    return (int(text) if text.isdecimal() else 0 if is_old else 1 << 31), str(metadata.get("creationTimestamp") or "")


def without_hash(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template without the label that its ReplicaSet has added."""
    metadata = mapping_at(template, "metadata")
    labels = {key: value for key, value in mapping_at(metadata, "labels").items() if key != TEMPLATE_HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def only(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields of these names that are set."""
    return {name: content[name] for name in names if name in content}
