"""Devices for resource claims in columns, beside the amounts: how many a node has free, and how many a pod needs.

A column stands for all requests with the same class and selectors. A device may count in several columns, and a pod
that takes one takes it from its own column only: so columns never forbid what the allocator allows. Claims of other
kinds than a number of devices for each request have no columns, and the filter's verdict on the nodes as they are
counts for their pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from podium.cel import CompileError, EvaluationError
from podium.cluster import Snapshot
from podium.devices.inventory import DeviceID, Inventory, SliceDevice
from podium.devices.pools import pools_of_node
from podium.devices.requests import expression_of
from podium.engine.cluster import Cluster
from podium.objects.claims import DeviceClaim, ExactDeviceRequest, ResourceClaim
from podium.objects.core import Pod
from podium.objects.resource_types import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES

_Column: TypeAlias = tuple[str, tuple[str, ...]]
"""The class, and the selectors of the request."""

NO_NEEDS: Final[Mapping[_Column, int]] = {}


class DeviceColumns:
    """The columns of the devices that some pods need.

    Args:
        pods: those that need places, or may need others.

    Attributes:
        columns: the columns, in their order.
    """

    def __init__(self, cluster: Cluster, snapshot: Snapshot, pods: Iterable[Pod]) -> None:
        self._cluster = cluster
        self._needs: dict[str, Mapping[_Column, int] | None] = {}
        needs = [self.needs_of(pod) or NO_NEEDS for pod in pods if pod.spec.resource_claims]
        self.columns: Sequence[_Column] = list(dict.fromkeys(column for need in needs for column in need))
        self._held: dict[str, list[SliceDevice]] = {}
        self._matching: dict[DeviceID, frozenset[int]] = {}
        self.free: list[list[int]] = [[0] * len(self.columns) for _ in snapshot.nodes]
        if self.columns:
            self._count(snapshot)

    @property
    def names(self) -> Sequence[str]:
        """The columns for people."""
        return [f"devices of class {name}" for name, _ in self.columns]

    def needs_of(self, pod: Pod) -> Mapping[_Column, int] | None:
        """Return how many devices the pod needs of each column; None if its claims are of another kind."""
        if not pod.spec.resource_claims:
            return NO_NEEDS
        if pod.uid not in self._needs:
            self._needs[pod.uid] = self._read_needs(pod)
        return self._needs[pod.uid]

    def amounts(self, needs: Mapping[_Column, int]) -> tuple[int, ...]:
        """Return the needs in the order of the columns."""
        return tuple(needs.get(column, 0) for column in self.columns)

    def gain_of(self, pod: Pod) -> tuple[int, ...]:
        """Return how many devices of each column become free once the pod and its own claims are gone."""
        counts = Counter(index for device in self._held.get(pod.uid, ()) for index in self._matching[device.id])
        return tuple(counts[index] for index in range(len(self.columns)))

    # ------------------------------------------------------------ claims

    def _read_needs(self, pod: Pod) -> Mapping[_Column, int] | None:
        pod_with_claims, manifests = self._cluster.claims_of(pod)
        new_claims = {str(manifest["metadata"]["name"]): manifest for manifest in manifests}
        needs: Counter[_Column] = Counter()
        statuses = {
            status.name: status.resource_claim_name for status in pod_with_claims.status.resource_claim_statuses
        }
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name or statuses.get(entry.name)
            if name is None:
                return None
            if name in new_claims:
                claim = msgspec.convert(new_claims[name]["spec"]["devices"], DeviceClaim)
            else:
                known_claim = self._cluster.store.get(RESOURCE_CLAIMS, f"{pod.metadata.namespace}/{name}")
                if known_claim is None or known_claim.status.allocation is not None:
                    return None
                claim = known_claim.spec.devices
            if claim.constraints:
                return None
            for request in claim.requests:
                if request.exactly is None or not _is_plain(request.exactly):
                    return None
                selectors = tuple(map(expression_of, request.exactly.selectors))
                needs[request.exactly.device_class_name, selectors] += request.exactly.count or 1
        return needs

    # ------------------------------------------------------------ devices

    def _count(self, snapshot: Snapshot) -> None:
        store = self._cluster.store
        inventory = Inventory(store.objects(RESOURCE_SLICES).values(), self._cluster.release.devices)
        holders: dict[DeviceID, str] = {}
        for claim in store.objects(RESOURCE_CLAIMS).values():
            holders |= dict.fromkeys(_devices_of(claim), _only_user(claim))
        devices_by_user: dict[str, list[SliceDevice]] = {}
        for row, node in enumerate(snapshot.nodes):
            if node is None:
                continue
            for pool in pools_of_node(inventory, node.name, node.metadata.labels).pools:
                for device in pool.devices:
                    if device.selection is not None and not device.selection.matches(node.name, node.metadata.labels):
                        continue
                    self._note(device, holders, devices_by_user, row)
        self._held = devices_by_user

    def _note(
        self,
        device: SliceDevice,
        holders: Mapping[DeviceID, str],
        devices_by_user: dict[str, list[SliceDevice]],
        row: int,
    ) -> None:
        """Count the device as free on the row, or as held by a pod."""
        if device.id not in self._matching:
            self._matching[device.id] = frozenset(
                index for index, column in enumerate(self.columns) if self._matches(device, column)
            )
        user = holders.get(device.id)
        # A shared device has room for an unknown number of claims, which the allocator counts.
        if user is None or device.is_shared:
            for index in self._matching[device.id]:
                self.free[row][index] += 2**20 if device.is_shared else 1
        elif user:
            devices_by_user.setdefault(user, []).append(device)

    def _matches(self, device: SliceDevice, column: _Column) -> bool:
        name, selectors = column
        device_class = self._cluster.store.get(DEVICE_CLASSES, name)
        if device_class is None:
            return False
        expressions = [*map(expression_of, device_class.spec.selectors), *selectors]
        try:
            return all(device.matches(expression) for expression in expressions)
        except (CompileError, EvaluationError):
            return False


def _is_plain(request: ExactDeviceRequest) -> bool:
    """Return True for a number of devices that differ in nothing but the selectors."""
    return (
        request.allocation_mode == "ExactCount"
        and not request.admin_access
        and request.capacity is None
        and not request.derived_attributes
    )


def _devices_of(claim: ResourceClaim) -> Iterable[DeviceID]:
    """Return the devices that the claim has for itself."""
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return [DeviceID(result.driver, result.pool, result.device) for result in results if not result.admin_access]


def _only_user(claim: ResourceClaim) -> str:
    """Return the UID of the pod whose own claim it is, which goes with the pod; "" for other claims."""
    owners = {owner.uid for owner in claim.metadata.owner_references if owner.kind == "Pod"}
    users = {reference.uid for reference in claim.status.reserved_for}
    return next(iter(users)) if len(users) == 1 and users <= owners else ""
