"""Pods with claims on both API servers; the test plays the volume controller and the provisioner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import HOSTNAME, condition, node, nodes, pod
from tests.workload_manifests import claim

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def storage_class(name: str, provisioner: str) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, storage_class: str, node_name: str, mode: str = "ReadWriteOnce") -> Json:
    requirement = {"key": HOSTNAME, "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": [mode],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}},
        },
    }


def user(name: str, claim_name: str, **spec: Any) -> Json:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}], **spec)


async def add_volume(cluster: Cluster, item: Json) -> None:
    """Creates a volume that is free."""
    await cluster.admin.create(VOLUMES, item)
    await cluster.admin.patch(f"{VOLUMES}/{item['metadata']['name']}/status", {"status": {"phase": "Available"}})


async def complete(cluster: Cluster, claim_name: str, volume_name: str) -> None:
    """Does what the volume controller does about a claim that has its volume."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    change = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume_name}}
    await cluster.admin.patch(f"{CLAIMS}/{claim_name}", change)
    await cluster.admin.patch(f"{CLAIMS}/{claim_name}/status", {"status": {"phase": "Bound"}})


async def provision(cluster: Cluster, claim_name: str, storage_class: str) -> str:
    """Does what a provisioner does about a claim whose node is selected; returns the volume's name."""
    stored_claim = await cluster.admin.get(f"{CLAIMS}/{claim_name}")
    provisioned_volume = volume(
        f"pv-{claim_name}", storage_class, stored_claim["metadata"]["annotations"][SELECTED_NODE]
    )
    provisioned_volume["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": claim_name,
        "uid": stored_claim["metadata"]["uid"],
    }
    await cluster.admin.create(VOLUMES, provisioned_volume)
    return f"pv-{claim_name}"


async def wait_selected(cluster: Cluster, claim_name: str) -> str:
    """Until the claim's node is selected."""

    async def read_selected_node() -> str:
        annotations = (await cluster.admin.get(f"{CLAIMS}/{claim_name}"))["metadata"].get("annotations", {})
        return str(annotations.get(SELECTED_NODE, ""))

    return await eventually(read_selected_node)


async def test_a_claim_that_waits_gets_its_node_and_the_pod_is_bound_once_the_volume_is_made(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(3))
    await cluster.admin.create(CLASSES, storage_class("made", "disk.example.com"))
    await cluster.admin.create(CLAIMS, claim("data", "1Gi", "made"))
    await start(cluster)
    await cluster.create(user("web", "data"))
    node_name = await wait_selected(cluster, "data")

    async def is_announced() -> bool:
        return bool((await cluster.pod("web")).get("status", {}).get("nominatedNodeName") == node_name)

    await eventually(is_announced)
    assert await cluster.placements() == {}

    await complete(cluster, "data", await provision(cluster, "data", "made"))
    assert await cluster.wait_bound(["web"]) == {"web": node_name}


async def test_a_pod_is_tried_again_when_its_volume_is_not_made_in_time(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(2))
    await cluster.admin.create(CLASSES, storage_class("made", "disk.example.com"))
    await cluster.admin.create(CLAIMS, claim("data", "1Gi", "made"))
    args = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "VolumeBindingArgs",
        "bindTimeoutSeconds": 2,
    }
    profile = {"schedulerName": "podium", "pluginConfig": [{"name": "VolumeBinding", "args": args}]}
    daemon = await start(cluster, configuration(profiles=[profile], podMaxBackoffSeconds=1))
    await cluster.create(user("web", "data", cpu="16"), pod("late", cpu="16"))
    node_name = await wait_selected(cluster, "data")
    assert (await cluster.wait_bound(["late"]))["late"] != node_name

    pod_condition = await cluster.wait_condition("web", "SchedulerError")
    assert pod_condition["message"] == (
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    )
    assert await daemon.attempts("error") >= 1
    # It is tried again on the same node, for which the volume is being made; until that is given up.
    assert await wait_selected(cluster, "data") == node_name
    await cluster.admin.patch(f"{CLAIMS}/data", {"metadata": {"annotations": {SELECTED_NODE: None}}})
    assert await wait_selected(cluster, "data") == node_name  # the only node with room left
    await complete(cluster, "data", await provision(cluster, "data", "made"))
    assert (await cluster.wait_bound(["web"]))["web"] == node_name


