"""Stand-in device drivers: one task that publishes the devices of every node as ResourceSlices.

The names of driver, class and attributes are those of the example driver of Kubernetes, so that its examples work.
Source: kubernetes-sigs/dra-example-driver.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from podium.sandbox.feeds import Feed
from podium.sandbox.journal import DELETED, Change
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

_NODES = resource_named("nodes")
_SLICES = resource_named("resourceslices")
_API_VERSION = _SLICES.api_version
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME_LENGTH_MAX = 20
_COUNT_MAX = 128  # of a ResourceSlice
_NUMA_NODES = 2
_UUIDS = uuid.UUID("9f3a1c52-6f0e-4a35-9a44-1f5b0c6f7a10")
# The models take turns: of three nodes, the last one has the earlier model.
_MODELS = (("LATEST", 80), ("LATEST", 80), ("EARLIER", 40))


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of devices, and how many of them each node has."""

    name: str
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `<name>=<count>`.

        Raises:
            ValueError: the text has another form, or a name or count that no API server would accept.
        """
        name, equals, count = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r} is not of the form NAME=COUNT, such as gpu=8")
        if not _NAME.fullmatch(name) or len(name) > _NAME_LENGTH_MAX:
            raise ValueError(
                f"{name!r} cannot be part of a driver's name: use at most {_NAME_LENGTH_MAX} lower-case letters, "
                "digits and '-'"
            )
        if not (count.isascii() and count.isdigit() and 1 <= int(count[:9]) <= _COUNT_MAX):
            raise ValueError(f"{name}: the count has to be from 1 to {_COUNT_MAX}, not {count!r}")
        return cls(name, int(count))

    @property
    def driver(self) -> str:
        """The name of the driver, and of the device class."""
        return f"{self.name}.example.com"

    @property
    def resource(self) -> str:
        """The extended resource that the devices provide."""
        return f"dra.example.com/{self.name}"


class DeviceDrivers:
    """Stands in for the drivers of all devices on all nodes: creates their classes, and a slice for each node."""

    def __init__(self, store: Store, kinds: Sequence[DeviceKind]) -> None:
        self._store = store
        self._kinds = kinds
        self._nodes = Feed(store.collection(_NODES))
        self._published = 0
        for kind in kinds:
            store.create(device_class(kind))

    async def run(self) -> None:
        """Publish the devices of nodes that come, and take back those of nodes that go, until cancelled."""
        wake = asyncio.Event()
        with self._nodes.waking(wake.set):
            while True:
                wake.clear()
                self.work()
                await wake.wait()

    def work(self) -> None:
        """Read the changes of nodes, and publish what follows."""
        for change in self._nodes.read():
            for kind in self._kinds:
                self._publish(kind, change)

    def _publish(self, kind: DeviceKind, change: Change) -> None:
        node = change.record.obj["metadata"]
        key = ("", _slice_name(node["name"], kind))
        record = self._store.collection(_SLICES).records.get(key)
        if change.type == DELETED:
            if record is not None:
                self._store.delete_record(_SLICES, record, {})
        elif record is None:
            self._store.create(resource_slice(node, kind, self._published))
            self._published += 1


def device_class(kind: DeviceKind) -> Json:
    """Return the class of all devices of a kind."""
    spec = {
        "selectors": [{"cel": {"expression": f"device.driver == '{kind.driver}'"}}],
        "extendedResourceName": kind.resource,
    }
    return {"apiVersion": _API_VERSION, "kind": "DeviceClass", "metadata": {"name": kind.driver}, "spec": spec}


def resource_slice(node: Json, kind: DeviceKind, number: int) -> Json:
    """Return the slice with all devices of a kind on a node.

    Args:
        node: the node's metadata.
        number: how many slices have been published before; it decides the model.
    """
    name = node["name"]
    model, memory_gib = _MODELS[number % len(_MODELS)]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["uid"], "controller": True}
    devices = [
        _device(kind, name, index, f"{model}-{kind.name.upper()}-MODEL", memory_gib) for index in range(kind.count)
    ]
    return {
        "apiVersion": _API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": _slice_name(name, kind), "ownerReferences": [owner]},
        "spec": {
            "driver": kind.driver,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _device(kind: DeviceKind, node_name: str, index: int, model: str, memory_gib: int) -> Json:
    numa = index * _NUMA_NODES // kind.count
    return {
        "name": f"{kind.name}-{index}",
        "attributes": {
            "index": {"int": index},
            "uuid": {"string": f"{kind.name}-{uuid.uuid5(_UUIDS, f'{node_name}/{kind.name}/{index}')}"},
            "model": {"string": model},
            "driverVersion": {"version": "1.0.0"},
            "numa": {"int": numa},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{numa:02x}"},
        },
        "capacity": {"memory": {"value": f"{memory_gib}Gi"}},
    }


def _slice_name(node_name: str, kind: DeviceKind) -> str:
    return f"{node_name}-{kind.driver}"
