"""Kubernetes objects, cut down to the fields that scheduling reads.

Owns the typed shapes. Values are immutable and shared: a pod's spec is interned by content, so ten thousand replicas of
one template hold one `PodSpec`, and whatever is derived from it (`once_per_spec`) is computed once.
Never validates meaning: an unparsable quantity or selector is found by the code that interprets it and names the field.

Attribute names are the API's own in snake case; a field the API leaves out has the API's zero value.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The API's integer type."""

RawQuantity: TypeAlias = str | int | float
"""A quantity as it is on the wire; `objects.quantity` parses it."""

ResourceList: TypeAlias = dict[str, RawQuantity]

T = TypeVar("T")


class Value(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every part of an object: immutable, camelCase on the wire, without reference cycles."""


# ---------------------------------------------------------------- metadata and selectors


class OwnerReference(Value, frozen=True):
    """The object that made this one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Value, frozen=True):
    """The metadata of every object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The object that manages this one."""
        return next((each for each in self.owner_references if each.controller), None)


class NamespacedObject(Value, frozen=True, tag_field="kind", tag=True):
    """An object with a namespace. If there is a `kind` on the wire, it must be the class's name."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """`<namespace>/<name>`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ClusterObject(Value, frozen=True, tag_field="kind", tag=True):
    """An object of the whole cluster; its `kind` is checked as in `NamespacedObject`."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """The name."""
        return self.metadata.name


class LabelSelectorRequirement(Value, frozen=True):
    """One `matchExpressions` entry of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True):
    """Selects objects by label; every part must match. An empty one matches everything, an absent one nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(Value, frozen=True):
    """One requirement of a node selector term, on a label or on a field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Value, frozen=True):
    """Requirements that must all hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Value, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


# ---------------------------------------------------------------- pods


class PreferredSchedulingTerm(Value, frozen=True):
    """A node selector term that adds its weight to a matching node's score."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Value, frozen=True):
    """The pod's required and preferred node affinity."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Value, frozen=True):
    """Other pods, and the topology in which to be with them or apart from them."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Value, frozen=True):
    """A pod affinity term that adds its weight to the score."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Value, frozen=True):
    """Terms of `podAffinity` or `podAntiAffinity`."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Value, frozen=True):
    """A pod's affinity rules."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Value, frozen=True):
    """Lets a pod onto nodes with a matching taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Value, frozen=True):
    """How evenly pods spread over the values of a node label."""

    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class SchedulingGate(Value, frozen=True):
    """Holds the pod back until it is removed."""

    name: str = ""


class ContainerPort(Value, frozen=True):
    """A port of a container; only those with a host port matter here."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ResourceClaimUse(Value, frozen=True):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Value, frozen=True):
    """Requests and limits by resource name."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaimUse, ...] = ()


class ContainerRestartRule(Value, frozen=True):
    """What happens when a container exits in a given way."""

    action: str = ""


class Container(Value, frozen=True):
    """A container or init container; one with `restart_policy` Always among the init containers is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Whether, as an init container, it keeps running beside the app containers."""
        return self.restart_policy == "Always"


class PersistentVolumeClaimVolume(Value, frozen=True):
    """A volume that is a claim by name."""

    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDiskVolume(Value, frozen=True):
    """An inline GCE disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolume(Value, frozen=True):
    """An inline AWS disk."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class ISCSIVolume(Value, frozen=True):
    """An inline iSCSI target."""

    iqn: str = ""
    read_only: bool = False


class RBDVolume(Value, frozen=True):
    """An inline Ceph block device."""

    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    read_only: bool = False


class CSIVolume(Value, frozen=True):
    """An inline CSI volume."""

    driver: str = ""


class AzureDiskVolume(Value, frozen=True):
    """An inline Azure disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None


class AzureFileVolume(Value, frozen=True):
    """An inline Azure file share; only its presence is kept."""


class VSphereVolume(Value, frozen=True):
    """An inline vSphere volume; only its presence is kept."""


class CinderVolume(Value, frozen=True):
    """An inline Cinder volume."""

    volume_id: str = field(default="", name="volumeID")


class PortworxVolume(Value, frozen=True):
    """An inline Portworx volume."""

    volume_id: str = field(default="", name="volumeID")


class ImageVolume(Value, frozen=True):
    """An image mounted as a volume."""

    reference: str = ""


class EphemeralVolume(Value, frozen=True):
    """A volume with a claim of its own that lives and dies with the pod.

    The template is what the claim is made from, as parsed JSON.
    """

    volume_claim_template: dict[str, Any] = {}


class Volume(Value, frozen=True):
    """A pod's volume; sources that never influence scheduling are not kept."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEPersistentDiskVolume | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    csi: CSIVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    azure_file: AzureFileVolume | None = None
    vsphere_volume: VSphereVolume | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    image: ImageVolume | None = None

    @property
    def has_source(self) -> bool:
        """Whether it has a source that scheduling depends on."""
        return self != Volume(name=self.name)


