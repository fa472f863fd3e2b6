"""The policies that only score or order, on the real API server: one podium with a profile for each."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from tests.e2e.cluster import DEFINITIONS, PODS, ApiError, RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import node, pod
from tests.metrics_sources import metrics_stub

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]
GPU, SHARE = "nvidia.com/gpu", "podium.io/gpu-milli"
RANK = "example.com/rank"
PROFILES = "/apis/security-profiles-operator.x-k8s.io/v1beta1/namespaces/default/seccompprofiles"
# The operator brings the kind of its own, in full.
SECCOMP_PROFILES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "seccompprofiles.security-profiles-operator.x-k8s.io"},
    "spec": {
        "group": "security-profiles-operator.x-k8s.io",
        "names": {"kind": "SeccompProfile", "plural": "seccompprofiles", "singular": "seccompprofile"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
LOADS = {"small": (90, 5), "middle": (34, 30), "large": (10, 1)}
"""The average and the deviation of cpu by node, in percent."""


def watched() -> Json:
    """Return what a load watcher says; the time it covers ends so late that no pod has been placed after it."""
    by_node = {
        name: {
            "metrics": [
                {"type": "CPU", "operator": operator, "value": value}
                for operator, value in zip(("AVG", "STD"), values, strict=True)
            ]
        }
        for name, values in LOADS.items()
    }
    return {"window": {"end": 4_000_000_000}, "data": {"NodeMetricsMap": by_node}}


def profile(plugin: str, **args: Any) -> Json:
    """Return a profile in which the plugin alone scores, named after it."""
    return {
        "schedulerName": plugin.lower(),
        "plugins": {
            "preScore": {"enabled": [{"name": plugin}] if plugin == "LowRiskOverCommitment" else []},
            "score": {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": plugin, "args": args}] if args else [],
    }


def seccomp_profile(name: str, *calls: str) -> Json:
    return {
        "apiVersion": "security-profiles-operator.x-k8s.io/v1beta1",
        "kind": "SeccompProfile",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"action": "SCMP_ACT_ALLOW", "names": list(calls)}]},
    }


def confined(profile_name: str) -> Json:
    path = f"operator/default/{profile_name}.json"
    return {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": path}}}


async def create_cluster(cluster: RealCluster) -> None:
    """Create three nodes, on each of which another policy finds what it looks for."""
    with contextlib.suppress(ApiError):
        await cluster.admin.create(DEFINITIONS, SECCOMP_PROFILES)
    for item in (seccomp_profile("server", "read", "write", "accept"), seccomp_profile("tunnel", "bpf", "mount")):

        async def is_created(item: Json = item) -> bool:
            try:
                await cluster.admin.create(PROFILES, item)
            except ApiError:  # the kind is not served at once
                return False
            return True

        await eventually(is_created)
    for name, cpu, rank in (("small", "2", "1"), ("middle", "4", "30"), ("large", "8", "2")):
        manifest = node(name, cpu=cpu)
        manifest["metadata"]["annotations"] = {RANK: rank}
        for field in ("capacity", "allocatable"):
            manifest["status"][field] |= {} if name == "small" else {GPU: "2", SHARE: "2000"}
        await cluster.create(manifest)
    base = pod("base", cpu="4", memory="4Gi", node="large", **confined("tunnel"))
    leaving = pod("leaving", node="middle", **confined("tunnel"))
    base["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "4", "memory": "4Gi"}
    await cluster.create(base, leaving, with_share(pod("half", node="middle"), "0"))
    await cluster.create(pod("cache", node="small", **confined("server")))
    await cluster.admin.delete(f"{PODS}/leaving", grace_s=3600)


def with_share(item: Json, index: str = "") -> Json:
    """Give the pod half of a GPU."""
    resources = item["spec"]["containers"][0]["resources"]
    resources["requests"] |= {SHARE: "500"}
    resources["limits"] = {SHARE: "500"}
    item["metadata"]["annotations"] = {"podium.io/gpu-index": index} if index else {}
    return item


async def test_each_policy_chooses_its_node(real_cluster: RealCluster, start: StartDaemon) -> None:
    cluster = real_cluster
    await create_cluster(cluster)
    async with metrics_stub(watched=watched()) as stub:
        source = {"watcherAddress": stub.url}
        # Only on the two larger nodes does more use draw more power.
        model = {name: {"k0": 1, "k1": 10, "k2": 0.05} for name in ("middle", "large")}
        usual = [{"cpuMilli": 100, "gpus": 1}]
        metadata = {"metadataKey": RANK, "metadataSource": "Annotation", "metadataType": "Number"}
        profiles = {
            "middle": [
                profile("TargetLoadPacking", **source),
                profile("NodeMetadata", **metadata, scoringStrategy="Highest"),
                profile("PodState"),
                profile("FragmentationGradientDescent", usualPods=usual),
            ],
            "large": [profile("LoadVariationRiskBalancing", **source), profile("LowRiskOverCommitment", **source)],
            "small": [
                profile("Peaks", WatcherAddress=stub.url, NodePowerModel=model),
                profile("NodeResourcesAllocatable"),
                profile("SySched"),
            ],
        }
        daemon = await start(cluster, configuration(profiles=[entry for group in profiles.values() for entry in group]))

        async def is_read() -> bool:
            return bool(stub.requests) and await daemon.metric("podium_node_metrics_readings_total") > 0

        await eventually(is_read)
        for name, group in profiles.items():
            for entry in group:
                scheduler = entry["schedulerName"]
                subject = pod(scheduler, scheduler=scheduler, **(confined("server") if scheduler == "sysched" else {}))
                await cluster.create(with_share(subject) if scheduler.startswith("fragmentation") else subject)
                await cluster.wait_bound([scheduler])
                # The next policy is asked about the same cluster.
                assert (await cluster.placements())[scheduler] == name, scheduler
                await cluster.delete_pod(scheduler)


async def test_the_guaranteed_pod_leaves_the_queue_first(real_cluster: RealCluster, start: StartDaemon) -> None:
    cluster = real_cluster
    await cluster.create(node("only", pods="1"))
    guaranteed = pod("guaranteed")
    resources = guaranteed["spec"]["containers"][0]["resources"]
    resources["limits"] = dict(resources["requests"])
    for item in (pod("burstable"), guaranteed):
        await cluster.create(item)
    queue_sort = {"enabled": [{"name": "QOSSort"}], "disabled": [{"name": "*"}]}
    await start(cluster, configuration(profiles=[{"schedulerName": "podium", "plugins": {"queueSort": queue_sort}}]))
    assert await cluster.wait_bound(["guaranteed"]) == {"guaranteed": "only"}
