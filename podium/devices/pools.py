"""The pools of devices that a node can reach, with what makes a pool unusable.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go, v0.36.2 and v0.37.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np

from podium.devices.inventory import Counters, Inventory, InventorySlice, SliceDevice

_FEW_DEVICES: Final = 64

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """A pool as one node sees it.

    Attributes:
        devices: the devices that the node can reach, in the order in which they are tried.
        unreachable_devices: devices that only other nodes can reach and that consume the pool's counters.
        is_incomplete: slices are missing, because the driver is about to publish them.
        is_invalid: its slices contradict each other.
        problem: the error in its slices, if it is incomplete or invalid; users see it in explanations only.
        contradicts_itself: its slices cannot all be right, so that waiting for the driver need not help.
        is_repeatable: a search depends only on which devices are allocated exclusively.
        is_conditional: a device has binding conditions.
    """

    driver: str
    name: str
    devices: tuple[SliceDevice, ...] = ()
    unreachable_devices: tuple[SliceDevice, ...] = ()
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False
    problem: str = ""
    contradicts_itself: bool = False
    is_repeatable: bool = True
    is_conditional: bool = False

    @property
    def id(self) -> tuple[str, str]:
        """Its driver and name."""
        return self.driver, self.name

    def __str__(self) -> str:
        """Return `<driver>/<name>`."""
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, eq=False, slots=True)
class NodePools:
    """The pools that a node can reach, in the order in which their devices are tried. Nodes with the same share it.

    Attributes:
        names: drivers and names of the pools.
        is_repeatable: the search result depends only on which devices are allocated exclusively: it holds
            for every node with these pools until that changes.
        answers: what was found, by question, and the version of the allocated devices.
    """

    pools: tuple[Pool, ...]
    names: tuple[tuple[str, str], ...]
    is_repeatable: bool
    answers: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, pools: Iterable[Pool]) -> NodePools:
        """Return these pools with everything that attempts need precomputed."""
        pools = tuple(pools)
        return cls(pools, tuple(pool.id for pool in pools), all(pool.is_repeatable for pool in pools))


def pools_of_node(inventory: Inventory, node_name: str, labels: Mapping[str, str]) -> NodePools:
    """Return the pools that the node can reach.

    Pools are sorted by driver and name; those with devices that have binding conditions come last.

    Cost: a look-up, until slices or labels change that matter to the node.
    """
    cache = inventory.derived.get(node_name)
    if cache is not None and (cache[0] is labels or cache[0] == labels):
        return cache[1]  # type: ignore[no-any-return]
    pools = _pools(inventory, node_name, labels)
    inventory.derived[node_name] = labels, pools
    return pools


def _pools(inventory: Inventory, node_name: str, labels: Mapping[str, str]) -> NodePools:
    # Upstream's order of drivers and pools, in which devices are tried.
    relevant = sorted(_relevant(inventory, node_name, labels).items())
    slices = [entry for _, entries in relevant for entry in entries]
    return _once(inventory.interned, slices, lambda: _read(inventory, relevant))


def _read(inventory: Inventory, relevant: Sequence[tuple[tuple[str, str], list[InventorySlice]]]) -> NodePools:
    usual: list[Pool] = []
    conditional: list[Pool] = []
    for (driver, name), slices in relevant:
        pool = _once(inventory.interned_pools, slices, partial(_pool, inventory, driver, name, slices))
        # As upstream: devices that must be prepared before binding are the last to be tried.
        if pool is not None:
            (conditional if pool.is_conditional else usual).append(pool)
    return NodePools.of(usual + conditional)


def _once(cache: dict[tuple[int, ...], Any], slices: Sequence[InventorySlice], compute: Callable[[], T]) -> T:
    """Compute a value from these slices, once for all nodes that reach them if none of them belongs to one node."""
    # Of such slices there is one set for each node, and caching them would only fill memory.
    if any(entry.item.spec.node_name for entry in slices):
        return compute()
    key = _identity(slices)
    if key not in cache:
        cache[key] = compute()
    value: T = cache[key]
    return value


def _identity(slices: Iterable[InventorySlice]) -> tuple[int, ...]:
    return tuple(id(entry) for entry in slices)


def _relevant(
    inventory: Inventory, node_name: str, labels: Mapping[str, str]
) -> dict[tuple[str, str], list[InventorySlice]]:
    """Return the slices that matter to the node, by pool: those of the highest generation among them."""
    slices_by_pool: dict[tuple[str, str], list[InventorySlice]] = {}
    for entry in inventory.candidates(node_name):
        if not entry.reaches(node_name, labels) or _is_ignored(entry, inventory):
            continue
        slices = slices_by_pool.setdefault(entry.pool, [])
        if slices and _generation(entry) > _generation(slices[0]):
            slices.clear()
        if not slices or _generation(entry) == _generation(slices[0]):
            slices.append(entry)
    return slices_by_pool


def _pool(inventory: Inventory, driver: str, name: str, slices: list[InventorySlice]) -> Pool | None:
    """Return the pool with these slices; None if it is obsolete.

    Cost: grows with its slices, not with its devices but for putting them in a row.
    """
    # Upstream's order of slices within a pool, which decides which devices are tried first.
    slices = sorted(slices, key=lambda entry: entry.item.metadata.name)
    pool_ref, kept_aside = slices[0].item.spec.pool, list[InventorySlice]()
    # As upstream: if the count fits, a newer generation elsewhere goes unnoticed.
    if len(slices) != pool_ref.resource_slice_count:
        everywhere = inventory.of_pool((driver, name))
        # The driver has published a newer generation, which does not offer this node anything.
        if any(_generation(entry) > pool_ref.generation for entry in everywhere):
            return None
        current = [
            entry
            for entry in everywhere
            if _generation(entry) == pool_ref.generation and not _is_ignored(entry, inventory)
        ]
        if len(current) != pool_ref.resource_slice_count:
            return _incomplete(driver, name, current)
        identities = set(_identity(slices))
        # Their devices cannot be had here, but consume the same counters.
        kept_aside = [entry for entry in current if id(entry) not in identities]
    offering = [entry for entry in slices if not entry.has_counters]
    devices = tuple(chain.from_iterable(entry.devices for entry in offering))
    all_slices = (*slices, *kept_aside)
    sets = [counter_set for entry in all_slices for counter_set in entry.counters]
    counters = dict(sets)
    needs = frozenset[tuple[str, str]]().union(*(entry.needs for entry in all_slices))
    is_invalid = (
        not all(entry.is_readable for entry in all_slices)
        or not _are_distinct(offering, devices)
        or len(counters) != len(sets)
        or not all(_is_met(need, counters) for need in needs)
    )
    if is_invalid:
        problem = _contradiction(all_slices, devices, sets, counters)
        return Pool(driver, name, is_invalid=True, problem=problem, contradicts_itself=True)
    return Pool(
        driver,
        name,
        devices,
        tuple(chain.from_iterable(entry.consumers for entry in kept_aside)),
        counters,
        is_repeatable=not counters and all(entry.is_repeatable for entry in offering),
        is_conditional=any(entry.is_conditional for entry in offering),
    )


def _incomplete(driver: str, name: str, current: Sequence[InventorySlice]) -> Pool:
    """Return the pool with too few slices of its generation, or too many."""
    counts = sorted({entry.item.spec.pool.resource_slice_count for entry in current})
    text = " or ".join(map(str, counts))
    problem = f"{len(current)} of {text} slices of generation {_generation(current[0])}"
    is_wrong = len(counts) > 1 or len(current) > counts[0]
    return Pool(driver, name, is_incomplete=True, problem=problem, contradicts_itself=is_wrong)


def _contradiction(
    entries: Sequence[InventorySlice],
    devices: Sequence[SliceDevice],
    sets: Sequence[tuple[str, dict[str, int]]],
    counters: Counters,
) -> str:
    """Return the first problem that makes the pool invalid."""
    for entry in entries:
        if not entry.is_readable:
            return f"slice {entry.item.metadata.name} has a quantity or a selector that cannot be read"
    pools: dict[str, str] = {}
    for device in devices:
        name, slice_name = device.id.device, device.slice.metadata.name
        if (twin := pools.get(name)) is not None:
            return f"device {name} is in slice {twin} {'twice' if twin == slice_name else f'and in {slice_name}'}"
        pools[name] = slice_name
    if len(counters) < len(sets):
        return "a counter set has two definitions"
    for entry in entries:
        for counter_set, counter in sorted(entry.needs):
            if not _is_met((counter_set, counter), counters):
                subject = f"counter {counter} of set {counter_set}" if counter else f"counter set {counter_set}"
                return f"slice {entry.item.metadata.name} needs {subject}, which no slice has"
    return ""


def _are_distinct(slices: Sequence[InventorySlice], devices: Sequence[SliceDevice]) -> bool:
    """Return True if these devices of the slices have different names.

    Cost: those of a large pool are compared only if hashes are equal.
    """
    if len(devices) <= _FEW_DEVICES:
        return len({device.id.device for device in devices}) == len(devices)
    # Hashes of names in a sorted array: pools of thousands of devices are checked for each node.
    hashes = np.sort(np.concatenate([np.empty(0, np.int64), *(entry.name_hashes for entry in slices)]))
    return not (hashes[1:] == hashes[:-1]).any() or len({device.id for device in devices}) == len(devices)


def _is_met(need: tuple[str, str], counters: Counters) -> bool:
    """Return True if the pool has the counter set, and the counter in it unless that is ""."""
    counter_set, counter = need
    return counter_set in counters and (not counter or counter in counters[counter_set])


def _is_ignored(entry: InventorySlice, inventory: Inventory) -> bool:
    """Return True if the slice is as good as missing: a device has compatibility groups, whose gate is off."""
    return entry.has_groups and inventory.rules.refuse_alpha_fields


def _generation(entry: InventorySlice) -> int:
    return entry.item.spec.pool.generation
