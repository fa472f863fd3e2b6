"""The real kubectl at work on the sandbox, with no flags that a user would not type."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.sandbox.fill import sample_pod, varied_nodes
from podium.sandbox.pods import bind
from tests.integration.sandbox.kubectl import rows
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]


@pytest.fixture
def manifest(tmp_path) -> Path:
    path = tmp_path / "web.yaml"
    path.write_text(yaml.safe_dump(sample_pod("web")))
    return path


async def test_get_lists_nodes_and_pods(kubectl, cluster, manifest):
    head, *nodes = rows(await kubectl("get", "nodes"))
    assert head == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row[:3] for row in nodes] == [["node-00000", "Ready", "<none>"], ["node-00001", "Ready", "<none>"]]
    cluster.store.create(sample_pod("web"))
    head, web = rows(await kubectl("get", "pods", "-A", "-o", "wide"))
    assert head[:6] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert web[:5] == ["default", "web", "0/1", "Pending", "0"]
    assert await kubectl("get", "pod", "web", "-o", "jsonpath={.spec.schedulerName}") == "podium"
    assert await kubectl("get", "po", "-l", "app=other", "-o", "name") == ""
    assert await kubectl("get", "po", "--field-selector", "spec.nodeName=", "-o", "name") == "pod/web\n"
    assert "not found" in await kubectl.fail("get", "pod", "api")


async def test_get_w_follows_a_pod_from_pending_to_running_to_gone(kubectl, cluster):
    cluster.store.create(sample_pod("web"))
    watching = await kubectl.start("get", "pods", "-w")

    async def until(status):
        async with asyncio.timeout(PATIENCE_S):
            while status not in (await watching.stdout.readline()).decode().split():
                assert not watching.stdout.at_eof()

    await until("Pending")
    bind(cluster.store, "default", "web", {"target": {"name": "node-00000"}})
    await until("Running")
    cluster.store.delete("pods", "web")
    await until("Terminating")
    watching.terminate()
    await watching.communicate()


def scheduling_event(pod: str, uid: str) -> dict[str, Any]:
    """An Event as podium writes it: without the times of older ones."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.1", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": pod, "namespace": "default", "uid": uid},
        "type": "Warning",
        "reason": "FailedScheduling",
        "note": "0/2 nodes are available",
        "reportingController": "podium",
        "reportingInstance": "podium-1",
        "action": "Scheduling",
    }


async def test_what_the_sandbox_does_not_have_is_said(kubectl, cluster):
    cluster.store.create(sample_pod("web"))
    assert "the sandbox runs no containers, so its pods have no log" in await kubectl.fail("logs", "web")
    assert "the sandbox runs no containers, so its pods have no exec" in await kubectl.fail("exec", "web", "--", "ls")
    assert "The sandbox does not describe fields" in await kubectl("explain", "pod")


async def test_events_are_sorted_by_times_that_nobody_has_set(kubectl, cluster):
    """An API server shows them as null; kubectl fails if it finds the field in no Event."""
    for name in ("web", "api"):
        cluster.store.create(scheduling_event(name, ""))
    assert len(rows(await kubectl("get", "events", "--sort-by=.lastTimestamp"))) == 3
    assert len(rows(await kubectl("get", "events.events.k8s.io", "--sort-by=.deprecatedLastTimestamp"))) == 3


async def test_describe_shows_a_pod_with_its_events(kubectl, cluster):
    web = cluster.store.create(sample_pod("web"))
    cluster.store.create(scheduling_event("web", web["metadata"]["uid"]))
    description = await kubectl("describe", "pod", "web")
    assert ["Status:", "Pending"] in rows(description)
    assert "FailedScheduling" in description
    assert "0/2 nodes are available" in description
    assert "FailedScheduling" in await kubectl("get", "events")


async def test_describe_shows_a_node_with_the_pods_on_it(kubectl, cluster):
    cluster.store.create(sample_pod("web", cpu_milli=250))
    bind(cluster.store, "default", "web", {"target": {"name": "node-00001"}})
    description = rows(await kubectl("describe", "node", "node-00001"))
    assert ["Unschedulable:", "false"] in description
    assert ["default", "web", "250m", "(3%)"] in [row[:4] for row in description]


async def test_apply_creates_a_pod_and_changes_what_may_change(kubectl, cluster, manifest):
    assert "created" in await kubectl("apply", "-f", str(manifest))
    assert "unchanged" in await kubectl("apply", "-f", str(manifest))
    manifest.write_text(manifest.read_text().replace("web:1.4", "web:1.5"))
    assert "configured" in await kubectl("apply", "-f", str(manifest))
    assert cluster.store.get("pods", "web")["spec"]["containers"][0]["image"].endswith("web:1.5")
    manifest.write_text(manifest.read_text().replace("100m", "lots"))
    assert "is invalid" in await kubectl.fail("apply", "-f", str(manifest))


async def test_apply_works_on_the_server_side_and_as_a_dry_run(kubectl, cluster, manifest):
    await kubectl("apply", "--dry-run=server", "-f", str(manifest))
    assert cluster.store.list("pods") == []
    for _ in range(2):
        assert "serverside-applied" in await kubectl("apply", "--server-side", "-f", str(manifest))
    assert cluster.store.get("pods", "web")["metadata"]["labels"] == {"app": "sample"}


