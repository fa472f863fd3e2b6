"""How many devices there are for resource claims, and how many of them are allocated, by driver.

Owns the count, for people. Whether a claim can be allocated is decided by `podium.devices`.
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
        allocated: Those that claims hold, but for administrators'.
    """

    published: Mapping[str, int]
    allocated: Mapping[str, int]

    @classmethod
    def of(cls, slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]) -> DeviceUse:
        """Count the devices."""
        newest: dict[tuple[str, str], tuple[int, int]] = {}
        for each in slices:
            pool, generation = (each.spec.driver, each.spec.pool.name), each.spec.pool.generation
            known, count = newest.get(pool, (generation, 0))
            if generation >= known:
                more = count if generation == known else 0
                newest[pool] = generation, more + len(each.spec.devices)
        published: Counter[str] = Counter()
        for (driver, _), (_, count) in newest.items():
            published[driver] += count
        held = (each.status.allocation for each in claims)
        results = (result for allocation in held if allocation is not None for result in allocation.devices.results)
        allocated = Counter(each.driver for each in results if not each.admin_access)
        return cls({name: count for name, count in published.items() if count}, allocated)

    @classmethod
    def of_manifests(cls, manifests: Iterable[Manifest]) -> DeviceUse:
        """Count the devices of these objects, among others.

        Raises:
            ManifestError: an object cannot be read.
        """
        kinds = (RESOURCE_SLICES, RESOURCE_CLAIMS)
        return cls.in_store(ObjectStore.of(each for each in manifests if resource_of(each) in kinds))

    @classmethod
    def in_store(cls, store: ObjectStore) -> DeviceUse:
        """Count the devices of a cluster."""
        return cls.of(store.objects(RESOURCE_SLICES).values(), store.objects(RESOURCE_CLAIMS).values())


NO_DEVICES = DeviceUse({}, {})
