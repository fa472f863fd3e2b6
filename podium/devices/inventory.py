"""The devices of a cluster, as its ResourceSlices list them.

Owns what is computed once per slice: its devices with parsed values, who can reach it, and which slices a pool has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from podium.cel import BoundDevice, compile_selector
from podium.objects.core import NodeSelector
from podium.objects.devices import Device, ResourceSlice
from podium.objects.quantity import parse
from podium.objects.selectors import NodeMatcher, compile_node_selector

_ANSWERS_MAX: Final = 256

Counters = dict[str, dict[str, int]]
"""Exact amounts in billionths, by counter set and counter."""


class DeviceID(NamedTuple):
    """What tells a device from every other one."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """`<driver>/<pool>/<device>`."""
        return "/".join(self)


class NodeSelectionError(Exception):
    """A node selector cannot be parsed."""


class NodeSelection:
    """The nodes that can reach a slice or a device: one by name, all, or those that a selector matches. Else none."""

    __slots__ = ("_all_nodes", "_matcher", "_node_name")

    def __init__(self, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> None:
        self._node_name = node_name or ""
        self._all_nodes = bool(all_nodes)
        self._matcher: NodeMatcher | None = None if selector is None else compile_node_selector(selector)

    @property
    def is_set(self) -> bool:
        """Whether any of them is given."""
        return bool(self._node_name) or self._all_nodes or self._matcher is not None

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node can reach it.

        Raises: NodeSelectionError.
        """
        if self._node_name:
            return self._node_name == node_name
        if self._all_nodes:
            return True
        if self._matcher is None:
            return False
        if self._matcher.errors:
            raise NodeSelectionError(f"failed to parse node selector: {self._matcher.errors[0]}")
        return self._matcher.matches(labels, node_name)


class SliceDevice:
    """A device in its slice.

    Attributes:
        selection: the nodes that can reach it, if its slice leaves that to the devices.
        consumes: how much it takes of which counter, in the order of the device's entries.
    """

    __slots__ = ("_answers", "_bound", "consumes", "device", "id", "selection", "slice")

    def __init__(self, item: ResourceSlice, device: Device) -> None:
        self.slice = item
        self.device = device
        self.id = DeviceID(item.spec.driver, item.spec.pool.name, device.name)
        self.selection: NodeSelection | None = None
        if item.spec.per_device_node_selection:
            self.selection = NodeSelection(device.node_name, device.all_nodes, device.node_selector)
        self.consumes = tuple(
            (each.counter_set, name, parse(counter.value).nano_value)
            for each in device.consumes_counters
            for name, counter in each.counters.items()
        )
        self._bound: BoundDevice | None = None
        self._answers: dict[str, bool] = {}

    @property
    def is_shared(self) -> bool:
        """Whether it may be allocated several times."""
        return bool(self.device.allow_multiple_allocations)

    def matches(self, expression: str) -> bool:
        """Whether the selector selects the device. Answers are kept, errors are not.

        Raises: CompileError, EvaluationError.
        """
        answer = self._answers.get(expression)
        if answer is None:
            selector = compile_selector(expression)
            if self._bound is None:
                self._bound = BoundDevice(self.id.driver, self.device)
            answer = selector.matches(self._bound)
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            self._answers[expression] = answer
        return answer


class InventorySlice:
    """A ResourceSlice with its devices."""

    __slots__ = ("counters", "devices", "item", "pool", "selection")

    def __init__(self, item: ResourceSlice) -> None:
        spec = item.spec
        self.item = item
        self.pool = (spec.driver, spec.pool.name)
        self.selection = NodeSelection(spec.node_name, spec.all_nodes, spec.node_selector)
        self.devices = tuple(SliceDevice(item, device) for device in spec.devices)
        self.counters = [
            (each.name, {name: parse(counter.value).nano_value for name, counter in each.counters.items()})
            for each in spec.shared_counters
        ]

    @property
    def has_counters(self) -> bool:
        """Whether it holds shared counters, and so offers no devices."""
        return bool(self.counters)

    def reaches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Whether it matters to the node.

        Raises: NodeSelectionError.
        """
        if self.has_counters:
            return True
        if self.selection.is_set:
            return self.selection.matches(node_name, labels)
        selections = (device.selection for device in self.devices)
        return any(each is not None and each.matches(node_name, labels) for each in selections)


class Inventory:
    """All slices of a cluster.

    Args:
        slices: in the order in which an API server lists them.
    """

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._by_node: dict[str, list[InventorySlice]] = {}
        self._without_node: list[InventorySlice] = []
        self._by_pool: dict[tuple[str, str], list[InventorySlice]] = {}
        for item in slices:
            entry = InventorySlice(item)
            if not item.spec.node_name or entry.has_counters:
                self._without_node.append(entry)
            else:
                self._by_node.setdefault(item.spec.node_name, []).append(entry)
            self._by_pool.setdefault(entry.pool, []).append(entry)

    def candidates(self, node_name: str) -> list[InventorySlice]:
        """The slices that may matter to a node: its own ones, and all that name no node or hold counters."""
        return [*self._by_node.get(node_name, ()), *self._without_node]

    def of_pool(self, pool: tuple[str, str]) -> list[InventorySlice]:
        """The slices of a pool, given by driver and name, of every generation and node."""
        return self._by_pool.get(pool, [])
