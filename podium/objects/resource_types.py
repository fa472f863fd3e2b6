"""The resources that podium watches.

Owns how each is addressed and decoded. Adding a kind takes one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from podium.objects.claims import ResourceClaim
from podium.objects.core import Node, Pod
from podium.objects.coscheduling import CoschedulingPodGroup
from podium.objects.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from podium.objects.meta import NamespacedObject, ObjectMeta
from podium.objects.pod_groups import PodGroup
from podium.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from podium.objects.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class KubeObject(Protocol):
    """What reflectors and stores need of an object."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, uid and resource version."""
        ...

    @property
    def key(self) -> str:
        """`<namespace>/<name>`, or the name if there is no namespace."""
        ...


ObjectT = TypeVar("ObjectT", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class ResourceType(Generic[ObjectT]):
    """A kind, the path of its collection, and the type that its objects are decoded to."""

    kind: str
    path: str
    type: type[ObjectT]
    field_selector: str = ""

    @property
    def plural(self) -> str:
        """The resource's name in paths, rules and logs."""
        return self.path.rpartition("/")[2]

    @property
    def group(self) -> str:
        """The API group, "" for the core one."""
        parts = self.path.split("/")
        return parts[2] if parts[1] == "apis" else ""

    @property
    def api_version(self) -> str:
        """Group and version, as an object's `apiVersion` says them."""
        return self.path[1:].partition("/")[2].rpartition("/")[0]

    @property
    def is_namespaced(self) -> bool:
        """Whether each object is in a namespace."""
        return issubclass(self.type, NamespacedObject)

    def object_path(self, item: KubeObject) -> str:
        """The path of one object. Valid names need no percent-encoding."""
        base, _, plural = self.path.rpartition("/")
        namespace = item.metadata.namespace
        place = f"{base}/namespaces/{namespace}" if namespace else base
        return f"{place}/{plural}/{item.metadata.name}"


PODS = ResourceType("Pod", "/api/v1/pods", Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")
NODES = ResourceType("Node", "/api/v1/nodes", Node)
NAMESPACES = ResourceType("Namespace", "/api/v1/namespaces", Namespace)
SERVICES = ResourceType("Service", "/api/v1/services", Service)
REPLICATION_CONTROLLERS = ResourceType("ReplicationController", "/api/v1/replicationcontrollers", ReplicationController)
REPLICA_SETS = ResourceType("ReplicaSet", "/apis/apps/v1/replicasets", ReplicaSet)
STATEFUL_SETS = ResourceType("StatefulSet", "/apis/apps/v1/statefulsets", StatefulSet)
POD_DISRUPTION_BUDGETS = ResourceType(
    "PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets", PodDisruptionBudget
)
PERSISTENT_VOLUMES = ResourceType("PersistentVolume", "/api/v1/persistentvolumes", PersistentVolume)
PERSISTENT_VOLUME_CLAIMS = ResourceType(
    "PersistentVolumeClaim", "/api/v1/persistentvolumeclaims", PersistentVolumeClaim
)
STORAGE_CLASSES = ResourceType("StorageClass", "/apis/storage.k8s.io/v1/storageclasses", StorageClass)
CSI_NODES = ResourceType("CSINode", "/apis/storage.k8s.io/v1/csinodes", CSINode)
CSI_DRIVERS = ResourceType("CSIDriver", "/apis/storage.k8s.io/v1/csidrivers", CSIDriver)
CSI_STORAGE_CAPACITIES = ResourceType(
    "CSIStorageCapacity", "/apis/storage.k8s.io/v1/csistoragecapacities", CSIStorageCapacity
)
VOLUME_ATTACHMENTS = ResourceType("VolumeAttachment", "/apis/storage.k8s.io/v1/volumeattachments", VolumeAttachment)
DEVICE_CLASSES = ResourceType("DeviceClass", "/apis/resource.k8s.io/v1/deviceclasses", DeviceClass)
RESOURCE_CLAIMS = ResourceType("ResourceClaim", "/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim)
RESOURCE_SLICES = ResourceType("ResourceSlice", "/apis/resource.k8s.io/v1/resourceslices", ResourceSlice)
DEVICE_TAINT_RULES = ResourceType("DeviceTaintRule", "/apis/resource.k8s.io/v1beta2/devicetaintrules", DeviceTaintRule)
POD_GROUPS = ResourceType("PodGroup", "/apis/scheduling.k8s.io/v1alpha2/podgroups", PodGroup)
COSCHEDULING_POD_GROUPS = ResourceType("PodGroup", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", CoschedulingPodGroup)

ALL: tuple[ResourceType[Any], ...] = (
    PODS,
    NODES,
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    POD_DISRUPTION_BUDGETS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    DEVICE_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    DEVICE_TAINT_RULES,
    POD_GROUPS,
    COSCHEDULING_POD_GROUPS,
)
"""Every kind that podium can read."""

WITHOUT_GATES: tuple[ResourceType[Any], ...] = tuple(
    each for each in ALL if each not in (DEVICE_TAINT_RULES, POD_GROUPS, COSCHEDULING_POD_GROUPS)
)
"""The kinds that API servers serve with their feature gates as they are by default, and without custom resources."""
