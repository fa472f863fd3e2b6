"""Pods with claims to devices on both API servers; the test plays the drivers and the claim controller."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.device_manifests import exactly, resource_claim
from tests.e2e.cluster import Cluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

API = "/apis/resource.k8s.io/v1"
CLASSES, SLICES = f"{API}/deviceclasses", f"{API}/resourceslices"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
CLAIMS = f"{API}/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"
RESOURCE = "example.com/gpu"


def device_class(name: str = "gpu", **spec: Any) -> Json:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
    return {**manifest, "spec": {"selectors": [selector], **spec}}


def device_slice(node_name: str, *devices: Json) -> Json:
    """The devices of a node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def user(name: str, claim_name: str) -> Json:
    item = pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim_name}])
    item["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return item


def gpu_user(name: str) -> Json:
    """A pod that requests the extended resource."""
    item = pod(name)
    resources = item["spec"]["containers"][0]["resources"]
    resources["requests"][RESOURCE] = "1"
    resources["limits"] = {RESOURCE: "1"}
    return item


async def set_up(cluster: Cluster, *devices: Json, **spec: Any) -> None:
    """Three nodes, of which the second has these devices."""
    await cluster.create(*nodes(3))
    await cluster.admin.create(CLASSES, device_class(**spec))
    await cluster.admin.create(SLICES, device_slice("node-1", *(devices or ({"name": "gpu-0"},))))


async def free(cluster: Cluster, name: str) -> None:
    """Does what the claim controller does about a claim whose pods are gone."""
    cleared = {"allocation": None, "reservedFor": None, "devices": None}
    await cluster.admin.patch(f"{CLAIMS}/{name}/status", {"status": cleared})


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound(cluster: Cluster, start: StartDaemon) -> None:
    await set_up(cluster)
    await cluster.admin.create(CLAIMS, resource_claim("mine", exactly()))
    await start(cluster)
    await cluster.create(user("web", "mine"))
    assert await cluster.wait_bound(["web"]) == {"web": "node-1"}
    stored_claim = await cluster.admin.get(f"{CLAIMS}/mine")
    assert stored_claim["metadata"]["finalizers"] == [FINALIZER]
    (result,) = stored_claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"], result["device"], result["request"]) == (DRIVER, "node-1", "gpu-0", "gpu")
    assert "allocationTimestamp" in stored_claim["status"]["allocation"]
    uid = (await cluster.pod("web"))["metadata"]["uid"]
    assert stored_claim["status"]["reservedFor"] == [{"resource": "pods", "name": "web", "uid": uid}]


async def test_a_pod_waits_for_its_claim_and_then_for_a_device_that_another_claim_has(
    cluster: Cluster, start: StartDaemon
) -> None:
    await set_up(cluster)
    await cluster.admin.create(CLAIMS, resource_claim("first", exactly()))
    await start(cluster)
    await cluster.create(user("one", "first"))
    assert await cluster.wait_bound(["one"]) == {"one": "node-1"}
    await cluster.create(user("two", "second"))
    await cluster.admin.create(CLAIMS, resource_claim("second", exactly()))
    pod_condition = await cluster.wait_condition("two")
    assert pod_condition["message"].startswith("0/3 nodes are available: 3 cannot allocate all claims.")
    await cluster.delete_pod("one")
    await free(cluster, "first")
    assert (await cluster.wait_bound(["two"]))["two"] == "node-1"


async def test_pods_that_share_a_claim_both_run_where_its_device_is(cluster: Cluster, start: StartDaemon) -> None:
    await set_up(cluster)
    await cluster.admin.create(CLAIMS, resource_claim("shared", exactly()))
    await start(cluster)
    await cluster.create(user("one", "shared"), user("two", "shared"))
    assert await cluster.wait_bound(["one", "two"]) == {"one": "node-1", "two": "node-1"}
    stored_claim = await cluster.admin.get(f"{CLAIMS}/shared")
    assert {consumer["name"] for consumer in stored_claim["status"]["reservedFor"]} == {"one", "two"}


async def test_an_extended_resource_that_devices_provide_gets_a_claim_of_its_own(
    cluster: Cluster, start: StartDaemon
) -> None:
    await set_up(cluster, extendedResourceName=RESOURCE)
    await start(cluster)
    await cluster.create(gpu_user("web"))
    assert await cluster.wait_bound(["web"]) == {"web": "node-1"}
    bound_pod = await cluster.pod("web")
    claim_status = bound_pod["status"]["extendedResourceClaimStatus"]
    (mapping,) = claim_status["requestMappings"]
    assert (mapping["containerName"], mapping["resourceName"]) == ("main", RESOURCE)
    stored_claim = await cluster.admin.get(f"{CLAIMS}/{claim_status['resourceClaimName']}")
    assert claim_status["resourceClaimName"].startswith("web-extended-resources-")
    (request,) = stored_claim["spec"]["devices"]["requests"]
    assert request["name"] == mapping["requestName"]
    assert stored_claim["metadata"]["ownerReferences"][0]["uid"] == bound_pod["metadata"]["uid"]
    assert stored_claim["status"]["reservedFor"][0]["name"] == "web"


async def test_rules_keep_pods_off_the_devices_that_they_taint_until_they_are_gone(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await rules_hold(sandbox_cluster, start)


async def test_a_server_without_these_rules_costs_one_warning_and_devices_are_allocated(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    sandbox_cluster.sandbox.faults.server_error(None, code=404, resource="devicetaintrules")
    await set_up(sandbox_cluster, {"name": "gpu-0"})
    await sandbox_cluster.admin.create(CLAIMS, resource_claim("mine", exactly()))
    daemon = await start(sandbox_cluster)
    await sandbox_cluster.create(user("web", "mine"))
    assert await sandbox_cluster.wait_bound(["web"]) == {"web": "node-1"}
    warnings = daemon.log("the API server does not serve this resource")
    assert [entry["resource"] for entry in warnings] == ["devicetaintrules"]


async def rules_hold(cluster: Cluster, start: StartDaemon, rules: str = RULES, flags: tuple[str, ...] = ()) -> None:
    """A rule taints one of two devices, until it is deleted."""
    await set_up(cluster, {"name": "gpu-0"}, {"name": "gpu-1"})
    version = rules.removeprefix("/apis/").rpartition("/")[0]
    rule = {"apiVersion": version, "kind": "DeviceTaintRule", "metadata": {"name": "broken"}}
    selector = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
    rule["spec"] = {"deviceSelector": selector, "taint": {"key": "broken", "effect": "NoExecute"}}
    await cluster.admin.create(rules, rule)
    for name in ("first", "second"):
        await cluster.admin.create(CLAIMS, resource_claim(name, exactly()))
    await start(cluster, flags=flags)
    await cluster.create(user("one", "first"))
    assert await cluster.wait_bound(["one"]) == {"one": "node-1"}
    stored_claim = await cluster.admin.get(f"{CLAIMS}/first")
    assert [result["device"] for result in stored_claim["status"]["allocation"]["devices"]["results"]] == ["gpu-1"]
    await cluster.create(user("two", "second"))
    await cluster.wait_condition("two")
    await cluster.admin.delete(f"{rules}/broken")
    assert (await cluster.wait_bound(["two"]))["two"] == "node-1"


async def test_a_class_that_comes_later_helps_pods_that_were_rejected_before(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(2))
    await cluster.admin.create(SLICES, device_slice("node-1", *({"name": f"gpu-{index}"} for index in range(3))))
    await start(cluster)
    names = ["one", "two", "three"]
    await cluster.create(*(gpu_user(name) for name in names))
    for name in names:
        pod_condition = await cluster.wait_condition(name)
        assert pod_condition["message"].startswith(f"0/2 nodes are available: 2 Insufficient {RESOURCE}.")
    await cluster.admin.create(CLASSES, device_class(extendedResourceName=RESOURCE))
    assert await cluster.wait_bound(names) == dict.fromkeys(names, "node-1")


async def test_devices_that_must_be_prepared_are_waited_for_and_given_back_if_that_fails(
    cluster: Cluster, start: StartDaemon
) -> None:
    conditions = {"bindsToNode": True, "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    await set_up(cluster, {"name": "gpu-0", **conditions})
    await cluster.admin.create(SLICES, device_slice("node-2", {"name": "gpu-0", **conditions}))
    await cluster.admin.create(CLAIMS, resource_claim("mine", exactly()))
    daemon = await start(cluster, configuration(podMaxBackoffSeconds=1))
    await cluster.create(user("web", "mine"))

    async def prepare(kind: str) -> str:
        """Does what the driver does about an allocated device; returns the pool of the device."""

        async def read_allocation() -> Json:
            status = (await cluster.admin.get(f"{CLAIMS}/mine")).get("status", {})
            return dict(status.get("allocation", {}) if status.get("reservedFor") and "devices" not in status else {})

        (result,) = (await eventually(read_allocation))["devices"]["results"]
        condition = {
            "type": kind,
            "status": "True",
            "reason": "Tried",
            "message": "so it is",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        device_status = {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [condition]}
        await cluster.admin.patch(f"{CLAIMS}/mine/status", {"status": {"devices": [device_status]}})
        return str(result["pool"])

    await prepare("broken")
    pod_condition = await cluster.wait_condition("web", "SchedulerError")
    assert pod_condition["message"] == (
        'running PreBind plugin "DynamicResources": device binding failed: claim=mine, reason=Tried, message="so it is"'
    )
    pool = await prepare("ready")
    assert await cluster.wait_bound(["web"]) == {"web": pool}
    labels = {"profile": "podium", "driver": DRIVER, "status": "failed"}
    await daemon.wait_metric(1, "scheduler_dra_bindingconditions_allocations_total", **labels)


async def test_selectors_that_take_long_or_fail_affect_only_their_own_pods(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    """The real API server would not take them."""
    # Enough of them that selectors are still evaluated when one is taken, in later attempts, too.
    await set_up(sandbox_cluster, *({"name": f"gpu-{number}"} for number in range(4)))
    loops = "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"
    long_expression = " && ".join(f"device.driver != 'driver-{number}.example.com'" for number in range(500))
    device = r" on device gpu\.example\.com/node-1/gpu-\d"
    failing = {
        "loops": (loops, rf"{device}: CEL runtime error: operation cancelled: actual cost limit exceeded"),
        "long": (f"{long_expression} && 1 + 1", ": CEL compile error: "),
        "nested": ("(" * 40_000 + "true" + ")" * 40_000, ": CEL compile error: expression recursion limit exceeded"),
    }
    await start(sandbox_cluster)
    for name, (expression, _) in failing.items():
        item = resource_claim(name, exactly())
        item["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
        sandbox_cluster.put(item)
    sandbox_cluster.put(resource_claim("mine", exactly()))
    await sandbox_cluster.create(*(user(name, name) for name in (*failing, "mine")), pod("plain"))
    await sandbox_cluster.wait_bound(["mine", "plain"])
    for name, (_, pattern) in failing.items():
        condition = await sandbox_cluster.wait_condition(name, "SchedulerError")
        assert re.search(f"claim default/{name}: selector #0{pattern}", condition["message"])
