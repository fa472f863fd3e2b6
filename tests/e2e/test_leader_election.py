"""Several replicas of podium, of which one leads: failover, and what a leader does that was stopped for too long."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod, pods

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
LEASE_EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
# Of leaders whose lease is to run out: a standby waits for as long as the lease itself says. All others must keep
# theirs, however busy the machine is.
# Long enough that a busy machine does not end a term, short enough to wait for.
LEASE_S, RENEW_S = 15.0, 12.0
LONG_LEASE_S, LONG_RENEW_S = 120.0, 90.0
RETRY_S = 0.5


def election_configuration(lease_s: float = LONG_LEASE_S, renew_s: float = LONG_RENEW_S, **fields: Any) -> Json:
    """A configuration in which replicas elect a leader."""
    election = {
        "leaderElect": True,
        "resourceName": "podium",
        "leaseDuration": f"{lease_s:g}s",
        "renewDeadline": f"{renew_s:g}s",
        "retryPeriod": f"{RETRY_S:g}s",
    }
    return configuration(leaderElection=election, **fields)


async def leads(daemon: Daemon) -> bool:
    """Whether it says that it does."""
    return await daemon.metric("leader_election_master_status", name="kube-scheduler") == 1


async def wait_leader(*daemons: Daemon) -> Daemon:
    """The one that leads."""

    async def leader() -> Daemon | None:
        for daemon in daemons:
            if daemon.is_running and await leads(daemon):
                return daemon
        return None

    leader_daemon = await eventually(leader)
    assert leader_daemon is not None
    return leader_daemon


async def test_one_of_two_replicas_schedules_and_the_other_takes_over_when_it_ends(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(3))
    first, two = await start(cluster, election_configuration()), await start(cluster, election_configuration())
    leader = await wait_leader(first, two)
    standby = two if leader is first else first
    await cluster.create(*pods(20, "a"))
    await cluster.wait_bound(f"a-{index}" for index in range(20))
    lease = (await cluster.admin.get(LEASE))["spec"]
    assert (lease["leaseDurationSeconds"], lease["leaseTransitions"]) == (LONG_LEASE_S, 0)
    assert standby.bound_pods() == []
    await cluster.create(pod("huge", cpu="999"))
    page = json.loads((await standby.get("/debug/queue"))[1])
    assert page["leader"] == (await cluster.admin.get(LEASE))["spec"]["holderIdentity"]
    assert "leader" not in json.loads((await leader.get("/debug/queue"))[1])
    # It is warm: what the leader has bound is in its cache.
    await standby.wait_metric(20, "scheduler_cache_size", type="pods")
    for endpoint in ("healthz", "readyz"):
        assert "[+]leaderElection ok" in (await standby.get(f"/{endpoint}?verbose"))[1]

    assert await leader.stop() == 0
    assert await wait_leader(standby) is standby
    await cluster.create(*pods(20, "b"))
    await cluster.wait_bound(f"b-{index}" for index in range(20))
    assert len(await standby.wait_told_bound(f"b-{index}" for index in range(20))) == 20
    lease_spec = (await cluster.admin.get(LEASE))["spec"]
    assert lease_spec["leaseTransitions"] == 1

    async def all_told() -> bool:
        phrases = [event["note"].partition(" ")[2] for event in await cluster.admin.list(LEASE_EVENTS)]
        assert sorted(phrases) == ["became leader", "became leader", "stopped leading"]
        return True

    await eventually(all_told)


@pytest.mark.control_plane
async def test_a_leader_that_was_stopped_for_longer_than_its_lease_binds_nothing_when_it_goes_on(
    real_cluster: RealCluster, start: StartDaemon
) -> None:
    cluster = real_cluster
    names = [f"web-{index}" for index in range(800)]
    await cluster.create(*nodes(20), *pods(len(names), cpu="10m"))
    leader = await start(cluster, election_configuration(LEASE_S, RENEW_S, qps=50, burst=10))
    standby = await start(cluster, election_configuration(qps=200, burst=10), ready=False)

    async def is_busy() -> bool:
        return len(leader.bound_pods()) > 50

    await eventually(is_busy)
    leader.signal(signal.SIGSTOP)
    pods_before = set(leader.bound_pods())
    await standby.wait_ready()
    assert await wait_leader(standby) is standby

    async def has_taken_over() -> bool:
        return len(standby.bound_pods()) > 20

    await eventually(has_taken_over)
    placements = set(await cluster.placements())
    leader.signal(signal.SIGCONT)
    assert await leader.wait_ended() == 1
    assert "Leaderelection lost" in leader.output()
    assert "Traceback" not in leader.output()
    await cluster.wait_bound(names)
    # Whatever was under way when it was stopped had arrived by then; nothing came from it later.
    assert set(leader.bound_pods()) - pods_before <= {f"default/{name}" for name in placements}
    await standby.wait_told_bound(set(names) - placements)


LINGERS = '''
import os
import time
from pathlib import Path

import anyio

from podium.framework import PreBindPlugin, ReservePlugin


class Lingers(PreBindPlugin, ReservePlugin):
    """Holds each binding back until it may come; the first replica to reserve room for the pod `blocker` is blocked."""

    def reserve(self, state, pod, node_name):
        flag = Path(__file__).with_name("may-block")
        if pod.metadata.name == "blocker" and flag.exists():
            flag.unlink()
            Path(__file__).with_name("may-bind").touch()
            time.sleep(BLOCKED_S)

    def unreserve(self, state, pod, node_name):
        pass

    async def pre_bind(self, state, pod, node_name):
        os.write(1, f"lingering {pod.key}\\n".encode())  # at once: the log's writer would cut in
        while not Path(__file__).with_name("may-bind").exists():
            await anyio.sleep(0.1)
'''


@pytest.mark.parametrize("by", ["a stop", "a plugin"])
async def test_bindings_that_come_due_while_the_leader_is_held_up_are_not_made_by_it(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path, by: str
) -> None:
    plugin = tmp_path / "lingers.py"
    blocked_s = LEASE_S + 2.0
    plugin.write_text(LINGERS.replace("BLOCKED_S", str(blocked_s)))
    (tmp_path / "may-block").touch()
    plugins = {"multiPoint": {"enabled": [{"name": "Lingers"}]}}
    profiles = [{"schedulerName": "podium", "plugins": plugins}]
    flags = ("--plugin", f"{plugin}:Lingers")
    await sandbox_cluster.create(*nodes(3))
    leader = await start(sandbox_cluster, election_configuration(LEASE_S, RENEW_S, profiles=profiles), flags=flags)
    await wait_leader(leader)
    standby = await start(sandbox_cluster, election_configuration(profiles=profiles), flags=flags)
    names = [f"web-{index}" for index in range(10)]
    await sandbox_cluster.create(*pods(len(names)))

    async def are_lingering() -> bool:
        return leader.output().count("lingering default/web") == len(names)

    async def has_been_followed() -> bool:
        return bool(standby.log("Successfully acquired lease"))

    await eventually(are_lingering)
    if by == "a stop":
        leader.signal(signal.SIGSTOP)
        (tmp_path / "may-bind").touch()
        await eventually(has_been_followed)
        leader.signal(signal.SIGCONT)
    else:
        await sandbox_cluster.create(pod("blocker"))
    assert await leader.wait_ended() == 1
    await sandbox_cluster.wait_bound(names)
    await standby.wait_told_bound(names)
    assert leader.bound_pods() == []


async def test_a_leader_that_cannot_reach_the_api_server_ends_before_its_lease_does(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    daemon = await start(sandbox_cluster, election_configuration(LEASE_S, RENEW_S))
    await wait_leader(daemon)
    sandbox_cluster.sandbox.faults.refuse_connections(60.0)
    refused_s = time.time()
    assert await daemon.wait_ended() == 1
    [loss] = daemon.log("Leaderelection lost")
    assert datetime.fromisoformat(loss["ts"]).timestamp() - refused_s < LEASE_S + 5.0
    assert loss["level"] == "error"
    last = daemon.log()[-1]
    assert (last["level"], last["msg"], last["error"]) == ("critical", "Fatal error", "leaderelection lost")


async def test_caches_are_filled_only_by_the_leader_when_the_configuration_says_so(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(2))
    config = election_configuration(delayCacheUntilActive=True)
    first = await start(sandbox_cluster, config)
    second = await start(sandbox_cluster, config, ready=False)

    async def stands_by() -> bool:
        return bool(second.log("New leader elected"))

    await eventually(stands_by)
    assert await second.readyz() == 500
    assert "[-]sched-handler-sync failed" in (await second.get("/readyz?verbose"))[1]
    assert await second.metric("scheduler_cache_size", type="nodes") == 0
    assert await first.stop() == 0
    await second.wait_ready()
    assert await second.metric("scheduler_cache_size", type="nodes") == 2


async def test_flags_have_the_last_word(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    flags = ("--leader-elect", "--leader-elect-resource-name=other", "--leader-elect-lease-duration=20s")
    daemon = await start(sandbox_cluster, configuration(), flags=flags)
    await wait_leader(daemon)
    lease = await sandbox_cluster.admin.get(LEASE.replace("podium", "other"))
    assert lease["spec"]["leaseDurationSeconds"] == 20
    election = json.loads((await daemon.get("/configz"))[1])["componentconfig"]["leaderElection"]
    assert (election["leaderElect"], election["resourceName"], election["leaseDuration"]) == (True, "other", "20s")
