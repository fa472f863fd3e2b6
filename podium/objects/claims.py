"""Claims to devices and what has been allocated to them: `resource.k8s.io/v1`, cut down to what scheduling reads."""

from __future__ import annotations

from typing import Final

from msgspec import field
from msgspec.structs import replace

from podium.objects.affinity import NodeSelector
from podium.objects.core import Toleration
from podium.objects.devices import DeviceSelector, OpaqueDeviceConfiguration
from podium.objects.meta import Int64, NamespacedObject, ObjectMeta, RawQuantity, Value

EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that schedulers make for extended resources."""

DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of allocated claims."""

# ---------------------------------------------------------------- requests


class DeviceToleration(Toleration, frozen=True):
    """Lets a request have devices with a matching taint."""

    toleration_seconds: Int64 | None = None


class CapacityRequirements(Value, frozen=True):
    """The amounts that a request needs of a device's capacities."""

    requests: dict[str, RawQuantity] = {}


class DeviceDerivedAttribute(Value, frozen=True):
    """An attribute that an expression computes of a device, for the constraints of the request. Of an alpha gate."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(Value, frozen=True):
    """Devices of one class. An empty mode is the API server's default, ExactCount, whose default count is 1."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: Int64 | None = None
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(ExactDeviceRequest, frozen=True):
    """One of the alternatives of a request. The API has no `admin_access` here."""

    name: str = ""


class DeviceRequest(Value, frozen=True):
    """A request for devices: an exact one, or the first of several that can be allocated."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Value, frozen=True):
    """An attribute in which all devices of the requests must agree, or differ. No request means all."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Value, frozen=True):
    """Configuration for the devices of the requests. No request means all."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Value, frozen=True):
    """The devices that a claim requests, with constraints across the requests."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Value, frozen=True):
    """The spec of a claim: the devices that it requests."""

    devices: DeviceClaim = DeviceClaim()


# ---------------------------------------------------------------- allocations


class DeviceRequestAllocationResult(Value, frozen=True):
    """A device that was allocated to a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, RawQuantity] = {}
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Value, frozen=True):
    """Configuration for the devices of the requests, and whether it is from the class or from the claim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Value, frozen=True):
    """The devices of a claim and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Value, frozen=True):
    """The devices allocated to a claim, and the nodes that can use them. Without a selector, every node can."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Value, frozen=True):
    """A user of a claim, usually a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Value, frozen=True):
    """One condition of an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Value, frozen=True):
    """The status that a driver reports for an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Value, frozen=True):
    """The allocation of a claim, and the consumers for which it is reserved."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaimMeta(ObjectMeta, frozen=True):
    """The metadata of a claim, with the fields that are written."""

    generate_name: str = ""
    finalizers: tuple[str, ...] = ()


class ResourceClaim(NamespacedObject, frozen=True):
    """A claim to devices."""

    metadata: ResourceClaimMeta = ResourceClaimMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    def released_by(self, uid: str) -> ResourceClaim:
        """Return the claim without that user; one without users loses its devices, as the claim controller does."""
        users = tuple(user for user in self.status.reserved_for if user.uid != uid)
        if len(users) == len(self.status.reserved_for):
            return self
        allocation = self.status.allocation if users else None
        # A new version ends what a scheduler has assumed of the claim.
        metadata = replace(self.metadata, resource_version=f"{self.metadata.resource_version}-released")
        return replace(self, metadata=metadata, status=replace(self.status, reserved_for=users, allocation=allocation))

    def is_reserved_for(self, uid: str) -> bool:
        """Return True if the claim is reserved for the pod with this uid."""
        return any(reservation.uid == uid for reservation in self.status.reserved_for)
