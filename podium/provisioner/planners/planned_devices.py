"""Devices for resource claims that new nodes bring: those that the catalogue says their instance type has.

Owns the ResourceSlices that stand for them. Allocates none of them: podium's plugins do, from these slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podium.devices.class_table import IMPLICIT_PREFIX
from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.objects.resource_types import DEVICE_CLASSES, RESOURCE_SLICES
from podium.provisioner.cloudprovider.instance_types import InstanceType
from podium.provisioner.provisioning.daemons import uses_devices
from podium.provisioner.scheduling.amounts import requests_of


class PlannedDevices:
    """The pods that ask for devices.

    Args:
        world: has the DeviceClasses.
    """

    def __init__(self, world: Cluster) -> None:
        classes = world.store.objects(DEVICE_CLASSES).values()
        self._resources = {device_class.spec.extended_resource_name for device_class in classes} - {None, ""}

    def uses(self, pod: Pod) -> bool:
        """Return True if the pod has resource claims, or requests an extended resource that devices may serve."""
        return uses_devices(pod.spec) or any(map(self._is_served_by_devices, requests_of(pod)))

    def plain_requests(self, pod: Pod) -> Requests:
        """Return the pod's requests without those that devices may serve instead of the node itself."""
        return {name: amount for name, amount in requests_of(pod).items() if not self._is_served_by_devices(name)}

    def _is_served_by_devices(self, resource: str) -> bool:
        return resource in self._resources or resource.startswith(IMPLICIT_PREFIX)


def slices_of(instance_type: InstanceType, node_name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the ResourceSlices that the drivers of a new node will publish: of each driver a pool with its name."""
    for driver, devices in sorted(instance_type.devices.items()):
        counters = instance_type.counters.get(driver, ())
        parts = [{"sharedCounters": msgspec.to_builtins(counters)}] if counters else []
        parts.append({"devices": msgspec.to_builtins(devices)})
        for index, part in enumerate(parts):
            yield {
                "apiVersion": RESOURCE_SLICES.api_version,
                "kind": RESOURCE_SLICES.kind,
                "metadata": {"name": f"{node_name}-{driver}-{index}"},
                "spec": {
                    "driver": driver,
                    "nodeName": node_name,
                    "pool": {"name": node_name, "generation": 1, "resourceSliceCount": len(parts)},
                    **part,
                },
            }
