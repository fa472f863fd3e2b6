"""The pools of devices that a node can reach, with what makes a pool unusable.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go, v0.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podium.devices.inventory import Counters, Inventory, InventorySlice, SliceDevice


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """A pool as one node sees it.

    Attributes:
        devices: those that the node may be offered, in the order in which they are tried.
        others: devices of the pool that only other nodes can reach; they may consume the pool's counters.
        is_incomplete: slices are missing, because the driver is about to publish them.
        is_invalid: its slices contradict each other.
    """

    driver: str
    name: str
    devices: tuple[SliceDevice, ...] = ()
    others: tuple[SliceDevice, ...] = ()
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False

    def __str__(self) -> str:
        """`<driver>/<name>`."""
        return f"{self.driver}/{self.name}"


def pools_of_node(inventory: Inventory, node_name: str, labels: Mapping[str, str]) -> list[Pool]:
    """The pools that the node can reach, in the order in which their devices are tried.

    Pools go by driver and name; those with devices that have binding conditions come last.
    """
    usual: list[Pool] = []
    conditional: list[Pool] = []
    for (driver, name), slices in sorted(_relevant(inventory, node_name, labels).items()):
        pool = _pool(inventory, driver, name, slices)
        if pool is not None:
            is_conditional = any(each.device.binding_conditions for each in pool.devices)
            (conditional if is_conditional else usual).append(pool)
    return usual + conditional


def _relevant(
    inventory: Inventory, node_name: str, labels: Mapping[str, str]
) -> dict[tuple[str, str], list[InventorySlice]]:
    """The slices that matter to the node, by pool: those of the highest generation among them."""
    found: dict[tuple[str, str], list[InventorySlice]] = {}
    for entry in inventory.candidates(node_name):
        if not entry.reaches(node_name, labels):
            continue
        slices = found.setdefault(entry.pool, [])
        if slices and _generation(entry) > _generation(slices[0]):
            slices.clear()
        if not slices or _generation(entry) == _generation(slices[0]):
            slices.append(entry)
    return found


def _pool(inventory: Inventory, driver: str, name: str, slices: list[InventorySlice]) -> Pool | None:
    """The pool with these slices; None if it is obsolete."""
    slices = sorted(slices, key=lambda entry: entry.item.metadata.name)
    wanted, kept_aside = slices[0].item.spec.pool, list[InventorySlice]()
    if len(slices) != wanted.resource_slice_count:
        everywhere = inventory.of_pool((driver, name))
        if any(_generation(entry) > wanted.generation for entry in everywhere):
            return None
        current = [entry for entry in everywhere if _generation(entry) == wanted.generation]
        if len(current) != wanted.resource_slice_count:
            return Pool(driver, name, is_incomplete=True)
        kept_aside = [entry for entry in current if entry not in slices]
    devices = _devices(entry for entry in slices if not entry.has_counters)
    sets = [each for entry in slices for each in entry.counters]
    counters = dict(sets)
    others = _devices(kept_aside)
    is_invalid = (
        not all(entry.is_readable for entry in (*slices, *kept_aside))
        or len({device.id for device in devices}) != len(devices)
        or len(counters) != len(sets)
        or not all(_has_counters_of(each, counters) for each in (*_devices(slices), *others))
    )
    if is_invalid:
        return Pool(driver, name, is_invalid=True)
    return Pool(driver, name, devices, others, counters)


def _devices(slices: Iterable[InventorySlice]) -> tuple[SliceDevice, ...]:
    return tuple(device for entry in slices for device in entry.devices)


def _has_counters_of(device: SliceDevice, counters: Counters) -> bool:
    """Whether the pool has every counter that the device consumes."""
    return all(each.counter_set in counters for each in device.device.consumes_counters) and all(
        counter in counters[counter_set] for counter_set, counter, _ in device.consumes
    )


def _generation(entry: InventorySlice) -> int:
    return entry.item.spec.pool.generation
