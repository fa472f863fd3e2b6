"""SIGUSR2, which has kube-scheduler write its cache and its queue to the log."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually
from tests.manifests import node, pod, pods

pytestmark = pytest.mark.anyio


async def test_the_cache_and_the_queue_are_dumped_and_scheduling_goes_on(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(node("node-0", cpu="4"), node("node-1", cpu="4", labels={"other": "yes"}))
    await sandbox_cluster.create(pod("web-0", cpu="1500m", nodeName="node-1"), pod("huge", cpu="64"))
    daemon = await start(sandbox_cluster)
    await sandbox_cluster.wait_condition("huge")
    daemon.signal(signal.SIGUSR2)

    async def is_dumped() -> bool:
        return bool(daemon.log("Dump of scheduling queue"))

    await eventually(is_dumped)
    dump_by_node = {entry["node"]: entry for entry in daemon.log("Dump of cached NodeInfo")}
    assert dump_by_node.keys() == {"node-0", "node-1"}
    assert (dump_by_node["node-0"]["deleted"], dump_by_node["node-0"]["pods"]) == (False, [])
    assert dump_by_node["node-1"]["allocatable"]["cpu"] == 4000
    assert dump_by_node["node-1"]["requested"]["cpu"] == 1500
    [web] = dump_by_node["node-1"]["pods"]
    assert (web["namespace"], web["name"], web["phase"], web["nominatedNode"]) == ("default", "web-0", "Pending", "")
    [queue] = daemon.log("Dump of scheduling queue")
    assert queue["summary"]["unschedulable"] == 1
    assert [entry["name"] for entry in queue["pods"]] == ["huge"]
    assert daemon.log("Cache mismatch") == []

    await sandbox_cluster.create(*pods(3, prefix="later"))
    await sandbox_cluster.wait_bound([f"later-{index}" for index in range(3)])
    daemon.signal(signal.SIGUSR2)

    async def is_dumped_again() -> bool:
        return len(daemon.log("Dump of scheduling queue")) == 2

    await eventually(is_dumped_again)


async def test_the_signal_ends_a_podium_that_is_starting_or_ending_as_little(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(node("node-0"))
    sandbox_cluster.sandbox.faults.refuse_connections(2.0)
    daemon = await start(sandbox_cluster, ready=False)

    async def has_begun() -> bool:
        return bool(daemon.log("Starting podium"))

    await eventually(has_begun)
    daemon.signal(signal.SIGUSR2)
    await daemon.wait_ready()
    daemon.terminate()
    for _ in range(20):
        daemon.signal(signal.SIGUSR2)
    assert await daemon.wait_ended() == 0
