"""A JSON object with every field that podium reads of a kind, made from the types themselves."""

from __future__ import annotations

import types
import typing
from typing import Any, Final

import msgspec

from podium.objects.meta import Value

Json = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACE: Final = "shop"
SCHEDULER: Final = "default-scheduler"

_LABELS: Final = {"app": "web", "tier": "front"}
# What makes sense by the name of the field; every other text is its field's name.
_BY_FIELD: Final[dict[str, Any]] = {
    "namespace": NAMESPACE,
    "namespaces": [NAMESPACE],
    "labels": _LABELS,
    "annotations": {"note": "none"},
    "resourceVersion": "10",
    "matchLabels": {"app": "web"},
    "matchLabelKeys": ["tier"],
    "mismatchLabelKeys": ["pod-template-hash"],
    "nodeSelector": {ZONE: "zone-1"},
    "operator": "In",
    "key": ZONE,
    "values": ["zone-1", "zone-2"],
    "topologyKey": ZONE,
    "topologyKeys": [ZONE],
    "whenUnsatisfiable": "DoNotSchedule",
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Honor",
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
    "requests": {"cpu": "100m", "memory": "64Mi", "example.com/gpu": "1"},
    "limits": {"cpu": "1", "memory": "1Gi"},
    "overhead": {"cpu": "10m"},
    "capacity": {"storage": "10Gi"},
    "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110", "example.com/gpu": "8"},
    "allocatedResources": {"cpu": "200m"},
    "effect": "NoSchedule",
    "schedulerName": SCHEDULER,
    "preemptionPolicy": "PreemptLowerPriority",
    "protocol": "TCP",
    "hostIP": "127.0.0.1",
    "image": "app:1",
    "restartPolicy": "Always",
    "phase": "Pending",
    "status": "True",
    "nodeName": "",
    "nominatedNodeName": "node-1",
    "claimName": "data",
    "storageClassName": "fast",
    "volumeName": "pv-1",
    "volumeBindingMode": "WaitForFirstConsumer",
    "provisioner": "csi.example.com",
    "driver": "csi.example.com",
    "accessModes": ["ReadWriteOnce"],
    "storage": "1Gi",
    "maxUnavailable": "30%",
    "minAvailable": 1,
}
_NOT_HERE: Final = ("deletionTimestamp", "creationTimestamp")


def example(kind: type[Any]) -> Json:
    """Every field of the type, as it stands on the wire, with a value that makes sense."""
    return {
        field.encode_name: _value(field.encode_name, field.type)
        for field in msgspec.structs.fields(kind)
        if field.encode_name not in _NOT_HERE and (issubclass(kind, Value))
    }


def _value(name: str, kind: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _value(name, arguments[0])
    if origin in (typing.Union, types.UnionType):
        return _value(name, next(argument for argument in arguments if argument is not type(None)))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return example(kind)
    if name in _BY_FIELD:
        value = _BY_FIELD[name]
        if isinstance(value, str) == (kind is str) or origin in (tuple, dict):
            return value
    if origin is tuple:
        return [_value(name, arguments[0])]
    if origin is dict:
        return {name: _value(name, arguments[1])}
    return {str: name, int: 1, float: 1.0, bool: False}.get(kind, name)
