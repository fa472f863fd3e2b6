from __future__ import annotations

from typing import Any

import msgspec

from podium.cli.demo.devices import ClaimUse, ClaimWatcher, device_use
from podium.cli.demo.outcome import Outcome
from podium.cli.demo.summary import failure
from podium.objects.claims import ResourceClaim
from podium.objects.devices import ResourceSlice
from tests.builders import pod
from tests.device_manifests import exactly, resource_claim


def claim(name: str, *devices: str, users: tuple[str, ...] = ("web",), **changes: Any) -> ResourceClaim:
    results = [{"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": device} for device in devices]
    constraint = {"matchAttribute": "resource.kubernetes.io/pcieRoot"}
    allocation = {"devices": {"results": results}}
    reserved = [{"resource": "pods", "name": user, "uid": pod(user).uid} for user in users]
    request = exactly("r", "gpu.example.com", count=2)
    manifest = resource_claim(name, request, constraints=[constraint], allocation=allocation, reservedFor=reserved)
    return msgspec.convert({**manifest, **changes}, ResourceClaim)


def resource_slice(*devices: str) -> ResourceSlice:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "devices": [{"name": device} for device in devices]}
    return msgspec.convert({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice)


def test_each_claim_shows_its_pods_its_node_its_devices_and_what_it_asked_for() -> None:
    pods = [pod("web", node="n1"), pod("too", node="n1")]
    use = device_use(
        [claim("c", "gpu-0", "gpu-1", users=("web", "too"))], [resource_slice("gpu-0", "gpu-1", "gpu-2")], pods
    )
    assert use.claims == (ClaimUse(("too", "web"), "n1", ("gpu-0", "gpu-1"), "2 gpu, same pcieRoot"),)
    assert (use.in_use, use.total, use.twice) == (2, {"gpu.example.com": 3}, ())


def test_a_device_that_two_claims_hold_is_a_failure_and_named() -> None:
    use = device_use([claim("c", "gpu-0"), claim("d", "gpu-0")], [resource_slice("gpu-0")], [])
    outcome = Outcome(nodes=(), pods=0, bound_count=0, duration_s=1.0, devices=use)
    assert not outcome.is_success
    assert failure(outcome, 1.0) == "these devices were allocated twice: gpu.example.com/n1/gpu-0"


def test_a_claim_is_reported_once() -> None:
    messages: list[str] = []
    watcher = ClaimWatcher(messages.append)
    watcher.on_add(claim("c", status={}))
    for _ in range(2):
        watcher.on_update(claim("c", status={}), claim("c", "gpu-0", "gpu-1"))
    assert messages == ["web gets gpu-0 and gpu-1 of n1"]
