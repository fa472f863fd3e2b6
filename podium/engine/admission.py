"""The defaults that an API server adds to objects on admission, as far as they affect where a pod goes.

For objects from files that no API server has admitted. Only missing fields are filled, so an admitted object is not
changed.

Source: kubernetes pkg/apis/core/v1/defaults.go, plugin/pkg/admission/priority, v1.36.2.
Differs: tolerations, storage classes and runtime classes that admission plugins would add are not added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from podium.engine.manifests import Manifest
from podium.objects.pod_defaults import with_pod_defaults
from podium.objects.resource_types import NAMESPACES, NODES, PODS, ResourceType
from podium.objects.wire import without_nulls

_BUILT_IN_PRIORITIES: Final = {
    "system-cluster-critical": {"value": 2_000_000_000},
    "system-node-critical": {"value": 2_000_001_000},
}
_NAME_LABEL = "kubernetes.io/metadata.name"


class Admission:
    """Fills in missing fields of objects.

    Args:
        objects: all objects of the cluster; their PriorityClasses are used.
    """

    def __init__(self, objects: Iterable[Manifest]) -> None:
        self._classes: dict[str, Manifest] = {**_BUILT_IN_PRIORITIES}
        self._default_class: Manifest | None = None
        for each in objects:
            if each.get("kind") == "PriorityClass" and isinstance(name := _at(each, "metadata").get("name"), str):
                self._classes[name] = each
                if each.get("globalDefault"):
                    self._default_class = each
        self._fill: Mapping[ResourceType[Any], Callable[[dict[str, Any]], dict[str, Any]]] = {
            PODS: self._pod,
            NODES: _node,
            NAMESPACES: _namespace,
        }

    def admit(self, manifest: Manifest, resource: ResourceType[Any]) -> Manifest:
        """The object with its missing fields filled in. Malformed fields are left for the decoder to report."""
        fill = self._fill.get(resource)
        is_broken = any(not isinstance(manifest.get(field) or {}, dict) for field in ("metadata", "spec", "status"))
        return manifest if fill is None or is_broken else fill(without_nulls(dict(manifest)))

    def lacks_priority_class(self, pod: Manifest) -> bool:
        """Whether the pod names a PriorityClass that does not exist."""
        spec = _at(pod, "spec")
        name = spec.get("priorityClassName")
        return isinstance(name, str) and bool(name) and name not in self._classes and spec.get("priority") is None

    def _pod(self, pod: dict[str, Any]) -> dict[str, Any]:
        spec = with_pod_defaults(_at(pod, "spec"))
        name = spec.get("priorityClassName")
        priority_class = self._classes.get(name) if isinstance(name, str) and name else self._default_class
        if priority_class is not None:
            spec.setdefault("priority", priority_class.get("value"))
            if priority_class.get("preemptionPolicy") is not None:
                spec.setdefault("preemptionPolicy", priority_class["preemptionPolicy"])
        return {**pod, "spec": spec}


def _node(node: dict[str, Any]) -> dict[str, Any]:
    """Set `allocatable` to `capacity` if a node only reports the latter."""
    status = _at(node, "status")
    if status.get("allocatable") or not status.get("capacity"):
        return node
    return {**node, "status": {**status, "allocatable": status["capacity"]}}


def _namespace(namespace: dict[str, Any]) -> dict[str, Any]:
    metadata = _at(namespace, "metadata")
    labels = {**_at(metadata, "labels"), _NAME_LABEL: metadata.get("name")}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def _at(content: Manifest, field: str) -> dict[str, Any]:
    """The object in that field; an empty one if it is absent."""
    found = content.get(field)
    return found if isinstance(found, dict) else {}
