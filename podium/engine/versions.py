"""Objects of `resource.k8s.io` of other versions than v1: v1beta2 is alike, v1beta1 is converted, others are refused.

Owns what became of each field. A claim or a slice of another version has the same names at other places, so it must
never be read as if it were of v1.

Source: kubernetes pkg/apis/resource/v1beta1/conversion.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.engine.errors import ManifestError

GROUP: Final = "resource.k8s.io"
CURRENT: Final = f"{GROUP}/v1"
_ALIKE: Final = f"{GROUP}/v1beta2"
_CONVERTED: Final = f"{GROUP}/v1beta1"
_KINDS: Final = frozenset({"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"})
_OF_THE_REQUEST: Final = frozenset({"name", "firstAvailable", "exactly"})
"""The fields of a request that stay where they are; all others are those of `exactly` in v1."""


def current_form(manifest: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """Return a claim, a slice or a class in the form of v1; any other object as it is.

    Args:
        source: what to call the object's place in errors.

    Raises:
        ManifestError: its version cannot be read.
    """
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    if kind not in _KINDS or not isinstance(version, str) or not version.startswith(f"{GROUP}/") or version == CURRENT:
        return manifest
    if version not in (_ALIKE, _CONVERTED):
        raise ManifestError(f"{source}: {kind} of {version} is not read, only of {CURRENT}, {_ALIKE} and {_CONVERTED}")
    spec = manifest.get("spec")
    changes: dict[str, Any] = {"apiVersion": CURRENT}
    if version == _CONVERTED and isinstance(spec, Mapping):
        if kind == "ResourceClaim":
            changes["spec"] = _claim_spec(spec)
        elif kind == "ResourceClaimTemplate" and isinstance(spec.get("spec"), Mapping):
            changes["spec"] = {**spec, "spec": _claim_spec(spec["spec"])}
        elif kind == "ResourceSlice" and isinstance(spec.get("devices"), list):
            changes["spec"] = {**spec, "devices": [_device(device) for device in spec["devices"]]}
    return {**manifest, **changes}


def _claim_spec(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    devices = spec.get("devices")
    if not isinstance(devices, Mapping) or not isinstance(devices.get("requests"), list):
        return spec
    return {**spec, "devices": {**devices, "requests": [_request(request) for request in devices["requests"]]}}


def _request(request: Any) -> Any:
    if not isinstance(request, Mapping) or "exactly" in request:
        return request
    exactly = {name: value for name, value in request.items() if name not in _OF_THE_REQUEST}
    request_fields = {name: value for name, value in request.items() if name in _OF_THE_REQUEST}
    return {**request_fields, **({"exactly": exactly} if exactly else {})}


def _device(device: Any) -> Any:
    """Return the device with the fields that v1beta1 has in `basic`."""
    if not isinstance(device, Mapping) or not isinstance(device.get("basic"), Mapping):
        return device
    return {**{name: value for name, value in device.items() if name != "basic"}, **device["basic"]}