async def test_room_is_free_again_when_a_pod_is_deleted_while_its_volume_is_made(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(node("only"))
    await cluster.admin.create(CLASSES, storage_class("made", "disk.example.com"))
    await cluster.admin.create(CLAIMS, claim("data", "1Gi", "made"))
    daemon = await start(cluster)
    await cluster.create(user("web", "data", cpu="16"))
    await wait_selected(cluster, "data")
    await cluster.create(pod("next", cpu="16"))
    await cluster.wait_condition("next")
    await cluster.delete_pod("web")
    assert await cluster.wait_bound(["next"]) == {"next": "only"}
    await daemon.wait_attempts("scheduled", 1)


async def test_a_volume_that_is_there_is_kept_for_the_claim_where_the_pod_goes(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(3))
    await cluster.admin.create(CLASSES, storage_class("local", "kubernetes.io/no-provisioner"))
    await add_volume(cluster, volume("disk-1", "local", "node-1"))
    stored_claim = await cluster.admin.create(CLAIMS, claim("data", "1Gi", "local"))
    await start(cluster)
    await cluster.create(user("web", "data"))

    async def kept_for() -> Json:
        reference: Json = (await cluster.admin.get(f"{VOLUMES}/disk-1"))["spec"].get("claimRef", {})
        return reference

    reference = await eventually(kept_for)
    assert (reference["kind"], reference["namespace"], reference["name"]) == (
        "PersistentVolumeClaim",
        "default",
        "data",
    )
    assert reference["uid"] == stored_claim["metadata"]["uid"]
    stored_volume = await cluster.admin.get(f"{VOLUMES}/disk-1")
    assert stored_volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert stored_volume["spec"]["csi"]["volumeHandle"] == "disk-1"
    assert await cluster.placements() == {}
    await complete(cluster, "data", "disk-1")
    assert await cluster.wait_bound(["web"]) == {"web": "node-1"}


async def test_two_pods_in_a_row_do_not_take_one_volume(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(2))
    await cluster.admin.create(CLASSES, storage_class("local", "kubernetes.io/no-provisioner"))
    await add_volume(cluster, volume("disk-0", "local", "node-0"))
    for name in ("one", "two"):
        await cluster.admin.create(CLAIMS, claim(name, "1Gi", "local"))
    await start(cluster)
    await cluster.create(user("one", "one"), user("two", "two"))

    async def kept_for() -> str:
        return str((await cluster.admin.get(f"{VOLUMES}/disk-0"))["spec"].get("claimRef", {}).get("name", ""))

    first = await eventually(kept_for)
    [second] = {"one", "two"} - {first}
    pod_condition = await cluster.wait_condition(second)
    assert "didn't find available persistent volumes to bind" in pod_condition["message"]
    await complete(cluster, first, "disk-0")
    assert await cluster.wait_bound([first]) == {first: "node-0"}
    await add_volume(cluster, volume("disk-1", "local", "node-1"))

    async def is_kept() -> bool:
        return bool((await cluster.admin.get(f"{VOLUMES}/disk-1"))["spec"].get("claimRef"))

    await eventually(is_kept)
    await complete(cluster, second, "disk-1")
    assert (await cluster.wait_bound([second]))[second] == "node-1"


async def test_two_pods_never_get_one_claim_that_only_one_may_use(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(3))
    await cluster.admin.create(CLASSES, storage_class("local", "kubernetes.io/no-provisioner"))
    alone = volume("disk-1", "local", "node-1", "ReadWriteOncePod")
    await cluster.admin.create(CLAIMS, claim("data", "1Gi", "local", accessModes=["ReadWriteOncePod"]))
    stored_claim = await cluster.admin.get(f"{CLAIMS}/data")
    alone["spec"]["claimRef"] = {"namespace": "default", "name": "data", "uid": stored_claim["metadata"]["uid"]}
    await cluster.admin.create(VOLUMES, alone)
    await complete(cluster, "data", "disk-1")
    await start(cluster)
    await cluster.create(user("one", "data"), user("two", "data"))

    async def read_placements() -> dict[str, str]:
        return await cluster.placements()

    [first] = await eventually(read_placements)
    [second] = {"one", "two"} - {first}
    pod_condition = await cluster.wait_condition(second)
    assert pod_condition["message"].startswith(
        "0/3 nodes are available: 3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod."
    )
    assert condition(await cluster.pod(first))["status"] == "True"
    assert await cluster.placements() == {first: "node-1"}
    await cluster.delete_pod(first)
    assert await cluster.wait_bound([second]) == {second: "node-1"}