async def test_apply_takes_a_node(kubectl, cluster, tmp_path):
    manifest = tmp_path / "node.yaml"
    manifest.write_text(yaml.safe_dump(varied_nodes(3)[2]))
    await kubectl("apply", "-f", str(manifest))
    assert cluster.store.get("nodes", "node-00002")["status"]["allocatable"]["cpu"] == "7900m"


async def test_create_refuses_a_name_that_is_taken(kubectl, manifest):
    await kubectl("create", "-f", str(manifest))
    assert "AlreadyExists" in await kubectl.fail("create", "-f", str(manifest))


async def test_create_makes_the_small_things_that_kubectl_sends_as_protobuf(kubectl, cluster):
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "settings", "--from-literal=a=b", "-n", "team")
    await kubectl("create", "priorityclass", "rather-low", "--value=-5", "--preemption-policy=Never")
    assert cluster.store.get("configmaps", "settings", "team")["data"] == {"a": "b"}
    priority_class = cluster.store.get("priorityclasses", "rather-low")
    assert (priority_class["value"], priority_class["preemptionPolicy"]) == (-5, "Never")
    assert await kubectl("auth", "can-i", "create", "pods") == "yes\n"
    await kubectl("delete", "namespace", "team")
    assert cluster.store.list("configmaps") == []


@pytest.mark.parametrize(
    ("how", "patch"),
    [
        ("strategic", '{"metadata":{"labels":{"tier":"1"}}}'),
        ("merge", '{"metadata":{"labels":{"tier":"1"}}}'),
        ("json", '[{"op":"add","path":"/metadata/labels/tier","value":"1"}]'),
    ],
)
async def test_patch_changes_pods_and_nodes(kubectl, cluster, how, patch):
    cluster.store.create(sample_pod("web"))
    await kubectl("patch", "pod", "web", "--type", how, "-p", patch)
    await kubectl("patch", "node", "node-00000", "--type", how, "-p", patch)
    assert cluster.store.get("pods", "web")["metadata"]["labels"] == {"app": "sample", "tier": "1"}
    assert cluster.store.get("nodes", "node-00000")["metadata"]["labels"]["tier"] == "1"


async def test_patch_reaches_the_status_by_its_subresource(kubectl, cluster):
    patch = '{"status":{"capacity":{"cpu":"64"},"allocatable":{"cpu":"64"}}}'
    await kubectl("patch", "node", "node-00000", "--subresource=status", "-p", patch)
    assert cluster.store.get("nodes", "node-00000")["status"]["allocatable"]["cpu"] == "64"


async def test_label_sets_and_removes(kubectl, cluster):
    cluster.store.create(sample_pod("web"))
    for kind, name in (("pod", "web"), ("node", "node-00000")):
        await kubectl("label", kind, name, "tier=1")
        assert cluster.store.get(kind, name)["metadata"]["labels"]["tier"] == "1"
        assert "already has a value" in await kubectl.fail("label", kind, name, "tier=2")
        await kubectl("label", kind, name, "tier-")
        assert "tier" not in cluster.store.get(kind, name)["metadata"]["labels"]


async def test_cordon_and_uncordon_close_and_open_a_node(kubectl, cluster):
    await kubectl("cordon", "node-00000")
    assert cluster.store.get("nodes", "node-00000")["spec"]["unschedulable"] is True
    assert "Ready,SchedulingDisabled" in await kubectl("get", "node", "node-00000")
    await kubectl("uncordon", "node-00000")
    assert "unschedulable" not in cluster.store.get("nodes", "node-00000")["spec"]


async def test_taint_sets_and_removes(kubectl, cluster):
    await kubectl("taint", "node", "node-00000", "team=a:NoSchedule")
    assert cluster.store.get("nodes", "node-00000")["spec"]["taints"] == [
        {"key": "team", "value": "a", "effect": "NoSchedule"}
    ]
    await kubectl("taint", "node", "node-00000", "team-")
    assert not cluster.store.get("nodes", "node-00000")["spec"].get("taints")


async def test_drain_evicts_the_pods_of_a_node(kubectl, cluster):
    cluster.store.create(sample_pod("web"))
    bind(cluster.store, "default", "web", {"target": {"name": "node-00000"}})
    await kubectl("drain", "node-00000", "--force")
    assert cluster.store.list("pods") == []


async def test_delete_waits_until_the_object_is_gone(kubectl, cluster, manifest):
    cluster.store.create(sample_pod("web"))
    bind(cluster.store, "default", "web", {"target": {"name": "node-00000"}})
    assert "deleted" in await kubectl("delete", "-f", str(manifest))
    assert cluster.store.list("pods") == []
    await kubectl("delete", "node", "node-00000")
    assert [node["metadata"]["name"] for node in cluster.store.list("nodes")] == ["node-00001"]
    cluster.store.create(sample_pod("a"))
    cluster.store.create(sample_pod("b"))
    await kubectl("delete", "pods", "--all")
    assert cluster.store.list("pods") == []
