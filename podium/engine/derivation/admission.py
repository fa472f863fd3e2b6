"""Admits new objects like the API server: the parts of admission that affect scheduling.

This concerns objects without a uid, which no API server has admitted. Admitted objects only get missing defaults, since
dumps may be cut down: a LimitRange or RuntimeClass that was created later does not change them.

Source: kubernetes v1.36.2, pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go,
plugin/pkg/admission/{priority,runtimeclass,defaulttolerationseconds,storage/storageclass/setdefault}.
Differs: ResourceQuotas, webhooks and admission policies are not consulted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from podium.engine.derivation.control_objects import ControlObjects, items_at, mapping_at, namespace_of
from podium.engine.derivation.label_keys import with_label_keys
from podium.engine.derivation.limit_ranges import join_reasons, limit_range_refusals, with_limit_defaults
from podium.engine.derivation.pod_validation import invalid_fields
from podium.engine.derivation.runtime_classes import runtime_class_refusal, with_runtime_class
from podium.engine.derivation.workload_kinds import has_template
from podium.engine.errors import ManifestError
from podium.engine.manifests import Manifest
from podium.objects.pod_defaults import with_pod_defaults
from podium.objects.resource_types import NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, POD_GROUPS, PODS, ResourceType
from podium.objects.wire import without_nulls

_BUILT_IN_PRIORITIES: Final[Mapping[str, Manifest]] = {
    "system-cluster-critical": {"value": 2_000_000_000},
    "system-node-critical": {"value": 2_000_001_000},
}
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_PARTS: Final = ("metadata", "spec", "status")
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NODE_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class RefusedError(ManifestError):
    """The API server would refuse the object."""


class Admission:
    """Admits objects as the API server of one cluster does on their creation.

    Args:
        objects: all objects of the cluster, or at least those that derivation reads.
    """

    def __init__(self, objects: Iterable[Manifest] | ControlObjects) -> None:
        self.objects = objects if isinstance(objects, ControlObjects) else ControlObjects(objects, has_template)
        self._fill: Mapping[ResourceType[Any], Callable[[dict[str, Any]], dict[str, Any]]] = {
            PODS: self._pod,
            NODES: _node,
            NAMESPACES: _namespace,
            PERSISTENT_VOLUME_CLAIMS: self._claim,
            POD_GROUPS: self._pod_group,
        }

    def admit(self, manifest: Manifest, resource: ResourceType[Any]) -> Manifest:
        """Return the object with its missing fields filled in. Malformed fields are left for the decoder to report."""
        fill = self._fill.get(resource)
        if fill is None or any(not isinstance(manifest.get(field) or {}, dict) for field in _PARTS):
            return manifest
        return fill(cast(dict[str, Any], without_nulls(manifest)))

    def demand_admission(self, pod: Manifest) -> None:
        """Refuse a pod that the API server would refuse.

        Raises:
            RefusedError: the message is the API server's.
        """
        if is_admitted(pod):
            # Admission runs once, on creation; what exists is allowed to break rules that are newer.
            return
        spec, admitted_spec = mapping_at(pod, "spec"), mapping_at(self.admit(pod, PODS), "spec")
        mutating = (self._priority_refusal(pod), runtime_class_refusal(spec, self._runtime_class(pod)))
        demand_allowed(pod, next(filter(None, mutating), ""))
        if invalid := invalid_fields(spec, admitted_spec, mapping_at(pod, "metadata", "labels")):
            name = mapping_at(pod, "metadata").get("name") or ""
            raise RefusedError(f'Pod "{name}" is invalid: {join_reasons(invalid)}')
        demand_allowed(pod, limit_range_refusals(admitted_spec, self._limit_ranges(pod)))

    def missing_kinds(self, pod: Manifest) -> list[str]:
        """Return the plurals of the kinds of objects that the pod names and of which no object is known."""
        spec = mapping_at(pod, "spec")
        names: dict[str, bool] = {
            "PriorityClass": self._names_unknown_class(spec) and spec.get("priority") is None,
            "RuntimeClass": bool(spec.get("runtimeClassName")) and not is_admitted(pod),
            "ResourceClaimTemplate": any(
                claim.get("resourceClaimTemplateName") for claim in items_at(spec, "resourceClaims")
            )
            and not mapping_at(pod, "status").get("resourceClaimStatuses"),
        }
        return [_PLURALS[kind] for kind, is_named in names.items() if is_named and self.objects.is_unknown(kind)]

    # ------------------------------------------------------------ pods

    def _pod(self, pod: dict[str, Any]) -> dict[str, Any]:
        spec = with_pod_defaults(mapping_at(pod, "spec"))
        is_new = not is_admitted(pod)
        if is_new:
            spec = with_limit_defaults(spec, self._limit_ranges(pod))
        priority_class = self._priority_class(spec)
        if priority_class is not None:
            spec.setdefault("priority", priority_class.get("value"))
            if priority_class.get("preemptionPolicy") is not None:
                spec.setdefault("preemptionPolicy", priority_class["preemptionPolicy"])
        if is_new:
            spec = with_runtime_class(spec, self._runtime_class(pod))
            spec = with_label_keys(spec, mapping_at(pod, "metadata", "labels"))
        return {**pod, "spec": spec}

    def _pod_group(self, group: dict[str, Any]) -> dict[str, Any]:
        priority_class = self._priority_class(spec := {**mapping_at(group, "spec")})
        if priority_class is not None:
            spec.setdefault("priority", priority_class.get("value"))
        return {**group, "spec": spec}

    def _priority_class(self, spec: Mapping[str, Any]) -> Manifest | None:
        name = spec.get("priorityClassName")
        if isinstance(name, str) and name:
            return self.objects.get("PriorityClass", name) or _BUILT_IN_PRIORITIES.get(name)
        if "priority" in spec:
            return None
        defaults = [item for item in self.objects.of_kind("PriorityClass").values() if item.get("globalDefault")]
        # Only one may be the default; if there are more, the API server takes the smallest.
        return min(defaults, key=lambda item: item.get("value") or 0, default=None)

    def _names_unknown_class(self, spec: Mapping[str, Any]) -> bool:
        name = spec.get("priorityClassName")
        return isinstance(name, str) and bool(name) and self._priority_class(spec) is None

    def _priority_refusal(self, pod: Manifest) -> str:
        spec = mapping_at(pod, "spec")
        if self._names_unknown_class(spec):
            is_known = not self.objects.is_unknown("PriorityClass")
            return f"no PriorityClass with name {spec['priorityClassName']} was found" if is_known else ""
        priority_class, pod_priority = self._priority_class(spec), spec.get("priority")
        priority = 0 if priority_class is None else priority_class.get("value")
        if pod_priority is not None and pod_priority != priority and not self.objects.is_unknown("PriorityClass"):
            return (
                f"the integer value of priority ({pod_priority}) must not be provided in pod spec; priority admission "
                f"controller computed {priority} from the given PriorityClass name"
            )
        return ""

    def _runtime_class(self, pod: Manifest) -> Manifest | None:
        """Return the pod's RuntimeClass; an empty one if only others exist; None if no RuntimeClass is known."""
        name = mapping_at(pod, "spec").get("runtimeClassName")
        if not isinstance(name, str) or not name or self.objects.is_unknown("RuntimeClass"):
            return None
        return self.objects.get("RuntimeClass", name) or {}

    def _limit_ranges(self, pod: Manifest) -> list[Manifest]:
        return self.objects.in_namespace("LimitRange", namespace_of(pod))

    # ------------------------------------------------------------ claims

    def _claim(self, claim: dict[str, Any]) -> dict[str, Any]:
        """Set the default StorageClass of a claim that names none, in neither the field nor the beta annotation."""
        spec = dict(mapping_at(claim, "spec"))
        has_class = "storageClassName" in spec or _BETA_CLASS in mapping_at(claim, "metadata", "annotations")
        if is_admitted(claim) or has_class:
            return claim
        defaults = [item for item in self.objects.of_kind("StorageClass").values() if _is_default_class(item)]
        if not defaults:
            return claim
        # KEP-3333: of several default classes the newest counts, and of equally old ones the first by name.
        newest = max(str(mapping_at(item, "metadata").get("creationTimestamp") or "") for item in defaults)
        names = [
            str(metadata["name"])
            for item in defaults
            if str((metadata := mapping_at(item, "metadata")).get("creationTimestamp") or "") == newest
        ]
        return {**claim, "spec": {**spec, "storageClassName": min(names)}}


