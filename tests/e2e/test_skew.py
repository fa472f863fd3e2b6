"""What podium does on API servers that are older, or lack kinds: `make skew` runs these tests on each minor release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
import yaml

from podium.objects.resource_types import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.control_plane import catalogue
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import Cluster, RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon
from tests.e2e.daemon import configuration as quick
from tests.e2e.test_doctor import bad, doctor
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod, pods

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

DEVICES = (DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES)
"""The kinds that podium reads by default and that Kubernetes serves since 1.34 only."""
NOT_SERVED = "the API server does not serve this resource"


def config_file(tmp_path: Path) -> str:
    path = tmp_path / "quick.yaml"
    path.write_text(yaml.safe_dump(quick()))
    return str(path)


async def missing_kinds(cluster: RealCluster) -> set[str]:
    """The kinds of devices that the API server lacks."""
    groups = await cluster.admin.get("/apis")
    group_versions = {version["groupVersion"] for group in groups["groups"] for version in group["versions"]}
    return {resource_type.plural for resource_type in DEVICES if resource_type.api_version not in group_versions}


async def check_warnings(daemon: Daemon, missing: Collection[str]) -> None:
    """Exactly one warning names each missing kind, and nothing else is wrong with what is read."""

    async def all_warned() -> bool:
        warned = Counter(entry["resource"] for entry in daemon.log(NOT_SERVED))
        assert warned == dict.fromkeys(missing, 1)
        return True

    await eventually(all_warned)
    complaints = [entry for entry in daemon.complaints() if entry["component"] == "client"]
    assert {entry["msg"] for entry in complaints} == ({NOT_SERVED} if missing else set())


async def check_work(cluster: Cluster, start: StartDaemon, missing: Collection[str]) -> None:
    """Pods are bound, whatever is missing; the warnings are as they should be."""
    await cluster.create(*nodes(3))
    daemon = await start(cluster)
    created_pods = await cluster.create(*pods(30))
    await cluster.wait_bound(item["metadata"]["name"] for item in created_pods)
    await daemon.wait_attempts("scheduled", 30)
    await check_warnings(daemon, missing)


async def test_kinds_that_the_server_lacks_cost_one_warning_each_and_pods_are_bound(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    missing = [resource_type.plural for resource_type in DEVICES]
    for plural in missing:
        sandbox_cluster.sandbox.faults.server_error(None, code=404, resource=plural)
    await check_work(sandbox_cluster, start, missing)


@pytest.mark.control_plane
async def test_kinds_that_the_real_server_lacks_cost_one_warning_each_and_pods_are_bound(
    real_cluster: RealCluster, start: StartDaemon
) -> None:
    await check_work(real_cluster, start, await missing_kinds(real_cluster))


@pytest.mark.control_plane
async def test_doctor_supports_the_release_and_warns_of_the_kinds_that_it_lacks(
    real_cluster: RealCluster, control_plane_binaries: Binaries, tmp_path: Path
) -> None:
    [apiserver] = [tool for tool in catalogue.TOOLS if tool.name == "kube-apiserver"]
    version = catalogue.reported_version(apiserver, control_plane_binaries[apiserver.name])
    status, text = await doctor(real_cluster.kubeconfig, "--config", config_file(tmp_path))
    assert status == 0, text
    assert f"api server: it is v{version}\n" in text

    status, text = await doctor(real_cluster.kubeconfig, "--config", config_file(tmp_path), "--output", "json")
    missing = await missing_kinds(real_cluster)
    # Names its kind after "the API server does not serve".
    kinds = {finding["message"].split()[6] for finding in bad(text) if finding["check"] == "apis"}
    assert (status, kinds) == (0, missing)


@pytest.mark.control_plane
async def test_a_deployment_of_the_real_controllers_is_bound_with_one_event_for_each_pod(
    own_cluster: RealCluster, start: StartDaemon
) -> None:
    await own_cluster.create(*nodes(5))
    template = pod("ignored", labels={"app": "web"})
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 50,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]},
        },
    }
    controllers = ("deployment-controller", "replicaset-controller")
    process = await anyio.to_thread.run_sync(own_cluster.plane.start_controllers, *controllers)
    try:
        await start(own_cluster)
        await own_cluster.admin.create("/apis/apps/v1/namespaces/default/deployments", deployment)

        async def all_made() -> dict[str, Json]:
            pods_by_name = await own_cluster.pods()
            return pods_by_name if len(pods_by_name) == 50 else {}

        names = await eventually(all_made)
        placements = await own_cluster.wait_bound(names)
        assert Counter(placements.values()) == {f"node-{index}": 10 for index in range(5)}
        assert await own_cluster.wait_events("Scheduled", 50) == dict.fromkeys(names, 1)
    finally:
        await anyio.to_thread.run_sync(process.kill)
