"""Sample pods with claims for devices, for a cluster whose nodes all have the devices of some kinds.

Invariant: whatever a scheduler decides for some of the pods, the devices for the next one are free on some node. It
holds because all claims together ask for at most half of each kind's devices, and pairs only where two free ones must
share a PCIe root then. The pods request neither cpu nor memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.sandbox.device_drivers import DeviceKind
from podium.sandbox.fill import sample_pod

Json = dict[str, Any]

_API_VERSION = "resource.k8s.io/v1"
_PODS_PER_NODE_MAX = 10
_COUNT_MIN_FOR_PAIRS = 4
# Pods repeat these forms of claims. Those of `shared` come in twos.
_FORMS = ("one", "best", "pair", "one", "shared", "shared")
_DEVICES_OF = {"one": 1, "best": 1, "pair": 2, "shared": 1}


def device_claims_and_pods(
    kinds: Sequence[DeviceKind], nodes: int, scheduler_name: str = "podium"
) -> tuple[list[Json], list[Json]]:
    """Return templates and claims, and their pods, for at most half of the devices and ten per node."""
    claims: list[Json] = []
    pods: list[Json] = []
    room = _PODS_PER_NODE_MAX * nodes // max(len(kinds), 1)
    for kind in kinds:
        forms = [form for form in _FORMS if form != "pair" or kind.count >= _COUNT_MIN_FOR_PAIRS]
        claims += [_template(f"{form}-{kind.name}", _devices(form, kind)) for form in ("one", "best", "pair")]
        remainder, index = min(nodes * kind.count // 2, room), 0
        while (remainder := remainder - _DEVICES_OF[form := forms[index % len(forms)]]) >= 0:
            pods.append(_pod(f"{form}-{kind.name}-{index:04d}", _entry(form, kind, index), scheduler_name))
            if form == "shared":
                claim_name = f"shared-{kind.name}-{index:04d}"
                claims.append(_claim(claim_name, _devices("one", kind)))
                pods.append(_pod(f"{claim_name}-too", {"resourceClaimName": claim_name}, scheduler_name))
            index += 1
    return claims, pods


def no_such_device(kind: DeviceKind, scheduler_name: str = "podium") -> tuple[Json, Json]:
    """Return a template that no device meets, and a pod with it."""
    requests = [{"name": "device", "exactly": _exactly(kind, 'device.attributes["{}"].model == "NONE"')}]
    pod = _pod("no-such-device", {"resourceClaimTemplateName": "no-such-device"}, scheduler_name)
    return _template("no-such-device", {"requests": requests}), pod


def _entry(form: str, kind: DeviceKind, index: int) -> Json:
    if form == "shared":
        return {"resourceClaimName": f"shared-{kind.name}-{index:04d}"}
    return {"resourceClaimTemplateName": f"{form}-{kind.name}"}


def _devices(form: str, kind: DeviceKind) -> Json:
    if form == "best":
        latest = _exactly(kind, f'device.attributes["{{}}"].model == "LATEST-{kind.name.upper()}-MODEL"')
        return {
            "requests": [
                {"name": "device", "firstAvailable": [latest | {"name": "latest"}, _exactly(kind) | {"name": "any"}]}
            ]
        }
    exactly = _exactly(kind) | {"count": _DEVICES_OF[form]}
    devices: Json = {"requests": [{"name": "device", "exactly": exactly}]}
    if form == "pair":
        devices["constraints"] = [{"requests": ["device"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    return devices


def _exactly(kind: DeviceKind, expression: str = "") -> Json:
    request: Json = {"deviceClassName": kind.driver}
    if expression:
        request["selectors"] = [{"cel": {"expression": expression.format(kind.driver)}}]
    return request


def _template(name: str, devices: Json) -> Json:
    return _claim(name, devices) | {"kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": devices}}}


def _claim(name: str, devices: Json) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": _API_VERSION, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def _pod(name: str, entry: Json, scheduler_name: str) -> Json:
    pod = sample_pod(name, app="devices", cpu_milli=0, memory_mib=0, scheduler_name=scheduler_name)
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]
    pod["spec"]["resourceClaims"] = [{"name": "device", **entry}]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "device"}]}
    return pod