class PodResourceClaim(Value, frozen=True):
    """A resource claim of the pod, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Value, frozen=True):
    """The group the pod is scheduled with."""

    pod_group_name: str = ""


class PodSpec(Value, frozen=True, gc=True, weakref=True, dict=True):
    """A pod's spec without the node that it is bound to: that is `Pod.node_name`, so that replicas share one spec.

    Invariant: instances reachable from a `Pod` are interned: equal content is the same object.
    """

    wire_node_name: str = field(default="", name="nodeName")
    scheduler_name: str = "default-scheduler"
    priority: Int32 | None = None
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    scheduling_group: SchedulingGroup | None = None


_INTERNED = "interned"
_specs: weakref.WeakValueDictionary[bytes, PodSpec] = weakref.WeakValueDictionary()
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def _interned(spec: PodSpec) -> PodSpec:
    """The one shared spec with this content, without the node name and volumes that do not affect scheduling."""
    memory: dict[str, Any] = spec.__dict__
    if _INTERNED in memory:
        return spec
    if spec.wire_node_name:
        force_setattr(spec, "wire_node_name", "")
    if spec.volumes:
        force_setattr(spec, "volumes", tuple(volume for volume in spec.volumes if volume.has_source))
    memory[_INTERNED] = True
    try:
        content = _encode(spec)
    except OverflowError:  # a quantity written as a number of more than 64 bits: no other pod shares this spec
        return spec
    known = _specs.get(content)
    if known is not None:
        return known
    _specs[content] = spec
    return spec


def once_per_spec(compute: Callable[[PodSpec], T]) -> Callable[[PodSpec], T]:
    """Make a pure function of a pod spec remember its result on the (interned) spec.

    An exception is not remembered.
    """
    slot = f"{compute.__module__}.{compute.__qualname__}"

    @functools.wraps(compute)
    def remembered(spec: PodSpec) -> T:
        memory: dict[str, Any] = spec.__dict__
        try:
            return memory[slot]  # type: ignore[no-any-return]
        except KeyError:
            result = memory[slot] = compute(spec)
            return result

    return remembered


class PodCondition(Value, frozen=True):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: Int64 = 0


class ContainerStatus(Value, frozen=True):
    """What a container was actually given, for in-place resize."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(Value, frozen=True):
    """The claim generated for a template."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceClaimStatus(Value, frozen=True):
    """The claim generated for extended resources that devices back."""

    resource_claim_name: str = ""


class PodStatus(Value, frozen=True):
    """A pod's status, as far as scheduling depends on it."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None

    def condition(self, kind: str) -> PodCondition | None:
        """The condition of that type, if there is one."""
        for condition in self.conditions:
            if condition.type == kind:
                return condition
        return None


class Pod(NamespacedObject, frozen=True):
    """A pod. `node_name` is `spec.nodeName` of the API: empty until bound."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    node_name: str = ""

    def __post_init__(self) -> None:
        """Share the spec with every pod of equal content."""
        spec = self.spec
        if spec.wire_node_name:
            force_setattr(self, "node_name", spec.wire_node_name)
        force_setattr(self, "spec", _interned(spec))

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.metadata.uid

    @property
    def priority(self) -> int:
        """`spec.priority`; 0 if it is absent."""
        return self.spec.priority or 0

    @property
    def has_ended(self) -> bool:
        """Whether the pod has succeeded or failed: it runs no more, and takes nothing of its node."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    def on_node(self, node_name: str) -> Pod:
        """This pod as it is once bound to the node."""
        return Pod(metadata=self.metadata, spec=self.spec, status=self.status, node_name=node_name)


# ---------------------------------------------------------------- nodes


class Taint(Value, frozen=True):
    """Keeps pods that do not tolerate it away."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Value, frozen=True):
    """A node's desired state."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Value, frozen=True):
    """An image that is present on the node."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeCondition(Value, frozen=True):
    """One condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(Value, frozen=True):
    """A node's observed state."""

    allocatable: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ClusterObject, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.metadata.uid
