"""Pods and nodes, cut down to the fields that scheduling reads.

Owns the typed shapes. Values are immutable and shared: a pod's spec is interned by content, so ten thousand replicas of
one template hold one `PodSpec`, and whatever is derived from it (`once_per_spec`) is computed once.
Never validates meaning: an unparsable quantity or selector is found by the code that interprets it and names the field.

Attribute names are the API's own in snake case; a field the API leaves out has the API's zero value.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import field
from msgspec.structs import force_setattr, replace

from podium.objects.affinity import Affinity
from podium.objects.meta import ClusterObject, Int32, Int64, LabelSelector, NamespacedObject, ResourceList, Value
from podium.objects.pod_volumes import Volume

T = TypeVar("T")


# ---------------------------------------------------------------- pods


class Toleration(Value, frozen=True):
    """Lets a pod onto nodes with a matching taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Value, frozen=True):
    """A limit on how unevenly pods spread over the values of a node label."""

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
    """The action that the kubelet takes when a container exits in a given way."""

    action: str = ""


class VolumeMount(Value, frozen=True):
    """The options with which a container mounts a volume."""

    bind_mount_options: tuple[str, ...] = ()


class SeccompProfileSource(Value, frozen=True):
    """The seccomp profile of a container or pod: with the type Localhost a file on the node."""

    type: str = ""
    localhost_profile: str = ""


class SecurityContext(Value, frozen=True):
    """The security settings of a container or pod, as far as a plugin reads them."""

    seccomp_profile: SeccompProfileSource = SeccompProfileSource()


class Container(Value, frozen=True):
    """A container or init container; one with `restart_policy` Always among the init containers is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    security_context: SecurityContext = SecurityContext()

    @property
    def is_sidecar(self) -> bool:
        """An init container with this restart policy keeps running beside the app containers."""
        return self.restart_policy == "Always"


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
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
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
    security_context: SecurityContext = SecurityContext()
    restart_policy: str = ""
    active_deadline_seconds: Int64 | None = None
    termination_grace_period_seconds: Int64 | None = None


_NO_CLAIM: Final = PodResourceClaim()
_INTERNED, _WITHOUT_REFERENCES = "interned", "without references"
_specs: weakref.WeakValueDictionary[bytes, PodSpec] = weakref.WeakValueDictionary()
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def _intern(spec: PodSpec) -> PodSpec:
    """Return the one shared spec with this content, without the node name and volumes that do not affect scheduling."""
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
    known_spec = _specs.get(content)
    if known_spec is not None:
        return known_spec
    _specs[content] = spec
    return spec


def once_per_spec(compute: Callable[[PodSpec], T]) -> Callable[[PodSpec], T]:
    """Make a pure function of a pod spec, other than its references, remember its result on the (interned) spec.

    Specs that differ only in the group and the claims that they name have one result. An exception is not remembered.
    """
    slot = f"{compute.__module__}.{compute.__qualname__}"

    @functools.wraps(compute)
    def remember_result(spec: PodSpec) -> T:
        memory: dict[str, Any] = spec.__dict__
        try:
            return memory[slot]  # type: ignore[no-any-return]
        except KeyError:
            # Every gang has a spec of its own, and most gangs are small; so has every pod with a claim of its own.
            is_shared = has_references(spec)
            result = memory[slot] = remember_result(without_references(spec)) if is_shared else compute(spec)
            return result

    return remember_result


def has_references(spec: PodSpec) -> bool:
    """Return whether the spec names a group or claims for devices."""
    claims = spec.resource_claims
    return spec.scheduling_group is not None or (bool(claims) and any(claim != _NO_CLAIM for claim in claims))


def without_references(spec: PodSpec) -> PodSpec:
    """Return the shared spec of the pods that differ from these only in the group and the claims that they name.

    It has no group, and as many claims without names.
    """
    memory: dict[str, Any] = spec.__dict__
    shared_spec: PodSpec | None = memory.get(_WITHOUT_REFERENCES)
    if shared_spec is None:
        claims = (_NO_CLAIM,) * len(spec.resource_claims)
        shared_spec = _intern(replace(spec, scheduling_group=None, resource_claims=claims))
        memory[_WITHOUT_REFERENCES] = shared_spec
    return shared_spec


class PodCondition(Value, frozen=True):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: Int64 = 0


class ContainerStatus(Value, frozen=True):
    """The resources that the kubelet has given a container; they differ from its spec during an in-place resize."""

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
    qos_class: str = ""
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
        """Return the condition of that type, if there is one."""
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
        force_setattr(self, "spec", _intern(spec))

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
        """The pod has succeeded or failed, so it no longer uses resources of its node."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        """The pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    def on_node(self, node_name: str) -> Pod:
        """Return the pod as it will be once bound to the node."""
        if type(self) is not Pod:
            return Pod(metadata=self.metadata, spec=self.spec, status=self.status, node_name=node_name)
        # A copy costs half of it: its spec is shared already.
        pod: Pod = cast(Any, self).__copy__()
        force_setattr(pod, "node_name", node_name)
        return pod


# ---------------------------------------------------------------- nodes


class Taint(Value, frozen=True):
    """Keeps pods that do not tolerate it away."""

    key: str = ""
    value: str = ""
    effect: str = ""


class PodPreemptionPolicy(Value, frozen=True):
    """The rules of preemption on a node: on behalf of whom pods that grow may not preempt."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(Value, frozen=True):
    """A node's desired state."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_preemption_policy: PodPreemptionPolicy | None = None


class ContainerImage(Value, frozen=True):
    """An image that is present on the node."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeCondition(Value, frozen=True):
    """One condition of a node."""

    type: str = ""
    status: str = ""


class NodeAddress(Value, frozen=True):
    """An address of a node; `type` is Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS."""

    type: str = ""
    address: str = ""


class NodeStatus(Value, frozen=True):
    """A node's observed state."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    addresses: tuple[NodeAddress, ...] = ()
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
