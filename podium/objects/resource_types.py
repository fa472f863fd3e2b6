"""The resources that podium watches: one row for each.

Owns how each is addressed and decoded, which cluster event its changes are, and behind which feature gate API servers
serve it. Its handler and its rights follow from its row.
"""

from __future__ import annotations

import enum
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
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class EventResource(enum.Enum):
    """The kind of object that changed; values are upstream's names."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COSCHEDULING_POD_GROUP = "scheduling.x-k8s.io/PodGroup"
    NODE_METRICS = "podium/NodeMetricsReport"
    WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class CustomEventResource:
    """The objects of a CustomResourceDefinition that changed; the value is `<plural>.<version>.<group>`."""

    value: str


class KubeObject(Protocol):
    """The attributes that reflectors and stores require of an object."""

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
    """A kind, the path of its collection, and the type that its objects are decoded to.

    Attributes:
        event: what its changes are for pods that wait; None if no pod waits for them.
        gate: the feature gate without which no API server serves it; `CUSTOM` for a custom resource, `ON_REQUEST` for a
            kind that only plugins outside the default set read.
        is_local: no API server has it, so nothing watches it: podium stores what it has found out by itself.
    """

    kind: str
    path: str
    type: type[ObjectT]
    field_selector: str = ""
    event: EventResource | CustomEventResource | None = None
    gate: str = ""
    is_local: bool = False

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
        """Objects of this type belong to a namespace."""
        return issubclass(self.type, NamespacedObject)

    def object_path(self, item: KubeObject) -> str:
        """Return the path of one object. Valid names need no percent-encoding."""
        base, _, plural = self.path.rpartition("/")
        namespace = item.metadata.namespace
        place = f"{base}/namespaces/{namespace}" if namespace else base
        return f"{place}/{plural}/{item.metadata.name}"


CUSTOM = "CustomResourceDefinition"
ON_REQUEST = "on request"

PODS = ResourceType(
    "Pod", "/api/v1/pods", Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed", event=EventResource.POD
)
NODES = ResourceType("Node", "/api/v1/nodes", Node, event=EventResource.NODE)
NAMESPACES = ResourceType("Namespace", "/api/v1/namespaces", Namespace)
SERVICES = ResourceType("Service", "/api/v1/services", Service)
REPLICATION_CONTROLLERS = ResourceType("ReplicationController", "/api/v1/replicationcontrollers", ReplicationController)
REPLICA_SETS = ResourceType("ReplicaSet", "/apis/apps/v1/replicasets", ReplicaSet)
STATEFUL_SETS = ResourceType("StatefulSet", "/apis/apps/v1/statefulsets", StatefulSet)
POD_DISRUPTION_BUDGETS = ResourceType(
    "PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets", PodDisruptionBudget
)
PERSISTENT_VOLUMES = ResourceType(
    "PersistentVolume", "/api/v1/persistentvolumes", PersistentVolume, event=EventResource.PERSISTENT_VOLUME
)
PERSISTENT_VOLUME_CLAIMS = ResourceType(
    "PersistentVolumeClaim",
    "/api/v1/persistentvolumeclaims",
    PersistentVolumeClaim,
    event=EventResource.PERSISTENT_VOLUME_CLAIM,
)
STORAGE_CLASSES = ResourceType(
    "StorageClass", "/apis/storage.k8s.io/v1/storageclasses", StorageClass, event=EventResource.STORAGE_CLASS
)
CSI_NODES = ResourceType("CSINode", "/apis/storage.k8s.io/v1/csinodes", CSINode, event=EventResource.CSI_NODE)
CSI_DRIVERS = ResourceType("CSIDriver", "/apis/storage.k8s.io/v1/csidrivers", CSIDriver, event=EventResource.CSI_DRIVER)
CSI_STORAGE_CAPACITIES = ResourceType(
    "CSIStorageCapacity",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    CSIStorageCapacity,
    event=EventResource.CSI_STORAGE_CAPACITY,
)
VOLUME_ATTACHMENTS = ResourceType(
    "VolumeAttachment",
    "/apis/storage.k8s.io/v1/volumeattachments",
    VolumeAttachment,
    event=EventResource.VOLUME_ATTACHMENT,
)
DEVICE_CLASSES = ResourceType(
    "DeviceClass", "/apis/resource.k8s.io/v1/deviceclasses", DeviceClass, event=EventResource.DEVICE_CLASS
)
RESOURCE_CLAIMS = ResourceType(
    "ResourceClaim", "/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim, event=EventResource.RESOURCE_CLAIM
)
RESOURCE_SLICES = ResourceType(
    "ResourceSlice", "/apis/resource.k8s.io/v1/resourceslices", ResourceSlice, event=EventResource.RESOURCE_SLICE
)
DEVICE_TAINT_RULES = ResourceType(
    "DeviceTaintRule", "/apis/resource.k8s.io/v1beta2/devicetaintrules", DeviceTaintRule, gate="DRADeviceTaintRules"
)
POD_GROUPS = ResourceType(
    "PodGroup",
    "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    PodGroup,
    event=EventResource.POD_GROUP,
    gate="GenericWorkload",
)
PRIORITY_CLASSES = ResourceType(
    "PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass, gate=ON_REQUEST
)
COSCHEDULING_POD_GROUPS = ResourceType(
    "PodGroup",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    CoschedulingPodGroup,
    event=EventResource.COSCHEDULING_POD_GROUP,
    gate=CUSTOM,
)

ALL: tuple[ResourceType[Any], ...] = tuple(value for value in vars().values() if isinstance(value, ResourceType))
"""Every kind that podium can read."""

WITHOUT_GATES: tuple[ResourceType[Any], ...] = tuple(resource for resource in ALL if not resource.gate)
"""The kinds that API servers serve with their feature gates as they are by default, and without custom resources."""