_PLURALS: Final = {
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}


def demand_allowed(pod: Manifest, reason: str) -> None:
    """Refuse the pod if there is a reason. Raises: RefusedError: the reason is not ""."""
    if reason:
        metadata = mapping_at(pod, "metadata")
        name = metadata.get("name") or metadata.get("generateName") or ""
        raise RefusedError(f'pods "{name}" is forbidden: {reason}')


def is_admitted(manifest: Manifest) -> bool:
    """Return whether an API server has made the object: it has a uid or a time of creation."""
    metadata = mapping_at(manifest, "metadata")
    return bool(metadata.get("uid") or metadata.get("creationTimestamp"))


def _is_default_class(storage_class: Manifest) -> bool:
    annotations = mapping_at(storage_class, "metadata", "annotations")
    return any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)


def with_node_lost_tolerations(pod: Manifest) -> Manifest:
    """Return the pod with tolerations of unready and unreachable nodes for five minutes, unless it has others for them.

    This is only for pods that are created. Edits of a pod refer to the original manifest instead.
    """
    spec = mapping_at(pod, "spec")
    tolerations = spec.get("tolerations") or []
    if is_admitted(pod) or not isinstance(tolerations, list) or not isinstance(pod.get("spec"), Mapping):
        return pod
    matching_tolerations = [
        item for item in tolerations if isinstance(item, Mapping) and item.get("effect") in (None, "", "NoExecute")
    ]
    missing = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in _NODE_LOST
        if not any(item.get("key") in (None, "", key) for item in matching_tolerations)
    ]
    return {**pod, "spec": {**spec, "tolerations": [*tolerations, *missing]}} if missing else pod


def _node(node: dict[str, Any]) -> dict[str, Any]:
    """Set `allocatable` to `capacity` if a node only reports the latter."""
    status = mapping_at(node, "status")
    # The kubelet reports both; manifests written by hand often only have the capacity.
    if status.get("allocatable") or not status.get("capacity"):
        return node
    return {**node, "status": {**status, "allocatable": status["capacity"]}}


def _namespace(namespace: dict[str, Any]) -> dict[str, Any]:
    metadata = mapping_at(namespace, "metadata")
    labels = {**mapping_at(metadata, "labels"), _NAME_LABEL: metadata.get("name")}
    return {**namespace, "metadata": {**metadata, "labels": labels}}
