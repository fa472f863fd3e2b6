"""`helm install`, `upgrade` and `uninstall` of the chart on the real API server, and podium as it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import yaml

from tests import warm_podium
from tests.control_plane.cleanup import RESOURCES
from tests.control_plane.client import Client
from tests.e2e.cluster import DEFINITIONS, RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shipped import may
from tests.e2e.waiting import eventually
from tests.helm.chart import CHART, Helm
from tests.manifests import node, pod
from tests.rights import grants

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]

NAMESPACE = "scheduling"
GANGS = "/apis/scheduling.x-k8s.io/v1alpha1"
OPERATOR = {"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules", "ServiceMonitor": "servicemonitors"}
"""The Prometheus operator's kinds."""
EVERYTHING = {
    "configuration": {
        "profiles": [
            {"schedulerName": "podium"},
            {
                "schedulerName": "big-first",
                "plugins": {"multiPoint": {"enabled": [{"name": "PreferBigNodes", "weight": 5}]}},
            },
        ]
    },
    "features": {"devices": False},
    "coscheduling": {"enabled": True},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "monitoring": {
        "serviceMonitor": {"enabled": True},
        "podMonitor": {"enabled": True, "tokenSecret": {"name": "token"}},
        "rules": {"enabled": True},
        "dashboards": {"enabled": True},
        "readers": [{"namespace": "monitoring", "name": "prometheus"}],
    },
    "plugins": {
        "files": {"prefer_big_nodes.py": (CHART.parents[2] / "examples/plugins/prefer_big_nodes.py").read_text()},
        "classes": ["prefer_big_nodes.py:PreferBigNodes"],
    },
    "estimator": {"enabled": True, "members": ["member1"]},
    "memberRoles": {"enabled": True, "accurate": True},
}


async def everything(admin: Client) -> set[tuple[str, str | None, str]]:
    """All that is in the cluster but for namespaces, and Events, which nobody removes."""
    keys = set()
    kinds = [resource.collection for resource in RESOURCES if resource.name not in ("events", "namespaces")]
    kinds += ["/apis/networking.k8s.io/v1/networkpolicies"]
    kinds += [f"/apis/monitoring.coreos.com/v1/{plural}" for plural in OPERATOR.values()]
    for collection in kinds:
        for item in await admin.list(collection):
            keys.add((collection, item["metadata"].get("namespace"), item["metadata"]["name"]))
    return keys


