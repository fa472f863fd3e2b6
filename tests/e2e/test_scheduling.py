"""What podium does for the pods of a healthy cluster."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually
from tests.manifests import HOSTNAME, condition, node, nodes, pod, pods

pytestmark = pytest.mark.anyio


async def test_pods_of_podium_are_bound_with_one_event_each_and_others_left_alone(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(20))
    foreign_pods = await cluster.create(*pods(10, "other", scheduler="default-scheduler"))
    ours = {item["metadata"]["name"]: item for item in await cluster.create(*pods(200))}
    daemon = await start(cluster)
    placements = await cluster.wait_bound(ours)
    assert placements.keys() == ours.keys()
    assert set(placements.values()) == {f"node-{index}" for index in range(20)}

    counts = await cluster.wait_events("Scheduled", 200)
    assert counts == dict.fromkeys(ours, 1)
    for event in await cluster.events("Scheduled"):
        name = event["regarding"]["name"]
        assert event["note"] == f"Successfully assigned default/{name} to {placements[name]}"
        assert event["regarding"]["uid"] == ours[name]["metadata"]["uid"]
        assert (event["type"], event["action"]) == ("Normal", "Binding")
        assert event["reportingController"] == "podium"
        assert event["reportingInstance"].startswith("podium-")

    pods_by_name = await cluster.pods()
    for name in ours:
        assert condition(pods_by_name[name])["status"] == "True"
    for foreign_pod in foreign_pods:
        assert await cluster.pod(foreign_pod["metadata"]["name"]) == foreign_pod
        assert "nodeName" not in foreign_pod["spec"]
        assert not condition(foreign_pod)

    await daemon.wait_attempts("scheduled", 200)
    assert await daemon.attempts("unschedulable") == await daemon.attempts("error") == 0
    assert sorted(await daemon.wait_told_bound(ours)) == sorted(f"default/{name}" for name in ours)


async def test_a_pod_that_is_too_big_is_told_why_and_bound_when_a_node_comes_that_fits(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(20))
    daemon = await start(cluster)
    await cluster.create(pod("huge", cpu="64"))
    pod_condition = await cluster.wait_condition("huge")
    assert pod_condition["status"] == "False"
    assert pod_condition["message"].startswith("0/20 nodes are available: 20 Insufficient cpu.")
    assert await cluster.wait_events("FailedScheduling", 1) == {"huge": 1}
    [event] = await cluster.events("FailedScheduling")
    assert event["note"] == pod_condition["message"]
    assert (event["type"], event["reportingController"]) == ("Warning", "podium")
    await daemon.wait_attempts("unschedulable", 1)
    await daemon.wait_metric(1, "scheduler_pending_pods", queue="unschedulable")

    await cluster.create(node("big", cpu="96"))
    assert (await cluster.wait_bound(["huge"]))["huge"] == "big"
    assert condition(await cluster.pod("huge"))["status"] == "True"


async def test_a_gated_pod_is_not_touched_until_its_last_gate_is_removed(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(2))
    daemon = await start(cluster)
    [gated_pod] = await cluster.create(pod("gated", schedulingGates=[{"name": "first"}, {"name": "second"}]))
    await cluster.create(pod("plain"))
    await cluster.wait_bound(["plain"])
    assert await cluster.pod("gated") == gated_pod
    assert await daemon.pending("gated") == 1

    one_left = await cluster.patch_pod("gated", {"spec": {"schedulingGates": [{"name": "second"}]}})
    await cluster.create(pod("plain-2"))
    await cluster.wait_bound(["plain-2"])
    assert await cluster.pod("gated") == one_left
    assert await daemon.pending("gated") == 1

    await cluster.patch_pod("gated", {"spec": {"schedulingGates": []}})
    await cluster.wait_bound(["gated"])
    assert await daemon.pending("gated") == 0
    assert await daemon.attempts("unschedulable") == 0


async def test_a_pending_pod_that_is_deleted_is_forgotten(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(2))
    daemon = await start(cluster)
    await cluster.create(pod("huge", cpu="64"), pod("gated", schedulingGates=[{"name": "first"}]))
    await cluster.wait_condition("huge")
    await cluster.delete_pod("huge")
    await cluster.delete_pod("gated")

    async def nobody_waits() -> bool:
        return not await daemon.metric("scheduler_pending_pods")

    await eventually(nobody_waits)
    await cluster.create(node("big", cpu="96"), pod("plain"))
    await cluster.wait_bound(["plain"])
    assert await daemon.attempts("unschedulable") == 1
    assert await daemon.attempts("error") == 0


async def test_the_room_of_a_pod_that_is_deleted_is_used_again(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(node("small", cpu="2"))
    await start(cluster)
    await cluster.create(pod("first", cpu="2"))
    await cluster.wait_bound(["first"])
    await cluster.create(pod("second", cpu="2"))
    await cluster.wait_condition("second")
    await cluster.delete_pod("first")
    await cluster.wait_bound(["second"])


async def test_a_node_that_is_deleted_gets_no_more_pods(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(2))
    daemon = await start(cluster)
    await cluster.create(*pods(10, "before"))
    assert set((await cluster.wait_bound(f"before-{index}" for index in range(10))).values()) == {"node-0", "node-1"}
    await cluster.delete_node("node-0")

    async def one_node_is_left() -> bool:
        return await daemon.metric("scheduler_cache_size", type="nodes") == 1

    await eventually(one_node_is_left)
    await cluster.create(*pods(10, "after"), pod("huge", cpu="64"))
    placements = await cluster.wait_bound(f"after-{index}" for index in range(10))
    assert {placements[f"after-{index}"] for index in range(10)} == {"node-1"}
    assert (await cluster.wait_condition("huge"))["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


async def test_a_cordoned_node_is_used_when_it_is_uncordoned(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(node("open"), node("closed", unschedulable=True))
    await start(cluster)
    await cluster.create(*pods(10), pod("pinned", nodeSelector={HOSTNAME: "closed"}))
    assert set((await cluster.wait_bound(f"web-{index}" for index in range(10))).values()) == {"open"}
    message = (await cluster.wait_condition("pinned"))["message"]
    assert message.startswith("0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s)")
    assert "1 node(s) were unschedulable" in message
    await cluster.patch_node("closed", {"spec": {"unschedulable": False}})
    assert (await cluster.wait_bound(["pinned"]))["pinned"] == "closed"


async def test_taints_selectors_and_host_ports_are_respected(cluster: Cluster, start: StartDaemon) -> None:
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    await cluster.create(node("plain"), node("fast", labels={"disk": "ssd"}), node("tainted", taints=[taint]))
    await start(cluster)
    toleration = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    node_selector = {"nodeSelector": {HOSTNAME: "tainted"}}
    await cluster.create(
        *pods(6),
        pod("wants-ssd", nodeSelector={"disk": "ssd"}),
        pod("tolerates", tolerations=[toleration], **node_selector),
        pod("tolerates-not", **node_selector),
        pod("wants-tape", nodeSelector={"disk": "tape"}),
    )
    placements = await cluster.wait_bound([*(f"web-{index}" for index in range(6)), "wants-ssd", "tolerates"])
    assert {placements[f"web-{index}"] for index in range(6)} == {"plain", "fast"}
    assert (placements["wants-ssd"], placements["tolerates"]) == ("fast", "tainted")
    message = (await cluster.wait_condition("tolerates-not"))["message"]
    assert "1 node(s) had untolerated taint(s)" in message
    message = (await cluster.wait_condition("wants-tape"))["message"]
    assert message.startswith("0/3 nodes are available: ")
    assert "node(s) didn't match Pod's node affinity/selector" in message

    await cluster.create(pod("port-0", host_port=8080), pod("port-1", host_port=8080))
    placements = await cluster.wait_bound(["port-0", "port-1"])
    assert {placements["port-0"], placements["port-1"]} == {"plain", "fast"}
    await cluster.create(pod("port-2", host_port=8080))
    message = (await cluster.wait_condition("port-2"))["message"]
    assert "2 node(s) didn't have free ports for the requested pod ports" in message
    await cluster.delete_pod("port-0")
    await cluster.wait_bound(["port-2"])
