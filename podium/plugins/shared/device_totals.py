"""Counts the devices of a node that provide an extended resource, and those of them that are allocated, for scores.

Source: kubernetes pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, v1.36.2. As upstream, slices
count whatever their generation, and taints, counters and incomplete pools do not matter.
Differs: NodeResourcesBalancedAllocation counts devices of classes with selectors too, where upstream panics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from podium.cel import CompileError, EvaluationError
from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import ResourceSpec
from podium.devices import AllocatedDevices
from podium.devices.extended_resources import may_be_devices
from podium.devices.inventory import SliceDevice
from podium.objects.devices import DeviceClass
from podium.objects.requests import Requests
from podium.plugins.shared.cluster_devices import ClusterDevices


class DeviceTotals:
    """The devices behind extended resources that a strategy counts.

    Args:
        resources: these extended resources.
    """

    def __init__(self, devices: ClusterDevices, resources: Sequence[str]) -> None:
        self._devices = devices
        self._resources = resources

    @classmethod
    def of_resources(cls, devices: ClusterDevices, resources: Iterable[ResourceSpec]) -> DeviceTotals | None:
        """Return the devices behind the resources that a strategy counts; None if none of them may be devices."""
        names = [resource.name for resource in resources if may_be_devices(resource.name)]
        return cls(devices, names) if names else None

    def classes(self, requests: Requests) -> Mapping[str, DeviceClass]:
        """Return the classes of the requested resources that devices provide."""
        classes = {name: self._devices.class_for(name) for name in self._resources if requests.get(name, 0)}
        return {name: device_class for name, device_class in classes.items() if device_class is not None}

    def add_to(
        self, allocatable: IntArray, in_use: IntArray, device_class: DeviceClass, snapshot: Snapshot, rows: Rows
    ) -> None:
        """Fill in the devices of the rows whose allocatable is 0. Shape: one entry per row of `rows`."""
        devices_in_use = self._devices.allocated_devices()
        for position in np.flatnonzero(allocatable == 0).tolist():
            total, in_use_count = self._count(snapshot.node(int(rows[position])), device_class, devices_in_use)
            if total:
                allocatable[position], in_use[position] = total, in_use_count

    def of(self, node: NodeInfo, device_class: DeviceClass) -> tuple[int, int]:
        """Return how many devices of the node the class selects, and how many of them are allocated."""
        return self._count(node, device_class, self._devices.allocated_devices())

    def _count(self, node: NodeInfo, device_class: DeviceClass, devices_in_use: AllocatedDevices) -> tuple[int, int]:
        total = in_use_count = 0
        try:
            for entry in self._devices.inventory().candidates(node.name):
                if not entry.item.spec.per_device_node_selection and not entry.selection.matches(
                    node.name, node.labels
                ):
                    continue
                for device in entry.devices:
                    is_here = device.selection is None or device.selection.matches(node.name, node.labels)
                    if is_here and _is_selected(device, device_class):
                        total += 1
                        in_use_count += devices_in_use.is_allocated(device.id)
        except (CompileError, EvaluationError):
            return 0, 0
        return total, in_use_count


def _is_selected(device: SliceDevice, device_class: DeviceClass) -> bool:
    """Return whether the class selects the device. As upstream, selectors see every device as not shared."""
    selectors = device_class.spec.selectors
    return all(
        selector.cel is None or device.dedicated_device.matches(selector.cel.expression) for selector in selectors
    )
