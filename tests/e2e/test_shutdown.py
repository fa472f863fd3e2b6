"""Stopping podium while it has much to do, and starting it again."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.manifests import condition, nodes, pods

pytestmark = pytest.mark.anyio

GRACE_S = 25.0
"""After 30 s the kubelet kills what it has told to stop."""


async def has_bound(daemon: Daemon, count: int) -> None:
    async def is_reached() -> bool:
        return await daemon.attempts("scheduled") >= count

    await eventually(is_reached)


async def test_sigterm_in_a_backlog_leaves_no_pod_half_bound_and_a_restart_binds_the_rest(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(20))
    names = {item["metadata"]["name"] for item in await cluster.create(*pods(1000, cpu="10m"))}
    first = await start(cluster, configuration(qps=100, burst=50))
    await has_bound(first, 100)
    first.terminate()
    assert await first.wait_ended(GRACE_S) == 0

    pods_by_name = await cluster.pods()
    bound_names = {name for name, item in pods_by_name.items() if item["spec"].get("nodeName")}
    assert 100 <= len(bound_names) < 1000
    assert {name for name, item in pods_by_name.items() if condition(item).get("status") == "True"} == bound_names
    logged_names = {pod.removeprefix("default/") for pod in first.bound_pods()}
    # A machine that is busy elsewhere may leave too little time for all answers; podium says so.
    unanswered = sum(entry["bindings"] for entry in first.log("Exiting with unfinished work"))
    assert logged_names <= bound_names
    assert len(bound_names - logged_names) <= unanswered
    assert await cluster.events_by_pod("Scheduled") == dict.fromkeys(logged_names, 1)
    assert first.log()[-1]["msg"] == "Stopped"

    second = await start(cluster)
    placements = await cluster.wait_bound(names)
    assert {name: placements[name] for name in bound_names} == {
        name: pods_by_name[name]["spec"]["nodeName"] for name in bound_names
    }
    told_once = names - (bound_names - logged_names)
    assert await cluster.wait_events("Scheduled", len(told_once)) == dict.fromkeys(told_once, 1)
    assert await second.stop() == 0
    assert sorted(first.bound_pods() + second.bound_pods()) == sorted(f"default/{name}" for name in told_once)


async def test_events_have_the_time_at_a_stop_that_binding_cycles_do_not_need(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    sandbox_cluster.sandbox.faults.latency(0.5, verb="create", resource="events")
    await sandbox_cluster.create(*nodes(5), *pods(100, cpu="10m"))
    daemon = await start(sandbox_cluster)
    await has_bound(daemon, 100)
    assert await daemon.stop() == 0
    events = await sandbox_cluster.events_by_pod("Scheduled")
    assert sorted(daemon.bound_pods()) == sorted(f"default/{name}" for name in events)


async def test_a_second_signal_does_not_wait(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    await sandbox_cluster.create(*nodes(5), *pods(300, cpu="10m"))
    daemon = await start(sandbox_cluster, configuration(qps=10, burst=10))
    await has_bound(daemon, 10)
    daemon.terminate()

    async def is_stopping() -> bool:
        return bool(daemon.log("Stopping"))

    await eventually(is_stopping)
    assert daemon.is_running
    daemon.terminate()
    assert await daemon.wait_ended() == 1


async def test_a_slow_limit_does_not_hold_the_shutdown_up(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    await sandbox_cluster.create(*nodes(5), *pods(300, cpu="10m"))
    daemon = await start(sandbox_cluster, configuration(qps=10, burst=10))
    await has_bound(daemon, 10)
    daemon.terminate()
    assert await daemon.wait_ended(GRACE_S) == 0
    for item in (await sandbox_cluster.pods()).values():
        assert bool(item["spec"].get("nodeName")) == (condition(item).get("status") == "True")


async def test_sigterm_before_the_api_server_was_ever_reached(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    sandbox_cluster.sandbox.faults.refuse_connections(60.0)
    daemon = await start(sandbox_cluster, ready=False)

    async def is_waiting() -> bool:
        return bool(daemon.log("Waiting for the caches to sync"))

    await eventually(is_waiting)
    daemon.terminate()
    assert await daemon.wait_ended() == 0
