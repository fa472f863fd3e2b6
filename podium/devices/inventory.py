"""The devices of a cluster, as its ResourceSlices list them.

Owns what is computed once per slice: its devices with parsed values, who can reach it, and which slices a pool has.
Differs: a slice with a quantity or selector that cannot be parsed, which no API server admits, makes its pool invalid;
upstream's attempts end with an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cel import EvaluationError
from podium.config.release_rules import DeviceRules
from podium.config.releases import NEWEST
from podium.devices.answers import Answers, Looks, is_plain
from podium.devices.interruptible import Interruptible, run_uninterrupted
from podium.devices.step_budget import StepBudget
from podium.devices.taint_rules import TaintRules
from podium.objects.affinity import NodeSelector
from podium.objects.devices import Device, DeviceCapacity, DeviceTaintRule, ResourceSlice
from podium.objects.meta import RawQuantity
from podium.objects.quantity import QuantityError, parse
from podium.objects.selectors import NodeMatcher, compile_node_selector

_MATCHES_MAX: Final = 64

Counters = dict[str, dict[str, int]]
"""Exact amounts in billionths, by counter set and counter."""


class DeviceID(NamedTuple):
    """The identity of a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """Return `<driver>/<pool>/<device>`."""
        return "/".join(self)


class NodeSelection:
    """The nodes that can reach a slice or a device: one by name, all, or those that a selector matches. Else none."""

    __slots__ = ("_all_nodes", "_matcher", "_node_name")

    def __init__(self, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> None:
        self._node_name = node_name or ""
        self._all_nodes = bool(all_nodes)
        self._matcher: NodeMatcher | None = None if selector is None else compile_node_selector(selector)

    @property
    def is_set(self) -> bool:
        """Any of them is given."""
        return bool(self._node_name) or self._all_nodes or self._matcher is not None

    @property
    def is_readable(self) -> bool:
        """The selector can be parsed, or there is none."""
        return self._matcher is None or not self._matcher.errors

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return True if the node can reach it."""
        if self._node_name:
            return self._node_name == node_name
        if self._all_nodes:
            return True
        return self._matcher is not None and self._matcher.matches(labels, node_name)


class SliceDevice:
    """A device in its slice.

    Attributes:
        selection: the nodes that can reach it, if its slice leaves that to the devices.
        consumes: how much it takes of which counter, in the order of the device's entries.
        is_shared: whether it may be allocated several times.
        has_policies: whether a request policy limits how much of a capacity can be requested, or one is negative.
    """

    __slots__ = (
        "_answers",
        "_dedicated",
        "_is_plain",
        "_looks",
        "_matches",
        "consumes",
        "device",
        "has_policies",
        "id",
        "is_shared",
        "selection",
        "slice",
    )

    def __init__(self, item: ResourceSlice, device: Device, looks: Looks) -> None:
        self.slice = item
        self.device = device
        self.id = DeviceID(item.spec.driver, item.spec.pool.name, device.name)
        self.selection: NodeSelection | None = None
        if item.spec.per_device_node_selection:
            self.selection = NodeSelection(device.node_name, device.all_nodes, device.node_selector)
        self.consumes = tuple(
            (consumption.counter_set, name, parse(counter.value).nano_value)
            # Exact, since upstream's quantities are: sums of floats would differ in the last digit.
            for consumption in device.consumes_counters
            for name, counter in consumption.counters.items()
        )
        self.has_policies = any(
            capacity.request_policy is not None or str(capacity.value).startswith("-")
            for capacity in (device.capacity or {}).values()
        )
        self.is_shared = bool(device.allow_multiple_allocations)
        self._looks = looks
        self._answers: Answers | None = None
        self._matches: dict[str, bool] | None = None
        self._is_plain: bool | None = None
        self._dedicated: SliceDevice | None = None

    @property
    def dedicated_device(self) -> SliceDevice:
        """The device as it would be if it were not shared."""
        if not self.is_shared:
            return self
        if self._dedicated is None:
            device = replace(self.device, allow_multiple_allocations=None)
            self._dedicated = SliceDevice(self.slice, device, self._looks)
        return self._dedicated

    @property
    def look(self) -> object | None:
        """A value shared by devices that selectors and constraints cannot distinguish; None if it is unreadable."""
        if self._answers is None:
            try:
                self._answers = self._looks.of(self.id.driver, self.device)
            except EvaluationError:
                return None
        return self._answers

    def matches(self, expression: str) -> bool:
        """Return True if the selector matches the device. Raises: CompileError, EvaluationError."""
        budget = StepBudget(0)
        answer = self.matches_soon(expression, budget)
        return run_uninterrupted(self.matches_interruptibly(expression, budget)) if answer is None else answer

    def matches_soon(self, expression: str, budget: StepBudget) -> bool | None:
        """Match as `matches`; None if that would raise an error, or take longer than a few milliseconds."""
        memory = self._matches
        if memory is not None and (matches := memory.get(expression)) is not None:
            return matches
        # Whatever is known to other devices: an interrupted search must go on where it was.
        if budget.is_turn_over:
            return None
        if self._is_plain is None:
            self._is_plain = is_plain(self.device)
        looks = self._looks
        key = looks.key(expression, self.id.driver, self.device) if self._is_plain else None
        matches = None if key is None else looks.answer_for(key)
        if matches is None:
            matches = self._evaluate_soon(expression, budget)
            if matches is None:
                return None
            if key is not None:
                looks.share(key, matches)
        if memory is None or len(memory) >= _MATCHES_MAX:
            memory = self._matches = {}
        memory[expression] = matches
        return matches

    def _evaluate_soon(self, expression: str, budget: StepBudget) -> bool | None:
        if self._answers is None:
            try:
                self._answers = self._looks.of(self.id.driver, self.device)
            except EvaluationError:
                return None
        return self._answers.soon(expression, budget)

    def matches_interruptibly(self, expression: str, budget: StepBudget) -> Interruptible[bool]:
        """Match as `matches`. Yields where it can be interrupted."""
        if self._answers is None:
            self._answers = self._looks.of(self.id.driver, self.device)
        return (yield from self._answers.find(expression, budget))


class InventorySlice:
    """A ResourceSlice with its devices.

    What a pool needs to know of its devices is computed here, slice by slice: a pool may have a hundred thousand.

    Args:
        looks: the answers of selectors that devices share.

    Attributes:
        is_readable: whether every quantity and selector can be parsed. If not, there are no devices and no counters.
        name_hashes: those of the devices' names. Equal names have equal hashes.
        consumers: the devices that consume counters.
        needs: the counter sets and counters that devices name; the counter is "" for the set itself.
        is_repeatable: the search result depends only on which of the devices are allocated exclusively.
        is_conditional: whether a device has binding conditions.
        has_groups: whether a device has compatibility groups.
    """

    __slots__ = (
        "_device_nodes",
        "_device_selections",
        "_rules",
        "consumers",
        "counters",
        "devices",
        "has_counters",
        "has_groups",
        "is_conditional",
        "is_readable",
        "is_repeatable",
        "item",
        "name_hashes",
        "needs",
        "pool",
        "selection",
    )

    def __init__(self, item: ResourceSlice, looks: Looks, rules: DeviceRules = NEWEST.devices) -> None:
        spec = item.spec
        self._rules = rules
        self.item = item
        self.pool = (spec.driver, spec.pool.name)
        self.selection = NodeSelection(spec.node_name, spec.all_nodes, spec.node_selector)
        self.has_counters = bool(spec.shared_counters)
        self.devices: tuple[SliceDevice, ...] = ()
        self.counters: list[tuple[str, dict[str, int]]] = []
        self.is_readable = self._read(looks)
        self._summarize(self.devices)

    def _summarize(self, devices: tuple[SliceDevice, ...]) -> None:
        self.name_hashes = np.fromiter((hash(device.id.device) for device in devices), np.int64, len(devices))
        self.consumers = tuple(device for device in devices if device.device.consumes_counters)
        self.needs = frozenset(need for device in self.consumers for need in _needs(device))
        # These depend on the node, or on what others have of the pool, so the answer of one node is not another's.
        self.is_repeatable = not any(
            device.is_shared or device.consumes or device.selection is not None or device.device.binds_to_node
            for device in devices
        )
        self.is_conditional = any(device.device.binding_conditions for device in devices)
        self.has_groups = any(
            consumption.compatibility_groups
            for device in self.consumers
            for consumption in device.device.consumes_counters
        )
        selected_devices = [device for device in devices if device.selection is not None]
        self._device_nodes = frozenset(device.device.node_name for device in selected_devices)
        counters_by_set = {
            (device.device.all_nodes, device.device.node_selector): device.selection
            for device in selected_devices
            if not device.device.node_name
        }
        self._device_selections = tuple(counters_by_set.values())

    def _read(self, looks: Looks) -> bool:
        spec = self.item.spec
        try:
            counters = [
                (
                    counter_set.name,
                    {name: parse(counter.value).nano_value for name, counter in counter_set.counters.items()},
                )
                for counter_set in spec.shared_counters
            ]
            devices = tuple(SliceDevice(self.item, device, looks) for device in spec.devices)
            for device in spec.devices:
                for capacity in (device.capacity or {}).values():
                    for quantity in _quantities(capacity):
                        parse(quantity)
        except QuantityError:
            return False
        # One unreadable selector makes upstream's whole pool invalid.
        selections = (self.selection, *(device.selection for device in devices))
        if not all(selection is None or selection.is_readable for selection in selections):
            return False
        self.devices, self.counters = devices, counters
        return True

    def reaches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return True if it affects the node. A slice with a selector that cannot be parsed may affect any node."""
        # Upstream before: counters concern every node, because devices of other nodes may consume them.
        if (self.has_counters and not self._rules.place_counters) or not self.selection.is_readable:
            return True
        if self.selection.is_set:
            return self.selection.matches(node_name, labels)
        if not self.is_readable:
            return bool(self.item.spec.per_device_node_selection)
        return node_name in self._device_nodes or any(
            selection is not None and selection.matches(node_name, labels) for selection in self._device_selections
        )


class Inventory:
    """All slices of a cluster. Each is read when it is first asked for.

    Attributes:
        rules: those of the search for devices.
        derived: what has been computed from the slices that matter to a node, by its name.
        interned: what has been computed from slices that several nodes may reach, by the identity of the slices.
        interned_pools: the same for the slices of one pool.
        version: grows whenever something of `derived` is forgotten.
    """

    def __init__(self, slices: Iterable[ResourceSlice] = (), rules: DeviceRules = NEWEST.devices) -> None:
        self.rules = rules
        self.derived: dict[str, Any] = {}
        self.interned: dict[tuple[int, ...], Any] = {}
        self.interned_pools: dict[tuple[int, ...], Any] = {}
        self.version = 0
        self._of_node: dict[str, dict[str, ResourceSlice]] = {}
        self._without_node: dict[str, ResourceSlice] = {}
        self._of_pool: dict[tuple[str, str], dict[str, ResourceSlice]] = {}
        self._read: dict[str, InventorySlice] = {}
        self._taint_rules = TaintRules(is_selective=rules.need_rule_selector)
        self._looks = Looks(rules.selectors)
        for item in slices:
            self.put(item)

    def put(self, new: ResourceSlice, old: ResourceSlice | None = None) -> None:
        """Add a slice, or replace its older state."""
        # First, because a changed slice may have moved to another node or pool.
        if old is not None:
            self.remove(old)
        key = new.key
        self._place(new)[key] = new
        self._of_pool.setdefault(_pool_of(new), {})[key] = new
        self._forget(new)

    def remove(self, old: ResourceSlice) -> None:
        """Remove a slice."""
        key = old.key
        self._forget(old)
        self._read.pop(key, None)
        self._place(old).pop(key, None)
        node_name, pool = old.spec.node_name, _pool_of(old)
        if node_name and not self._of_node.get(node_name):
            self._of_node.pop(node_name, None)
        if (siblings := self._of_pool.get(pool)) is not None:
            siblings.pop(key, None)
            if not siblings:
                del self._of_pool[pool]

    def change_taint_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        """Take an added, changed or deleted taint rule; its slices are read again on the next access."""
        if new is not None:
            self._taint_rules.put(new)
        elif old is not None:
            self._taint_rules.remove(old)
        # A rule's status changes often, with the number of pods that it evicts.
        if old is not None and new is not None and old.spec == new.spec:
            return
        rules = [rule for rule in (old, new) if rule is not None]
        for items in self._of_pool.values():
            for item in items.values():
                if any(self._taint_rules.reaches(rule, item) for rule in rules):
                    self._read.pop(item.key, None)
                    self._forget(item)

    def candidates(self, node_name: str) -> list[InventorySlice]:
        """Return the slices that may matter to a node: its own ones, and all that name no node.

        Those that hold counters may matter to any node, unless the rules say that their nodes count.
        """
        node_candidates = self._of_node.get(node_name, {})
        return [self.entry(item) for items in (node_candidates, self._without_node) for item in items.values()]

    def part_of(self, node_names: Iterable[str]) -> Inventory:
        """Return a separate inventory with the pools of these nodes. Its results are not cached in this one."""
        entries = [entry for name in node_names for entry in self.candidates(name)]
        items = {entry.item.key: entry.item for entry in entries}
        for pool in dict.fromkeys(entry.pool for entry in entries):
            items |= {item.key: item for item in self._of_pool.get(pool, {}).values()}
        part = Inventory(items.values(), self.rules)
        part._taint_rules = self._taint_rules
        return part

    def of_pool(self, pool: tuple[str, str]) -> list[InventorySlice]:
        """Return the slices of a pool, given by driver and name, of every generation and node."""
        return [self.entry(item) for item in self._of_pool.get(pool, {}).values()]

    def _forget(self, item: ResourceSlice) -> None:
        """Forget what was derived from a slice: for its node if no other one can reach its pool, else for all."""
        self.version += 1
        name, siblings = item.spec.node_name, self._of_pool.get(_pool_of(item), {}).values()
        # A pool of one node's own slices, as most are, concerns no other node's results.
        if name and self._is_of_node(item) and all(sibling.spec.node_name == name for sibling in siblings):
            self.derived.pop(name, None)
        else:
            self.derived.clear()
            self.interned.clear()
            self.interned_pools.clear()

    def _place(self, item: ResourceSlice) -> dict[str, ResourceSlice]:
        if item.spec.node_name and self._is_of_node(item):
            return self._of_node.setdefault(item.spec.node_name, {})
        return self._without_node

    def _is_of_node(self, item: ResourceSlice) -> bool:
        """Return True if the slice matters to one node only."""
        return bool(item.spec.node_name) and (self.rules.place_counters or not item.spec.shared_counters)

    def entry(self, item: ResourceSlice) -> InventorySlice:
        """Return the slice with its devices, read once."""
        entry = self._read.get(item.key)
        if entry is None:
            item = self._taint_rules.apply_to(item)
            entry = self._read[item.key] = InventorySlice(item, self._looks, self.rules)
        return entry


def _needs(device: SliceDevice) -> Iterator[tuple[str, str]]:
    """Yield the counter sets, and the counters in them, that the device names."""
    yield from ((consumption.counter_set, "") for consumption in device.device.consumes_counters)
    yield from ((counter_set, counter) for counter_set, counter, _ in device.consumes)


def _pool_of(item: ResourceSlice) -> tuple[str, str]:
    return item.spec.driver, item.spec.pool.name


def _quantities(capacity: DeviceCapacity) -> Iterator[RawQuantity]:
    """Yield every quantity of a capacity."""
    yield capacity.value
    policy = capacity.request_policy
    if policy is None:
        return
    limits = policy.valid_range
    bounds = () if limits is None else (limits.min, limits.max, limits.step)
    yield from (quantity for quantity in (policy.default, *policy.valid_values, *bounds) if quantity is not None)
