"""Devices on the real API server, with the real claim controller; the test plays drivers and kubelets.

Every kind of claim at once, given back after deletion; and podium killed between a claim's allocation and the binding
of its pod, again and again, with no device given to two claims.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.control_plane.locate import Binaries
from tests.device_kills.kills import check_no_device_twice, kill_at
from tests.device_manifests import exactly as device_request
from tests.device_manifests import resource_claim
from tests.e2e.cluster import PODS, RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon, new_cluster
from tests.e2e.daemon import configuration
from tests.e2e.test_devices import (
    API,
    CLAIMS,
    CLASSES,
    DRIVER,
    RESOURCE,
    RULES,
    SLICES,
    device_class,
    device_slice,
    gpu_user,
    rules_hold,
    user,
)
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

OLDER_RULES = RULES.replace("/v1/", "/v1beta2/")
TEMPLATES = f"{API}/namespaces/default/resourceclaimtemplates"
GANG = Path(__file__).parents[2] / "examples/plugins/gang.py"


@pytest.fixture
async def with_claim_controller(own_cluster: RealCluster) -> AsyncIterator[RealCluster]:
    names = ("resourceclaim-controller", "garbage-collector-controller")
    process = await anyio.to_thread.run_sync(own_cluster.plane.start_controllers, *names)
    try:
        yield own_cluster
    finally:
        await anyio.to_thread.run_sync(process.kill)


def gpu(index: int, model: str = "large", **fields: Any) -> Json:
    attributes = {"model": {"string": model}, "index": {"int": index}}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}, **fields}


def template(name: str, request: Json, **devices: Any) -> Json:
    spec = {"spec": {"devices": {"requests": [{"name": "r", **request}], **devices}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def exactly(expression: str = "", **fields: Any) -> Json:
    selectors = [{"cel": {"expression": expression.replace("DRIVER", DRIVER)}}] if expression else []
    return {"deviceClassName": "gpu", "selectors": selectors, **fields}


def from_template(name: str, template_name: str, **fields: Any) -> Json:
    item = pod(name, **fields)
    item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template_name}]
    item["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return item


def partitions(node_name: str) -> list[Json]:
    """A GPU of 80Gi that can be had as a whole or in two halves, and of which one half is tainted."""
    pool = {"name": f"{node_name}-partitions", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool}
    counters = {"counterSet": "gpu", "counters": {"memory": {"value": "80Gi"}}}
    half = {"counterSet": "gpu", "counters": {"memory": {"value": "40Gi"}}}
    devices = [
        gpu(0, "partition", consumesCounters=[counters]),
        *(gpu(index, "partition", consumesCounters=[half]) for index in (1, 2)),
    ]
    devices[2]["taints"] = [{"key": "example.com/hot", "value": "yes", "effect": "NoSchedule"}]
    sets = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node_name}-partitions-{at}"},
            "spec": spec | part,
        }
        for at, part in enumerate(({"sharedCounters": sets}, {"devices": devices}))
    ]


@pytest.mark.control_plane
async def test_claims_of_every_kind_get_devices_and_give_them_back(
    with_claim_controller: RealCluster, start: StartDaemon, tmp_path: Path
) -> None:
    cluster = with_claim_controller
    create = cluster.admin.create
    await cluster.create(*nodes(3))
    await create(CLASSES, device_class(extendedResourceName=RESOURCE))
    await create(SLICES, device_slice("node-0", *(gpu(index) for index in range(4))))
    await create(SLICES, device_slice("node-1", *(gpu(index, "small") for index in range(4))))
    for partition in partitions("node-2"):
        await create(SLICES, partition)
    small, large, part = (f'device.attributes["DRIVER"].model == "{name}"' for name in ("small", "large", "partition"))
    hot = {"key": "example.com/hot", "operator": "Exists"}
    latest = {"name": "latest", **exactly('device.attributes["DRIVER"].model == "none"')}
    await create(TEMPLATES, template("small", {"exactly": exactly(small)}))
    await create(TEMPLATES, template("large", {"exactly": exactly(large)}))
    await create(TEMPLATES, template("best", {"firstAvailable": [latest, {"name": "any", **exactly(large)}]}))
    await create(TEMPLATES, template("half", {"exactly": exactly(part + ' && device.attributes["DRIVER"].index > 0')}))
    await create(TEMPLATES, template("hot", {"exactly": exactly(part, tolerations=[hot])}))
    shared_claim = resource_claim("shared", device_request())
    shared_claim["spec"]["devices"]["requests"][0]["exactly"] |= exactly(large, count=1)
    await create(CLAIMS, shared_claim)

    config = configuration()
    config["profiles"][0] |= {"plugins": {"multiPoint": {"enabled": [{"name": "Gang"}]}}}
    await start(cluster, config, flags=(f"--plugin={GANG}:Gang",))
    labels = {"example.com/gang": "ring", "example.com/gang-size": "2"}
    gang = [from_template(f"gang-{at}", "large", labels=labels) for at in range(2)]
    await cluster.create(gang[0], from_template("half", "half"), user("one", "shared"), user("two", "shared"))
    await cluster.wait_bound(["half", "one", "two"])
    await cluster.create(from_template("hot", "hot"), from_template("best", "best"), from_template("s", "small"))
    assert "gang-0" not in await cluster.placements()
    await cluster.create(gang[1], gpu_user("classic"))
    names = ["half", "one", "two", "hot", "best", "s", "gang-0", "gang-1", "classic"]
    nodes_by_pod = await cluster.wait_bound(names)
    devices_by_claim = await check_no_device_twice(cluster)
    of_pod = {
        name: devices
        for claim_name, devices in devices_by_claim.items()
        for name in names
        if claim_name.startswith(name)
    }
    assert of_pod["half"] == [("node-2-partitions", "gpu-1")]
    assert of_pod["hot"] == [("node-2-partitions", "gpu-2")]
    assert (
        nodes_by_pod["one"]
        == nodes_by_pod["two"]
        == nodes_by_pod["best"]
        == nodes_by_pod["gang-0"]
        == nodes_by_pod["gang-1"]
        == "node-0"
    )
    assert nodes_by_pod["classic"] == nodes_by_pod["s"] == "node-1"

    await asyncio.gather(*(cluster.admin.delete(f"{PODS}/{name}?gracePeriodSeconds=0") for name in names))

    async def only_the_shared_one_is_left() -> bool:
        claims = await cluster.admin.list(CLAIMS)
        return [claim["metadata"]["name"] for claim in claims] == ["shared"] and not claims[0].get("status")

    await eventually(only_the_shared_one_is_left)
    shared_claim = await cluster.admin.get(f"{CLAIMS}/shared")
    assert "finalizers" not in shared_claim["metadata"]
    await cluster.create(*(from_template(f"again-{at}", "large") for at in range(4)))
    await cluster.wait_bound([f"again-{at}" for at in range(4)])


@pytest.mark.control_plane
async def test_no_device_is_given_twice_however_often_podium_is_killed(
    with_claim_controller: RealCluster, start: StartDaemon
) -> None:
    cluster = with_claim_controller
    await cluster.create(*nodes(4))
    await cluster.admin.create(CLASSES, device_class())
    for at in range(4):
        await cluster.admin.create(SLICES, device_slice(f"node-{at}", *(gpu(index) for index in range(10))))
    await cluster.admin.create(TEMPLATES, template("one", {"exactly": exactly()}))
    names = [f"web-{at}" for at in range(40)]
    await cluster.create(*(from_template(name, "one") for name in names))
    await kill_at(cluster, partial(start, cluster, ready=False), (5, 20), qps=20)
    await start(cluster)
    await cluster.wait_bound(names)
    devices_by_claim = await check_no_device_twice(cluster)
    assert sorted(len(devices) for devices in devices_by_claim.values()) == [1] * 40


async def test_claims_that_were_written_before_a_kill_are_used_by_the_next_podium(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    cluster = sandbox_cluster
    await cluster.create(*nodes(2))
    await cluster.admin.create(CLASSES, device_class())
    await cluster.admin.create(SLICES, device_slice("node-0", *(gpu(index) for index in range(2))))
    await cluster.admin.create(SLICES, device_slice("node-1", *(gpu(index) for index in range(2))))
    names = [f"web-{at}" for at in range(4)]
    for name in names:
        await cluster.admin.create(CLAIMS, resource_claim(f"of-{name}", device_request()))
    cluster.sandbox.faults.latency(3600.0, verb="create", resource="pods", subresource="binding")
    daemon = await start(cluster)
    await cluster.create(*(user(name, f"of-{name}") for name in names))

    async def all_are_reserved() -> bool:
        claims = await cluster.admin.list(CLAIMS)
        return all(claim.get("status", {}).get("reservedFor") for claim in claims)

    await eventually(all_are_reserved)
    claims_before = await check_no_device_twice(cluster)
    daemon.kill()
    assert await cluster.placements() == {}
    cluster.sandbox.faults.clear()
    await start(cluster)
    nodes_by_pod = await cluster.wait_bound(names)
    assert await check_no_device_twice(cluster) == claims_before
    assert nodes_by_pod == {name: claims_before[f"of-{name}"][0][0] for name in names}


@pytest.mark.control_plane
async def test_rules_of_the_real_server_taint_devices(
    anyio_backend: object, control_plane_binaries: Binaries, start: StartDaemon
) -> None:
    flags = "--feature-gates=DRADeviceTaintRules=true", "--runtime-config=resource.k8s.io/v1beta2=true"
    async with new_cluster(control_plane_binaries, *flags) as cluster:
        resources = (await cluster.admin.get(RULES.rpartition("/")[0]))["resources"]
        if RULES.rpartition("/")[2] in {resource["name"] for resource in resources}:
            await rules_hold(cluster, start)
        else:
            await rules_hold(cluster, start, OLDER_RULES, flags[:1])
