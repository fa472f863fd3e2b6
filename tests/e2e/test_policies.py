"""The policies that need no metrics, quotas or NUMA nodes, on the real API server, with the kinds from deploy/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.plugins.contrib.app_groups import GROUP_LABEL, WORKLOAD_LABEL
from tests.e2e.cluster import DEFINITIONS, RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import node, nodes, pod

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
WORKLOAD = {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default"}
PATHS = {
    "AppGroup": "/apis/appgroup.diktyo.x-k8s.io/v1alpha1/namespaces/default/appgroups",
    "NetworkTopology": "/apis/networktopology.diktyo.x-k8s.io/v1alpha1/namespaces/default/networktopologies",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}


def config(name: str) -> Json:
    return configuration(profiles=yaml.safe_load((ROOT / "examples/config" / f"{name}.yaml").read_text())["profiles"])


def example(name: str) -> list[Json]:
    return list(yaml.safe_load_all((ROOT / "examples/policies" / f"{name}.yaml").read_text()))


async def install_definitions(cluster: RealCluster, name: str) -> None:
    """Install the kinds of a file in deploy/policies, and wait until they are served."""
    for definition in yaml.safe_load_all((ROOT / "deploy/policies" / name).read_text()):
        await cluster.admin.create(DEFINITIONS, definition)

        async def is_served(path: str = f"{DEFINITIONS}/{definition['metadata']['name']}") -> bool:
            conditions = (await cluster.admin.get(path))["status"].get("conditions") or ()
            return ("Established", "True") in {(condition["type"], condition["status"]) for condition in conditions}

        await eventually(is_served)


async def create_all(cluster: RealCluster, items: list[Json]) -> None:
    """Create objects of an example that are neither nodes nor pods."""
    for item in items:
        if item["kind"] in PATHS:
            await eventually(lambda item=item: cluster.admin.create(PATHS[item["kind"]], item))


async def test_a_pod_is_placed_near_those_it_depends_on(own_cluster: RealCluster, start: StartDaemon) -> None:
    cluster = own_cluster
    await install_definitions(cluster, "network/definitions.yaml")
    items = example("network-overhead")
    places = [(item["metadata"]["name"], item["metadata"]["labels"]) for item in items if item["kind"] == "Node"]
    await cluster.create(*(node(name, cpu="8", labels=labels) for name, labels in places))
    await create_all(cluster, items)
    await start(cluster, config("network-overhead"))
    pods = {item["metadata"]["name"]: item for item in items if item["kind"] == "Pod"}
    await cluster.create(pods["db-0"])
    await cluster.wait_bound(["db-0"])
    web = pods["web"]
    # Not on the node of db, nor in its zone, which leaves the zone within the limit of the cost.
    elsewhere = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in ("a-1", "a-2")]
    terms = {"nodeSelectorTerms": [{"matchFields": elsewhere}]}
    web["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    await cluster.create(web)
    assert (await cluster.wait_bound(["web"]))["web"] == "b-1"


async def test_the_pods_of_a_group_start_in_its_order(own_cluster: RealCluster, start: StartDaemon) -> None:
    cluster = own_cluster
    await install_definitions(cluster, "network/definitions.yaml")
    names = ["web", "cache", "db"]
    group = next(item for item in example("network-overhead") if item["kind"] == "AppGroup")
    # The order is written by the group's own controller, here from the database to the front.
    group["status"] = {
        "topologyOrder": [
            {"index": len(names) - number, "workload": {**WORKLOAD, "name": name, "selector": name}}
            for number, name in enumerate(names)
        ]
    }
    await create_all(cluster, [group])
    labels = {name: {GROUP_LABEL: group["metadata"]["name"], WORKLOAD_LABEL: name} for name in names}
    await cluster.create(*(pod(name, labels=labels[name]) for name in names))
    await cluster.create(node("only", pods="1"))
    queue_sort = {"enabled": [{"name": "TopologicalSort"}], "disabled": [{"name": "*"}]}
    await start(cluster, configuration(profiles=[{"schedulerName": "podium", "plugins": {"queueSort": queue_sort}}]))
    for name in reversed(names):
        await cluster.wait_bound([name])
        assert await cluster.placements() == {name: "only"}
        await cluster.delete_pod(name)


async def test_a_pod_that_tolerates_preemption_stays(own_cluster: RealCluster, start: StartDaemon) -> None:
    cluster = own_cluster
    classes = [item for item in example("preemption-toleration") if item["kind"] == "PriorityClass"]
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    plain = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "plain"}}
    await create_all(cluster, [*classes, {**urgent, "value": 5000}, {**plain, "value": 200}])
    await cluster.create(*nodes(2, cpu="4"))
    await start(cluster, config("preemption-toleration"))
    await cluster.create(pod("training", cpu="4", priorityClassName="batch"))
    # Without a kubelet a pod with a grace period would never be gone.
    await cluster.create(pod("web", cpu="4", priorityClassName="plain", terminationGracePeriodSeconds=0))
    placements = await cluster.wait_bound(["training", "web"])
    await cluster.create(pod("urgent", cpu="4", priorityClassName="urgent"))
    assert (await cluster.wait_bound(["urgent"]))["urgent"] == placements["web"]
    assert set(await cluster.pods()) == {"training", "urgent"}


async def test_a_gang_starts_in_one_rack(own_cluster: RealCluster, start: StartDaemon) -> None:
    cluster = own_cluster
    items = example("topology-levels")
    places = [(item["metadata"]["name"], item["metadata"]["labels"]) for item in items if item["kind"] == "Node"]
    await cluster.create(*(node(name, cpu="4", labels=labels) for name, labels in places))
    await start(cluster, config("topology-levels"))
    pods = [item for item in items if item["kind"] == "Pod"]
    await cluster.create(*pods)
    placements = await cluster.wait_bound([item["metadata"]["name"] for item in pods])
    assert {name.partition("-")[0] for name in placements.values()} == {"a2"}