class Release:
    """The release `podium` in a cluster."""

    def __init__(self, helm: Helm, cluster: RealCluster) -> None:
        self._helm = helm
        self._cluster = cluster

    async def run(self, command: str, *arguments: str, values: Json | None = None) -> str:
        """Return the output of helm; it has to succeed, without a warning."""
        flags = ("--namespace", NAMESPACE, "--kubeconfig", str(self._cluster.kubeconfig))
        result = await anyio.to_thread.run_sync(
            lambda: self._helm.run(command, "podium", *arguments, *flags, values=values)
        )
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    async def deployment(self, name: str = "podium") -> Json:
        return await self._cluster.admin.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}")

    async def configuration(self) -> Json:
        config_map = await self._cluster.admin.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/podium")
        configuration: Json = yaml.safe_load(config_map["data"]["config.yaml"])
        return configuration

    async def flags(self, plugins: Path) -> tuple[str, ...]:
        """Return the container's arguments beside the configuration, with the mounted files in a folder."""
        template = (await self.deployment())["spec"]["template"]["spec"]
        [container] = template["containers"]
        mounted = {volume["name"]: volume["configMap"]["name"] for volume in template["volumes"]}
        command, config, port, *flags = container["args"]
        assert (command, config, port) == ("run", "--config=/etc/podium/config.yaml", "--secure-port=10259")
        if name := mounted.get("plugins"):
            config_map = await self._cluster.admin.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")
            for file, text in config_map["data"].items():
                (plugins / file).write_text(text)
        return tuple(flag.replace("/etc/podium-plugins", str(plugins)) for flag in flags)

    async def account(self, path: Path) -> Path:
        """A kubeconfig of the service account, once that has all its rights."""
        cluster = self._cluster
        token = await cluster.admin.service_account_token(NAMESPACE, "podium")
        roles = [
            await cluster.admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/podium"),
            await cluster.admin.get(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/podium"),
            await cluster.admin.get("/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/podium"),
        ]
        kinds = ("ClusterRole", "Role", "Role")
        async with Client(cluster.plane.url, token=token, tls=cluster.plane.ssl_context()) as account:
            for right in grants([{**role, "kind": kind} for kind, role in zip(kinds, roles, strict=True)]):

                async def is_granted(right: Any = right) -> bool:
                    right_fields = (right.group, right.resource, right.verb, right.namespace or "default", right.name)
                    return await may(account, *right_fields)

                await eventually(is_granted)
        return cluster.plane.kubeconfig(token, path)


@pytest.fixture
async def operator(real_cluster: RealCluster) -> Any:
    """The kinds of the Prometheus operator are served."""
    admin = real_cluster.admin

    defined = [await real_cluster.define("monitoring.coreos.com", kind) for kind in OPERATOR]
    yield
    for item in await admin.list("/apis/networking.k8s.io/v1/networkpolicies"):
        await admin.delete(
            f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies/{item['metadata']['name']}"
        )
    for path in defined:
        await admin.delete(path)


async def check_with_doctor(kubeconfig: Path, config: Json, path: Path, *flags: str) -> None:
    """`podium doctor` finds nothing wrong."""
    await anyio.Path(path).write_text(yaml.safe_dump(config))
    command = ["doctor", "--kubeconfig", kubeconfig, "--config", path, *flags]
    result = await anyio.to_thread.run_sync(warm_podium.run, command)
    assert result.returncode == 0, result.stdout + result.stderr


async def test_the_chart_is_installed_runs_and_is_upgraded_and_removed_without_a_trace(
    real_cluster: RealCluster, operator: None, helm: Helm, start: StartDaemon, tmp_path: Path
) -> None:
    cluster, release = real_cluster, Release(helm, real_cluster)
    restricted = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}}
    await cluster.admin.create("/api/v1/namespaces", namespace)
    objects_before = await everything(cluster.admin)

    notes = await release.run("install", str(CHART))
    assert "podium schedules pods with schedulerName: podium." in notes
    first = await release.deployment()
    kubeconfig = await release.account(tmp_path / "first")
    config = await release.configuration()
    await check_with_doctor(kubeconfig, config, tmp_path / "config.yaml")
    daemon = await start(cluster, config, kubeconfig=kubeconfig, flags=await release.flags(tmp_path))
    await cluster.create(node("small", cpu="4"), node("big", cpu="16"), pod("first"))
    await cluster.wait_bound(["first"])
    assert await daemon.stop() == 0
    assert daemon.complaints() == []

    # Its pods are such as a namespace with restricted pods takes.
    template = first["spec"]["template"]
    replica = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": "replica"}}
    await cluster.admin.create(f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", replica)

    await release.run("upgrade", str(CHART), values=EVERYTHING)
    second = await release.deployment()
    assert second["spec"]["template"]["metadata"]["annotations"] != template["metadata"]["annotations"]
    kubeconfig = await release.account(tmp_path / "second")
    config, flags = await release.configuration(), await release.flags(tmp_path)
    await check_with_doctor(kubeconfig, config, tmp_path / "config.yaml", *flags)
    daemon = await start(cluster, config, kubeconfig=kubeconfig, flags=flags)
    gang = {"metadata": {"name": "gang"}, "spec": {"minMember": 2}}
    await cluster.admin.create(
        f"{GANGS}/namespaces/default/podgroups",
        {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", **gang},
    )
    members = {"labels": {"scheduling.x-k8s.io/pod-group": "gang"}}
    await cluster.create(pod("second", scheduler="big-first"), pod("third", **members))
    assert (await cluster.wait_bound(["second"]))["second"] == "big"
    assert "third" not in await cluster.placements()
    await cluster.create(pod("fourth", **members))
    await cluster.wait_bound(["third", "fourth"])

    async def is_told() -> bool:
        group = await cluster.admin.get(f"{GANGS}/namespaces/default/podgroups/gang")
        return bool(group.get("status", {}).get("phase") == "Scheduling")

    await eventually(is_told)
    assert await daemon.stop() == 0
    assert not [line for line in daemon.output().splitlines() if "forbidden" in line.lower()]

    # What is switched off again is removed.
    await release.run("upgrade", str(CHART), "--reset-values")
    assert (await release.deployment())["spec"]["template"] == template
    for name in ("first", "second", "third", "fourth"):
        await cluster.delete_pod(name)
    for name in ("small", "big"):
        await cluster.delete_node(name)
    await release.run("uninstall")
    # podium made its Lease, so helm knows nothing of it.
    await cluster.admin.delete(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/podium")
    assert await everything(cluster.admin) == objects_before
    # Only the kind stays, since the groups would go with it.
    await cluster.admin.delete(f"{DEFINITIONS}/podgroups.scheduling.x-k8s.io")
