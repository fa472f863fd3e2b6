"""Counts devices by driver: those that ResourceSlices publish, and those that are allocated to ResourceClaims.

Owns the counts in reports. Decides no allocation: `podium.devices` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podium.engine.manifests import Manifest, resource_of
from podium.engine.store import ObjectStore
from podium.objects.claims import ResourceClaim
from podium.objects.devices import ResourceSlice
from podium.objects.resource_types import RESOURCE_CLAIMS, RESOURCE_SLICES


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Numbers of devices by driver.

    Attributes:
        published: Those in the newest generation of each pool.
        allocated: Those that are allocated to claims, without admin access.
    """

    published: Mapping[str, int]
    allocated: Mapping[str, int]

    @classmethod
    def of(cls, slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]) -> DeviceUse:
        """Count the devices of these slices and claims."""
        newest_by_pool: dict[tuple[str, str], tuple[int, int]] = {}
        for resource_slice in slices:
            pool, generation = (
                (resource_slice.spec.driver, resource_slice.spec.pool.name),
                resource_slice.spec.pool.generation,
            )
            latest_generation, count = newest_by_pool.get(pool, (generation, 0))
            # A driver that changes a pool publishes it under a higher generation; slices of lower ones are obsolete.
            if generation >= latest_generation:
                earlier_count = count if generation == latest_generation else 0
                newest_by_pool[pool] = generation, earlier_count + len(resource_slice.spec.devices)
        device_counts: Counter[str] = Counter()
        for (driver, _), (_, count) in newest_by_pool.items():
            device_counts[driver] += count
        allocations = (claim.status.allocation for claim in claims)
        results = (
            result for allocation in allocations if allocation is not None for result in allocation.devices.results
        )
        # Admin access shares a device that others hold (KEP-5018).
        allocated_counts = Counter(result.driver for result in results if not result.admin_access)
        return cls({name: count for name, count in device_counts.items() if count}, allocated_counts)

    @classmethod
    def of_manifests(cls, manifests: Iterable[Manifest]) -> DeviceUse:
        """Count the devices of the manifests; those of other resource types are ignored.

        Raises:
            ManifestError: an object cannot be read.
        """
        device_resources = (RESOURCE_SLICES, RESOURCE_CLAIMS)
        return cls.in_store(
            ObjectStore.of(manifest for manifest in manifests if resource_of(manifest) in device_resources)
        )

    @classmethod
    def in_store(cls, store: ObjectStore) -> DeviceUse:
        """Count the devices of a cluster."""
        return cls.of(store.objects(RESOURCE_SLICES).values(), store.objects(RESOURCE_CLAIMS).values())


NO_DEVICES = DeviceUse({}, {})
