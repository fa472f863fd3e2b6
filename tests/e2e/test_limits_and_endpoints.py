"""The client's rate limit, and what the endpoints say."""

from __future__ import annotations

import json
import os
import resource
import socket
import time

import pytest

from tests.e2e.cluster import Cluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.manifests import node, nodes, pod, pods

pytestmark = pytest.mark.anyio


async def test_the_clients_rate_limit_is_kept(cluster: Cluster, start: StartDaemon) -> None:
    names = [f"web-{index}" for index in range(60)]
    await cluster.create(*nodes(3), *pods(60))
    started_s = time.monotonic()
    await start(cluster, configuration(qps=20, burst=5))
    await cluster.wait_bound(names)
    # Five at once, the others one by one: 55 / 20 = 2.75 s from the first binding on.
    assert time.monotonic() - started_s >= 2.7


async def test_endpoints_tell_what_was_done_and_with_which_configuration(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(node("node-0", cpu="4"))
    daemon = await start(cluster, configuration(podInitialBackoffSeconds=2))
    await cluster.create(*pods(10))
    await cluster.wait_bound(f"web-{index}" for index in range(10))
    await cluster.create(pod("gated", schedulingGates=[{"name": "wait"}]))
    await cluster.create(pod("huge", cpu="64"))
    await cluster.wait_condition("huge")

    metric = daemon.metric
    await daemon.wait_attempts("scheduled", 10)
    assert await daemon.attempts("unschedulable") == 1
    assert await daemon.attempts("error") == 0
    assert await metric("scheduler_scheduling_attempt_duration_seconds_count", result="scheduled") == 10
    assert await metric("scheduler_scheduling_algorithm_duration_seconds_count") == 11
    assert await metric("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 10
    assert await metric("scheduler_pod_scheduling_attempts_sum") == 10
    assert await metric("scheduler_pending_pods", queue="unschedulable") == 1
    assert await metric("scheduler_pending_pods", queue="gated") == 1
    assert await metric("scheduler_pending_pods", queue="active") == 0
    assert await metric("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile="podium") == 1
    assert await metric("scheduler_queue_incoming_pods_total", queue="active", event="UnscheduledPodAdd") == 11
    assert await metric("scheduler_cache_size", type="nodes") == 1
    assert await metric("scheduler_cache_size", type="pods") == 10
    assert await metric("scheduler_framework_extension_point_duration_seconds_count", extension_point="Bind") == 10
    assert await metric("podium_unexpected_errors_total") == 0
    assert await metric("podium_reflector_lists_total", resource="pods") == 1
    assert await metric("podium_reflector_events_total", resource="pods") >= 22
    await daemon.wait_metric(11, "podium_events_total", result="written")
    assert await metric("podium_events_total", result="dropped") == 0
    assert await metric("podium_writes_waiting", priority="binding") == 0

    status, text = await daemon.get("/debug/queue")
    assert status == 200
    waiting = {entry["name"]: entry for entry in json.loads(text)["pods"]}
    assert {name: entry["queue"] for name, entry in waiting.items()} == {"huge": "unschedulable", "gated": "gated"}
    assert (waiting["huge"]["attempts"], waiting["huge"]["unschedulablePlugins"]) == (1, ["NodeResourcesFit"])
    assert waiting["huge"]["reason"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert waiting["gated"]["gatingPlugin"] == "SchedulingGates"
    assert waiting["gated"]["reason"].startswith("waiting for scheduling gates: [")
    status, table = await daemon.get("/debug/queue?output=table&pod=huge")
    assert (status, table.splitlines()[1].split()[:3]) == (200, ["default", "huge", "unschedulable"])
    assert "    rejected by NodeResourcesFit: 0/1 nodes are available: 1 Insufficient cpu." in table
    assert "UnscheduledPodAdd: gone -> active" in table

    index = json.loads((await daemon.get("/"))[1])["paths"]
    assert {"/configz", "/debug/pprof/profile", "/debug/queue", "/flagz", "/healthz", "/statusz"} <= set(index)
    assert "\nlogging-format: " in (await daemon.get("/flagz"))[1]
    assert f"Paths: {' '.join(index)}\n" in (await daemon.get("/statusz"))[1]

    status, text = await daemon.get("/configz")
    assert status == 200
    component_config = json.loads(text)["componentconfig"]
    assert component_config["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert component_config["kind"] == "KubeSchedulerConfiguration"
    assert component_config["podInitialBackoffSeconds"] == 2
    assert component_config["podMaxBackoffSeconds"] == 10
    assert component_config["parallelism"] == 16
    [profile] = component_config["profiles"]
    assert profile["schedulerName"] == "podium"
    assert "NodeResourcesFitArgs" in {entry["args"]["kind"] for entry in profile["pluginConfig"]}

    for endpoint in ("healthz", "livez", "readyz"):
        assert await daemon.get(f"/{endpoint}") == (200, "ok")
    assert (await daemon.get("/readyz/sched-handler-sync"))[0] == 200
    assert (await daemon.get("/readyz/no-such-check"))[0] == 404


async def test_idle_connections_by_anybody_leave_descriptors_for_the_api_server(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(3))
    daemon = await start(sandbox_cluster, through=("sh", "-c", 'ulimit -n 256; exec "$@"', "sh"))
    crowd = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(400)]
    try:
        await sandbox_cluster.create(*pods(100))
        # Watches that are open do not need another descriptor; these have to be made anew.
        sandbox_cluster.sandbox.faults.drop_watches()
        await sandbox_cluster.wait_bound([f"web-{index}" for index in range(100)])
        assert await daemon.get("/livez") == (200, "ok")
        assert len(os.listdir(f"/proc/{daemon.pid}/fd")) < 200
    finally:
        for connection in crowd:
            connection.close()


async def test_the_soft_limit_of_descriptors_is_raised(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    daemon = await start(sandbox_cluster, through=("sh", "-c", 'ulimit -Sn 128; ulimit -Hn 512; exec "$@"', "sh"))
    assert resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE) == (512, 512)
