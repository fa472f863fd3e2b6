"""Breaking connections, refused bindings and broken objects: everything else goes on, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from podium.sandbox.pods import bind
from tests.e2e.cluster import PODS, RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.manifests import HOSTNAME, condition, node, nodes, pod, pods
from tests.relay import Relay

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
BINDINGS = {"verb": "create", "resource": "pods", "subresource": "binding"}
FOR_EVER_S = 600.0


async def told_of(daemon: Daemon, name: str) -> list[Json]:
    """The log entries about that object at level error, once there are any: a line may come after what it tells of."""

    async def read_errors() -> list[Json]:
        return [entry for entry in daemon.log() if entry["level"] == "error" and entry.get("object") == name]

    return await eventually(read_errors)


# ------------------------------------------------------------ broken objects


def broken_node() -> Json:
    item = node("broken")
    item["status"]["allocatable"]["cpu"] = "xyz"
    return item


def mistyped_pod() -> Json:
    item = pod("mistyped")
    item["spec"]["containers"] = "none"
    return item


async def test_broken_objects_are_reported_once_and_the_rest_is_scheduled(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    put_raw = sandbox_cluster.sandbox.store.put_raw
    put_raw(broken_node())
    put_raw(pod("quantity", cpu="abc"))
    put_raw(mistyped_pod())
    await sandbox_cluster.create(*nodes(2), *pods(5, "before"))
    daemon = await start(sandbox_cluster)
    await sandbox_cluster.wait_bound(f"before-{index}" for index in range(5))
    put_raw(pod("later", cpu="1X"))
    # None of these changes mends or worsens anything.
    put_raw({**broken_node(), "metadata": {"name": "broken", "labels": {"seen": "again"}}})
    for item in (pod("quantity", cpu="abc"), mistyped_pod()):
        item["metadata"]["labels"] = {"seen": "again"}
        put_raw(item)
    await sandbox_cluster.create(*pods(5, "after"))
    placements = await sandbox_cluster.wait_bound(f"after-{index}" for index in range(5))
    assert set(placements.values()) == {"node-0", "node-1"}

    fields = {
        "broken": "status.allocatable[cpu]",
        "default/quantity": "spec.containers[0].resources.requests[cpu]",
        "default/later": "spec.containers[0].resources.requests[cpu]",
    }
    for name, field in fields.items():
        assert [entry.get("field") for entry in await told_of(daemon, name)] == [field]
    [mistyped] = await told_of(daemon, "default/mistyped")
    assert "containers" in mistyped["detail"]
    assert await daemon.metric("podium_broken_objects_total", kind="Node") == 1
    assert await daemon.metric("podium_broken_objects_total", kind="Pod") == 3

    async def read_events() -> list[Json]:
        return await sandbox_cluster.events("FailedScheduling", name="quantity")

    [event] = await eventually(read_events)
    assert "abc" in event["note"]


async def test_objects_with_names_that_no_api_server_lets_through_are_reported_and_left_alone(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    put_raw = sandbox_cluster.sandbox.store.put_raw
    names = (" ", "a b", "../x", "A/b", "new\nline", "x" * 300)
    for name in names[:4]:
        put_raw(pod(name))
    put_raw(node("no node"))
    await sandbox_cluster.create(node("only"), *pods(3, "before"))
    daemon = await start(sandbox_cluster)
    await sandbox_cluster.wait_bound(f"before-{index}" for index in range(3))
    for name in names[4:]:
        put_raw(pod(name))
    await sandbox_cluster.create(*pods(3, "after"))
    placements = await sandbox_cluster.wait_bound(f"after-{index}" for index in range(3))
    assert set(placements.values()) == {"only"}
    assert not placements.keys() & set(names)
    assert await daemon.metric("podium_broken_objects_total", kind="Pod") == len(names)
    assert await daemon.metric("podium_broken_objects_total", kind="Node") == 1
    [entry] = await told_of(daemon, "default/a b")
    assert "$.metadata.name" in entry["detail"]
    assert daemon.is_running


async def test_what_runs_and_cannot_be_read_still_takes_its_room(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    put_raw = sandbox_cluster.sandbox.store.put_raw
    await sandbox_cluster.create(*nodes(3, cpu="4"))
    crowded = pod("crowded", cpu="3", nodeName="node-0")
    crowded["metadata"]["labels"] = {f"k{number}": "v" for number in range(10_001)}
    put_raw(crowded)
    hidden = {**mistyped_pod(), "spec": {"nodeName": "node-1", "containers": 5}}
    put_raw(hidden)
    tainted = node("node-2", cpu="4")
    tainted["spec"] = {"taints": 5}
    put_raw(tainted)
    daemon = await start(sandbox_cluster)
    names = [f"web-{number}" for number in range(4)]
    await sandbox_cluster.create(*(pod(name, cpu="900m") for name in names))

    async def all_but_one_wait() -> bool:
        messages = [condition(await sandbox_cluster.pod(name)).get("message", "") for name in names]
        waiting = [text for text in messages if "1 node(s) closed to new pods: a pod there has a field" in text]
        return len([text for text in waiting if "1 node(s) closed to new pods: the node has a field" in text]) == 3

    await eventually(all_but_one_wait)
    placements = await sandbox_cluster.placements()
    assert [placements[name] for name in names if placements.get(name)] == ["node-0"]

    async def both_told() -> bool:
        nodes_closed = {entry["node_closed"] for entry in daemon.log("Object has a field that cannot be read")}
        return nodes_closed == {"node-1", "node-2"}

    await eventually(both_told)

    put_raw(node("node-2", cpu="4"))
    await sandbox_cluster.wait_bound(names)
    placements = await sandbox_cluster.placements()
    assert sorted(placements[name] for name in names) == ["node-0", "node-2", "node-2", "node-2"]


async def test_broken_objects_that_are_mended_take_part(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    put_raw = sandbox_cluster.sandbox.store.put_raw
    put_raw(broken_node())
    put_raw(pod("quantity", cpu="abc"))
    put_raw(mistyped_pod())
    await sandbox_cluster.create(node("other"), pod("pinned", nodeSelector={HOSTNAME: "broken"}))
    daemon = await start(sandbox_cluster)

    async def all_reported() -> bool:
        return await daemon.metric("podium_broken_objects_total") == 3

    await eventually(all_reported)
    await sandbox_cluster.wait_condition("pinned")
    put_raw(node("broken"))
    assert await sandbox_cluster.wait_bound(["pinned"]) == {"pinned": "broken"}
    put_raw(pod("quantity"))
    put_raw(pod("mistyped"))
    await sandbox_cluster.wait_bound(["quantity", "mistyped"])
    assert await daemon.metric("podium_broken_objects_total") == 3


async def test_an_invalid_selector_is_reported_once_and_matches_nothing(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    invalid_term = {"matchExpressions": [{"key": "disk", "operator": "Near", "values": ["ssd"]}]}
    valid = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["node-1"]}]}
    await sandbox_cluster.create(*nodes(2))
    daemon = await start(sandbox_cluster)
    for name, terms in (("nowhere", [invalid_term]), ("elsewhere", [invalid_term, valid])):
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        sandbox_cluster.sandbox.store.put_raw(pod(name, affinity=affinity))
    await sandbox_cluster.create(*pods(5))
    placements = await sandbox_cluster.wait_bound([*(f"web-{index}" for index in range(5)), "elsewhere"])
    assert placements["elsewhere"] == "node-1"
    await sandbox_cluster.wait_condition("nowhere")
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    for name in ("nowhere", "elsewhere"):
        [entry] = await told_of(daemon, f"default/{name}")
        assert entry["field"] == f"{path}.matchExpressions[0].operator"
        assert '"Near"' in entry["error"]
    assert await daemon.metric("podium_broken_objects_total", kind="Pod") == 2
    assert await daemon.metric("podium_unexpected_errors_total") == 0


# ------------------------------------------------------------ refused bindings


async def test_bindings_that_are_refused_are_made_again_while_the_pod_is_pending(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(node("only", cpu="1"))
    daemon = await start(sandbox_cluster)
    faults = sandbox_cluster.sandbox.faults
    for index, code in enumerate((403, 404, 409)):
        faults.server_error(code=code, **BINDINGS)
        # As large as the node: it fits again only if the first assumption was taken back.
        await sandbox_cluster.create(pod(f"refused-{code}", cpu="1"))
        await sandbox_cluster.wait_bound([f"refused-{code}"])
        await daemon.wait_attempts("error", index + 1)
        await sandbox_cluster.delete_pod(f"refused-{code}")
    event_counts = {"refused-403": 1, "refused-404": 1, "refused-409": 1}
    assert await sandbox_cluster.wait_events("Scheduled", 3) == event_counts
    await daemon.wait_attempts("scheduled", 3)
    await daemon.wait_metric(0, "scheduler_cache_size", type="assumed_pods")


async def test_bindings_that_fail_or_whose_answers_are_lost_are_made_exactly_once(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(3))
    daemon = await start(sandbox_cluster)
    created_pods = await sandbox_cluster.create(*pods(20, "gated", schedulingGates=[{"name": "wait"}]))
    faults = sandbox_cluster.sandbox.faults
    faults.lose_response(5, **BINDINGS)
    faults.server_error(5, **BINDINGS)
    faults.server_error(2, code=503, verb="get", resource="pods")
    version = max(int(item["metadata"]["resourceVersion"]) for item in created_pods)
    for item in created_pods:
        await sandbox_cluster.patch_pod(item["metadata"]["name"], {"spec": {"schedulingGates": []}})
    names = [item["metadata"]["name"] for item in created_pods]
    await sandbox_cluster.wait_bound(names)
    assert await sandbox_cluster.wait_events("Scheduled", 20) == dict.fromkeys(names, 1)
    await daemon.wait_attempts("scheduled", 20)
    assert sorted(await daemon.wait_told_bound(names)) == sorted(f"default/{name}" for name in names)
    await sandbox_cluster.create(pod("last", schedulingGates=[{"name": "wait"}]))
    bound_names = []
    async for change in sandbox_cluster.admin.watch(PODS, resourceVersion=str(version)):
        if change["object"]["metadata"]["name"] == "last":
            break
        if change["object"]["spec"].get("nodeName"):
            bound_names.append(change["object"]["metadata"]["name"])
    assert sorted(bound_names) == sorted(names)


async def test_bindings_with_senseless_answers_are_looked_up_and_no_pod_is_lost(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(node("only", cpu="1"))
    daemon = await start(sandbox_cluster)
    answers = [
        (200, "<html>Log in</html>"),
        (200, ""),
        (207, ""),
        (201, '{"kind":"Status","apiVersion":"v1","status":"Failure","code":409}'),
    ]
    for index, (code, body) in enumerate(answers):
        sandbox_cluster.sandbox.faults.invalid_answer(code=code, body=body, **BINDINGS)
        # As large as the node.
        await sandbox_cluster.create(pod(f"web-{index}", cpu="1"))
        await sandbox_cluster.wait_bound([f"web-{index}"])
        await daemon.wait_attempts("scheduled", index + 1)
        await sandbox_cluster.delete_pod(f"web-{index}")
    await daemon.wait_metric(0, "scheduler_cache_size", type="assumed_pods")


async def test_a_pod_that_goes_or_is_bound_by_another_while_its_binding_is_under_way_is_let_go(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(node("here", cpu="2"), node("there", cpu="2", unschedulable=True))
    daemon = await start(sandbox_cluster)
    sandbox_cluster.sandbox.faults.latency(FOR_EVER_S, **BINDINGS)
    await sandbox_cluster.create(pod("goes", cpu="1"), pod("taken", cpu="1"))
    await daemon.wait_metric(2, "scheduler_cache_size", type="assumed_pods")
    await sandbox_cluster.delete_pod("goes")
    bind(sandbox_cluster.sandbox.store, "default", "taken", {"target": {"name": "there"}})
    sandbox_cluster.sandbox.faults.clear()
    await daemon.wait_metric(0, "scheduler_cache_size", type="assumed_pods")
    await sandbox_cluster.create(*pods(2, "next", cpu="1"))
    assert await sandbox_cluster.wait_bound(["next-0", "next-1"]) == {
        "taken": "there",
        "next-0": "here",
        "next-1": "here",
    }
    assert await daemon.metric("scheduler_pending_pods") == 0
    assert "taken" not in await sandbox_cluster.events_by_pod("Scheduled")


async def test_429_is_waited_out(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    await sandbox_cluster.create(*nodes(2))
    daemon = await start(sandbox_cluster)
    sandbox_cluster.sandbox.faults.too_many_requests(retry_after_s=2, **BINDINGS)
    started_s = time.monotonic()
    await sandbox_cluster.create(pod("web"))
    await sandbox_cluster.wait_bound(["web"])
    assert time.monotonic() - started_s >= 2.0
    assert await daemon.attempts("error") == 0


async def test_an_overloaded_api_server_gets_all_pods_bound_in_the_end(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(5))
    daemon = await start(sandbox_cluster)
    faults = sandbox_cluster.sandbox.faults
    faults.too_many_requests(3, retry_after_s=1, verb="create")
    faults.server_error(3, verb="patch", resource="pods", subresource="status")
    faults.latency(0.02, verb="create")
    sandbox_cluster.put(*pods(100), pod("huge", cpu="64"))
    names = [f"web-{index}" for index in range(100)]
    await sandbox_cluster.wait_bound(names)
    assert await sandbox_cluster.wait_events("Scheduled", 100) == dict.fromkeys(names, 1)
    await sandbox_cluster.wait_condition("huge")
    await daemon.wait_attempts("scheduled", 100)


# ------------------------------------------------------------ breaking watches


def drop(cluster: SandboxCluster) -> None:
    cluster.sandbox.faults.drop_watches()


def tear(cluster: SandboxCluster) -> None:
    cluster.sandbox.faults.drop_watches(mid_line=True)


def expire(cluster: SandboxCluster) -> None:
    cluster.sandbox.faults.expire_watches()


def drop_and_expire(cluster: SandboxCluster) -> None:
    cluster.sandbox.faults.gone(2)
    cluster.sandbox.faults.drop_watches()


def refuse(cluster: SandboxCluster) -> None:
    cluster.sandbox.faults.refuse_connections(0.5)


def fail_to_watch(cluster: SandboxCluster) -> None:
    cluster.sandbox.faults.server_error(3, verb="watch")
    cluster.sandbox.faults.expire_watches()


@pytest.mark.parametrize("break_watches", [drop, tear, expire, drop_and_expire, refuse, fail_to_watch])
async def test_watches_that_break_while_pods_come_and_go_lose_nothing(
    sandbox_cluster: SandboxCluster, start: StartDaemon, break_watches: Callable[[SandboxCluster], None]
) -> None:
    sandbox_cluster.put(*nodes(2, cpu="2"))
    daemon = await start(sandbox_cluster)
    store = sandbox_cluster.sandbox.store
    sandbox_cluster.put(*pods(10, "first"), pod("goes", cpu="64"), pod("waits", cpu="8"))
    await sandbox_cluster.wait_condition("goes")
    break_watches(sandbox_cluster)
    # What happens now, nobody watches.
    sandbox_cluster.put(*pods(10, "second"))
    store.delete("pods", "goes", "default")
    # With room to spare: pods of the second batch may get there before the one that waits for it.
    sandbox_cluster.put(node("big", cpu="12"))
    names = [*(f"first-{index}" for index in range(10)), *(f"second-{index}" for index in range(10)), "waits"]
    placements = await sandbox_cluster.wait_bound(names)
    assert placements["waits"] == "big"
    sandbox_cluster.put(pod("last"))
    await sandbox_cluster.wait_bound(["last"])
    await daemon.wait_attempts("scheduled", 22)
    assert await daemon.metric("scheduler_pending_pods") == 0
    assert await daemon.readyz() == 200


async def test_an_api_server_that_is_away_during_a_backlog_gets_all_pods_bound(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    sandbox_cluster.put(*nodes(5), *pods(250, cpu="10m"))
    daemon = await start(sandbox_cluster, configuration(qps=60, burst=5))

    async def some_are_bound() -> bool:
        return await daemon.attempts("scheduled") >= 20

    await eventually(some_are_bound)
    # So long that more status patches of failed attempts pile up than decisions may be ahead of the server.
    sandbox_cluster.sandbox.faults.refuse_connections(6.0)
    names = [f"web-{index}" for index in range(250)]
    await sandbox_cluster.wait_bound(names)
    assert await daemon.attempts("error") > 32
    # Where the answer to a binding was lost and the server stayed away, podium does not know that the pod is bound.
    unknown = {
        entry["pod"]
        for entry in daemon.log("Error scheduling pod; retrying")
        if "could not be read again" in entry["reason"]
    }
    pod_keys = await daemon.wait_told_bound(name for name in names if f"default/{name}" not in unknown)
    assert len(pod_keys) == len(set(pod_keys))


@pytest.mark.control_plane
async def test_an_api_server_that_restarts_in_the_middle_of_work_loses_nothing(
    real_cluster: RealCluster, start: StartDaemon
) -> None:
    await real_cluster.create(*nodes(5))
    await real_cluster.create(*pods(200, cpu="10m"))
    daemon = await start(real_cluster, configuration(qps=25, burst=5))

    async def some_are_bound() -> bool:
        return await daemon.attempts("scheduled") >= 20

    await eventually(some_are_bound)
    await anyio.to_thread.run_sync(real_cluster.plane.stop_apiserver)
    assert len(daemon.bound_pods()) < 200
    await anyio.to_thread.run_sync(real_cluster.plane.start_apiserver)
    await real_cluster.create(*pods(20, "after", cpu="10m"))
    names = {*(f"web-{index}" for index in range(200)), *(f"after-{index}" for index in range(20))}
    assert (await real_cluster.wait_bound(names)).keys() == names
    assert sorted(await daemon.wait_told_bound(names)) == sorted(f"default/{name}" for name in names)
    counts = await real_cluster.events_by_pod("Scheduled")
    assert set(counts.values()) == {1}
    assert daemon.is_running


async def test_connections_that_a_balancer_has_lost_are_noticed_within_half_a_minute(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    """Nobody closes them, and keepalives are answered."""
    port = sandbox_cluster.sandbox.url.rpartition(":")[2]
    await sandbox_cluster.create(*nodes(2))
    async with Relay(int(port)) as relay:
        kubeconfig = tmp_path / "by-the-balancer"
        kubeconfig.write_text(sandbox_cluster.kubeconfig.read_text().replace(f":{port}", f":{relay.port}"))
        daemon = await start(sandbox_cluster, kubeconfig=kubeconfig)
        await sandbox_cluster.create(pod("before"))
        await sandbox_cluster.wait_bound(["before"])
        relay.swallow()
        started_s = time.monotonic()
        await sandbox_cluster.create(pod("after"))
        await sandbox_cluster.wait_bound(["after"], within_s=60.0)
        assert time.monotonic() - started_s < 35.0
        assert await daemon.attempts("error") == 0
        assert await daemon.stop() == 0
