"""The objects that derivation reads: workloads, templates, classes and limits, as manifests by kind and key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from podium.engine.manifests import DEFAULT_NAMESPACE, Manifest
from podium.engine.versions import current_form
from podium.objects.core import Pod
from podium.objects.meta import ClusterObject, NamespacedObject
from podium.objects.resource_types import PRIORITY_CLASSES, ResourceType

_CLUSTER_SCOPED: Final = frozenset({"PriorityClass", "RuntimeClass", "StorageClass", "Namespace"})
_GROUPS: Final[Mapping[str, str]] = {
    "PriorityClass": "scheduling.k8s.io",
    "RuntimeClass": "node.k8s.io",
    "StorageClass": "storage.k8s.io",
    "LimitRange": "",
    "ResourceClaimTemplate": "resource.k8s.io",
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "Job": "batch",
    "ReplicationController": "",
    "PodDisruptionBudget": "policy",
    "ResourceQuota": "",
}

CONTROL_RESOURCES: Final = (
    PRIORITY_CLASSES,
    ResourceType("RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses", ClusterObject),
    ResourceType("LimitRange", "/api/v1/limitranges", NamespacedObject),
    ResourceType("ResourceQuota", "/api/v1/resourcequotas", NamespacedObject),
    ResourceType("ResourceClaimTemplate", "/apis/resource.k8s.io/v1/resourceclaimtemplates", NamespacedObject),
    ResourceType("Deployment", "/apis/apps/v1/deployments", NamespacedObject),
    ResourceType("DaemonSet", "/apis/apps/v1/daemonsets", NamespacedObject),
    ResourceType("Job", "/apis/batch/v1/jobs", NamespacedObject),
)
"""The kinds that derivation reads, mostly not schedulers. They are kept as manifests."""


_LIST: Final = "List"


def empty_list(resource: ResourceType[Any]) -> Manifest:
    """Make the empty list of a kind, which says that a running cluster has no objects of it."""
    return {"apiVersion": resource.api_version, "kind": f"{resource.kind}{_LIST}", "metadata": {}}


class ControlObjects:
    """The manifests of one cluster that derivation reads. Other kinds are ignored.

    An empty list of a kind says that the cluster has none, see `empty_list`.

    Args:
        is_kept: which manifests of further kinds are kept.
    """

    def __init__(self, manifests: Iterable[Manifest] = (), is_kept: Callable[[Manifest], bool] | None = None) -> None:
        self._is_kept = is_kept
        self._restarts: dict[str, tuple[int, int]] = {}
        self._latest = ""
        self._by_kind: dict[str, dict[str, Manifest]] = {}
        self._empty: set[str] = set()
        for manifest in manifests:
            self.put(manifest)

    def fork(self, additions: Iterable[Manifest] = ()) -> ControlObjects:
        """Return a copy that can be changed independently, with additional objects."""
        twin = ControlObjects(is_kept=self._is_kept)
        twin._restarts, twin._latest = dict(self._restarts), self._latest
        twin._empty = set(self._empty)
        twin._by_kind = {kind: dict(manifests) for kind, manifests in self._by_kind.items()}
        for manifest in additions:
            twin.put(manifest)
        return twin

    def put(self, manifest: Manifest) -> None:
        """Add an object, or replace the one of its name. Objects without a name are ignored."""
        manifest = current_form(manifest, str(manifest.get("kind")))
        kind, status = manifest.get("kind"), mapping_at(manifest, "status")
        self._note_time(mapping_at(manifest, "metadata"), status)
        if kind == "Pod":
            self._note_restarts(manifest, status)
            return
        if not isinstance(kind, str):
            return
        if kind.endswith(_LIST) and _GROUPS.get(kind.removesuffix(_LIST)) == group_of(manifest):
            # An empty list is knowledge, too: without it, a missing class could be one that was not dumped.
            self._empty.add(kind.removesuffix(_LIST))
        if _GROUPS.get(kind) != group_of(manifest) and (
            kind in _GROUPS or self._is_kept is None or not self._is_kept(manifest)
        ):
            return
        key = key_of(manifest)
        if key:
            self._by_kind.setdefault(kind, {})[key] = manifest

    def drop(self, kind: str, key: str) -> None:
        """Remove an object if it exists."""
        self._by_kind.get(kind, {}).pop(key, None)

    def get(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """Return the object of that name; None if it does not exist."""
        return self._by_kind.get(kind, {}).get(f"{namespace}/{name}" if namespace else name)

    @property
    def latest_time(self) -> str:
        """The latest time in the objects, as an estimate of when they were read; "" if they contain none."""
        return self._latest

    def restarts_of(self, pod: Pod) -> tuple[int, int]:
        """Return the highest numbers of restarts among the pod's containers, and among its sidecars."""
        return self._restarts.get(pod.key, (0, 0))

    def _note_time(self, metadata: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        time = metadata.get("creationTimestamp")
        # Times in RFC 3339 of one zone sort as text, and the API server writes UTC.
        if isinstance(time, str) and time > self._latest:
            self._latest = time
        for condition in items_at(status, "conditions"):
            time = condition.get("lastTransitionTime")
            if isinstance(time, str) and time > self._latest:
                self._latest = time

    def _note_restarts(self, pod: Manifest, status: Mapping[str, Any]) -> None:
        restarts = max([_restarts(item) for item in items_at(status, "containerStatuses")], default=0)
        init_containers = [item for item in items_at(status, "initContainerStatuses") if _restarts(item)]
        sidecars = {
            container.get("name")
            for container in (items_at(pod, "spec", "initContainers") if init_containers else ())
            if container.get("restartPolicy") == "Always"
        }
        most_of_sidecars = max([_restarts(item) for item in init_containers if item.get("name") in sidecars], default=0)
        # Most pods never restart; only the others take space.
        if restarts or most_of_sidecars:
            self._restarts[key_of(pod)] = restarts, most_of_sidecars

    def is_unknown(self, kind: str) -> bool:
        """Return whether no object of the kind is known, so that the files may lack it."""
        return kind not in self._empty and not self._by_kind.get(kind)

    def of_kind(self, kind: str) -> Mapping[str, Manifest]:
        """Return all objects of a kind, by key."""
        return self._by_kind.get(kind, {})

    def in_namespace(self, kind: str, namespace: str) -> list[Manifest]:
        """Return the objects of a kind in one namespace, in order of their names."""
        return [manifest for key, manifest in sorted(self.of_kind(kind).items()) if key.startswith(f"{namespace}/")]


def _restarts(status: Mapping[str, Any]) -> int:
    return count_at(status, "restartCount", default=0)


def is_control_kind(manifest: Manifest) -> bool:
    """Return whether derivation reads objects of this kind."""
    kind = manifest.get("kind")
    return isinstance(kind, str) and _GROUPS.get(kind) == group_of(manifest)


def group_of(manifest: Manifest) -> str:
    """Return the API group of the object, "" for the core one."""
    return str(manifest.get("apiVersion") or "").rpartition("/")[0]


def key_of(manifest: Manifest) -> str:
    """Return `namespace/name`, or the name alone for cluster-scoped kinds; "" if the object has no name."""
    metadata = mapping_at(manifest, "metadata")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        return ""
    return key_in(str(manifest.get("kind")), namespace_of(manifest), name)


def key_in(kind: str, namespace: str, name: str) -> str:
    """Return the key of an object of that kind; cluster-scoped kinds have no namespace."""
    return name if kind in _CLUSTER_SCOPED else f"{namespace}/{name}"


def namespace_of(manifest: Manifest) -> str:
    """Return the namespace of a namespaced object."""
    return str(mapping_at(manifest, "metadata").get("namespace") or DEFAULT_NAMESPACE)


def mapping_at(content: Any, *path: str) -> Mapping[str, Any]:
    """Return the mapping at that path; an empty one if it is absent or malformed."""
    value = _value_at(content, path)
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def items_at(content: Any, *path: str) -> list[Mapping[str, Any]]:
    """Return the mappings in the list at that path; none if it is absent or malformed."""
    value = _value_at(content, path)
    if not value or not isinstance(value, list | tuple):
        return []
    return [item for item in value if type(item) is dict or isinstance(item, Mapping)]


def count_at(content: Any, *path: str, default: int) -> int:
    """Return the number at that path; the default if it is absent or malformed."""
    value = _value_at(content, path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _value_at(content: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        # Checking for the exact type dict takes a tenth of the time of the isinstance check.
        if type(content) is not dict and not isinstance(content, Mapping):
            return None
        content = content.get(name)
    return content
