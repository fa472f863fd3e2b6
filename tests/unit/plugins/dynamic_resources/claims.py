"""Claims, classes and slices around plugins, and listers that report changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from podium.objects.claims import EXTENDED_RESOURCE_CLAIM, ResourceClaim
from podium.objects.core import Pod
from podium.objects.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from podium.objects.resource_types import DEVICE_CLASSES, DEVICE_TAINT_RULES, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.builders import pod
from tests.device_manifests import exactly, resource_claim
from tests.unit.plugins.clusters import Listed, RecordingHandle

DRIVER, GPU = "gpu.example.com", "example.com/gpu"
CLASS = msgspec.convert({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}, DeviceClass)


class Followable(Listed):
    """A lister that reports changes, as an informer does."""

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        super().__init__(objects)
        self.handlers: list[Any] = []

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def __len__(self) -> int:
        return len(self._objects)

    def put(self, item: Any) -> None:
        former = self._objects.get(item.key)
        self._objects[item.key] = item
        for handler in self.handlers:
            if former is None:
                handler.on_add(item)
            else:
                handler.on_update(former, item)

    def drop(self, key: str) -> None:
        former = self._objects.pop(key)
        for handler in self.handlers:
            handler.on_delete(former)


def allocation(*devices: str, node: str = "n1", **fields: Any) -> dict[str, Any]:
    """An allocation of devices of the node's pool."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": device, **fields} for device in devices]
    names = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": names}]}}


def a_claim(name: str = "c", version: str = "1", users: Iterable[str] = (), **fields: Any) -> ResourceClaim:
    """A claim for one device of class gpu.

    Args:
        users: the pods that it is reserved for.
    """
    request = exactly("r", fields.pop("of_class", "gpu"))
    reserved = [{"resource": "pods", "name": pod_name, "uid": f"uid-{pod_name}"} for pod_name in users]
    status = {key: fields.pop(key) for key in ("allocation", "devices") if key in fields}
    manifest = resource_claim(name, request, reservedFor=reserved, **status)
    manifest["metadata"] |= {"resourceVersion": version, **fields}
    return msgspec.convert(manifest, ResourceClaim)


def special_claim(name: str, owner: str) -> ResourceClaim:
    """A claim that was made for a pod's extended resources."""
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}
    return a_claim(name, annotations={EXTENDED_RESOURCE_CLAIM: "true"}, ownerReferences=[reference])


def a_slice(node: str, *devices: Any) -> ResourceSlice:
    """The devices of a node, as one pool."""
    slice_devices = [{"name": device} if isinstance(device, str) else device for device in devices]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": slice_devices}
    return msgspec.convert({"metadata": {"name": node}, "spec": spec}, ResourceSlice)


def user(*claims: str, name: str = "web-1") -> Pod:
    """A pod with these claims."""
    return pod(
        name, spec={"resourceClaims": [{"name": claim_name, "resourceClaimName": claim_name} for claim_name in claims]}
    )


class DeviceHandle(RecordingHandle):
    """A handle to these claims and slices, and class gpu. Its listers report changes."""

    def __init__(self, *objects: Any, classes: Iterable[DeviceClass] = (CLASS,), **fields: Any) -> None:
        super().__init__(**fields)
        self.claims = Followable(item for item in objects if isinstance(item, ResourceClaim))
        self.slices = Followable(item for item in objects if isinstance(item, ResourceSlice))
        self.classes = Followable(classes)
        self.taint_rules = Followable(item for item in objects if isinstance(item, DeviceTaintRule))
        self.events: list[tuple[str, str]] = []

    def lister(self, resource: Any) -> Listed:
        listers = {
            RESOURCE_CLAIMS: self.claims,
            RESOURCE_SLICES: self.slices,
            DEVICE_CLASSES: self.classes,
            DEVICE_TAINT_RULES: self.taint_rules,
        }
        return listers[resource]

    def record(self, pod: Pod, reason: str, note: str, **_: Any) -> None:
        self.events.append((reason, note))
